#!/usr/bin/env python3
"""Proves that the PyTorch models beside ours are the models that the engine trains: `siamese train` makes a small model of
each family (a few steps, so that gains are no longer 1), and both compute the held-out loss of the same data with its
weights. `siamese probe` gives the routers' terms."""

import json
import struct
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Callable

import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))
from diffusion import STEPS, DiffusionTransformer  # noqa: E402
from draws import timesteps_and_noise  # noqa: E402
from model import LanguageModel  # noqa: E402
from shapes import DiffusionShape, MixtureShape, Shape, VisionShape  # noqa: E402
from vision import VisionTransformer  # noqa: E402

TEXT = Shape(width=32, blocks=3, heads=4, ffn_width=48, vocab=256, context=40, batch=4)
EXPERTS = MixtureShape(width=32, blocks=3, heads=4, ffn_width=24, vocab=256, context=40, batch=4, experts=5,
                       experts_per_token=2)
VISION = VisionShape(width=24, blocks=3, heads=2, image=12, patch=4, channels=3, classes=5, batch=4)
DIFFUSION = DiffusionShape(width=24, blocks=3, heads=2, image=8, patch=2, channels=3, classes=5, batch=4)
TOLERANCE = 1e-5
SAMPLES = 8  # held-out windows of text


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


def write_safetensors(path: Path, tensors: dict[str, torch.Tensor]) -> None:
    header, data = {}, b""
    for name, tensor in tensors.items():
        blob = tensor.contiguous().numpy().tobytes()
        dtype = "I64" if tensor.dtype == torch.int64 else "F32"
        header[name] = {"dtype": dtype, "shape": list(tensor.shape), "data_offsets": [len(data), len(data) + len(blob)]}
        data += blob
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


class Trained:
    """A model of ours after eight steps, with its held-out loss."""

    def __init__(self, binary: Path, folder: Path, recipe: str, keys: dict):
        self.binary, self.folder = binary, folder
        self.run = folder / "run"
        keys |= {"train.batch": 4, "train.steps": 8, "train.eval_every": 0, "train.checkpoint_every": 0, "optim.lr": 0.02}
        words = [f"{key}={value}" for key, value in keys.items()]
        self.siamese("train", recipe, *words, "--out", str(self.run), "--quiet")
        self.loss = json.loads(self.siamese("eval", str(self.run), "--json"))["loss"]
        self.weights = read_safetensors(self.run / "step8" / "model.safetensors")

    def siamese(self, *arguments: str) -> str:
        run = subprocess.run([str(self.binary), *arguments], capture_output=True, text=True, check=False)
        if run.returncode != 0:
            raise RuntimeError(f"{self.binary} {' '.join(arguments)}: exit {run.returncode}: {run.stderr.strip()}")
        return run.stdout

    def probe(self, inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        write_safetensors(self.folder / "in.safetensors", inputs)
        self.siamese("probe", str(self.run), "--inputs", str(self.folder / "in.safetensors"), "--out",
                     str(self.folder / "out.safetensors"))
        return read_safetensors(self.folder / "out.safetensors")

    def load_into(self, model: torch.nn.Module) -> torch.nn.Module:
        if "patch.weight" in self.weights:
            self.weights["patch.weight"] = self.weights["patch.weight"].reshape(model.patch.weight.shape)
        model.load_state_dict(self.weights)
        return model.eval()


def text_losses(shape: Shape, family: str, binary: Path, scheme: str, folder: Path) -> list[tuple[str, float, float]]:
    """(what, ours, PyTorch's) of the same held-out windows with the same weights."""
    text = bytes((i * i * 7 + i // 3) % 96 + 32 for i in range(4000))
    (folder / "text.txt").write_bytes(text)
    (folder / "held_out.txt").write_bytes(text[::-1])
    keys = {"model.family": family, "model.residual": scheme, "data.train": folder / "text.txt",
            "data.val": folder / "held_out.txt", "optim.schedule.warmup": 0, "eval.batches": SAMPLES // 4}
    names = ["width", "blocks", "heads", "ffn_width", "context"] + ["experts", "experts_per_token"] * (family == "moe")
    trained = Trained(binary, folder, "text-small", keys | {f"model.{name}": getattr(shape, name) for name in names})
    held_out = torch.tensor(list(text[::-1]))
    tokens = torch.stack([held_out[i * shape.context : (i + 1) * shape.context + 1] for i in range(SAMPLES)])
    found = []
    for way in ("loop", "grouped") if family == "moe" else ("",):
        model = trained.load_into(LanguageModel(shape, scheme, way))
        with torch.no_grad():
            found.append((way, trained.loss, model(tokens[:, :-1], tokens[:, 1:]).item()))
            if family != "moe":
                continue
            # The probe's routers see the last token of a window, too: give both the same rows.
            probed = trained.probe({"tokens": tokens[:, :-1]})
            in_training = model.train()(tokens[:, :-1], tokens[:, 1:]).item() - model.eval()(tokens[:, :-1], tokens[:, 1:]).item()
            terms = 0.01 * probed["aux/balance_loss"].item() + 0.001 * probed["aux/router_z_loss"].item()
            found.append((f"{way}, routers' terms", terms, in_training))
    return found


def image_sets(shape: VisionShape, folder: Path) -> tuple[torch.Tensor, torch.Tensor]:
    """Writes both sides in the format of data.source: latents; returns the held-out images and labels."""
    torch.manual_seed(1)
    for side in ("train", "val"):
        images = torch.rand(16, shape.channels, shape.image, shape.image) * 2 - 1
        labels = torch.randint(shape.classes, (16,))
        write_safetensors(folder / f"{side}.safetensors", {"latents": images, "labels": labels})
    return images, labels


def image_keys(shape: VisionShape, scheme: str, folder: Path) -> dict:
    names = ("width", "blocks", "heads", "image", "patch", "channels", "classes")
    return {"model.residual": scheme, "data.source": "latents", "data.train": folder / "train.safetensors",
            "data.val": folder / "val.safetensors", "eval.batches": 4} | {
                f"model.{name}": getattr(shape, name) for name in names}


def vision_losses(binary: Path, scheme: str, folder: Path) -> list[tuple[str, float, float]]:
    held_out = image_sets(VISION, folder)
    trained = Trained(binary, folder, "bench/v", image_keys(VISION, scheme, folder))
    model = trained.load_into(VisionTransformer(VISION, scheme))
    with torch.no_grad():
        return [("", trained.loss, model(*held_out).item())]


def diffusion_losses(binary: Path, scheme: str, folder: Path) -> list[tuple[str, float, float]]:
    images, labels = image_sets(DIFFUSION, folder)
    trained = Trained(binary, folder, "bench/x", image_keys(DIFFUSION, scheme, folder) | {"optim.schedule.warmup": 0})
    drawn = timesteps_and_noise(images.shape, STEPS)
    places = trained.weights.pop("positions.weight")  # a fixed table: computed, not loaded
    apart = (places - DiffusionTransformer(DIFFUSION, scheme).places).abs().max().item()
    found = [("positions, apart", 0.0, apart)]
    for recompute in (False, True):
        model = trained.load_into(DiffusionTransformer(DIFFUSION, scheme, recompute))
        with torch.no_grad():
            found.append(("recompute" * recompute, trained.loss, model.loss(images, labels, *drawn).item()))
    return found


def main() -> int:
    binary = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build/release/siamese").resolve()
    families: dict[str, Callable] = {
        "lm": lambda *words: text_losses(TEXT, "lm", *words),
        "moe": lambda *words: text_losses(EXPERTS, "moe", *words),
        "vit": vision_losses,
        "dit": diffusion_losses,
    }
    failed = False
    for family, compare in families.items():
        for scheme in ("pre", "siamese"):
            with tempfile.TemporaryDirectory() as folder:
                found = compare(binary, scheme, Path(folder))
            for what, ours, theirs in found:
                equal = abs(ours - theirs) <= TOLERANCE
                failed |= not equal
                name = " ".join(filter(None, (family, scheme, what)))
                print(f"check_equal: {name}: ours {ours:.7f}, PyTorch {theirs:.7f}: {'equal' if equal else 'NOT EQUAL'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
