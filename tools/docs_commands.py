"""The `siamese` commands of the pages, held to a binary (tools/check_docs.py --binary)."""

import os
import re
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path

from docs_pages import Block, Command, Page

KEY = re.compile(r"^([a-z_0-9]+(?:\.[a-z_0-9]+)+)=")
PLACEHOLDER = re.compile(r"\.\.\.|^[A-Z][A-Z_0-9.]*$|\$|^<.*>$")
# Verbs whose first word is a config, to which overrides follow: `config show` reads them as the verb would.
CONFIG_VERBS = {("train",), ("plan",), ("bench", "step"), ("bench", "generate"), ("bench", "growth"), ("config", "show"),
                ("config", "check")}
# What the reader's files would tell, which are not here.
FROM_FILES = ("must be given: data.source does not say", "data.train: expected a folder, got nothing: no '")
SECONDS = 120
OVERRIDES = "DOCS_OVERRIDES"
# Stands for the binary in the blocks that are run: trainings get the overrides of the block.
STAND_IN = """#!/bin/sh
case "$1" in train|resume|sweep) exec '{binary}' "$@" $%s ;; esac
exec '{binary}' "$@"
""" % OVERRIDES


class Binary:
    def __init__(self, path: Path, root: Path):
        self.path, self.root = path, root
        self.commands = self.configs = self.ran = 0
        # One thread, and no waiting for it: what is asked here is small.
        self.environment = {**os.environ, "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"}

    def output(self, words: tuple[str, ...]) -> tuple[int, str]:
        run = subprocess.run([str(self.path), *words], cwd=self.root, env=self.environment, text=True, check=False,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=SECONDS)
        return run.returncode, run.stdout.strip()

    @lru_cache(maxsize=None)  # noqa: B019
    def help(self, verb: tuple[str, ...]) -> str:
        code, text = self.output((*verb, "--help"))
        return text if code == 0 else ""

    def verbs(self, below: tuple[str, ...] = ()) -> set[str]:
        listed = re.search(r"^SUBCOMMANDS:\s*\n((?:^ .*\n?|^\s*\n)*)", self.help(below), flags=re.MULTILINE | re.IGNORECASE)
        return set(re.findall(r"^  ([a-z]+)\b", listed[1], flags=re.MULTILINE)) if listed else set()

    def flags(self, verb: tuple[str, ...]) -> set[str]:
        return {"--help", "-h"} | set(re.findall(r"(?<![\w-])(--?[a-zA-Z][\w-]*)", self.help(verb)))

    def ask_all(self) -> None:
        """The help of every verb, several at a time."""
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            verbs = [(verb,) for verb in self.verbs()]
            list(pool.map(self.help, verbs))
            list(pool.map(self.help, [(*verb, below) for verb in verbs for below in self.verbs(verb)]))

    @lru_cache(maxsize=None)  # noqa: B019
    def keys(self) -> frozenset[str]:
        return frozenset(re.findall(r"[a-z_0-9]+(?:\.[a-z_0-9]+)+", self.output(("config", "keys"))[1]))


def is_siamese(word: str) -> bool:
    return word == "siamese" or word.endswith("/siamese")


def arguments_of(command: Command) -> list[str] | None:
    """What follows `siamese` in a command, also behind mpirun and the like; None when there is none."""
    for index, word in enumerate(command.words):
        if is_siamese(word):
            before = command.words[:index]
            starters = {"mpirun", "srun", "time", "nice", "env", "chrt"}
            return list(command.words[index + 1 :]) if not before or before[0] in starters else None
    return None


def optional(word: str) -> str:
    """[--in-cache] of a synopsis -> --in-cache; lists and texts in brackets stay."""
    return word.strip("[]") if word.startswith(("[-", "-")) else word


class Asked:
    """One command, judged by what the binary says of itself."""

    def __init__(self, binary: Binary, words: list[str]):
        self.binary, self.words = binary, [optional(word) for word in words]
        self.verb: tuple[str, ...] = ()
        while len(self.verb) < len(self.words) and self.words[len(self.verb)] in binary.verbs(self.verb):
            self.verb += (self.words[len(self.verb)],)
        self.rest = self.words[len(self.verb) :]

    def problem(self) -> str | None:
        if not self.words or PLACEHOLDER.search(self.words[0]):
            return None
        below = self.binary.verbs(self.verb)
        if below and self.rest and not self.rest[0].startswith("-") and not PLACEHOLDER.search(self.rest[0]):
            return f"{' '.join(('siamese', *self.verb))} has no verb '{self.rest[0]}'"
        known = self.binary.flags(self.verb)
        for word in self.rest:
            flag = word.split("=")[0]
            if re.fullmatch(r"--?[a-zA-Z][\w-]*", flag) and flag not in known:
                return f"{' '.join(self.verb)} has no option {flag}"
            key = KEY.match(word)
            if key and key[1] not in self.binary.keys():
                return f"there is no key {key[1]}"
        return None

    def config(self) -> tuple[str, ...] | None:
        """The words of `config show` that must be accepted, for a verb with a config."""
        if self.verb not in CONFIG_VERBS or not self.rest or self.rest[0].startswith("-"):
            return None
        words = [word for word in self.rest if "=" in word and KEY.match(word)]
        if any(PLACEHOLDER.search(word) for word in [self.rest[0], *words]):
            return None
        name = self.rest[0]
        if name.startswith("runs/") or (name.endswith(".yaml") and not (self.binary.root / name).is_file()):
            return None  # made by an earlier command, or the reader's own
        return (name, *words)


def check_page(page: Page, binary: Binary) -> tuple[list[str], dict[tuple[str, ...], str]]:
    problems, configs = [], {}
    places = [(command, arguments_of(command)) for block in page.blocks if block.is_shell() for command in block.commands()]
    for line, text in page.code:  # `siamese train arithmetic-small` in running text
        if text.startswith("siamese "):
            places += [(Command(line, tuple(text.split())), text.split()[1:])]
    for command, words in places:
        if words is None:
            continue
        binary.commands += 1
        asked = Asked(binary, words)
        problem = asked.problem()
        if problem:
            problems.append(f"{page.name}:{command.line}: {problem}")
        elif asked.config():
            configs.setdefault(asked.config(), f"{page.name}:{command.line}")
    return problems, configs


def check_configs(binary: Binary, configs: dict[tuple[str, ...], str]) -> list[str]:
    def judge(words: tuple[str, ...]) -> str | None:
        code, text = binary.output(("config", "show", *words))
        from_files = any(said in text for said in FROM_FILES) and any(word.startswith("data.source=") for word in words)
        if code == 0 or from_files:
            return None
        return f"{configs[words]}: {text.splitlines()[-1] if text else f'exit {code}'}"

    binary.configs += len(configs)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return [problem for problem in pool.map(judge, configs) if problem]


def run_shell(text: str, binary: Binary, folder: Path, overrides: str) -> tuple[int, str]:
    """Exit code and what was said; a model of bytes may have begun a character and not ended it."""
    environment = {**binary.environment, OVERRIDES: overrides, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}
    run = subprocess.run(["bash", "-c", text], cwd=folder, env=environment, check=False, stdin=subprocess.DEVNULL, encoding="utf-8",
                         errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=SECONDS)
    return run.returncode, run.stdout.strip()


def run_block(page: Page, block: Block, binary: Binary, folder: Path) -> list[str]:
    """Runs a marked block, or writes the file that it is. Lines behind `$ ` are commands with their output below; in a shell
    block every line is one."""
    for name in block.marked("write"):
        (folder / name).write_text("\n".join([*block.lines, ""]), encoding="utf-8")
    shown = any(text.startswith("$ ") for text in block.lines)
    first = block.marked("first")
    steps: list[tuple[int, str, list[str]]] = [(block.line, text, []) for text in first]
    for number, text in block.logical_lines() if block.runs else []:
        if shown and not text.startswith("$ "):
            steps[-1][2].append(text)
        elif text.strip() and not text.strip().startswith("#"):
            steps.append((number, text.removeprefix("$ "), []))
    problems = []
    for step, (number, text, expected) in enumerate(steps):
        binary.ran += 1
        code, said = run_shell(text, binary, folder, " ".join(block.marked("run")))
        wanted = "\n".join(expected).strip()
        if code != 0 and (not shown or step < len(first)):
            problems.append(f"{page.name}:{number}: exit {code}: {said[-300:]}")
        elif wanted and wanted != said:
            problems.append(f"{page.name}:{number}: the page shows\n{wanted}\nand the command says\n{said}")
    return problems


def run_blocks(pages: list[Page], binary: Binary) -> list[str]:
    """All marked blocks of a page in one folder, in which the tree is to be seen and runs/ is empty."""
    problems = []
    for page in pages:
        marked = [block for block in page.blocks if block.marks]
        if not marked:
            continue
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "bin").mkdir()
            (folder / "bin" / "siamese").write_text(STAND_IN.format(binary=binary.path), encoding="utf-8")
            (folder / "bin" / "siamese").chmod(0o755)
            for part in ("tools", "examples"):
                (folder / part).symlink_to(binary.root / part)
            # A sweep writes to its record what it had to train: copies, not the tree's own.
            for part in ("configs", "docs/results"):
                shutil.copytree(binary.root / part, folder / part, dirs_exist_ok=True)
            for block in marked:
                problems += run_block(page, block, binary, folder)
    return problems


def check_commands(pages: list[Page], binary: Binary) -> list[str]:
    if not binary.verbs():
        return [f"{binary.path}: --help lists no verbs"]
    binary.ask_all()
    problems: list[str] = []
    configs: dict[tuple[str, ...], str] = {}
    for page in pages:
        found, of_page = check_page(page, binary)
        problems += found
        configs = {**of_page, **configs}
    with ThreadPoolExecutor(1) as pool:  # the two beside each other
        ran = pool.submit(run_blocks, pages, binary)
        return problems + check_configs(binary, configs) + ran.result()
