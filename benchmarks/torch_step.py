#!/usr/bin/env python3
"""One measurement of the training step in plain PyTorch, in a process of its own:

    benchmarks/torch_step.py --shape s --scheme siamese --mode compile --steps 10 --json
"""

import argparse
import dataclasses
import json
import statistics
import sys
import time
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent))
from diffusion import DiffusionTransformer  # noqa: E402
from model import LanguageModel, make_optimizer  # noqa: E402
from vision import VisionTransformer  # noqa: E402
import shapes  # noqa: E402


def make_model(shape: shapes.Shape | shapes.VisionShape, arguments: argparse.Namespace) -> torch.nn.Module:
    if isinstance(shape, shapes.DiffusionShape):
        return DiffusionTransformer(shape, arguments.scheme, arguments.recompute)
    if isinstance(shape, shapes.VisionShape):
        return VisionTransformer(shape, arguments.scheme)
    return LanguageModel(shape, arguments.scheme, arguments.experts)


def random_batch(shape: shapes.Shape | shapes.VisionShape) -> tuple[torch.Tensor, torch.Tensor]:
    if isinstance(shape, shapes.VisionShape):
        images = torch.rand(shape.batch, shape.channels, shape.image, shape.image) * 2 - 1
        return images, torch.randint(shape.classes, (shape.batch,))
    tokens = torch.randint(shape.vocab, (shape.batch, shape.context + 1))
    return tokens[:, :-1], tokens[:, 1:]


def memory_mb(field: str) -> float:
    """VmRSS (now) or VmHWM (peak) of this process."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return float(line.split()[1]) / 1024
    return 0.0


def tensors_mb(model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> float:
    """Parameters, their gradients and the optimizer's moments."""
    size = sum(2 * parameter.nbytes for parameter in model.parameters())
    for state in optimizer.state.values():
        size += sum(value.nbytes for value in state.values() if torch.is_tensor(value) and value.dim() > 0)
    return size / 2**20


def measure(arguments: argparse.Namespace) -> dict:
    idle = memory_mb("VmRSS")
    shape = shapes.load(arguments.shape)
    if arguments.blocks:
        shape = dataclasses.replace(shape, blocks=arguments.blocks)
    torch.manual_seed(1)
    model = make_model(shape, arguments)
    optimizer = make_optimizer(model)
    run = torch.compile(model) if arguments.mode == "compile" else model
    parameters = list(model.parameters())

    def step() -> float:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=arguments.precision == "bfloat16"):
            loss = run(*random_batch(shape))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0, foreach=True)
        optimizer.step()
        return loss.item()

    def timed() -> float:
        start = time.perf_counter()
        step()
        return time.perf_counter() - start

    first = timed()
    for _ in range(max(0, arguments.warmup - 1)):
        timed()
    times = sorted(timed() for _ in range(arguments.steps))
    median = statistics.median(times)
    count = sum(parameter.numel() for parameter in parameters)
    tokens = shape.batch * shape.tokens
    return {
        "bench": "torch_step",
        "shape": arguments.shape,
        "scheme": arguments.scheme,
        "mode": arguments.mode,
        "precision": arguments.precision,
        "recompute": arguments.recompute,
        "experts": arguments.experts,
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
        "parameters": count,
        "tokens": tokens,
        "steps": arguments.steps,
        "median_ms": median * 1e3,
        "min_ms": times[0] * 1e3,
        "tokens_per_s": tokens / median,
        "idle_rss_mb": idle,
        "peak_rss_mb": memory_mb("VmHWM"),
        "state_mb": tensors_mb(model, optimizer),
        # What the first step takes beyond a later one; with a warm Inductor cache little of it is compiling.
        "compile_s": max(0.0, first - median) if arguments.mode == "compile" else 0.0,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", choices=shapes.NAMES, default="s")
    parser.add_argument("--scheme", choices=("pre", "siamese"), default="siamese")
    parser.add_argument("--mode", choices=("eager", "compile"), default="eager")
    parser.add_argument("--precision", choices=("float32", "bfloat16"), default="float32", help="bfloat16: autocast")
    parser.add_argument("--blocks", type=int, default=0, help="other than the shape's")
    parser.add_argument("--recompute", action="store_true", help="diffusion: every block again in backward")
    parser.add_argument("--experts", choices=("loop", "grouped"), default="grouped", help="how experts are multiplied")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--warmup", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="one JSON object on the last line")
    arguments = parser.parse_args()
    if arguments.recompute and not isinstance(shapes.load(arguments.shape), shapes.DiffusionShape):
        parser.error("--recompute: expected a diffusion shape")
    if arguments.steps < 1:
        parser.error("--steps: expected at least 1")
    result = measure(arguments)
    if arguments.json:
        print(json.dumps(result))
    else:
        for key, value in result.items():
            print(f"{key:14} {value:.1f}" if isinstance(value, float) else f"{key:14} {value}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
