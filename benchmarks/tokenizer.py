#!/usr/bin/env python3
"""Encoding speed beside `tokenizers` and `tiktoken`: the same text, the same vocabulary, the same machine, in turn.

    pip install tokenizers==0.23.3 tiktoken
    python3 tools/real_data.py tokenizers --out DIR      # and: english
    python3 benchmarks/tokenizer.py --tokenizers DIR/tokenizers --text DIR/english

Documents are the files, cut at 32 KB. One thread each, MB of text per second of processor time, best of `--rounds`; the
column `2 threads` is by the clock on the wall, beside one thread by the same clock. Reading files, starting and loading
the tokenizer are not counted: ours is timed inside the process (`siamese tokenizer bench`). tiktoken is only for
byte-level files, with the file's own splitting pattern.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tokenizers import Tokenizer

CHUNK = 1 << 15


def documents(folder: Path) -> list[str]:
    texts = []
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        content = path.read_text(encoding="utf-8", errors="ignore")
        texts += [content[i : i + CHUNK] for i in range(0, len(content), CHUNK)]
    return texts


def best(rounds: int, work) -> float:
    seconds = []
    for _ in range(rounds):
        begin = time.process_time()
        work()
        seconds.append(time.process_time() - begin)
    return min(seconds)


def as_bytes(token: str) -> bytes | None:
    visible = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    table = {chr(b): b for b in visible}
    table.update({chr(0x100 + i): b for i, b in enumerate(b for b in range(256) if b not in visible)})
    try:
        return bytes(table[c] for c in token)
    except KeyError:
        return None


def tiktoken_of(file: Path):
    """The same vocabulary in tiktoken; None when it has no such thing."""
    import tiktoken

    raw = json.loads(file.read_text(encoding="utf-8"))
    steps = raw["pre_tokenizer"].get("pretokenizers", [raw["pre_tokenizer"]]) if raw.get("pre_tokenizer") else []
    if not steps or steps[-1]["type"] != "ByteLevel":
        return None
    pattern = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
    for step in steps:
        if step["type"] == "Split":
            pattern = step["pattern"]["Regex"]
    added = {token["content"] for token in raw["added_tokens"]}
    ranks = {}
    for token, number in raw["model"]["vocab"].items():
        key = as_bytes(token)
        if key is not None and token not in added:
            ranks[key] = number
    try:
        return tiktoken.Encoding(file.stem, pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
    except ValueError:
        return None


def ours(binary: str, file: Path, texts: Path, threads: int, rounds: int) -> tuple[float, float]:
    """MB/s by the wall and by the processor."""
    command = [binary, "tokenizer", "bench", str(file), str(texts), "--threads", str(threads), "--rounds", str(rounds)]
    words = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return float(words[0]), float(words[2])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", default="build/release/siamese")
    parser.add_argument("--tokenizers", type=Path, required=True)
    parser.add_argument("--text", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="*")
    arguments = parser.parse_args()
    os.environ["RAYON_NUM_THREADS"] = "1"
    texts = documents(arguments.text)
    megabytes = sum(len(text.encode()) for text in texts) / 1e6
    print(f"{megabytes:.1f} MB in {len(texts)} documents; load {os.getloadavg()[0]:.1f}; {os.cpu_count()} cores")
    print(f"{'tokenizer':<16} {'ours':>7} {'2 threads':>10} {'tokenizers':>11} {'tiktoken':>9}   MB/s   ratios")
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl", encoding="utf-8") as given:
        given.writelines(json.dumps(text, ensure_ascii=False) + "\n" for text in texts)
        given.flush()
        for file in sorted(arguments.tokenizers.glob("*.json")):
            if arguments.only and file.stem not in arguments.only:
                continue
            wall, mine = ours(arguments.binary, file, Path(given.name), 1, arguments.rounds)
            two, _ = ours(arguments.binary, file, Path(given.name), 2, arguments.rounds)
            library = Tokenizer.from_file(str(file))
            library.no_truncation()
            library.no_padding()
            theirs = megabytes / best(arguments.rounds, lambda: [library.encode(text) for text in texts])  # noqa: B023
            encoding = tiktoken_of(file)
            third = 0.0
            if encoding:
                third = megabytes / best(arguments.rounds, lambda: [encoding.encode_ordinary(text) for text in texts])  # noqa: B023
            ratios = f"{mine / theirs:.1f}x" + (f", {mine / third:.1f}x" if third else "")
            print(f"{file.stem:<16} {mine:>7.1f} {two / wall:>9.2f}x {theirs:>11.1f} {third or float('nan'):>9.1f}          {ratios}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
