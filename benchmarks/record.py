"""The record of benchmarks/run.py: one JSON object a line, only ever appended to. A run has an id and measures parts: a
shape of configs/bench, "schemes" (their prices) or "kernels". Where a part is done, a line says so; what an aborted run measured stays, and the
tables take each part, for each kind of CPU, from the newest run that finished it."""

import json
from pathlib import Path
from statistics import median
from typing import Callable


# Did not say it: 286 GFLOP/s of multiply-adds on one thread, as the family 26 of the runs after it; those before it reached 103 to 116.
FAMILY_OF_RUN = {"2026-11-19T00:52:16Z": "26"}


def read(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines() if line.strip()]


def part_of(line: dict) -> str | None:
    """Lines of before runs had ids do not say."""
    return line.get("part", line.get("shape", None if line["bench"] == "machine" else "kernels"))


def newest(lines: list[dict]) -> dict[str, str]:
    """The newest finished run of each part, parts in the order in which they were first measured. Ids sort by time; the
    one of the lines of before there were ids is empty."""
    found: dict[str, str] = {}
    for line in lines:
        part, run = part_of(line), line.get("run", "")
        if part is not None and (run == "" or line["bench"] == "finished"):
            found[part] = max(found.get(part, ""), run)
    return found


def cpu_of(machine: dict) -> str:
    """The kind of CPU: results of two kinds say nothing of each other. Its name alone does not tell generations apart, so
    its family stands beside it; in runs of before that was recorded, only the SIMD level of our kernels on it, unless it is
    known by what it could do."""
    family = machine.get("cpu_family") or FAMILY_OF_RUN.get(machine.get("run", ""))
    return f"{machine['simd']} kernels" + (f", {machine['cpu']} of family {family}" if family else "")


def by_cpu(lines: list[dict]) -> dict[str, list[dict]]:
    kind = {line.get("run", ""): cpu_of(line) for line in lines if line["bench"] == "machine"}
    kinds: dict[str, list[dict]] = {}
    for line in lines:
        kinds.setdefault(kind[line.get("run", "")], []).append(line)
    return kinds


def activations_mb(line: dict) -> float:
    """What is neither the process, nor parameters, gradients and moments."""
    return max(1.0, line["peak_rss_mb"] - line["idle_rss_mb"] - line["state_mb"])


class Record:
    def __init__(self, lines: list[dict]):
        self.runs = newest(lines)
        machines = {line.get("run", ""): line for line in lines if line["bench"] == "machine"}
        self.machines = {run: machines[run] for run in sorted(set(self.runs.values()))}
        chosen = [line for line in lines if self.runs.get(part_of(line)) == line.get("run", "")]
        of_kind = lambda *kinds: [line for line in chosen if line["bench"] in kinds]  # noqa: E731
        self.steps = of_kind("step", "torch_step")
        self.kernels = of_kind("kernels")
        self.against = of_kind("step_against")
        self.experts = of_kind("experts")
        self.generate = of_kind("generate")
        self.shapes = list(dict.fromkeys(line["shape"] for line in self.steps))

    def parts_of(self, run: str) -> list[str]:
        return [part for part, of in self.runs.items() if of == run]

    def subjects(self, shape: str) -> list[str]:
        return list(dict.fromkeys(line["subject"] for line in self.steps if line["shape"] == shape and line["round"] == 0))

    def rounds(self, shape: str) -> int:
        return 1 + max(line["round"] for line in self.steps if line["shape"] == shape)

    def of(self, shape: str, subject: str) -> list[dict]:
        return [line for line in self.steps if (line["shape"], line["subject"]) == (shape, subject)]

    def value(self, shape: str, subject: str, of: Callable[[dict], float]) -> float | None:
        lines = self.of(shape, subject)
        return median(map(of, lines)) if lines else None

    def ratio(self, shape: str, one: str, other: str, of: Callable[[dict], float]) -> float | None:
        """The median over rounds of the ratio within a round."""
        first = {line["round"]: of(line) for line in self.of(shape, one)}
        second = {line["round"]: of(line) for line in self.of(shape, other)}
        ratios = [first[round_] / second[round_] for round_ in first if round_ in second]
        return median(ratios) if ratios else None
