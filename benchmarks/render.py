"""Tables of docs/performance.md from the lines of a record (benchmarks/run.py)."""

from pathlib import Path
from statistics import median
from typing import Callable

import shapes

BEGIN = "<!-- bench: begin -->"
END = "<!-- bench: end -->"
KERNEL_SHARE = 0.85
# Memory is what limits these; a loss spends its time in exp.
JUDGED_KERNELS = ("junction", "rms_norm", "layer_norm", "swiglu", "adamw")


def table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines) + "\n"


def activations_mb(line: dict) -> float:
    """What is neither the process, nor parameters, gradients and moments."""
    return max(1.0, line["peak_rss_mb"] - line["idle_rss_mb"] - line["state_mb"])


class Record:
    def __init__(self, lines: list[dict]):
        self.machine = next(line for line in lines if line["bench"] == "machine")
        self.steps = [line for line in lines if line["bench"] in ("step", "torch_step")]
        self.kernels = [line for line in lines if line["bench"] == "kernels"]
        self.against = [line for line in lines if line["bench"] == "step_against"]
        self.experts = [line for line in lines if line["bench"] == "experts"]
        self.generate = [line for line in lines if line["bench"] == "generate"]
        self.shapes = list(dict.fromkeys(line["shape"] for line in self.steps))
        self.subjects = list(dict.fromkeys(line["subject"] for line in self.steps if line["round"] == 0))
        self.rounds = 1 + max((line["round"] for line in self.steps), default=0)

    def of(self, shape: str, subject: str) -> list[dict]:
        return [line for line in self.steps if (line["shape"], line["subject"]) == (shape, subject)]

    def value(self, shape: str, subject: str, of: Callable[[dict], float]) -> float:
        return median(of(line) for line in self.of(shape, subject))

    def ratio(self, shape: str, one: str, other: str, of: Callable[[dict], float]) -> float | None:
        """The median over rounds of the ratio within a round."""
        first = {line["round"]: of(line) for line in self.of(shape, one)}
        second = {line["round"]: of(line) for line in self.of(shape, other)}
        ratios = [first[round_] / second[round_] for round_ in first if round_ in second]
        return median(ratios) if ratios else None


def step_tables(record: Record) -> str:
    text = ""
    for shape in record.shapes:
        rows = []
        for subject in record.subjects:
            lines = record.of(shape, subject)
            if not lines:
                continue
            of = lambda key: median(line[key] for line in lines)  # noqa: E731
            ours = "gflops" in lines[0]
            rows.append([
                subject,
                f"{of('median_ms'):.1f}",
                f"{min(line['median_ms'] for line in lines):.1f} - {max(line['median_ms'] for line in lines):.1f}",
                f"{of('tokens_per_s'):.0f}",
                f"{of('gflops'):.0f} ({of('peak_share'):.0%})" if ours else "",
                f"{of('peak_rss_mb'):.0f}",
                f"{median(map(activations_mb, lines)):.0f}",
                f"{max(line['compile_s'] for line in lines):.0f}" if lines[0].get("compile_s") else "",
            ])
        count = record.of(shape, record.subjects[0])[0]["parameters"]
        text += f"\n{shape.upper()}: {shapes.load(shape).text()} ({count / 1e6:.1f}M parameters)\n\n"
        text += table(
            ["", "step ms", "over rounds", "tokens/s", "GFLOP/s (of peak)", "peak RSS MB", "activations MB", "compile s"],
            rows,
        )
    return text


def targets(record: Record) -> list[tuple[str, float | None, str, float]]:
    """(what, measured, "<=" or ">=", wanted)"""
    rate = lambda line: line["tokens_per_s"]  # noqa: E731
    found = []
    for shape in record.shapes:
        name = shape.upper()
        found += [(f"{name}: step, {line['label']}", line["ratio"], "<=", 1.02)
                  for line in record.against if line["shape"] == shape]
        for mode, scheme, wanted in (("eager", "pre", 1.25), ("eager", "siamese", 1.35), ("compile", "pre", 1.2),
                                     ("compile", "siamese", 1.2)):
            found.append((f"{name}: tokens/s, {scheme}, ours / {mode}",
                          record.ratio(shape, f"ours {scheme}", f"{mode} {scheme}", rate), ">=", wanted))
        for scheme in ("pre", "siamese"):
            half = f"ours {scheme} bfloat16"
            if shape in ("d", "m"):
                found.append((f"{name}: tokens/s, {scheme}, ours bfloat16 / float32",
                              record.ratio(shape, half, f"ours {scheme}", rate), ">=", 1.4 if shape == "d" else 1.6))
            for mode, wanted in (("eager", 1.4), ("compile", 1.2)):
                found.append((f"{name}: tokens/s, {scheme}, ours bfloat16 / {mode} autocast",
                              record.ratio(shape, half, f"{mode} {scheme} autocast", rate), ">=", wanted))
        for scheme in ("pre", "siamese"):
            found.append((f"{name}: activations and workspace, {scheme}, ours / eager",
                          record.ratio(shape, f"ours {scheme}", f"eager {scheme}", activations_mb), "<=", 0.4))
        if shape == "m":
            for scheme in ("pre", "siamese"):
                found.append((f"M: share of the multiply-add peak, {scheme}",
                              record.value("m", f"ours {scheme}", lambda line: line["peak_share"]), ">=", 0.7))
    for line in record.generate:
        name = line["shape"].upper()
        found.append((f"{name}: generation, ms a token, siamese / pre", line["ratio"], "<=", 1.02))
        if "of_bound" in line:
            found.append((f"{name}: generation, ms a token against reading the weights once", line["of_bound"], "<=",
                          1.25 if line["shape"] == "m" else 1.6))
    for line in record.experts:
        found.append((f"experts, {line['rows']} tokens: GFLOP/s, experts / dense branch of the active size", line["ratio"],
                      ">=", 0.6))
    for line in record.kernels:
        judged = [kernel for kernel in line["kernels"] if kernel["kernel"].startswith(JUDGED_KERNELS)]
        if line["in_cache"] or not judged:
            continue
        least = min(judged, key=lambda kernel: kernel["share"])
        below = sum(kernel["share"] < KERNEL_SHARE for kernel in judged)
        found.append((f"kernels beyond cache: the least share of streaming ({least['kernel']}, {least['pass']}; {below} of "
                      f"{len(judged)} below)", least["share"], ">=", KERNEL_SHARE))
    return [entry for entry in found if entry[1] is not None]


def target_table(record: Record) -> str:
    rows, missed = [], []
    for what, measured, relation, wanted in targets(record):
        met = measured <= wanted if relation == "<=" else measured >= wanted
        rows.append([what, f"{measured:.3f}", f"{relation} {wanted}", "met" if met else "**missed**"])
        if not met:
            missed.append(what)
    summary = f"{len(rows) - len(missed)} of {len(rows)} targets are met."
    if missed:
        summary += " Missed: " + "; ".join(missed) + "."
    return summary + "\n\n" + table(["", "measured", "target", ""], rows)


def part_tables(record: Record) -> str:
    text = ""
    for shape in record.shapes:
        subjects = [name for name in record.subjects if name.startswith("ours ")]
        parts = {name: next((line["part_ms"] for line in record.of(shape, name) if line["part_ms"]), {})
                 for name in subjects}
        subjects = [name for name in subjects if parts[name]]
        if not subjects:
            continue
        order = sorted({part for times in parts.values() for part in times},
                       key=lambda part: -max(parts[name].get(part, 0) for name in subjects))
        rows = []
        for part in order:
            cells = [part]
            for name in subjects:
                ms = parts[name].get(part, 0)
                cells.append(f"{ms:.1f} ({ms / sum(parts[name].values()):.0%})")
            rows.append(cells)
        text += f"\n{shape.upper()}, ms of one watched step:\n\n" + table(["part", *subjects], rows)
    return text


def kernel_tables(record: Record) -> str:
    text = ""
    for line in record.kernels:
        size = line["rows"] * line["width"] * 4 / 2**20
        place = "In cache" if line["in_cache"] else "Beyond cache"
        text += f"\n{place}: arrays of {size:.0f} MB ({line['rows']} x {line['width']}), {line['threads']} threads\n\n"
        rows = [[
            kernel["kernel"], kernel["pass"], f"{kernel['reads']} + {kernel['writes']}", f"{kernel['ms']:.3f}",
            f"{kernel['gb_per_s']:.1f}", f"{kernel['stream_gb_per_s']:.1f}",
            f"{kernel['share']:.0%}" if kernel["share"] >= KERNEL_SHARE else f"**{kernel['share']:.0%}**",
        ] for kernel in line["kernels"]]
        text += table(["kernel", "pass", "arrays read + written", "ms", "GB/s", "streaming GB/s", "share"], rows)
    return text


def generated(record: Record) -> str:
    machine = record.machine
    rates = table(["threads", "multiply-adds GFLOP/s", "triad GB/s"],
                  [[str(entry["threads"]), f"{entry['fma_gflops']:.1f}", f"{entry['triad_gb_per_s']:.1f}"]
                   for entry in machine["threads"]])
    generation = table(["shape", "siamese ms a token", "pre ms a token", "ratio", "ms to read the weights once", "times that"],
                       [[line["shape"].upper(), f"{line['median_ms']:.3f}", f"{line['against_ms']:.3f}",
                         f"{line['ratio']:.3f}", *(f"{line[key]:.3f}" if key in line else "" for key in ("bound_ms", "of_bound"))]
                        for line in record.generate])
    experts = table(["tokens", "shape", "experts GFLOP/s", "dense GFLOP/s", "share"],
                    [[str(line["rows"]), f"width {line['width']}, {line['per_token']} of {line['experts']} experts of "
                      f"{line['hidden']}", f"{line['gflops']:.1f}", f"{line['dense_gflops']:.1f}",
                      f"{line['ratio']:.0%}"] for line in record.experts])
    return f"""
Measured {machine['date']} with `{machine['command']}` on {machine['cpu']}, {machine['cores']} cores,
{machine['simd']} kernels, {machine['memory_gb']:.0f} GB, LibTorch and PyTorch {machine['torch']}.

{rates}
### Targets

{target_table(record)}
### Steps

Medians over rounds ({record.rounds}), each a process of its own. Activations: peak memory without the idle process and
without parameters, gradients and moments.
{step_tables(record)}
### Where a step goes
{part_tables(record)}
### Kernels

A share is the rate of a plain streaming loop that reads and writes as many arrays, measured in turns; in bold what is
below {KERNEL_SHARE:.0%}.
{kernel_tables(record)}
### Experts

Forward and backward of a mixture of experts, router and grouping included, and of a dense feed-forward branch of the
active size, in turns in one process; only the experts' own multiply-adds are counted.

{experts}
### Generation

One token at a time with cached keys and values, both schemes in turns in one process.

{generation}
"""


def write_tables(path: Path, lines: list[dict]) -> None:
    """Replaces what stands between the markers of the page; makes the page when there is none."""
    tables = generated(Record(lines))
    page = path.read_text() if path.exists() else f"# Performance\n\n{BEGIN}\n{END}\n"
    if page.count(BEGIN) != 1 or page.count(END) != 1:
        raise SystemExit(f"{path}: expected the markers {BEGIN} and {END} once each")
    before, rest = page.split(BEGIN)
    after = rest.split(END)[1]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(before + BEGIN + "\n" + tables.rstrip() + "\n" + END + after)
