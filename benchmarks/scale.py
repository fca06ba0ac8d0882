#!/usr/bin/env python3
"""The tables and plots of docs/scale.md: asks `siamese plan` about the large recipes on 1 to 4096 devices.

    benchmarks/scale.py                            half a minute; computes, measures nothing
"""

import argparse
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))
from plot import Panel, Series, draw  # noqa: E402
from render import table, write_between  # noqa: E402

BEGIN = "<!-- scale: begin -->"
END = "<!-- scale: end -->"
CONFIGS = ("siamese-400m-10L", "siamese-400m-17L", "siamese-400m-33L", "siamese-400m-80L", "siamese-1.3b",
           "siamese-moe-15a2b")
DRAWN = ("siamese-400m-17L", "siamese-400m-80L", "siamese-1.3b", "siamese-moe-15a2b")
DEVICES = [2**power for power in range(13)]
IN_NODE = 8
MACHINE = ["--device-memory", "80GB", "--device-flops", "312T", "--utilization", "0.4", "--memory-rate", "2TB/s",
           "--node-link", "300GB/s", "--link", "25GB/s", "--latency-us", "20", "--price", "2", "--mtbf-hours", "50000",
           "--disk", "5GB/s", "--restart-minutes", "10"]
SHARDINGS = ("none", "optimizer", "fsdp")


@dataclass(frozen=True)
class Answer:
    """What `plan` says of a recipe on so many devices."""

    devices: int
    batch: int
    json: dict

    def plan(self, sharding: str, recompute: bool) -> dict:
        return next(plan for plan in self.json["plans"] if (plan["sharding"], plan["recompute"]) == (sharding, recompute))

    def best(self) -> dict | None:
        """The fastest that fits."""
        fitting = [plan for plan in self.json["plans"] if plan["fits"]]
        return min(fitting, key=lambda plan: plan["step_seconds"], default=None)


def ask(binary: Path, config: str, devices: int, *words: str) -> dict:
    command = [str(binary), "plan", config, *words, "--devices", str(devices), "--nodes",
               str(max(1, devices // IN_NODE)), "--micro-batch", "0", *MACHINE, "--json"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        sys.exit(f"scale: {' '.join(command)}: exit {run.returncode}\n{run.stderr.strip()}")
    return json.loads(run.stdout)


def recipe_numbers(binary: Path, config: str) -> tuple[int, int]:
    """Samples of a step, steps."""
    run = subprocess.run([str(binary), "config", "show", config], cwd=ROOT, capture_output=True, text=True, check=True)
    lines = run.stdout.split("\ntrain:\n")[1].splitlines()
    batch, steps = (int(next(line for line in lines if line.startswith(f"  {key}:")).split(":")[1])
                    for key in ("batch", "steps"))
    return batch, steps


def answers(binary: Path, config: str) -> list[Answer]:
    """Past one sample for each device the batch grows with them, and the steps become fewer: the same tokens."""
    batch, steps = recipe_numbers(binary, config)
    found = []
    for devices in DEVICES:
        grown = max(batch, devices)
        words = [f"train.batch={grown}", "train.micro_batch=1", f"train.steps={steps * batch // grown}"]
        found.append(Answer(devices, grown, ask(binary, config, devices, "engine.precision=bfloat16", *words)))
    return found


def gigabytes(number: float) -> str:
    return f"{number / 1e9:.3g}"


def time_text(seconds: float) -> str:
    for size, unit in ((86400 * 2, "days"), (3600, "h"), (60, "min"), (1, "s")):
        if seconds >= size:
            return f"{seconds / (86400 if unit == 'days' else size):.3g} {unit}"
    return f"{seconds * 1e3:.3g} ms"


def name_of(plan: dict) -> str:
    return plan["sharding"] + (", recomputed" if plan["recompute"] else "")


def best_table(found: list[Answer]) -> str:
    rows = []
    for answer in found:
        best = answer.best()
        if best is None:
            rows.append([str(answer.devices), str(answer.batch), "nothing fits", *[""] * 9])
            continue
        seconds = best["step_seconds"]
        rows.append([str(answer.devices), str(answer.batch), name_of(best), str(best["micro_batch"]),
                     gigabytes(best["bytes"]["total"]), gigabytes(best["sent_bytes"]), time_text(seconds),
                     f"{best['communication_share']:.1%}", f"{best['communication_seconds'] / seconds:.1%}",
                     f"{answer.json['model']['tokens_each_step'] / seconds:.3g}", f"{best['days']:.3g}",
                     f"{best['price']:.0f}"])
    return table(["devices", "batch", "sharding", "micro-batch", "GB a device", "GB sent", "step", "waits",
                  "would wait unhidden", "tokens/s", "days", "price"], rows)


def cost_table(binary: Path, recipes: list[str]) -> str:
    """For docs/reproduce.md: the fastest plan that fits 8 and 64 devices."""
    rows = []
    for recipe in recipes:
        eight, many = (Answer(devices, 0, ask(binary, recipe, devices, "engine.precision=bfloat16")) for devices in (8, 64))
        if eight.best() is None or many.best() is None:
            sys.exit(f"scale: {recipe}: expected a plan that fits 8 and 64 devices, got none")
        rows.append([f"`{recipe}`", f"{eight.json['model']['run_flops']:.2e}".replace("e+", "e"),
                     *[text for answer in (eight, many) for text in (f"{answer.best()['days']:.3g}", name_of(answer.best()))],
                     f"{many.best()['price']:.0f}"])
    return table(["recipe", "FLOPs", "8 devices, days", "how", "64 devices, days", "how", "price at 2 a device hour, 64 devices"], rows)


def state_table(found: dict[str, list[Answer]]) -> str:
    """Weights, gradients and moments of a device, and a sample's activations."""
    rows = []
    for config, answers_ in found.items():
        by_devices = {answer.devices: answer for answer in answers_}

        def state(devices: int, sharding: str) -> str:
            sizes = by_devices[devices].plan(sharding, False)["bytes"]  # noqa: B023
            return gigabytes(sizes["total"] - sizes["activations"])

        model = by_devices[1].json["model"]
        sample = [model[f"activations_{how}"] for how in ("kept", "recomputed")]
        rows.append([config, f"{model['parameters'] / 1e6:,.1f}", f"{model['active_parameters'] / 1e6:,.1f}",
                     state(1, "none"), *[state(devices, sharding) for sharding in ("optimizer", "fsdp")
                                         for devices in (8, 64, 512)],
                     *[gigabytes(one["fixed_bytes"] + one["bytes_each_sample"]) for one in sample],
                     gigabytes(model["key_value_bytes_each_sequence"])])
    return table(["recipe", "parameters M", "active M", "none", "optimizer 8", "64", "512", "fsdp 8", "64", "512",
                  "a sample kept", "recomputed", "KV cache"], rows)


def checkpoint_table(found: dict[str, list[Answer]]) -> str:
    rows = []
    for config in ("siamese-400m-17L", "siamese-1.3b", "siamese-moe-15a2b"):
        for answer in found[config]:
            if answer.devices not in (8, 64, 512, 4096):
                continue
            saving, best = answer.json["checkpoint"], answer.best()
            steps = f"{max(1, round(saving['interval_seconds'] / best['step_seconds']))}" if best else "-"
            rows.append([config, str(answer.devices), gigabytes(saving["bytes"]), time_text(saving["write_seconds"]),
                         time_text(saving["mean_seconds_between_failures"]), time_text(saving["interval_seconds"]), steps,
                         f"{saving['lost_share']:.2%}"])
    return table(["recipe", "devices", "GB", "writing takes", "a failure every", "save every", "steps", "time lost"], rows)


def panel(config: str, found: list[Answer]) -> Panel:
    fitting = [answer for answer in found if answer.best()]
    x = [float(answer.devices) for answer in fitting]
    days = [answer.best()["days"] for answer in fitting]
    ideal = [days[0] * x[0] / devices for devices in x]
    return Panel(config, "devices", "days", [Series("no communication, no failures", x, ideal, "flops", dashed=True),
                                             Series("planned", x, days, "time")])


def page(found: dict[str, list[Answer]]) -> str:
    flags = " ".join(MACHINE)
    text = f"""
Computed by `benchmarks/scale.py` with `siamese plan RECIPE engine.precision=bfloat16 --micro-batch 0
{flags}`, 8 devices a node. Nothing here was measured.

![Days of the large recipes on 1 to 4096 devices](scale-days.svg)

### GB a device

Weights, gradients and moments, with what fsdp gathers; then the activations of one sample, and the keys and values of one
sequence in generation.

{state_table(found)}
### The fastest that fits

`waits` is the share of a step in which a device waits for others, `would wait unhidden` the same if no communication ran
beside computation.
"""
    for config in found:
        text += f"\n{config}\n\n{best_table(found[config])}"
    return text + f"\n### Checkpoints\n\n{checkpoint_table(found)}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "docs/scale.md", help="the page; the plot goes beside it")
    parser.add_argument("--binary", type=Path, default=ROOT / "build/release/siamese")
    arguments = parser.parse_args()
    found = {config: answers(arguments.binary.resolve(), config) for config in CONFIGS}
    (arguments.out.parent / "scale-days.svg").write_text(draw(
        "Days of the large recipes on 1 to 4096 devices", [panel(config, found[config]) for config in DRAWN]))
    write_between(arguments.out, BEGIN, END, page(found), "Scale")
    print(f"wrote {arguments.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
