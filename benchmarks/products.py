#!/usr/bin/env python3
"""What LibTorch offers for the products of a linear layer, by shape, in turns: MKL (F.linear and @), oneDNN on plain
weights, oneDNN on weights packed beforehand. This is what siamese/ops/product.cc chooses from.

    .venv/bin/python benchmarks/products.py [--threads 2] [--turns 40]
"""

import argparse
import time
from statistics import median

import torch

SHAPES = [(256, 768), (256, 2048), (1024, 256), (768, 4096), (2048, 768)]  # in, out of S, D and M


def in_turns(calls: dict, turns: int) -> dict:
    """The median seconds of each call, after two calls of each to warm up."""
    seconds = {name: [] for name in calls}
    for turn in range(-2, turns):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            if turn >= 0:
                seconds[name].append(time.perf_counter() - start)
    return {name: median(values) for name, values in seconds.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--turns", type=int, default=40)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)

    def onednn(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return torch.ops.mkldnn._linear_pointwise(x, weight, None, "none", [], "")

    pack = torch.ops.mkldnn._reorder_linear_weight
    print("GFLOP/s      rows    in   out | x W^T: MKL oneDNN packed | dy W: MKL oneDNN packed | dW += dy^T x: MKL")
    with torch.no_grad():
        for rows in (512, 1024, 2048):
            for inner, outer in SHAPES:
                x, dy, w = torch.randn(rows, inner), torch.randn(rows, outer), torch.randn(outer, inner)
                gradient = torch.zeros_like(w)
                packed, packed_back = pack(w, rows), pack(w.t().contiguous(), rows)
                seconds = in_turns({
                    "forward": lambda: torch.nn.functional.linear(x, w),
                    "forward onednn": lambda: onednn(x, w),
                    "forward packed": lambda: onednn(x, packed),
                    "input": lambda: dy @ w,
                    "input onednn": lambda: onednn(dy, w.t()),
                    "input packed": lambda: onednn(dy, packed_back),
                    "weight": lambda: gradient.addmm_(dy.t(), x),
                }, arguments.turns)
                rate = [2e-9 * rows * inner * outer / value for value in seconds.values()]
                print(f"         {rows:8} {inner:5} {outer:5} |        {rate[0]:4.0f} {rate[1]:6.0f} {rate[2]:6.0f} |"
                      f"       {rate[3]:4.0f} {rate[4]:6.0f} {rate[5]:6.0f} | {rate[6]:4.0f}", flush=True)


if __name__ == "__main__":
    main()
