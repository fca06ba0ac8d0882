#!/usr/bin/env python3
"""Compares `siamese tokenizer` with the Python library on real and on random text, and prints a table:

    pip install tokenizers==0.23.3
    python3 tools/real_data.py tokenizers --out DIR      # and: english, languages
    python3 tools/tokenizer_check.py --tokenizers DIR/tokenizers --text DIR/english DIR/languages --strings 100000

A row: texts and bytes compared, texts whose ids differ (0 is the aim), ids that decode to another text than the library's,
and for byte-level files texts that do not come back as they were. The first difference is shown. Exit code 1 if any.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

from tokenizers import Tokenizer

CHUNK = 1 << 15
SLICE = 25_000  # texts at a time
TELLING = [ord(c) for c in "   \n\r\t'sSlLrevtdmaZ09_-.<|>"] + [
    0x17F, 0x130, 0xDF, 0xE9, 0x301, 0x316, 0x3B1, 0x3A3, 0x416, 0x5D0, 0x627, 0x663, 0x905, 0x93E, 0xAC00, 0x1100,
    0x1161, 0x11A8, 0x4E2D, 0x3042, 0x85, 0xA0, 0x1680, 0x180E, 0x2003, 0x2028, 0x200D, 0x3000, 0xFEFF, 0xB2, 0x2160,
    0x24B6, 0x1F600, 0x660, 0x10FFFF, 0x1D7D8, 0x212A, 0x2581, 0x0, 0x7F, 0xFB01, 0x1E9E, 0xFF21, 0x20AC, 0x3007,
]  # fmt: skip


def random_strings(count: int, seed: int) -> list[str]:
    """A third from characters that tokenizers tell apart, a third from all of Unicode, a third of both."""
    draw = random.Random(seed)
    texts = []
    for i in range(count):
        codes = []
        for _ in range(draw.randint(1, 20)):
            any_character = i % 3 == 1 or (i % 3 == 2 and draw.random() < 0.3)
            code = draw.randrange(0x110000) if any_character else draw.choice(TELLING)
            if not 0xD800 <= code < 0xE000:
                codes.append(chr(code))
        texts.append("".join(codes))
    return texts


def real_texts(folders: list[Path], most: int) -> list[str]:
    """Files in pieces of about 32 KB."""
    texts, total = [], 0
    for folder in folders:
        for path in sorted(p for p in folder.rglob("*") if p.is_file()):
            content = path.read_text(encoding="utf-8", errors="ignore")
            for i in range(0, len(content), CHUNK):
                texts.append(content[i : i + CHUNK])
                total += len(texts[-1].encode())
            if total >= most:
                return texts
    return texts


def ours(binary: str, action: str, file: Path, lines: list[str]) -> list[str]:
    with tempfile.TemporaryFile("w+", encoding="utf-8") as given:
        given.write("".join(line + "\n" for line in lines))
        given.seek(0)
        done = subprocess.run(
            [binary, "tokenizer", action, str(file), "--json-lines"], stdin=given, capture_output=True, text=True, check=False
        )
    if done.returncode != 0:
        raise SystemExit(f"tokenizer_check: {file.name}: {done.stderr.strip()}")
    return done.stdout.split("\n")[:-1]  # splitlines would also split at U+2028


def compare(binary: str, file: Path, texts: list[str]) -> tuple[int, int, int, str]:
    library = Tokenizer.from_file(str(file))
    library.no_truncation()
    library.no_padding()
    wrong_ids = wrong_text = not_back = 0
    example = ""
    raw = json.loads(file.read_text(encoding="utf-8"))
    byte_level = (raw.get("decoder") or {}).get("type") == "ByteLevel" and raw.get("normalizer") is None
    byte_level = byte_level and not library.encode("").ids
    for begin in range(0, len(texts), SLICE):
        part = texts[begin : begin + SLICE]
        mine = ours(binary, "encode", file, [json.dumps(text) for text in part])
        theirs = [json.dumps(one.ids) for one in library.encode_batch_fast(part)]
        decoded = ours(binary, "decode", file, theirs)
        for text, a, b, back in zip(part, mine, theirs, decoded, strict=True):
            if a != b:
                wrong_ids += 1
                a, b = json.loads(a), json.loads(b)
                at = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
                example = example or f"{text[:60]!r}: id {at}: got {a[at:at + 6]}, expected {b[at:at + 6]}"
                continue
            back = json.loads(back)
            if byte_level and back == text:  # then the library's is the same
                continue
            not_back += byte_level
            expected = library.decode(json.loads(b), skip_special_tokens=False)
            if back != expected:
                wrong_text += 1
                example = example or f"{text[:60]!r}: decoded {back[:60]!r}, expected {expected[:60]!r}"
    return wrong_ids, wrong_text, not_back, example


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", default="build/release/siamese")
    parser.add_argument("--tokenizers", type=Path, required=True, help="a folder of tokenizer files")
    parser.add_argument("--text", type=Path, nargs="*", default=[], help="folders of text")
    parser.add_argument("--bytes", type=int, default=1 << 40, help="of each folder of text, at most")
    parser.add_argument("--strings", type=int, default=100_000, help="random strings")
    parser.add_argument("--seed", type=int, default=18)
    parser.add_argument("--only", nargs="*", help="names of tokenizers")
    arguments = parser.parse_args()
    texts = [text for folder in arguments.text for text in real_texts([folder], arguments.bytes)]
    sets = [("real", texts), ("random", random_strings(arguments.strings, arguments.seed))]
    bad = 0
    print(f"{'tokenizer':<16} {'text':<7} {'texts':>7} {'bytes':>10} {'ids differ':>10} {'text differs':>12} {'not back':>8}")
    for file in sorted(arguments.tokenizers.glob("*.json")):
        if arguments.only and file.stem not in arguments.only:
            continue
        for name, some in sets:
            size = sum(len(text.encode()) for text in some)
            wrong_ids, wrong_text, not_back, example = compare(arguments.binary, file, some)
            print(f"{file.stem:<16} {name:<7} {len(some):>7} {size:>10} {wrong_ids:>10} {wrong_text:>12} {not_back:>8}", flush=True)
            if example:
                print(f"    {example}")
            bad += wrong_ids + wrong_text + not_back
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
