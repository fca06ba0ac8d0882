"""Pages of Markdown as tools/check_docs.py sees them: links, headings, words in code, and commands in blocks."""

import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path

SHELL = {"sh", "bash"}
FENCE = re.compile(r"^(\s*)```\s*(\w*)\s*$")
LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^()\s]+)\)")
CODE = re.compile(r"(`+)(.+?)\1")
# Lines above a block that say what the test `docs` does with it. `run`: run it; words behind it are overrides for every
# training in it, so that it ends in seconds. `first`: a command that makes what the reader has (his text, his files).
# `write`: the block is the content of a file.
MARK = re.compile(r"^\s*<!-- (run|first:|write)(?: (.*?))? -->\s*$")


@dataclass(frozen=True)
class Command:
    """One simple command: its words as the shell would hand them over."""

    line: int
    words: tuple[str, ...]


@dataclass
class Block:
    """A fenced or indented block of code."""

    line: int
    language: str
    marks: list[tuple[str, str]] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)

    def marked(self, kind: str) -> list[str]:
        """What stands behind the marks of a kind."""
        return [text for name, text in self.marks if name == kind]

    @property
    def runs(self) -> bool:
        return bool(self.marked("run"))

    def is_shell(self) -> bool:
        """An indented or unnamed block is one when it begins as a command of ours does."""
        first = next((text for text in self.lines if text.strip()), "").strip()
        return self.language in SHELL or (not self.language and first.split(" ")[0] in ("siamese", "mpirun", "make", "python3"))

    def logical_lines(self) -> list[tuple[int, str]]:
        """Lines with those joined that a backslash continues."""
        joined: list[tuple[int, str]] = []
        open_line = False
        for offset, text in enumerate(self.lines):
            goes_on = text.rstrip().endswith("\\")
            part = text.rstrip()[:-1] if goes_on else text
            if open_line:
                joined[-1] = (joined[-1][0], joined[-1][1] + " " + part.strip())
            else:
                joined.append((self.line + offset, part))
            open_line = goes_on
        return joined

    def commands(self) -> list[Command]:
        found = []
        for number, text in self.logical_lines():
            for words in simple_commands(text):
                found.append(Command(number, tuple(words)))
        return found


def simple_commands(text: str) -> list[list[str]]:
    """A line of shell cut at pipes, semicolons and redirections; [] for a line that is no complete shell."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars="|;&<>")
    lexer.whitespace_split = True
    try:
        tokens = list(lexer)
    except ValueError:
        return []
    commands: list[list[str]] = [[]]
    for token in tokens:
        if set(token) <= set("|;&<>"):
            commands.append([])
        else:
            commands[-1].append(token)
    return [words for words in commands if words]


@dataclass
class Page:
    name: Path  # relative to the root
    links: list[tuple[int, str]] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)
    code: list[tuple[int, str]] = field(default_factory=list)  # spans of code in running text
    blocks: list[Block] = field(default_factory=list)


def slug(heading: str, taken: set[str]) -> str:
    """The anchor that GitHub gives a heading."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading.replace("`", "")).strip().lower()
    text = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
    anchor, count = text, 0
    while anchor in taken:
        count += 1
        anchor = f"{text}-{count}"
    return anchor


def read_page(root: Path, name: Path) -> Page:
    page = Page(name)
    block: Block | None = None
    fence = False
    marks: list[tuple[str, str]] = []
    blank = True
    for number, line in enumerate((root / name).read_text(encoding="utf-8").splitlines(), start=1):
        opening = FENCE.match(line)
        if fence:
            assert block is not None
            if opening and not opening[2]:
                fence, block = False, None
            else:
                block.lines.append(line)
            continue
        if opening:
            block = Block(number + 1, opening[2], marks)
            page.blocks.append(block)
            fence, marks = True, []
            continue
        mark = MARK.match(line)
        if mark:
            marks.append((mark[1].rstrip(":"), mark[2] or ""))
            continue
        indented = line.startswith("    ") and (blank or (block is not None and not fence))
        if indented:
            if block is None:
                block = Block(number, "")
                page.blocks.append(block)
            block.lines.append(line[4:])
            blank = False
            continue
        blank = not line.strip()
        if blank and block is not None:
            block.lines.append("")
            continue
        block = None
        read_text_line(page, number, line)
    return page


def read_text_line(page: Page, number: int, line: str) -> None:
    heading = re.match(r"^#{1,6}\s+(.*?)\s*#*$", line)
    if heading:
        page.anchors.add(slug(heading[1], page.anchors))
    page.code += [(number, match[2].strip()) for match in CODE.finditer(line)]
    bare = CODE.sub(lambda match: "x" * len(match[0]), line)
    page.links += [(number, match[1]) for match in LINK.finditer(bare)]
    page.links += [(number, match[1]) for match in re.finditer(r"""(?:src|href)="([^"]+)\"""", bare)]
