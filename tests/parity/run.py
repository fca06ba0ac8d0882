#!/usr/bin/env python3
"""Proves that the engine is the published models: each model of cases.py, written in PyTorch from its equations under
the published names, gets random weights, and `siamese convert` and `siamese probe` must find the same output, loss,
gradients and activations from its file, and give the same file back.

    .venv/bin/python tests/parity/run.py                  a line each; exit 1 when one disagrees
    .venv/bin/python tests/parity/run.py --all            in float32 too, not only the first of each layout
    .venv/bin/python tests/parity/run.py --layout hf-gpt2 -v    one layout, every tensor
"""

import argparse
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(Path(__file__).resolve().parent))
import safetensors_file  # noqa: E402
from cases import CASES, Case, randomise  # noqa: E402

# Largest error of a tensor against the largest magnitude in it. Double is what equality is judged by (measured: 1e-13).
# In float32 the worst was measured at 5.1e-6, and 8.4e-6 for PyTorch against itself in double over twenty seeds; the
# bound leaves room for other compilers and CPUs.
TOLERANCE = {torch.float64: 1e-10, torch.float32: 2e-5}
NAMES = {torch.float64: "float64", torch.float32: "float32"}


@dataclass
class Job:
    """One model with its weights in one precision, and what PyTorch says about it in double."""

    case: Case
    dtype: torch.dtype
    weights: dict[str, Tensor]
    inputs: dict[str, Tensor]
    expected: dict[str, Tensor]

    @property
    def name(self) -> str:
        note = f" ({self.case.name})" if self.case.name else ""
        return f"{self.case.layout}{note} {NAMES[self.dtype]}"


@dataclass
class Finding:
    """errors: of each tensor; faults: what makes the models differ."""

    errors: dict[str, float]
    faults: list[str]


def prepare(case: Case, dtype: torch.dtype, seed: int) -> Job:
    torch.manual_seed(seed)
    model = case.build().double()
    randomise(model)
    with torch.no_grad():
        for value in model.parameters():
            value.copy_(value.to(dtype))
    inputs = case.inputs()
    output, loss, record = model(**{name: x.double() if x.is_floating_point() else x for name, x in inputs.items()})
    loss.backward()
    expected = {"output": output, "loss": loss, **record.values}
    expected |= {f"grad/{name}": value.grad for name, value in model.named_parameters()}
    if "tokens" in inputs:
        expected["aux/z_loss"] = (output[:, :-1].logsumexp(-1) ** 2).mean()
    weights = {name: value.to(dtype) for name, value in model.state_dict().items()}
    return Job(case, dtype, weights, inputs, {name: value.detach() for name, value in expected.items()})


def choose(layout: str | None, all_in_float: bool) -> list[Job]:
    """Every case in double; in float32 the first of each layout, for time: starting a process is what takes it."""
    jobs, seen = [], set()
    for seed, case in enumerate(CASES):
        if layout in (None, case.layout):
            jobs.append(prepare(case, torch.float64, seed))
            if all_in_float or case.layout not in seen:
                jobs.append(prepare(case, torch.float32, seed))
        seen.add(case.layout)
    return jobs


def siamese(binary: Path, *arguments: object) -> None:
    words = [str(binary), *map(str, arguments)]
    run = subprocess.run(words, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        raise RuntimeError(f"{' '.join(words)}: exit {run.returncode}: {run.stderr.strip()}")


def ask_engine(job: Job, binary: Path, folder: Path) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """What the engine finds under the published names, and the weights it gives back."""
    folder.mkdir()
    given, inputs, ours = folder / "model.safetensors", folder / "inputs.safetensors", folder / "siamese"
    found, found_there, back = (folder / f"{name}.safetensors" for name in ("found", "found_there", "back"))
    layout = job.case.layout
    safetensors_file.write(given, {n: value for n, value in job.weights.items() if n not in job.case.left_out})
    safetensors_file.write(inputs, job.inputs)
    keys = [f"{key}={value}" for key, value in job.case.keys.items()]
    siamese(binary, "convert", given, "--from", layout, "--to", "siamese", "-o", ours, *keys)
    double = ["--double"] if job.dtype == torch.float64 else []
    siamese(binary, "probe", ours, "--inputs", inputs, "--grad", "--activations", *double, "--out", found)
    siamese(binary, "convert", found, "--from", "siamese", "--to", layout, "-o", found_there, "--config", ours)
    siamese(binary, "convert", ours, "--from", "siamese", "--to", layout, "-o", back)
    results = {name: value for name, value in safetensors_file.read(found).items() if not name.startswith("grad/")}
    results |= {n: value for n, value in safetensors_file.read(found_there).items() if n.startswith("grad/")}
    return results, safetensors_file.read(back)


def relative_error(ours: Tensor, theirs: Tensor) -> float:
    difference = (ours.double() - theirs).abs().max().item()
    scale = theirs.abs().max().item()
    return difference / scale if scale > 0 else difference


def name_faults(what: str, ours: dict[str, Tensor], theirs: dict[str, Tensor]) -> list[str]:
    faults = [f"{what} {name}: missing" for name in sorted(theirs.keys() - ours.keys())]
    faults += [f"{what} {name}: unexpected" for name in sorted(ours.keys() - theirs.keys())]
    for name in sorted(ours.keys() & theirs.keys()):
        if ours[name].shape != theirs[name].shape:
            faults.append(f"{what} {name}: shape {list(ours[name].shape)}, not {list(theirs[name].shape)}")
    return faults


def weight_faults(job: Job, back: dict[str, Tensor]) -> list[str]:
    """Bit for bit; what the file lacked may come back too, off by rounding."""
    left_out = job.case.left_out
    wanted = {name: value for name, value in job.weights.items() if name in back or name not in left_out}
    faults = name_faults("weight", back, wanted)
    for name in job.weights.keys() & back.keys():
        ours, theirs = back[name], job.weights[name]
        if ours.dtype != theirs.dtype:
            faults.append(f"weight {name}: {ours.dtype}, not {theirs.dtype}")
        elif name in left_out:
            error = relative_error(ours, theirs.double())
            if error > 4 * torch.finfo(job.dtype).eps:
                faults.append(f"weight {name}: off by {error:.1e}")
        elif ours.numpy().tobytes() != theirs.contiguous().numpy().tobytes():
            faults.append(f"weight {name}: not the same bits")
    return faults


def compare(job: Job, binary: Path, folder: Path) -> Finding:
    try:
        found, back = ask_engine(job, binary, folder)
    except RuntimeError as error:
        return Finding({}, [str(error)])
    faults = name_faults("result", found, job.expected) + weight_faults(job, back)
    errors = {}
    for name, theirs in job.expected.items():
        if name in found and found[name].shape == theirs.shape:
            errors[name] = relative_error(found[name], theirs)
            if not errors[name] <= TOLERANCE[job.dtype]:
                faults.append(f"result {name}: relative error {errors[name]:.1e}")
    return Finding(errors, faults)


def report(job: Job, finding: Finding, verbose: bool) -> None:
    worst = max(finding.errors, key=finding.errors.get, default=None)
    measure = f"worst {finding.errors[worst]:.1e} at {worst}" if worst else "nothing compared"
    verdict = "equal" if not finding.faults else "NOT EQUAL"
    print(f"parity: {job.name}: {len(finding.errors)} tensors, {measure}: {verdict}", flush=True)
    for fault in finding.faults:
        print(f"    {fault}")
    if verbose:
        for name, error in finding.errors.items():
            print(f"    {error:8.1e}  {name} {list(job.expected[name].shape)}")


def main() -> int:
    layouts = list(dict.fromkeys(case.layout for case in CASES))
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--binary", type=Path, default=ROOT / "build/release/siamese")
    parser.add_argument("--layout", choices=layouts, help="only this one")
    parser.add_argument("--all", action="store_true", help="float32 for every case, not only for the first of a layout")
    parser.add_argument("-v", "--verbose", action="store_true", help="every tensor")
    arguments = parser.parse_args()
    if not arguments.binary.is_file():
        parser.error(f"--binary: {arguments.binary}: no such file; `make` builds it")
    jobs = choose(arguments.layout, arguments.all)
    failed = False
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count()) as pool:
        places = [Path(folder) / str(index) for index in range(len(jobs))]
        findings = pool.map(compare, jobs, [arguments.binary.resolve()] * len(jobs), places)
        for job, finding in zip(jobs, findings):
            report(job, finding, arguments.verbose)
            failed |= bool(finding.faults)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
