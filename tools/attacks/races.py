"""Two commands on one directory: the first is held before one of its calls while the second runs. One wins, the other
is refused in a line, and what stands in the end is whole."""

import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from .disturb import kind_of
from .held import Held
from .lab import Done, Lab, bad_manners, differences, finish, records, snapshot
from .verbs import plant
from .worlds import (
    ANALYZE, CONVERT, FROM_TOKENS, OTHER, PREPARE, PROBE, RESUME, SAMPLE, SWEEP_HERE, TASKS, TOKENIZER, TRAIN, UPCYCLE,
    copy, world,
)  # fmt: skip

BLOCKED = 20.0  # seconds after which the second command is taken to wait for the first; decides nothing but the order
RUN = ["--out", "run"]
OVER = ["--out", "run", "--overwrite"]
RUN_OF_THE_SWEEP = "sweep/post"
NAMESPACE = ("unshare", "--pid", "--fork")


@dataclass
class Race:
    """`ends`: (exit code of the first, of the second, commands that one after the other leave what must stand)."""

    name: str
    world: str
    first: list[str]
    second: list[str]
    ends: list[tuple[int, int, list[list[str]]]]
    inside: list[str] = field(default_factory=list)
    besides: str = ""
    prefix: tuple[str, ...] = ()


def races() -> list[Race]:
    train, other = [*TRAIN, *RUN], [*OTHER, *RUN]
    over, other_over = [*TRAIN, *OVER], [*OTHER, *OVER]
    report, evaluate = ["report", "run"], ["eval", "run", "--json"]
    folder, file = [*CONVERT, "out"], [*CONVERT, "out.safetensors"]
    again = [*folder, "--overwrite"]
    one_wins = [(0, 2, [train]), (2, 0, [other])]
    any_reader = [(0, code, [train]) for code in (0, 2, 3)]
    return [
        Race("train / train", "nothing", train, other, one_wins),
        Race("train / train in another PID namespace", "nothing", train, other, one_wins, prefix=NAMESPACE),
        Race("train / train --overwrite", "nothing", train, other_over, [(0, 2, [train]), (2, 0, [other_over])]),
        Race("train --overwrite / train", "other", over, other, [(0, 2, [over]), (2, 0, [other])]),
        Race("train --overwrite / train --overwrite", "other", over, other_over,
             [(0, 2, [over]), (0, 0, [over]), (2, 0, [other_over])]),
        Race("resume / resume", "half", RESUME, RESUME, [(0, 2, [RESUME]), (0, 0, [RESUME]), (2, 0, [RESUME])], ["run"]),
        Race("resume / resume in another PID namespace", "half", RESUME, RESUME,
             [(0, 2, [RESUME]), (0, 0, [RESUME]), (2, 0, [RESUME])], ["run"], prefix=NAMESPACE),
        Race("resume / train --overwrite", "half", RESUME, other_over,
             [(0, 2, [RESUME]), (0, 0, [other_over]), (2, 0, [other_over]), (3, 0, [other_over])]),
        Race("train --overwrite / resume", "half", over, RESUME,
             [(0, 2, [over]), (0, 3, [over]), (0, 0, [over]), (2, 0, [RESUME])]),
        Race("train / report", "nothing", train, report, any_reader, besides="run/report.html"),
        Race("train / eval", "nothing", train, evaluate, any_reader),
        Race("train --overwrite / report", "other", over, report, [(0, code, [over]) for code in (0, 2, 3)],
             besides="run/report.html"),
        Race("report / train --overwrite", "other", report, over,
             [(code, 0, [over]) for code in (0, 1, 2, 3)] + [(0, 2, [report])], besides="run/report.html"),
        Race("report / report", "finished", report, report, [(0, 0, [report])], ["run"]),
        Race("sweep / sweep", "plan", SWEEP_HERE, SWEEP_HERE,
             [(0, 0, [SWEEP_HERE]), (0, 2, [SWEEP_HERE]), (2, 0, [SWEEP_HERE])]),
        Race("sweep / report", "plan", SWEEP_HERE, ["report", "sweep"], [(0, code, [SWEEP_HERE]) for code in (0, 2, 3)]),
        Race("convert / convert", "finished", folder, folder, [(0, 2, [folder]), (2, 0, [folder])]),
        Race("convert / convert, a file", "finished", file, file, [(0, 2, [file]), (2, 0, [file])]),
        Race("convert --overwrite / convert --overwrite", "converted", again, again,
             [(0, 0, [again]), (0, 2, [again]), (2, 0, [again])]),
        Race("upcycle / upcycle", "finished", UPCYCLE, UPCYCLE, [(0, 2, [UPCYCLE]), (2, 0, [UPCYCLE])]),
        Race("upcycle --overwrite / upcycle --overwrite", "upcycled", [*UPCYCLE, "--overwrite"], [*UPCYCLE, "--overwrite"],
             [(a, b, [[*UPCYCLE, "--overwrite"]]) for a, b in ((0, 0), (0, 2), (2, 0))]),
        Race("sample / sample", "dit", SAMPLE, SAMPLE, [(0, 0, [SAMPLE])]),
        Race("probe / probe", "finished", PROBE, PROBE, [(0, 0, [PROBE])]),
        Race("tokenizer train / tokenizer train", "plan", TOKENIZER, TOKENIZER, [(0, 0, [TOKENIZER])]),
        Race("prepare / prepare", "texts", PREPARE, PREPARE,
             [(0, 2, [PREPARE]), (2, 0, [PREPARE]), (0, 0, [PREPARE])]),
        Race("eval --tasks / eval --tasks", "spoken", TASKS, TASKS,
             [(0, 2, [TASKS]), (2, 0, [TASKS]), (0, 0, [TASKS])], ["run"]),
        Race("analyze / analyze", "finished", ANALYZE, ANALYZE, [(0, 0, [ANALYZE]), (0, 2, [ANALYZE]), (2, 0, [ANALYZE])]),
        Race("resume / report", "half", RESUME, report, [(0, code, [RESUME]) for code in (0, 2, 3)],
             besides="run/report.html"),
        Race("report / resume", "half", report, RESUME, [(code, 0, [RESUME]) for code in (0, 1, 2, 3)],
             besides="run/report.html"),
        Race("resume / eval", "half", RESUME, evaluate, [(0, code, [RESUME]) for code in (0, 2, 3)]),
        Race("sweep / resume of one of its runs", "half swept", SWEEP_HERE, ["resume", RUN_OF_THE_SWEEP, "--quiet"],
             [(code, other, [SWEEP_HERE]) for code in (0, 2) for other in (0, 2)]),
        *(over_a_reader(name, reader, other_over)
          for name, reader in (("upcycle", UPCYCLE), ("convert", folder), ("analyze", ANALYZE))),
        over_a_reader("eval --tasks", TASKS, [*FROM_TOKENS, "train.seed=7", "--overwrite"], "spoken"),
    ]  # fmt: skip


def over_a_reader(name: str, reader: list[str], over: list[str], of: str = "finished") -> Race:
    """The run is replaced while it is read: what was read is the old or the new, and stands for what it is."""
    ends = [(0, 0, [reader, over]), (0, 0, [over, reader]), (0, 2, [reader])]
    return Race(f"{name} / train --overwrite", of, reader, over, ends + [(code, 0, [over]) for code in (1, 2, 3)])


# Those that broke once, and one of the others.
SHORT = ("train / train", "train / train in another PID namespace", "resume / resume", "train --overwrite / report",
         "convert / convert", "upcycle / upcycle", "analyze / train --overwrite",
         "eval --tasks / train --overwrite")  # fmt: skip


def both(lab: Lab, home: Path, race: Race, number: int) -> tuple[Done, Done]:
    held = Held(lab, home, race.first, number)
    second = lab.start(home, race.second, prefix=race.prefix)
    try:
        out, error = second.communicate(timeout=BLOCKED)
        result = Done(second.returncode, out, error)
        held.release()
    except subprocess.TimeoutExpired:
        held.release()
        result = finish(second)
    return finish(held.process), result


def points(lab: Lab, race: Race) -> list[tuple[int, str]]:
    """The first call of every kind; in the short form the very first, where starts meet, or a drawn one."""
    calls = lab.once(("calls", race.world, *race.first), lambda: lab.calls(copy(lab, world(lab, race.world)), race.first))
    firsts: dict[tuple[str, str], int] = {}
    for number, call in enumerate(calls, start=1):
        firsts.setdefault(kind_of(call), number)
    numbers = sorted(firsts.values())
    if lab.short:
        numbers = [lab.dice("races", race.name).choice([numbers[0], lab.dice(race.name).choice(numbers)])]
        if race.name == "train / train":
            numbers = sorted({1, *numbers})
    return [(number, f"the first held before call {number}, {' '.join(calls[number - 1])}") for number in numbers]


def end_of(lab: Lab, race: Race, commands: list[list[str]]) -> dict:
    """What stands when the commands ran one after the other, nobody else near."""

    def make() -> dict:
        home = copy(lab, world(lab, race.world))
        for command in commands:
            lab.run(home, command)
        plant(home, race.inside)
        return snapshot(home)

    return lab.once(("end", race.world, *race.inside, str(commands)), make)


def judge(lab: Lab, race: Race, home: Path, first: Done, second: Done) -> list[str]:
    problems = bad_manners(first) + bad_manners(second)
    ends = [commands for a, b, commands in race.ends if (a, b) == (first.code, second.code)]
    if not ends:
        said = " | ".join(text.strip()[-150:] for text in (first.error, second.error) if text.strip())
        return [*problems, f"exit codes {first.code} and {second.code}: {said}"]
    got = snapshot(home)
    return problems + min((differences(end_of(lab, race, end), got, race.besides) for end in ends), key=len)


def race_trials(lab: Lab) -> list:
    trials = []
    for race in races():
        if lab.short and race.name not in SHORT:
            continue
        if race.prefix and subprocess.run([*race.prefix, "true"], capture_output=True, check=False).returncode != 0:
            lab.notes.append(f"races: {race.name}: skipped, no PID namespaces here")
            continue
        for number, how in points(lab, race):

            def trial(folder: Path, race=race, number=number) -> list[str]:
                home = folder / "home"
                shutil.copytree(world(lab, race.world), home, symlinks=True)
                plant(home, race.inside)
                return judge(lab, race, home, *both(lab, home, race, number))

            trials.append(("races", race.name, how, trial))
    return trials


def one_record(lab: Lab) -> list:
    """Two sweeps, each in its folder, with one record: each run stands in it once."""
    template = world(lab, "plan")
    race = Race("sweep / sweep, one record", "plan", SWEEP_HERE, ["sweep", "sweep.yaml", "--out", "b", "--quiet"], [])
    trials = []
    for number, how in points(lab, race):

        def trial(folder: Path, number=number) -> list[str]:
            home = folder / "home"
            shutil.copytree(template, home)
            plant(home, [])
            first, second = both(lab, home, race, number)
            problems = bad_manners(first) + bad_manners(second)
            if (first.code, second.code) != (0, 0):
                problems.append(f"exit codes {first.code} and {second.code}: {first.error[-150:]} {second.error[-150:]}")
            variants = [line["variant"] for line in records(home / "record.jsonl")]
            return problems if sorted(variants) == ["post", "pre"] else [*problems, f"the record holds {variants}"]

        trials.append(("races", race.name, how, trial))
    return trials


def races_attack(lab: Lab) -> None:
    lab.attack(race_trials(lab) + one_record(lab))
