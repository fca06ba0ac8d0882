"""Kills and failing calls: at every call of every verb that writes, or in the short form at some of every kind."""

import errno
import os
import re
from pathlib import Path

from .lab import Lab, bad_manners
from .verbs import Verb, stages, verbs

NEED_ROOM = ("open", "fopen", "write", "mkdir", "link", "symlink", "fallocate", "sendfile", "copy")
READERS = [
    Verb("eval", "finished", ["eval", "run", "--json"], []),
    Verb("generate", "finished", ["generate", "run", "--prompt", "1+2="], []),
    Verb("inspect", "finished", ["inspect", "run", "--json"], []),
]


def kind_of(call: tuple[str, str]) -> tuple[str, str]:
    """Calls of one kind differ in the tensor or the line they write."""
    name, path = call
    return name, re.sub(r"(\.(tmp|old))?-\w+", "", re.sub(r"step\d+", "step", path))


def chosen(lab: Lab, calls: list[tuple[str, str]], most: int, *about: str) -> list[int]:
    """Numbers of calls, from 1: all; in the short form one each of so many kinds."""
    if not lab.short:
        return list(range(1, len(calls) + 1))
    dice = lab.dice(*about)
    kinds: dict[tuple[str, str], list[int]] = {}
    for number, call in enumerate(calls, start=1):
        kinds.setdefault(kind_of(call), []).append(number)
    return sorted(dice.choice(kinds[kind]) for kind in dice.sample(sorted(kinds), min(most, len(kinds))))


def kills(lab: Lab) -> None:
    trials = []
    for stage in stages(lab, verbs(lab)):
        verb = stage.verb
        most = 3 if verb.name in ("train", "train --overwrite", "resume", "sweep") else 1
        for number in chosen(lab, stage.calls, most, "kills", verb.name):
            name, path = stage.calls[number - 1]
            ways = ["kill", "half"] if name == "write" else ["kill"]
            for way in [lab.dice("kills", verb.name, str(number)).choice(ways)] if lab.short else ways:

                def trial(folder: Path, stage=stage, number=number, way=way) -> list[str]:
                    home = stage.set_up(folder)
                    lab.run(home, stage.verb.command, at=str(number), do=way)
                    return stage.come_to_the_end(home)

                moment = f"in the middle of call {number}" if way == "half" else f"before call {number}"
                trials.append(("kills", verb.name, f"SIGKILL {moment}, {name} {path}", trial))
    lab.attack(trials)


def fitting_errors(name: str) -> list[tuple[int, bool]]:
    """(errno, does it stay) of what the call may really meet."""
    errors = [(errno.EIO, False)]
    if name in NEED_ROOM:
        errors.append((errno.ENOSPC, True))
    if name in ("open", "fopen", "mkdir", "rename", "unlink", "truncate", "link", "symlink"):
        errors.append((errno.EACCES, False))
    if name in ("open", "fopen"):
        errors.append((errno.EMFILE, False))
    if name in ("write", "flock"):
        errors.append((errno.EINTR, False))
    return errors


def errors(lab: Lab) -> None:
    trials = []
    for stage in stages(lab, verbs(lab)):
        verb = stage.verb
        for number in chosen(lab, stage.calls, 1, "errors", verb.name):
            name, path = stage.calls[number - 1]
            fitting = fitting_errors(name)
            for error, stays in [lab.dice("errors", verb.name, str(number)).choice(fitting)] if lab.short else fitting:

                def trial(folder: Path, stage=stage, number=number, error=error, stays=stays) -> list[str]:
                    home = stage.set_up(folder)
                    shim = {"stays": "1"} if stays else {}
                    done = lab.run(home, stage.verb.command, at=str(number), do=str(error), **shim)
                    problems = bad_manners(done)
                    if error == errno.EINTR and done.code != 0:
                        problems.append(f"an interrupted call ended it: {done.error.strip()[-200:]}")
                    return problems + stage.come_to_the_end(home)

                stay = " and from then on" if stays else ""
                trials.append(("errors", verb.name, f"{errno.errorcode[error]} at call {number}{stay}, {name} {path}", trial))
    lab.attack(trials)


def reads(lab: Lab) -> None:
    """A file that cannot be read is said to be just that, whatever verb asked for it."""
    trials = []
    wanted = [verb for verb in [*verbs(lab), *READERS] if verb.world not in ("nothing", "plan")]
    for stage in stages(lab, lab.sample(wanted, 4, "reads"), reads="1"):
        verb = stage.verb
        for number in chosen(lab, stage.calls, 2, "reads", verb.name):
            name, path = stage.calls[number - 1]
            fitting = [errno.EIO, errno.EACCES] if name in ("open", "fopen", "stat") else [errno.EIO]
            for error in [lab.dice("reads", verb.name, str(number)).choice(fitting)] if lab.short else fitting:

                def trial(folder: Path, stage=stage, number=number, error=error) -> list[str]:
                    home = stage.set_up(folder)
                    done = lab.run(home, stage.verb.command, at=str(number), do=str(error), reads="1")
                    problems = bad_manners(done)
                    if done.code != 0 and os.strerror(error) not in done.error:
                        problems.append(f"does not say {os.strerror(error)!r}: {done.error.strip()[-200:]}")
                    return problems + (stage.come_to_the_end(home) if stage.verb.again else [])

                trials.append(("reads", verb.name, f"{errno.errorcode[error]} at reading call {number}, {name} {path}", trial))
    lab.attack(trials)
