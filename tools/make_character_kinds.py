#!/usr/bin/env python3
"""Writes siamese/text/character_kinds.cc: what kind every character is for the Python `tokenizers` library, asked of the
library itself, because its parts follow different versions of Unicode. Needs `pip install tokenizers==0.23.3`.

    python3 tools/make_character_kinds.py
"""

from pathlib import Path

from tokenizers import Regex, pre_tokenizers

CHARACTERS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
BLOCK = 20_000
OUT = Path(__file__).resolve().parent.parent / "siamese" / "text" / "character_kinds.cc"


def removed(pre) -> set[int]:
    """Characters that a pre-tokenizer takes out of a text."""
    found = set()
    for i in range(0, len(CHARACTERS), BLOCK):
        block = CHARACTERS[i : i + BLOCK]
        kept = set()
        for _, (begin, end) in pre.pre_tokenize_str("".join(map(chr, block))):
            kept.update(range(begin, end))
        found.update(c for j, c in enumerate(block) if j not in kept)
    return found


def apart(pre, around: str) -> set[int]:
    """Characters that stand apart (`around` 'a': from the letter before them) when a text is split."""
    found = set()
    for i in range(0, len(CHARACTERS), BLOCK):
        block = CHARACTERS[i : i + BLOCK]
        step = 1 + len(around)
        for _, (begin, end) in pre.pre_tokenize_str("".join(f"a{chr(c)}{around[1:]}" for c in block)):
            if len(around) == 1 and end - begin == 1 and begin % step == 1:
                found.add(block[begin // step])
            if len(around) == 2 and end - begin == 2 and begin % step == 0:
                found.add(block[begin // step])
    return found


def kinds() -> list[int]:
    """One number of flags for every character, as in characters.h."""
    by_regex = {name: removed(pre_tokenizers.Split(Regex(rf"\p{{{name}}}"), "removed")) for name in
                ("Lu", "Ll", "Lt", "Lm", "Lo", "M", "Nd", "N", "P")}  # fmt: skip
    flags = [by_regex[name] for name in ("Lu", "Ll", "Lt", "Lm", "Lo", "M", "Nd")]
    flags.append(by_regex["N"] - by_regex["Nd"])
    flags.append(by_regex["P"])
    flags.append(removed(pre_tokenizers.WhitespaceSplit()))
    flags.append(removed(pre_tokenizers.Split(Regex(r"\w"), "removed")))
    flags.append(apart(pre_tokenizers.Whitespace(), "a "))
    flags.append(apart(pre_tokenizers.Digits(True), "a"))
    flags.append(apart(pre_tokenizers.Punctuation("isolated"), "a"))
    table = [0] * 0x110000
    for bit, characters in enumerate(flags):
        for c in characters:
            table[c] |= 1 << bit
    return table


def text_of(runs: list[tuple[int, int]]) -> str:
    rows = [", ".join(f"{{0x{c:X}, {k}}}" for c, k in runs[i : i + 10]) for i in range(0, len(runs), 10)]
    return "\n".join(
        [
            "// Made by tools/make_character_kinds.py: where a run of characters of one kind begins, and the kinds of its",
            "// characters (characters.h).",
            '#include "siamese/text/character_kinds.h"',
            "",
            "namespace siamese::text {",
            "",
            "// clang-format off",
            f"const std::array<KindRun, {len(runs)}> kKindRuns{{{{",
            *(row + "," for row in rows),
            "}};",
            "// clang-format on",
            "",
            "}  // namespace siamese::text",
            "",
        ]
    )


def main() -> None:
    table = kinds()
    runs: list[tuple[int, int]] = []
    for c in CHARACTERS:
        if not runs or runs[-1][1] != table[c]:
            runs.append((c, table[c]))
    OUT.write_text(text_of(runs))
    print(f"{OUT}: {len(runs)} runs")


if __name__ == "__main__":
    main()
