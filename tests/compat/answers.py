"""What a binary says of the run directories, the sweep and the record below tests/fixtures, verb by verb, as one JSON
value. tests/fixtures/make.py writes down what the binary said that made them, run.py asks the binary of today."""

import hashlib
import json
import re
import shutil
import struct
import subprocess
from pathlib import Path

FAMILIES = ("lm", "moe", "vit", "dit")
STEPS = 8  # of each run; they were killed while the last checkpoint was written, after step 4 stood
CLOCK = ("step_ms", "tokens_per_s", "samples_per_s", "checksum")
PREPARED = ["--lines", "--tokenizer", "tokenizer.json", "--val-fraction", "0.25"]
ANALYSED = f"words/analysis/step{STEPS // 2}"
LAYOUT = {"lm": "hf-llama", "moe": "siamese", "words": "siamese", "vit": "official-deit", "dit": "official-dit"}
COMMON = [
    "model.width=8", "model.blocks=1", "model.heads=2", "train.batch=4", f"train.steps={STEPS}",
    "train.checkpoint_every=4", "train.eval_every=4", "train.record_every=4", "eval.batches=1", "engine.threads=1",
    "optim.lr=5e-3", "optim.schedule.warmup=2",
]  # fmt: skip
TEXT = ["model.context=16", "model.ffn_width=16"]
IMAGES = ["model.image=8", "model.norm=layer", "model.bias=true", "model.ffn_width=16", "model.residual=siamese"]
OVERRIDES = {
    "lm": [*COMMON, *TEXT, "model.residual=pre", "data.digits=1", "eval.problems=2", "train.skip_outliers=4",
           "train.skip_window=8"],
    "moe": [*COMMON, *TEXT, "model.residual=siamese", "model.family=moe", "model.experts=3", "model.ffn_width=8",
            "data.source=text", "data.train=text.txt", "data.val_fraction=0.2"],
    "vit": [*COMMON, *IMAGES, "model.family=vit", "data.source=shapes", "model.ffn=gelu", "model.drop_path=0.2",
            "data.augment.mixup=0.8"],
    "dit": [*COMMON, *IMAGES, "model.family=dit", "data.source=shapes", "model.ffn=gelu_tanh", "train.ema=0.9",
            "eval.averaged=true", "eval.samples=4", "eval.sampler_steps=3"],
    # Only where a folder of tokens is, so not of 0.1.0.
    "words": [*COMMON, *TEXT, "model.blocks=2", "model.residual=attn_res", "model.value_residual=half", "model.vocab=300",
              "data.source=tokens", "data.format=auto", "data.train=[tokens/train]", "data.val=[tokens/val]",
              "data.pack=documents", "optim.name=muon"],
}  # fmt: skip


class Siamese:
    """The binary, started in one folder: every path in the fixtures is relative to it."""

    def __init__(self, binary: Path, folder: Path):
        self.binary, self.folder = binary.resolve(), folder

    def __call__(self, *arguments: str) -> str:
        command = [str(self.binary), *arguments]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"siamese {' '.join(arguments)}: exit code {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    def train(self, family: str, *more: str) -> str:
        return self("train", "arithmetic-small", *OVERRIDES[family], "--out", family, "--quiet", *more)


def lines(path: Path) -> list[dict]:
    """A JSON Lines file without what the clock decides."""
    values = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [{key: value for key, value in line.items() if key not in CLOCK} for line in values]


def tensors(path: Path) -> dict[str, tuple[str, list[int], bytes]]:
    data = path.read_bytes()
    (size,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8 : 8 + size])
    header.pop("__metadata__", None)
    body = data[8 + size :]
    return {name: (entry["dtype"], entry["shape"], body[slice(*entry["data_offsets"])])
            for name, entry in sorted(header.items())}  # fmt: skip


def digests(path: Path) -> dict[str, str]:
    """Names, types, shapes and bits: what converting must keep, whatever stands in the metadata."""
    return {name: f"{dtype} {shape} {hashlib.sha256(data).hexdigest()[:16]}"
            for name, (dtype, shape, data) in tensors(path).items()}  # fmt: skip


def floats(path: Path) -> dict[str, list[float]]:
    found = {name: struct.unpack(f"<{len(data) // 4}f", data)
             for name, (dtype, _, data) in tensors(path).items() if dtype == "F32"}  # fmt: skip
    return {name: [round(value, 6) for value in values[:: max(1, len(values) // 16)]] for name, values in found.items()}


def inspected(text: str) -> dict:
    value = json.loads(text)
    known = ("name", "dtype", "shape", "mean", "std")
    listed = [{key: tensor[key] for key in known if key in tensor} for tensor in value["tensors"]]
    return {"residual": value["residual"], "parameters": value["parameters"], "tensors": listed}


def page(path: Path) -> list[dict]:
    """What a report says of its variants: counts and losses."""
    text = path.read_text(encoding="utf-8")
    data = json.loads(re.search(r'<script type="application/json" id="report-data">(.*?)</script>', text, re.S)[1])
    known = ("variant", "family", "lr", "finished", "diverged", "train_loss", "val_loss")
    return [{key: group[key] for key in known} for group in data["groups"]]


def table(text: str) -> list[list[str]]:
    """The first printed table in the columns that 0.1.0 had but for the last, the speed, and without the mark of runs by
    another build. Later versions have more columns, and another table below it."""
    first = text.split("\n\n", maxsplit=1)[0]
    rows = [[cell.strip().removesuffix(" ^") for cell in line.split("|")[1:-1]]
            for line in first.splitlines() if line.startswith("| ")]  # fmt: skip
    known = [at for at, title in enumerate(rows[0]) if title != "stuck" and not title.endswith("/s")]
    return [[row[at] for at in known] for row in rows]


def families(fixtures: Path) -> tuple[str, ...]:
    return (*FAMILIES, "words") if (fixtures / "tokens").is_dir() else FAMILIES


def of_words(siamese: Siamese, checkpoint: str) -> dict:
    """The ids of a text, a folder of tokens that is finished, and an analysis beside the one that stands in the run."""
    siamese("prepare", "corpus.txt", *PREPARED, "--out", "tokens")
    looked = json.loads(siamese("analyze", checkpoint, "--samples", "4", "-o", "looked", "--json"))
    siamese("analyze", "--compare", ANALYSED, "looked", "--out", "both")
    return {"ids": json.loads(siamese("tokenizer", "encode", "tokenizer.json", "text.txt")),
            "manifest": json.loads((siamese.folder / "tokens" / "manifest.json").read_text(encoding="utf-8")),
            "analysis": {key: looked[key] for key in ("scheme", "parameters", "loss", "changed_loss", "ranges")},
            "lens": [place["lens"]["loss"] for place in looked["places"]]}


def of_family(siamese: Siamese, family: str) -> dict:
    run = siamese.folder / family
    checkpoint = f"{family}/step{STEPS // 2}"
    said = {
        "eval": json.loads(siamese("eval", family, "--json")),
        "inspect": inspected(siamese("inspect", f"{checkpoint}/model.safetensors", "--json")),
    }
    if family == "words":
        said |= of_words(siamese, checkpoint)
    if family in ("lm", "moe", "words"):
        prompt = "1+2=" if family == "lm" else "The "
        said["generate"] = siamese("generate", checkpoint, "--prompt", prompt, "--max-tokens", "8", "--temperature", "0")
    if family == "dit":
        siamese("sample", family, "--n", "4", "--steps", "3", "--seed", "5", "--out", "drawn.safetensors")
        said["sample"] = floats(siamese.folder / "drawn.safetensors")
    if family == "lm":
        said["upcycle"] = json.loads(siamese("upcycle", family, "--to", "siamese", "-o", "upcycled", "--json"))
        said["upcycle"] = {key: value for key, value in said["upcycle"].items() if isinstance(value, float | int)}
    out = f"{family}.safetensors"
    siamese("convert", checkpoint, "--from", "siamese", "--to", LAYOUT[family], "-o", out)
    said["convert"] = digests(siamese.folder / out)
    siamese("resume", family, "--quiet")
    said |= {"metrics": lines(run / "metrics.jsonl"), "evaluations": lines(run / "eval.jsonl")}
    said["status"] = {key: json.loads((run / "run.json").read_text())[key] for key in ("status", "step", "parameters")}
    said["latest"] = (run / "latest").read_text().strip()
    siamese("report", family)
    said["report"] = page(run / "report.html")
    # Last: an earlier run may be replaced, and gives the same numbers, now from the first step.
    siamese.train(family, "--overwrite")
    said["overwritten"] = lines(run / "metrics.jsonl")
    return said


def of_sweep(siamese: Siamese) -> dict:
    """The folder of one run is left, the other is known from the record alone; neither may be trained again."""
    said = {"plan": siamese("sweep", "sweep.yaml", "--out", "sweep", "--dry-run").splitlines()[-1]}
    record = siamese.folder / "record.jsonl"
    before = record.read_bytes()
    said["table"] = table(siamese("sweep", "sweep.yaml", "--out", "sweep", "--quiet"))
    said["again"] = table(siamese("sweep", "sweep.yaml", "--out", "elsewhere", "--quiet"))
    said["record_kept"] = record.read_bytes() == before
    said["recorded"] = lines(siamese.folder / "sweep" / "recorded.jsonl")
    for line in said["recorded"]:
        for key in ("seconds", "cpu", "version", "threads", "config"):
            line.pop(key, None)
    said["folders"] = sorted(path.name for path in (siamese.folder / "sweep").iterdir() if path.is_dir())
    said["folders_elsewhere"] = sorted(path.name for path in (siamese.folder / "elsewhere").iterdir() if path.is_dir())
    siamese("report", "sweep")
    said["report"] = page(siamese.folder / "sweep" / "report.html")
    return said


def ask(binary: Path, fixtures: Path, folder: Path) -> dict:
    """`folder` (it must not be there) becomes a copy of the fixtures, which the answers change."""
    shutil.copytree(fixtures, folder)
    siamese = Siamese(binary, folder)
    return {family: of_family(siamese, family) for family in families(fixtures)} | {"sweep": of_sweep(siamese)}
