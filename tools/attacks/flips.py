"""Damaged files: a flipped bit, a cut, a loss. What a verb reads is either named (an error, or a warning and the run goes
on) or makes no difference; a result that silently changed is what this looks for."""

import shutil
import struct
from dataclasses import dataclass
from pathlib import Path

from .lab import CONFIG, EVENT_FILE, TINY, Done, Lab, bad_manners, differences, files_below, records, snapshot
from .worlds import (
    COMPARE, CONVERT, RESUME, SWEEP_HERE, TASKS, UPCYCLE, copy, fifth_line, kill_at, must, world,
)  # fmt: skip

LONGER = ["resume", "run", "train.steps=8", "--quiet"]
TEXT = ["data.source=text", "data.train=text", "model.vocab=0"]
TINY_TEXT = [text for text in TINY if not text.startswith(("data.digits", "eval.problems"))]
FROM_TEXT = ["train", CONFIG, *TINY_TEXT, "--quiet", *TEXT, "--out", "run"]
READERS = [
    ["eval", "run", "--json"],
    ["generate", "run", "--prompt", "1+2="],
    ["inspect", "run/step6", "--json"],
    [*CONVERT, "out"],
    UPCYCLE,
    ["probe", "run", "--inputs", "in.safetensors", "--out", "probed.safetensors"],
    ["train", CONFIG, *TINY, "--quiet", "init.from=run", "--out", "next"],
]


@dataclass
class Damage:
    """To one file: `how` for people, `act` on its path, `words` of which one must be said."""

    file: str
    how: str
    act: object
    words: list[str]


def words_for(path: Path, offset: int) -> list[str]:
    """What names the damage: the file, its checkpoint, the key of a config, the tensor."""
    words = [path.name]
    if path.parent.name.startswith("step"):
        words.append(path.parent.name)
    data = path.read_bytes()
    if path.suffix == ".yaml":
        line = data[: data.find(b"\n", offset)].rpartition(b"\n")[2]
        words.append(line.split(b":")[0].strip().decode(errors="replace"))
    return [word for word in words if word]


def flip(offset: int, bit: int):
    def act(path: Path) -> None:
        data = bytearray(path.read_bytes())
        data[offset] ^= 1 << bit
        path.write_bytes(data)

    return act


def offsets(path: Path, dice, most: int) -> list[int]:
    """Spread over the file; of a file of tensors some in its header, some in its data."""
    size = path.stat().st_size
    if path.suffix != ".safetensors":
        return sorted(dice.sample(range(size), min(size, most)))
    (header,) = struct.unpack("<Q", path.read_bytes()[:8])
    places = [dice.randrange(8), *(dice.randrange(8, 8 + header) for _ in range(most // 3))]
    return sorted({*places, *(dice.randrange(8 + header, size) for _ in range(most - len(places)))})


def damages(lab: Lab, home: Path, below: str, *about: str, most: int = 24) -> list[Damage]:
    """To every file below: flipped bits, `most` of each, and losses of half of it, of all in it, of itself."""
    found = []
    for path in files_below(home / below):
        name = str(path.relative_to(home))
        dice = lab.dice("flips", name, *about)
        if path.stat().st_size == 0:
            continue
        bits = [(offset, dice.randrange(8)) for offset in offsets(path, dice, 3 if lab.short else most)]
        for offset, bit in lab.sample(bits, 1, name, *about):
            found.append(Damage(name, f"bit {bit} of byte {offset}", flip(offset, bit), words_for(path, offset)))
        half = path.stat().st_size // 2
        losses = [
            Damage(name, "cut in half", lambda path, half=half: path.write_bytes(path.read_bytes()[:half]), [path.name]),
            Damage(name, "emptied", lambda path: path.write_bytes(b""), [path.name]),
            Damage(name, "deleted", lambda path: path.unlink(), [path.name, "no checkpoint", "incomplete checkpoint"]),
        ]
        found += [] if lab.short else losses
    return found


def verdict(done: Done, words: list[str], changes: list[str]) -> list[str]:
    """Named or harmless."""
    problems = bad_manners(done)
    named = any(word in done.error for word in words)
    if done.code != 0 and not named and not problems:
        problems.append(f"does not name what is damaged ({', '.join(words)}): {done.error.strip()[-200:]}")
    if done.code == 0 and changes and not named:
        problems.append("silent: " + "; ".join(changes[:3]))
    return problems


def resume_trials(lab: Lab, of: str = "half", most: int = 24, sample: int = 100) -> list:
    """Of a run that was killed; of the short form at most so many."""
    template = world(lab, of)
    home = copy(lab, template)
    must(lab, home, RESUME)
    end = snapshot(home)
    subjects = damages(lab, template, "run", "resume", of, most=most)
    if (template / "prepared").exists():
        subjects += damages(lab, template, "prepared", "resume", of, most=most)
    trials = []
    for damage in lab.sample(subjects, sample, "flips", of):

        def trial(folder: Path, damage=damage) -> list[str]:
            home = folder / "home"
            shutil.copytree(template, home)
            damage.act(home / damage.file)
            done = lab.run(home, RESUME)
            return verdict(done, damage.words, differences(end, snapshot(home), damage.file))

        name = Path(EVENT_FILE.sub("events.out.tfevents", damage.file)).name
        family = of.removeprefix("half")
        trials.append(("flips", f"resume{family}, {name}", f"{damage.file} {damage.how}", trial))
    return trials


def reader_trials(lab: Lab, of: str, commands: list[list[str]], below: str, names: tuple[str, ...], sample: int) -> list:
    """What verbs that read a finished run make of damaged files of these names; of the short form so many verbs."""
    template = world(lab, of)
    trials = []
    for command in lab.sample(commands, sample, "flips"):
        home = copy(lab, template)
        expected = lab.run(home, command)
        end = snapshot(home)
        all_damages = [d for d in damages(lab, template, below, command[0]) if d.file.endswith(names)]
        for damage in lab.sample([d for d in all_damages if d.file.endswith(names[0])] if lab.short else all_damages, 1):

            def trial(folder: Path, command=command, damage=damage, expected=expected, end=end) -> list[str]:
                home = folder / "home"
                shutil.copytree(template, home)
                damage.act(home / damage.file)
                done = lab.run(home, command)
                changes = differences(end, snapshot(home), damage.file)
                if done.out != expected.out:
                    changes.append("it says something else")
                return verdict(done, damage.words, changes)

            trials.append(("flips", f"{command[0]}, {Path(damage.file).name}", f"{damage.file} {damage.how}", trial))
    return trials


def sweep_trials(lab: Lab) -> list:
    """Of a record that is damaged nothing may be lost, and no line may count that is not what was written."""
    template = world(lab, "swept")
    home = copy(lab, template)
    lab.run(home, SWEEP_HERE)
    end = snapshot(home)
    subjects = [d for d in damages(lab, template, "sweep", "sweep") if "report.html" not in d.file]
    subjects += [d for d in damages(lab, template, "", "record") if d.file == "record.jsonl"]
    trials = []
    for damage in lab.sample(subjects, 3, "flips", "sweep"):

        def trial(folder: Path, damage=damage) -> list[str]:
            home = folder / "home"
            shutil.copytree(template, home)
            damage.act(home / damage.file)
            kept = records(home / "record.jsonl") if (home / "record.jsonl").exists() else []
            done = lab.run(home, SWEEP_HERE)
            if damage.file == "record.jsonl":
                now = records(home / "record.jsonl")
                lost = [f"lost from the record: {str(line)[:80]}" for line in kept if line not in now]
                if not damage.how.startswith("bit"):  # without the line its run is trained again
                    return bad_manners(done) + lost
                return verdict(done, damage.words, differences(end, snapshot(home), damage.file)) + lost
            words = [*damage.words, str(Path(damage.file).parent)]  # the run's folder is enough
            return verdict(done, words, differences(end, snapshot(home), damage.file))

        trials.append(("flips", f"sweep, {Path(damage.file).name}", f"{damage.file} {damage.how}", trial))
    return trials


def write_text(home: Path) -> None:
    (home / "text").mkdir()
    for name in ("a", "b", "c"):
        (home / "text" / f"{name}.txt").write_text(f"{name}: to read, to add, to normalise.\n" * 40)


def edit(path: Path) -> None:
    path.write_text(path.read_text().replace("read", "lead"))


def data_trials(lab: Lab) -> list:
    """Data that changed between kill and resume."""

    def make(home: Path) -> None:
        write_text(home)
        kill_at(lab, home, FROM_TEXT, fifth_line)

    template = lab.template("text", make)
    home = copy(lab, template)
    lab.run(home, RESUME)
    end = {name: value for name, value in snapshot(home).items() if not name.startswith("text/")}
    changes = {
        "an edit of the same size": lambda text: edit(text / "b.txt"),
        "a file added": lambda text: (text / "d.txt").write_text("more of it\n" * 40),
        "a file removed": lambda text: (text / "c.txt").unlink(),
        "a file halved": lambda text: (text / "b.txt").write_text((text / "b.txt").read_text()[:400]),
        "the order changed by a new name": lambda text: (text / "a.txt").rename(text / "z.txt"),
    }
    trials = []
    for how, act in lab.sample(list(changes.items()), 2, "flips", "data"):

        def trial(folder: Path, act=act) -> list[str]:
            home = folder / "home"
            shutil.copytree(template, home)
            act(home / "text")
            done = lab.run(home, RESUME)
            got = {name: value for name, value in snapshot(home).items() if not name.startswith("text/")}
            return verdict(done, ["text"], differences(end, got))

        trials.append(("flips", "resume, data", how, trial))
    return trials


def gone_trials(lab: Lab) -> list:
    """`latest` is gone and no checkpoint is whole: the run must not begin again without a word."""
    template = world(lab, "half")

    def trial(folder: Path) -> list[str]:
        home = folder / "home"
        shutil.copytree(template, home)
        (home / "run" / "latest").unlink()
        (home / "run" / "step3" / "optim.safetensors").unlink()
        before = (home / "run" / "metrics.jsonl").read_text().splitlines()
        done = lab.run(home, RESUME)
        kept = (home / "run" / "metrics.jsonl").read_text().splitlines()[: len(before)] == before
        return bad_manners(done) + ([] if kept or done.error else ["began again from 0 without a word"])

    return [("flips", "resume, nothing left", "latest and optim.safetensors deleted", trial)]


def sharded_trials(lab: Lab) -> list:
    """What two ranks wrote, read by one process."""
    if shutil.which("mpirun") is None or not (lab.binary.parent / "libsiamese_mpi.so").exists():
        lab.notes.append("flips: shards skipped, no MPI here")
        return []
    names = ("of-00002.safetensors", "index.json")
    return reader_trials(lab, "sharded", [LONGER, *READERS[:2]], "run/step6", names, 1)


def flips(lab: Lab) -> None:
    of_weights = ("model.safetensors", "config.yaml")
    trials = resume_trials(lab) + reader_trials(lab, "finished", READERS, "run/step6", of_weights, 3)
    for family in ("dit", "vit", "moe", "tokens"):
        trials += resume_trials(lab, f"half {family}", 6, 2)
    spoken = ("run/step6/tokenizer.json", "run/tokenizer.json")
    trials += reader_trials(lab, "spoken", [["generate", "run", "--prompt", "line 4"]], "run", spoken, 1)
    trials += reader_trials(lab, "asked", [TASKS], "run/tasks", ("first.jsonl", "second.jsonl"), 1)
    analyses = reader_trials(lab, "two", [COMPARE], "run/analysis", ("analysis.safetensors", "analysis.json"), 1)
    trials += [trial for trial in analyses if not trial[2].endswith("analysis.json deleted")]  # then it is measured again
    trials += sharded_trials(lab)
    lab.attack(trials + sweep_trials(lab) + data_trials(lab) + gone_trials(lab))


