"""Small folders to attack, made once with the binary itself, and the commands that are tried on them."""

import json
import shutil
import signal
import struct
from pathlib import Path

from .held import Held
from .lab import CONFIG, TINY, Lab, finish

SWEEP = """sweep: small
config: %s
set: {%s}
variants:
  - {model.residual: pre}
  - {model.residual: post}
record: record.jsonl
"""
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
EVENTS = ["report", "run", "--out", "page.html", "--tensorboard", "board"]
COMPARE = ["analyze", "--compare", "run", "other", "--out", "compared"]
PREPARE = ["prepare", "texts", "--tokenizer", "tokenizer.json", "--out", "prepared", "--val-fraction", "0.2",
           "--shard-tokens", "700", "--threads", "1"]  # fmt: skip
TASKS = ["eval", "run", "--tasks", "sets", "--json"]

RANKS = ("mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", "2")
NO_DATA = [text for text in TINY if not text.startswith(("data.", "eval.problems"))]  # of whatever family and source
PREPARED = ["data.source=tokens", "data.train=[prepared/train]", "data.val=[prepared/val]", "model.vocab=270"]
FROM_TOKENS = ["train", CONFIG, *NO_DATA, *PREPARED, "train.tensorboard=true", "--quiet", "--out", "run"]
IMAGES = [
    *(text for text in NO_DATA if not text.startswith("model.context")), "data.source=shapes", "model.image=8",
    "model.norm=layer",
]  # fmt: skip
FAMILIES = {
    "dit": ["train", CONFIG, *IMAGES, "model.family=dit", "eval.samples=2", "eval.sampler_steps=2"],
    "vit": ["train", CONFIG, *IMAGES, "model.family=vit"],
    "moe": ["train", CONFIG, *TINY, "model.family=moe", "model.experts=4", "model.experts_per_token=2"],
}


def plan(home: Path) -> None:
    settings = ", ".join(f"{key}: {value}" for key, value in (text.split("=") for text in TINY) if "residual" not in key)
    (home / "corpus.txt").write_text("".join(f"line {number * number} of the corpus\n" for number in range(200)))
    (home / "sweep.yaml").write_text(SWEEP % (CONFIG, settings))


def must(lab: Lab, home: Path, arguments: list[str], prefix: tuple[str, ...] = ()) -> None:
    done = finish(lab.start(home, arguments, prefix))
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


def texts(home: Path) -> None:
    """A corpus of several files, a tokenizer that `must` be trained on it, and questions in its words."""
    (home / "texts").mkdir()
    lines = [f"line {number * number} of the corpus" for number in range(200)]
    (home / "texts" / "a.jsonl").write_text("".join(json.dumps({"text": line}) + "\n" for line in lines))
    for name in ("b", "c", "d"):
        (home / "texts" / f"{name}.txt").write_text("\n".join(lines[:9] + [name]))
    for name in ("first", "second"):
        folder = home / "sets" / name
        folder.mkdir(parents=True)
        asked = [(document, index, " of" if index else f" {document}") for document in range(3) for index in (0, 1)]
        (folder / "requests.jsonl").write_text("".join(request(*parts) for parts in [*asked, (1000000, 0, " 0")]))
        (folder / "config.json").write_text(json.dumps({"task_name": name, "task_config": {"primary_metric": "acc_raw"}}))


def request(document: int, index: int, continuation: str) -> str:
    asked = {"context": "line", "continuation": continuation}
    head = {"request_type": "loglikelihood", "doc_id": document, "idx": index, "label": 1}
    return json.dumps(head | {"request": asked}) + "\n"


def stop_at(lab: Lab, home: Path, arguments: list[str], path: str) -> None:
    """Sends SIGTERM before the first call about the file, and lets the command end by itself."""
    calls = lab.calls(copy(lab, home), arguments)
    held = Held(lab, home, arguments, 1 + [called for _, called in calls].index(path))
    held.process.send_signal(signal.SIGTERM)
    held.release()
    done = finish(held.process)
    if done.code != 128 + signal.SIGTERM:
        raise SystemExit(f"siamese {' '.join(arguments)}: exit code {done.code} after SIGTERM: {done.error}")


def world(lab: Lab, name: str) -> Path:
    """The folder of that name, made when it is first asked for."""

    def after(first: str, home: Path, *commands: list[str]) -> None:
        shutil.copytree(world(lab, first), home, dirs_exist_ok=True)
        for command in commands:
            must(lab, home, command)

    def finished(home: Path) -> None:
        must(lab, home, [*TRAIN, "--out", "run"])
        probe_inputs(home)

    def drawing(home: Path) -> None:
        must(lab, home, ["train", CONFIG, *IMAGES, "model.family=dit", "train.steps=1", "--out", "dit", "--quiet"])

    def speaking(home: Path) -> None:
        texts(home)
        must(lab, home, ["tokenizer", "train", "tokenizer.json", "texts/b.txt", "texts/c.txt", "--vocab", "270"])

    makers = {
        "nothing": lambda home: None,
        "finished": finished,
        "half": lambda home: kill_at(lab, home, [*TRAIN, "--out", "run"], fifth_line),
        "other": lambda home: must(lab, home, [*OTHER, "--out", "run"]),
        "converted": lambda home: after("finished", home, [*CONVERT, "out"]),
        "upcycled": lambda home: after("finished", home, UPCYCLE),
        "two": lambda home: after("finished", home, [*OTHER, "--out", "other"],
                                  ["analyze", "other", "--samples", "2"], ANALYZE),
        "plan": plan,
        "swept": lambda home: (plan(home), must(lab, home, SWEEP_HERE)),
        "half swept": lambda home: (plan(home), kill_at(lab, home, SWEEP_HERE, fifth_line)),
        "dit": drawing,
        "texts": speaking,
        "half prepared": lambda home: (after("texts", home), stop_at(lab, home, PREPARE, "/prepared/tokenizer.json")),
        "sharded": lambda home: must(lab, home, [*TRAIN, "train.micro_batch=2", "--out", "run"], RANKS),
        "spoken": lambda home: after("texts", home, PREPARE, FROM_TOKENS),
        "asked": lambda home: after("spoken", home, TASKS),
        "half tokens": lambda home: (after("texts", home, PREPARE), kill_at(lab, home, FROM_TOKENS, fifth_line)),
    }
    for family, command in FAMILIES.items():
        whole = [*command, "--quiet", "--out", "run"]
        makers[f"half {family}"] = lambda home, whole=whole: kill_at(lab, home, whole, fifth_line)
    return lab.template(name, makers[name])
