"""Every verb that writes, on a small world of its own, with what brings it to its end after a disturbance."""

import shutil
from dataclasses import dataclass, field
from pathlib import Path

from .lab import Lab, differences, snapshot
from .worlds import (
    ANALYZE, COMPARE, CONVERT, EVENTS, LONGER, PREPARE, PROBE, RESUME, SAMPLE, SWEEP_HERE, TABLES, TASKS, TOKENIZER,
    TRAIN, UPCYCLE,
    copy, world,
)  # fmt: skip

# What users call their files; none of it is ours, whatever it looks like.
CANARIES = {
    "photos.old-2023/holiday.jpg": "a photo",
    "report.old-99999": "an old report",
    "report.tmp-12": "half a report",
    "notes.tmp-today": "notes",
    "thesis.tmp-4194303/chapter1.md": "a chapter",
}


@dataclass
class Verb:
    """`world` makes the folder the command starts in; `inside` is where canaries stand, beside home itself. `again`:
    commands of which the first that is not refused must bring everything to the end of an undisturbed command."""

    name: str
    world: str
    command: list[str]
    again: list[list[str]]
    inside: list[str] = field(default_factory=list)


# Their like is in the short form already.
LONG_FORM = (
    "sweep, continued", "report of a sweep", "convert to a file", "analyze", "report to files", "tokenizer train",
    "resume with an edit", "train in the background", "prepare from a note", "report --tensorboard", "analyze --compare",
    "sweep --jobs 2",
)  # fmt: skip


def verbs(lab: Lab) -> list[Verb]:
    chosen = [verb for verb in all_verbs() if not lab.verbs or verb.name in lab.verbs]
    return [verb for verb in chosen if not (lab.short and verb.name in LONG_FORM)]


def all_verbs() -> list[Verb]:
    simple = [
        Verb("upcycle", "finished", UPCYCLE, [UPCYCLE]),
        Verb("convert to a folder", "finished", [*CONVERT, "out"], [[*CONVERT, "out"]]),
        Verb("convert to a file", "finished", [*CONVERT, "o.safetensors"], [[*CONVERT, "o.safetensors"]]),
        Verb("convert --overwrite", "converted", [*CONVERT, "out", "--overwrite"], [[*CONVERT, "out", "--overwrite"]]),
        Verb("report of a run", "finished", ["report", "run"], [["report", "run"]], ["run"]),
        Verb("report of a sweep", "swept", ["report", "sweep"], [["report", "sweep"]], ["sweep"]),
        Verb("probe", "finished", PROBE, [PROBE]),
        Verb("sample", "dit", SAMPLE, [SAMPLE]),
        Verb("analyze", "finished", ANALYZE, [ANALYZE], ["run"]),
        Verb("report to files", "finished", TABLES, [TABLES]),
        Verb("tokenizer train", "plan", TOKENIZER, [TOKENIZER]),
        Verb("prepare", "texts", PREPARE, [PREPARE]),
        Verb("prepare from a note", "half prepared", PREPARE, [PREPARE]),
        Verb("eval --tasks", "spoken", TASKS, [TASKS], ["run"]),
        Verb("report --tensorboard", "finished", EVENTS, [EVENTS]),
        Verb("analyze --compare", "two", COMPARE, [COMPARE]),
        Verb("sweep --jobs 2", "plan", [*SWEEP_HERE, "--jobs", "2"], [[*SWEEP_HERE, "--jobs", "2"]]),
    ]
    train, overwrite = [*TRAIN, "--out", "run"], [*TRAIN, "--out", "run", "--overwrite"]
    behind = [*TRAIN, "train.save_in_background=true", "train.tensorboard=true", "--out", "run"]
    return [
        Verb("train", "nothing", train, [train, RESUME]),
        Verb("train in the background", "nothing", behind, [behind, RESUME]),
        Verb("train --overwrite", "other", overwrite, [overwrite]),
        Verb("resume", "half", RESUME, [RESUME], ["run"]),
        Verb("resume with an edit", "half", LONGER, [LONGER], ["run"]),
        Verb("sweep", "plan", SWEEP_HERE, [SWEEP_HERE]),
        Verb("sweep, continued", "half swept", SWEEP_HERE, [SWEEP_HERE], ["sweep"]),
        *simple,
    ]


def plant(home: Path, inside: list[str]) -> None:
    for place in ["", *inside]:
        for name, text in CANARIES.items():
            path = home / place / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)


class Stage:
    """A verb with its undisturbed end, and fresh copies of its world to disturb."""

    def __init__(self, lab: Lab, verb: Verb, **shim: str):
        self.lab, self.verb, self.template = lab, verb, world(lab, verb.world)
        home = copy(lab, self.template)
        self.calls = lab.calls(home, verb.command, **shim)
        plant(home, verb.inside)
        self.end = snapshot(home)

    def set_up(self, folder: Path) -> Path:
        home = folder / "home"
        shutil.copytree(self.template, home, symlinks=True)
        plant(home, self.verb.inside)
        return home

    def come_to_the_end(self, home: Path) -> list[str]:
        """Problems of bringing the disturbed world to its end with ordinary commands."""
        refused = []
        for command in self.verb.again:
            done = self.lab.run(home, command)
            if done.code == 0:
                break
            refused.append(f"{command[0]} afterwards: exit code {done.code}: {done.error.strip()[-200:]}")
            if done.code != 2:
                return refused
        problems = differences(self.end, snapshot(home))
        if problems and len(refused) == len(self.verb.again):
            problems = refused + problems
        return problems


def stages(lab: Lab, wanted: list[Verb], **shim: str) -> list[Stage]:
    """Worlds first, one after the other; what stands on them then side by side."""
    for verb in wanted:
        world(lab, verb.world)

    def make(verb: Verb) -> Stage:
        key = ("stage", verb.name, *shim)
        if key not in lab.made:
            lab.made[key] = Stage(lab, verb, **shim)
        return lab.made[key]

    return lab.parallel(make, wanted)
