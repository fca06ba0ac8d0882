#!/usr/bin/env python3
"""Proves that benchmarks/model.py is the model that the engine trains: `siamese train` makes a small model (a few steps
on arithmetic, so that gains are no longer 1), and both compute the held-out loss of the same text with its weights."""

import json
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))
from model import LanguageModel  # noqa: E402
from shapes import Shape, VisionShape  # noqa: E402
from vision import VisionTransformer  # noqa: E402

SHAPE = Shape(width=32, blocks=3, heads=4, ffn_width=48, vocab=256, context=40, batch=4)
VISION = VisionShape(width=24, blocks=3, heads=2, image=12, patch=4, channels=3, classes=5, batch=4)
TOLERANCE = 1e-5


def read_safetensors(path: Path) -> dict[str, torch.Tensor]:
    """float32 only: eight bytes of length, a JSON header, the data."""
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        if entry["dtype"] != "F32":
            raise ValueError(f"{path}: {name}: expected F32, got {entry['dtype']}")
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        values = torch.frombuffer(bytearray(data[begin:end]), dtype=torch.float32)
        tensors[name] = values.reshape(entry["shape"])
    return tensors


def siamese(binary: Path, *arguments: str) -> str:
    run = subprocess.run([str(binary), *arguments], capture_output=True, text=True, check=False)
    if run.returncode != 0:
        raise RuntimeError(f"{binary} {' '.join(arguments)}: exit {run.returncode}: {run.stderr.strip()}")
    return run.stdout


def losses(binary: Path, scheme: str, folder: Path) -> tuple[float, float]:
    """(ours, PyTorch's) loss of the same held-out windows with the same weights."""
    text = bytes((i * i * 7 + i // 3) % 96 + 32 for i in range(4000))
    (folder / "text.txt").write_bytes(text)
    (folder / "held_out.txt").write_bytes(text[::-1])
    run_dir = folder / scheme
    keys = {
        "model.residual": scheme,
        "model.width": SHAPE.width,
        "model.blocks": SHAPE.blocks,
        "model.heads": SHAPE.heads,
        "model.ffn_width": SHAPE.ffn_width,
        "model.context": SHAPE.context,
        "data.train": folder / "text.txt",
        "data.val": folder / "held_out.txt",
        "train.batch": SHAPE.batch,
        "train.steps": 8,
        "train.eval_every": 0,
        "train.checkpoint_every": 0,
        "optim.lr": 0.02,
        "optim.schedule.warmup": 0,
        "eval.batches": 2,
    }
    siamese(binary, "train", "text-small", *(f"{k}={v}" for k, v in keys.items()), "--out", str(run_dir), "--quiet")
    ours = json.loads(siamese(binary, "eval", str(run_dir), "--json"))["loss"]
    model = LanguageModel(SHAPE, scheme)
    model.load_state_dict(read_safetensors(run_dir / "step8" / "model.safetensors"))
    held_out = torch.tensor(list(text[::-1]))
    windows = [held_out[i * SHAPE.context : (i + 1) * SHAPE.context + 1] for i in range(2 * SHAPE.batch)]
    tokens = torch.stack(windows)
    with torch.no_grad():
        theirs = model(tokens[:, :-1], tokens[:, 1:]).item()
    return ours, theirs


def write_images(path: Path, images: torch.Tensor, labels: torch.Tensor) -> None:
    """The format of data.source: latents."""
    parts = {"latents": ("F32", images), "labels": ("I64", labels)}
    header, data = {}, b""
    for name, (dtype, tensor) in parts.items():
        blob = tensor.numpy().tobytes()
        header[name] = {"dtype": dtype, "shape": list(tensor.shape), "data_offsets": [len(data), len(data) + len(blob)]}
        data += blob
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def vision_losses(binary: Path, scheme: str, folder: Path) -> tuple[float, float]:
    """(ours, PyTorch's) loss of the same held-out images with the same weights."""
    torch.manual_seed(1)
    sets = {}
    for side in ("train", "val"):
        images = torch.rand(16, VISION.channels, VISION.image, VISION.image) * 2 - 1
        sets[side] = (images, torch.randint(VISION.classes, (16,)))
        write_images(folder / f"{side}.safetensors", *sets[side])
    run_dir = folder / f"vit-{scheme}"
    keys = {
        "model.residual": scheme, "model.width": VISION.width, "model.blocks": VISION.blocks, "model.heads": VISION.heads,
        "model.image": VISION.image, "model.patch": VISION.patch, "model.classes": VISION.classes,
        "data.source": "latents", "data.train": folder / "train.safetensors", "data.val": folder / "val.safetensors",
        "train.batch": VISION.batch, "train.steps": 8, "optim.lr": 0.02, "eval.batches": 4,
    }
    siamese(binary, "train", "bench/v", *(f"{k}={v}" for k, v in keys.items()), "--out", str(run_dir), "--quiet")
    ours = json.loads(siamese(binary, "eval", str(run_dir), "--json"))["loss"]
    model = VisionTransformer(VISION, scheme)
    weights = read_safetensors(run_dir / "step8" / "model.safetensors")
    weights["patch.weight"] = weights["patch.weight"].reshape(model.patch.weight.shape)
    model.load_state_dict(weights)
    with torch.no_grad():
        return ours, model(*sets["val"]).item()


def main() -> int:
    binary = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build/release/siamese")
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        for what, compare in (("lm", losses), ("vit", vision_losses)):
            for scheme in ("pre", "siamese"):
                ours, theirs = compare(binary, scheme, Path(folder))
                equal = abs(ours - theirs) <= TOLERANCE
                failed |= not equal
                print(f"check_equal: {what} {scheme}: ours {ours:.7f}, PyTorch {theirs:.7f}: {'equal' if equal else 'NOT EQUAL'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
