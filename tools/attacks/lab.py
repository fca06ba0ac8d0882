"""The ground the attacks stand on: the binary under the shim, folders to attack, and what is the same as what."""

import hashlib
import json
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
CONFIG = str(HERE.parent.parent / "configs" / "arithmetic-small.yaml")
DOCUMENTED = {0, 1, 2, 3, 4, 75}
CLOCK = ("step_ms", "tokens_per_s", "samples_per_s", "seconds", "checksum", "stretches")
ABOUT_THE_RUN = ("status", "scheme", "label", "step", "steps", "parameters", "seed", "lr", "message")
TINY = [
    "model.width=16", "model.blocks=1", "model.heads=2", "model.context=16", "model.ffn_width=16", "data.digits=1",
    "model.residual=pre", "train.batch=4", "train.steps=6", "train.checkpoint_every=3", "train.eval_every=3",
    "train.ema=0.9", "train.keep_last=1", "eval.batches=1", "eval.problems=1", "engine.threads=1",
]  # fmt: skip
RECORDS = ("record.jsonl", "recorded.jsonl")  # of a sweep, one line for each run that ended
EVENT_FILE = re.compile(r"events\.out\.tfevents\.\d+\.siamese")  # the number is a time
PATIENCE = 600.0  # seconds; a process that takes longer hangs
PROGRESS = 30.0  # seconds between two lines of progress


@dataclass
class Done:
    code: int
    out: str
    error: str


@dataclass
class Finding:
    """One trial: what did not hold, if anything, and how to see it again."""

    attack: str
    verb: str
    how: str
    problems: list[str] = field(default_factory=list)


def files_below(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir())


def records(path: Path) -> list:
    """Lines of JSON without what the clock decides; a line that is no JSON stands as it is."""
    found = []
    for line in path.read_text(errors="replace").splitlines():
        try:
            value = json.loads(line)
        except ValueError:
            value = line
        if isinstance(value, dict):
            value = {key: value[key] for key in value if key not in CLOCK}
        found.append(value)
    return found


def lengths_of_events(path: Path) -> list[int] | str:
    """Of the records of a file for TensorBoard, whose values are those of lines, but for times of one length."""
    data, found = path.read_bytes(), []
    while len(data) >= 12:
        (length,) = struct.unpack("<Q", data[:8])
        found.append(length)
        data = data[length + 16 :]
    return found if not data else "torn"


def meaning(path: Path) -> object:
    """What two files must share to be the same for a user."""
    if path.is_symlink():
        return f"-> {os.readlink(path)}"
    if path.name == "report.html":  # holds times; that it is whole is what counts
        return path.read_bytes().rstrip().endswith(b"</html>")
    if path.name in RECORDS:  # lines come as runs end: one that failed at first comes after the others
        return sorted(records(path), key=lambda line: json.dumps(line, sort_keys=True))
    if path.name == "eval.jsonl" and path.parent.parent.name == "tasks":  # a line for every command that came so far
        return [line for i, line in enumerate(records(path)) if line not in records(path)[:i]]
    if path.suffix == ".jsonl":
        return records(path)
    if EVENT_FILE.fullmatch(path.name):
        return lengths_of_events(path)
    if path.name == "run.json":
        run = json.loads(path.read_text())
        return {key: run[key] for key in ABOUT_THE_RUN if key in run}
    return hashlib.sha256(path.read_bytes()).hexdigest()


def snapshot(folder: Path) -> dict[str, object]:
    """Every file and every empty folder below, by what it means."""
    found: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        name = EVENT_FILE.sub("events.out.tfevents", str(path.relative_to(folder)))
        if path.is_symlink() or not path.is_dir():
            try:
                found[name] = meaning(path)
            except ValueError:
                found[name] = "not readable: " + hashlib.sha256(path.read_bytes()).hexdigest()
        elif not any(path.iterdir()):
            found[name + "/"] = "an empty folder"
    return found


def differences(expected: dict, got: dict, besides: str = "") -> list[str]:
    """`besides`: a file that may be what it likes."""
    problems = [f"lost: {name}" for name in sorted(expected.keys() - got.keys()) if name != besides]
    problems += [f"left over: {name}" for name in sorted(got.keys() - expected.keys()) if name != besides]
    for name in sorted(expected.keys() & got.keys()):
        if expected[name] != got[name] and name != besides:
            problems.append(f"differs: {name}")
    return problems


class Lab:
    """Starts the binary, with the shim where asked, and keeps count."""

    def __init__(self, binary: Path, folder: Path, seed: int, short: bool, minutes: float, jobs: int):
        self.binary, self.folder, self.seed, self.short = binary.resolve(), folder, seed, short
        self.jobs = jobs
        self.verbs: list[str] = []  # all
        self.all_ends = time.monotonic() + minutes * 60 if minutes else None
        self.ends = self.all_ends  # of the attack that runs
        self.shim = folder / "shim.so"
        compiler = os.environ.get("CC", "cc")
        command = [compiler, "-shared", "-fPIC", "-O1", "-o", str(self.shim), str(HERE / "shim.c"), "-ldl", "-pthread"]
        subprocess.run(command, check=True)
        self.findings: list[Finding] = []
        self.notes: list[str] = []
        self.not_tried: Counter = Counter()
        self.shown = time.monotonic()  # when progress was last told
        self.numbers = iter(range(1 << 62))
        self.guard, self.making = threading.Lock(), threading.RLock()
        self.made: dict[object, object] = {}

    def dice(self, *about: str) -> random.Random:
        """Of the seed and a name, so that one attack alone draws what it draws among the others."""
        return random.Random(f"{self.seed} {' '.join(about)}")

    def sample(self, items: list, most: int, *about: str) -> list:
        """All of them, or in the short form so many."""
        if not self.short or len(items) <= most:
            return items
        return sorted(self.dice(*about).sample(items, most), key=items.index)

    def new_path(self, name: str) -> Path:
        with self.guard:
            return self.folder / f"{name}{next(self.numbers)}"

    def new_folder(self) -> Path:
        folder = self.new_path("trial")
        folder.mkdir()
        return folder

    def once(self, key: object, make) -> object:
        """What `make` returns, made when it is first asked for."""
        with self.making:
            if key not in self.made:
                self.made[key] = make()
            return self.made[key]

    def template(self, name: str, fill) -> Path:
        """A folder that is filled once and copied by whoever attacks it."""

        def make() -> Path:
            folder = self.new_folder()
            fill(folder)
            return folder

        return self.once(("template", name), make)

    def environment(self, home: Path, **shim: str) -> dict[str, str]:
        environment = {key: value for key, value in os.environ.items() if not key.startswith("ATTACK_")}
        environment.setdefault("GOMP_SPINCOUNT", "2000")  # what the binary would start itself once more for
        if shim:
            shim = {f"ATTACK_{key.upper()}": value for key, value in shim.items()}
            environment |= {"LD_PRELOAD": str(self.shim), "ATTACK_ROOT": str(home), **shim}
        return environment

    def start(self, home: Path, arguments: list[str], prefix: tuple[str, ...] = (), **shim: str) -> subprocess.Popen:
        return subprocess.Popen(
            [*prefix, str(self.binary), *arguments],
            cwd=home,
            env=self.environment(home, **shim),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,  # Ctrl-C is for us: a trial that has begun is tried to its end
        )

    def run(self, home: Path, arguments: list[str], **shim: str) -> Done:
        return finish(self.start(home, arguments, **shim))

    def calls(self, home: Path, arguments: list[str], **shim: str) -> list[tuple[str, str]]:
        """The counted calls of an undisturbed command: (name, path below home)."""
        log = self.new_path("log")
        done = self.run(home, arguments, log=str(log), **shim)
        if done.code != 0:
            raise SystemExit(f"siamese {' '.join(arguments)}: exit code {done.code}: {done.error}")
        found: dict[int, tuple[str, str]] = {}  # of several processes each counts its own: the first to come there
        for line in log.read_text().splitlines() if log.exists() else []:
            number, name, path = line.split(" ", 2)
            found.setdefault(int(number), (name, path))
        return [found[number] for number in sorted(found)]

    def share_time(self, attacks: int) -> None:
        """The next of so many attacks that are left gets its part of the time."""
        if self.all_ends is not None:
            now = time.monotonic()
            self.ends = now + max(0.0, self.all_ends - now) / attacks

    def out_of_time(self) -> bool:
        return self.ends is not None and time.monotonic() > self.ends

    def stop(self, *_) -> None:
        """Begins no more trials; what was tried still makes a table."""
        self.ends = self.all_ends = time.monotonic()

    def show_progress(self, attack: str, tried: int, of: int, failed: int) -> None:
        now = time.monotonic()
        if not self.short and now - self.shown > PROGRESS:
            self.shown = now
            print(f"{attack}: {tried} of {of} tried, {failed} did not hold", file=sys.stderr, flush=True)

    def parallel(self, function, items: list) -> list:
        with ThreadPoolExecutor(self.jobs) as pool:
            return list(pool.map(function, items))

    def attack(self, trials: list) -> None:
        """Runs trials, each (attack, verb, how, function of a folder -> problems), as many at a time as there are cores."""

        def one(trial) -> None:
            attack, verb, how, function = trial
            if self.out_of_time():
                with self.guard:
                    self.not_tried[attack, verb] += 1
                return
            folder = self.new_folder()
            problems = function(folder)
            with self.guard:
                self.findings.append(Finding(attack, verb, how, problems))
                tried = self.findings[before:]
                self.show_progress(attack, len(tried), len(trials), sum(bool(finding.problems) for finding in tried))
            shutil.rmtree(folder, ignore_errors=True)

        before = len(self.findings)
        trials = [trial for trial in trials if not self.verbs or {trial[1], trial[1].split(", ")[0]} & set(self.verbs)]
        if self.ends is not None:  # what time allows is then a fair sample
            self.dice("order").shuffle(trials)
        self.parallel(one, trials)


def finish(process: subprocess.Popen) -> Done:
    try:
        out, error = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        out, error = process.communicate()
        error += f"\nhung for {PATIENCE} s"
    return Done(process.returncode, out, error)


def bad_manners(done: Done) -> list[str]:
    """An exit code that no document has, or anything but lines of ours on stderr."""
    lines = [line for line in done.error.splitlines() if line]
    problems = [] if done.code in DOCUMENTED else [f"exit code {done.code}: {' | '.join(lines)[-300:]}"]
    if done.code in (1, 2, 3, 4):
        if not lines or not lines[-1].startswith("siamese: "):
            problems.append(f"exit code {done.code} without a line of ours at the end: {' | '.join(lines)[-300:]}")
        strange = [line for line in lines if "terminate called" in line or "what():" in line or "libgomp" in line]
        problems += [f"stderr: {line[:200]}" for line in strange]
    return problems
