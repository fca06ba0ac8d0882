"""Every verb that writes, on a small world of its own, with what brings it to its end after a disturbance."""

import json
import shutil
import struct
from dataclasses import dataclass, field
from pathlib import Path

from .lab import CONFIG, TINY, Lab, differences, snapshot

SWEEP = """sweep: small
config: %s
set: {%s}
variants:
  - {model.residual: pre}
  - {model.residual: post}
record: record.jsonl
"""
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


TRAIN = ["train", CONFIG, *TINY, "--quiet"]
OTHER = ["train", CONFIG, *TINY, "train.seed=7", "--quiet"]  # another run than TRAIN
RESUME = ["resume", "run", "--quiet"]
CONVERT = ["convert", "run", "--from", "siamese", "--to", "hf-llama", "-o"]
SWEEP_HERE = ["sweep", "sweep.yaml", "--out", "sweep", "--quiet"]
UPCYCLE = ["upcycle", "run", "--to", "siamese", "-o", "up"]
PROBE = ["probe", "run", "--inputs", "in.safetensors", "--out", "probed.safetensors", "--grad"]
ANALYZE = ["analyze", "run", "--samples", "2"]
TABLES = ["report", "run", "--out", "page.html", "--csv", "table.csv"]
TOKENIZER = ["tokenizer", "train", "tokenizer.json", "corpus.txt", "--vocab", "270"]
LONGER = ["resume", "run", "eval.batches=2", "--quiet"]
SAMPLE = ["sample", "dit", "--n", "2", "--steps", "2", "--grid", "drawn.png", "--out", "drawn.safetensors"]


# Their like is in the short form already.
LONG_FORM = (
    "sweep, continued", "report of a sweep", "convert to a file", "analyze", "report to files", "tokenizer train",
    "resume with an edit",
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
    ]
    train, overwrite = [*TRAIN, "--out", "run"], [*TRAIN, "--out", "run", "--overwrite"]
    return [
        Verb("train", "nothing", train, [train, RESUME]),
        Verb("train --overwrite", "other", overwrite, [overwrite]),
        Verb("resume", "half", RESUME, [RESUME], ["run"]),
        Verb("resume with an edit", "half", LONGER, [LONGER], ["run"]),
        Verb("sweep", "plan", SWEEP_HERE, [SWEEP_HERE]),
        Verb("sweep, continued", "half swept", SWEEP_HERE, [SWEEP_HERE], ["sweep"]),
        *simple,
    ]


def plan(home: Path) -> None:
    settings = ", ".join(f"{key}: {value}" for key, value in (text.split("=") for text in TINY) if "residual" not in key)
    (home / "corpus.txt").write_text("".join(f"line {number * number} of the corpus\n" for number in range(200)))
    (home / "sweep.yaml").write_text(SWEEP % (CONFIG, settings))


def must(lab: Lab, home: Path, arguments: list[str]) -> None:
    done = lab.run(home, arguments)
    if done.code != 0:
        raise SystemExit(f"siamese {' '.join(arguments)}: exit code {done.code}: {done.error}")


def kill_at(lab: Lab, home: Path, arguments: list[str], chosen) -> None:
    """Kills the command at the call that `chosen` picks among those of an undisturbed one."""
    calls = lab.calls(copy(lab, home), arguments)
    lab.run(home, arguments, at=str(1 + chosen(calls)), do="kill")


def fifth_line(calls: list[tuple[str, str]]) -> int:
    """The write of the last but one line of metrics: a checkpoint stands, and a line after it."""
    return [i for i, (name, path) in enumerate(calls) if name == "write" and path.endswith("/metrics.jsonl")][-1]


def copy(lab: Lab, home: Path) -> Path:
    target = lab.new_folder() / "home"
    shutil.copytree(home, target, symlinks=True)
    return target


def probe_inputs(home: Path) -> None:
    header = {"tokens": {"dtype": "I64", "shape": [1, 17], "data_offsets": [0, 136]}}
    text = json.dumps(header).encode()
    body = struct.pack("<17q", *(i % 14 for i in range(17)))
    (home / "in.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + body)


def world(lab: Lab, name: str) -> Path:
    """The folder of that name, made when it is first asked for."""

    def make(home: Path) -> None:
        if name == "converted":
            shutil.copytree(world(lab, "finished"), home, dirs_exist_ok=True)
            must(lab, home, [*CONVERT, "out"])
        elif name in ("finished", "half"):
            if name == "half":
                kill_at(lab, home, [*TRAIN, "--out", "run"], fifth_line)
            else:
                must(lab, home, [*TRAIN, "--out", "run"])
                probe_inputs(home)
        elif name == "other":
            must(lab, home, [*OTHER, "--out", "run"])
        elif name in ("plan", "swept", "half swept"):
            plan(home)
            if name == "swept":
                must(lab, home, SWEEP_HERE)
            if name == "half swept":
                kill_at(lab, home, SWEEP_HERE, fifth_line)
        elif name == "dit":
            images = ["model.family=dit", "data.source=shapes", "model.image=8", "train.steps=1", "model.norm=layer"]
            tiny = [text for text in TINY if not text.startswith(("data.", "model.context", "eval.problems"))]
            must(lab, home, ["train", CONFIG, *tiny, *images, "--out", "dit", "--quiet"])

    return lab.template(name, make)


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
