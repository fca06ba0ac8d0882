"""Files that are not ours, where a mistyped path or an old copy puts them: a refused command leaves them alone, and an
allowed one too."""

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from .lab import Lab, bad_manners, differences, snapshot
from .verbs import plant
from .worlds import CONVERT, OTHER, RESUME, SWEEP_HERE, TRAIN, UPCYCLE, world


@dataclass
class Case:
    """`put` prepares; the command must end with one of `codes`; what stands in `watched` may not change."""

    name: str
    world: str
    put: Callable[[Path], object]
    command: list[str]
    codes: set[int]
    watched: list[str]
    word: str = ""  # that the refusal must hold


def note(home: Path, name: str, text: str = "mine") -> None:
    (home / name).parent.mkdir(parents=True, exist_ok=True)
    (home / name).write_text(text)


def tutorial(home: Path) -> None:
    note(home, "tutorial/step1/notes.md")
    note(home, "tutorial/config.yaml", "title: my tutorial\n")


def hard_links(home: Path) -> None:
    shutil.copytree(home / "run", home / "backup", copy_function=os.link)


def elsewhere(home: Path) -> None:
    """The run lies on another disk, a link stands in its place."""
    (home / "disk").mkdir()
    (home / "run").rename(home / "disk" / "run")
    (home / "run").symlink_to(home / "disk" / "run")


def cases() -> list[Case]:
    over = ["--overwrite"]
    found = [
        Case("train into a folder of others", "nothing", lambda home: plant(home, ["home"]), [*TRAIN, "--out", "home"],
             {2}, ["home"]),
        Case("train --overwrite of it", "nothing", lambda home: plant(home, ["home"]), [*TRAIN, "--out", "home", *over],
             {2}, ["home"]),
        Case("train --overwrite of a tutorial", "nothing", tutorial, [*TRAIN, "--out", "tutorial", *over], {2},
             ["tutorial"]),
        Case("train --overwrite, notes in the run", "other", lambda home: note(home, "run/notes.md"),
             [*TRAIN, "--out", "run", *over], {2}, ["run"], "notes.md"),
        Case("train --overwrite, notes in a checkpoint", "other", lambda home: note(home, "run/step6/notes.md"),
             [*TRAIN, "--out", "run", *over], {2}, ["run"], "notes.md"),
        Case("train --overwrite, folders in the run", "other", lambda home: plant(home, ["run"]),
             [*TRAIN, "--out", "run", *over], {2}, ["run"]),
        Case("train into a finished run", "finished", lambda home: plant(home, ["run"]), [*OTHER, "--out", "run"], {2},
             ["run"]),
        Case("resume of no run", "nothing", lambda home: plant(home, ["run"]), RESUME, {2, 3}, ["run"]),
        Case("convert --overwrite of others", "finished", lambda home: plant(home, ["out"]), [*CONVERT, "out", *over],
             {2}, ["out"]),
        Case("convert into a folder of others", "finished", lambda home: plant(home, ["out"]), [*CONVERT, "out"], {2},
             ["out"]),
        Case("convert --overwrite of a run", "finished", lambda home: None, [*CONVERT, "run", *over], {2}, ["run"]),
        Case("upcycle --overwrite of others", "finished", lambda home: plant(home, ["up"]), [*UPCYCLE, *over], {2},
             ["up"]),
        Case("upcycle --overwrite of a run", "finished", lambda home: None, [*UPCYCLE[:-1], "run", *over], {2}, ["run"]),
        Case("resume beside a hard-linked copy", "half", hard_links, RESUME, {0}, ["backup"]),
        Case("resume among folders of others", "half", lambda home: note(home, "run/photos.old-2023/a.jpg"), RESUME, {0},
             ["run/photos.old-2023"]),
        Case("sweep among folders of others", "plan", lambda home: plant(home, ["sweep"]), SWEEP_HERE, {0, 2},
             ["sweep/photos.old-2023", "sweep/thesis.tmp-4194303"]),
    ]  # fmt: skip
    return found


def kept(path: Path) -> dict:
    return snapshot(path) if path.is_dir() else {path.name: path.read_bytes() if path.is_file() else "gone"}


def through_a_link(lab: Lab, out: str) -> Callable[[Path], list[str]]:
    """--overwrite through a link: refused and nothing lost, or done where the link points; it stays a link."""
    template = world(lab, "other")

    def trial(folder: Path) -> list[str]:
        home = folder / "home"
        shutil.copytree(template, home)
        elsewhere(home)
        before = snapshot(home / "disk")
        done = lab.run(home, [*TRAIN, "--out", out, "--overwrite"])
        problems = bad_manners(done)
        if not (home / "run").is_symlink():
            problems.append("the link is a link no more")
        if done.code != 0:
            problems += differences(before, snapshot(home / "disk"))
        elif not (home / "disk" / "run" / "step6").is_dir() or snapshot(home / "disk") == before:
            problems.append("the run where the link points was not replaced")
        return problems

    return trial


def foreign(lab: Lab) -> None:
    trials = []
    for case in cases():

        def trial(folder: Path, case=case) -> list[str]:
            home = folder / "home"
            shutil.copytree(world(lab, case.world), home)
            plant(home, [])
            case.put(home)
            before = {name: kept(home / name) for name in case.watched}
            beside = {path.name for path in home.iterdir()}
            done = lab.run(home, case.command)
            problems = bad_manners(done)
            if done.code not in case.codes:
                problems.append(f"exit code {done.code}, expected {sorted(case.codes)}: {done.error.strip()[-200:]}")
            if case.word and case.word not in done.error:
                problems.append(f"does not name {case.word}: {done.error.strip()[-200:]}")
            for name in case.watched:
                problems += [f"{name}: {text}" for text in differences(before[name], kept(home / name))]
            return problems + [f"lost: {name}" for name in beside - {path.name for path in home.iterdir()}]

        trials.append(("foreign", case.name, f"siamese {case.command[0]} ... {' '.join(case.command[-3:])}", trial))
    for out in ("run", "run/"):
        trials.append(("foreign", f"train --overwrite through a link, {out}", f"--out {out}", through_a_link(lab, out)))
    lab.attack(trials)
