#!/usr/bin/env python3
"""What the pages say is there: links and anchors lead somewhere, files that are named exist, `make` has the targets.
With --binary also: verbs, flags, keys, recipes and values of every `siamese` command in a block are those of the binary, and
blocks under a line `<!-- run -->` are run as they stand, with the output that they show. `<!-- run train.steps=2 -->` gives
its trainings overrides, `<!-- first: COMMAND -->` makes what the reader has already, `<!-- write mine.yaml -->` writes the block
below it to a file.

    tools/check_docs.py                                        seconds, needs nothing but Python; part of `make check`
    tools/check_docs.py --binary build/release/siamese         half a minute; the test `docs` of ctest
"""

import argparse
import re
import sys
from pathlib import Path
from urllib.parse import unquote

sys.path.insert(0, str(Path(__file__).resolve().parent))

from check_tree import our_files  # noqa: E402
from docs_pages import Page, read_page  # noqa: E402

# Made by commands of the pages, or the reader's own.
MADE = ("runs/", "data/", "dist/", "build/")
PLACEHOLDER = re.compile(r"[<>*{}$…]|\.\.\.|\bNAME\b|[A-Z]{3,}")


def pages_of(root: Path) -> list[Path]:
    return [name for name in our_files(root) if name.suffix == ".md" and name.parts[0] != "tests"]


def check_links(root: Path, page: Page, anchors: dict[Path, set[str]]) -> list[str]:
    problems = []
    for line, link in page.links:
        if re.match(r"^[a-z]+:", link):
            continue
        target, _, anchor = unquote(link).partition("#")
        path = page.name if not target else Path(*_resolved(page.name.parent / target))
        if not (root / path).exists():
            problems.append(f"{page.name}:{line}: link to {link}: there is no {path}")
        elif anchor and path.suffix == ".md" and anchor not in anchors.get(path, set()):
            problems.append(f"{page.name}:{line}: link to {link}: {path} has no heading of that name")
    return problems


def _resolved(path: Path) -> list[str]:
    parts: list[str] = []
    for part in path.parts:
        if part == "..":
            parts = parts[:-1] if parts and parts[-1] != ".." else [*parts, part]
        elif part != ".":
            parts.append(part)
    return parts


def words_of(page: Page) -> list[tuple[int, str]]:
    """Words of code, in text and in shell blocks, without the quotes of the shell."""
    words = [(line, word) for line, text in page.code for word in text.split()]
    for block in page.blocks:
        if block.is_shell():
            words += [(command.line, word) for command in block.commands() for word in command.words]
    return words


def check_files(root: Path, page: Page, folders: set[str]) -> list[str]:
    """A word that begins with a folder of the tree names a file of it."""
    problems = []
    for line, word in words_of(page):
        path = word.strip("'\"(),;:").split(":")[0].split("#")[0]
        if "/" not in path or path.split("/")[0] not in folders or PLACEHOLDER.search(path) or path.startswith(MADE):
            continue
        # A recipe is named without its ending, and `siamese` is also a folder.
        if not any((root / candidate).exists() for candidate in (path, path + ".h", path + ".cc", path + ".yaml")):
            problems.append(f"{page.name}:{line}: names {path}, which is not in the tree")
    return problems


def check_targets(page: Page, targets: set[str]) -> list[str]:
    problems = []
    spans = [(line, text.split()) for line, text in page.code]
    for block in page.blocks:
        if block.is_shell():
            spans += [(command.line, list(command.words)) for command in block.commands()]
    for line, words in spans:
        if not words or words[0] != "make":
            continue
        for word in words[1:]:
            if re.fullmatch(r"[a-z][a-z0-9-]*", word) and word not in targets:
                problems.append(f"{page.name}:{line}: make {word}: the Makefile has no such target")
    return problems


def make_targets(root: Path) -> set[str]:
    makefile = root / "Makefile"
    text = makefile.read_text(encoding="utf-8") if makefile.is_file() else ""
    return set(re.findall(r"^([a-z][a-z0-9-]*):", text, flags=re.MULTILINE))


def check(root: Path) -> tuple[list[Page], list[str]]:
    names = pages_of(root)
    pages = [read_page(root, name) for name in names]
    anchors = {page.name: page.anchors for page in pages}
    folders = {name.parts[0] for name in our_files(root) if len(name.parts) > 1 and name.parts[0] != "siamese"}
    targets = make_targets(root)
    problems = []
    for page in pages:
        problems += check_links(root, page, anchors)
        problems += check_files(root, page, folders)
        problems += check_targets(page, targets)
    return pages, problems


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", type=Path, help="ask this siamese about every command, and run the marked blocks")
    arguments = parser.parse_args()
    root = Path(__file__).resolve().parent.parent
    pages, problems = check(root)
    counted = f"{len(pages)} pages, {sum(len(page.links) for page in pages)} links"
    if arguments.binary:
        from docs_commands import Binary, check_commands  # noqa: PLC0415

        binary = Binary(arguments.binary.resolve(), root)
        problems += check_commands(pages, binary)
        counted += f", {binary.commands} commands, {binary.configs} configs, {binary.ran} commands run"
    for problem in problems:
        print(problem, file=sys.stderr)
    if not problems:
        print(f"check_docs: {counted}: all as they should be")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
