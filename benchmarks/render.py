"""Tables of docs/performance.md from the lines of a record (benchmarks/record.py)."""

from pathlib import Path
from statistics import median

import shapes
from record import Record, activations_mb, by_cpu
from second_stream import second_streams
from targets import JUNCTION_SHARE, KERNEL_SHARE, in_precision, targets

BEGIN = "<!-- bench: begin -->"
END = "<!-- bench: end -->"


def table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines) + "\n"


def step_tables(record: Record) -> str:
    text = ""
    for shape in record.shapes:
        rows = []
        for subject in record.subjects(shape):
            lines = record.of(shape, subject)
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
        count = record.of(shape, record.subjects(shape)[0])[0]["parameters"]
        text += (f"\n{shape.upper()}: {shapes.load(shape).text()} ({count / 1e6:.1f}M parameters), "
                 f"{record.rounds(shape)} rounds\n\n")
        text += table(
            ["", "step ms", "over rounds", "tokens/s", "GFLOP/s (of peak)", "peak RSS MB", "activations MB", "compile s"],
            rows,
        )
    return text


def target_table(record: Record) -> str:
    found = targets(record)
    missed = [target for target in found if not target.met]
    summary = f"{len(found) - len(missed)} of {len(found)} targets are met."
    if missed:
        figures = [f"{target.what}: {target.measured:.3f} ({target.relation} {target.wanted})" for target in missed]
        summary += " Missed: " + "; ".join(figures) + "."
    return summary + "\n\n" + table(["", "measured", "target", ""], [
        [target.what, f"{target.measured:.3f}", f"{target.relation} {target.wanted}", "met" if target.met else "**missed**"]
        for target in found])


def memory_table(record: Record) -> str:
    """Activations and workspace of PyTorch's eager step and of ours, with the same pass and with our default."""
    rows = []
    for shape in record.shapes:
        for scheme in ("pre", "siamese"):
            for ending in ("", " grouped"):
                eager = f"eager {scheme}{ending}"
                theirs = record.value(shape, eager, activations_mb)
                if theirs is None:
                    continue
                cells = [f"{shape.upper()}, {scheme}", f"{theirs:.0f}"]
                for ours in (f"ours {scheme} whole batch", f"ours {scheme}"):
                    size = record.value(shape, ours, activations_mb)
                    ratio = record.ratio(shape, ours, eager, activations_mb)
                    cells.append("" if ratio is None else f"{size:.0f} ({ratio:.2f})")
                rows.append(cells)
    return table(["", "eager MB", "ours, the whole batch in one pass", "ours, micro-batches by default"], rows)


def ratio_text(line: dict) -> str:
    """With its 95 % interval, which measurements of before 0.2.0 have not."""
    within = f" ({line['ratio_low']:.3f} to {line['ratio_high']:.3f})" if "ratio_low" in line else ""
    return f"{line['ratio']:.3f}{within}"


def price_table(record: Record) -> str:
    of_shapes = list(dict.fromkeys(line["shape"] for line in record.against))
    rows = []
    for label in dict.fromkeys(line["label"] for line in record.against):
        found = {line["shape"]: ratio_text(line) for line in record.against if line["label"] == label}
        rows.append([label, *(found.get(shape, "") for shape in of_shapes)])
    return table(["step time", *(shape.upper() for shape in of_shapes)], rows)


def second_stream_table(record: Record) -> str:
    rows = [[f"{one.shape.upper()}, {one.precision}", f"{one.extra_ms:.1f}", f"{one.extra_mb:.0f}",
             f"{one.stream_gb_per_s:.1f}", f"{one.bound_ms:.1f}", f"{one.of_bound:.2f}"]
            for one in second_streams(record)]
    return table(["", "extra ms a step", "extra MB", "streaming GB/s", "ms for them", "times that"], rows)


def part_tables(record: Record) -> str:
    text = ""
    for shape in record.shapes:
        subjects = [name for name in record.subjects(shape) if name.startswith("ours ")]
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
        rows = []
        for kernel in line["kernels"]:
            wanted = JUNCTION_SHARE if kernel["kernel"].startswith("junction") else KERNEL_SHARE
            share = f"{kernel['share']:.0%}"
            rows.append([kernel["kernel"], kernel["pass"], f"{kernel['reads']} + {kernel['writes']}",
                         f"{kernel['ms']:.3f}", f"{kernel['gb_per_s']:.1f}", f"{kernel['stream_gb_per_s']:.1f}",
                         share if kernel["share"] >= wanted else f"**{share}**"])
        text += table(["kernel", "pass", "arrays read + written", "ms", "GB/s", "streaming GB/s", "share"], rows)
    return text


def origin(record: Record) -> str:
    """Which run each part is of, and on which machine."""
    text = ""
    for run, machine in record.machines.items():
        parts = ", ".join(part if part == "kernels" else part.upper() for part in record.parts_of(run))
        commit = f" of commit {machine['commit']}" if machine.get("commit") else ""
        rates = table(["threads", "multiply-adds GFLOP/s", "of bfloat16", "triad GB/s"], [
            [str(entry["threads"]), f"{entry['fma_gflops']:.1f}",
             f"{entry['bfloat16_gflops']:.1f}" if "bfloat16_gflops" in entry else "", f"{entry['triad_gb_per_s']:.1f}"]
            for entry in machine["threads"]])
        text += (f"{parts}: measured {machine['date']} with `{machine['command']}`{commit} on {machine['cpu']}, "
                 f"{machine['cores']} cores,\n{machine['simd']} kernels, {machine['memory_gb']:.0f} GB, LibTorch and "
                 f"PyTorch {machine['torch']}.\n\n{rates}\n")
    return text


def generation_name(line: dict) -> str:
    return line["shape"].upper() + in_precision(line)


def generation_table(record: Record) -> str:
    header = ["", "siamese ms a token", "pre ms a token", "ratio", "ms to read the weights once", "times that"]
    return table(header, [
        [generation_name(line), f"{line['median_ms']:.3f}", f"{line['against_ms']:.3f}", ratio_text(line),
         *(f"{line[key]:.3f}" if key in line else "" for key in ("bound_ms", "of_bound"))] for line in record.generate])


def experts_table(record: Record) -> str:
    return table(["tokens", "shape", "experts GFLOP/s", "dense GFLOP/s", "share"], [
        [str(line["rows"]), f"width {line['width']}, {line['per_token']} of {line['experts']} experts of {line['hidden']}",
         f"{line['gflops']:.1f}", f"{line['dense_gflops']:.1f}", f"{line['ratio']:.0%}"] for line in record.experts])


def generated(record: Record) -> str:
    return f"""
{origin(record)}
#### Targets

{target_table(record)}
#### Steps

Medians over rounds, each a process of its own. Activations: peak memory without the idle process and without parameters,
gradients and moments.
{step_tables(record)}
#### Memory, like for like

Activations and workspace, in brackets against eager PyTorch, which runs its batch at once. Our default runs it in
micro-batches.

{memory_table(record)}
#### What a scheme costs

Steps of two configs in turns in one process: the median ratio, in brackets its 95 % interval, which says how quiet the
machine was.

{price_table(record)}
#### What the second stream moves

What a step of siamese takes longer than one of pre, in turns, beside the bytes that its junctions move more, 7 arrays of
floats a place (6 in bfloat16), at the rate of a streaming loop beyond cache.

{second_stream_table(record)}
#### Where a step goes
{part_tables(record)}
#### Kernels

A share is the rate of a plain streaming loop that reads and writes as many arrays, measured in turns; in bold junctions
below {JUNCTION_SHARE:.0%} and others below {KERNEL_SHARE:.0%}.
{kernel_tables(record)}
#### Experts

Forward and backward of a mixture of experts, router and grouping included, and of a dense feed-forward branch of the
active size, in turns in one process; only the experts' own multiply-adds are counted.

{experts_table(record)}
#### Generation

One token at a time with cached keys and values, both schemes in turns in one process.

{generation_table(record)}
"""


def write_between(path: Path, begin: str, end: str, text: str, title: str) -> None:
    """Replaces what stands between the markers of a page; makes the page when there is none."""
    page = path.read_text() if path.exists() else f"# {title}\n\n{begin}\n{end}\n"
    if page.count(begin) != 1 or page.count(end) != 1:
        raise SystemExit(f"{path}: expected the markers {begin} and {end} once each")
    before, rest = page.split(begin)
    after = rest.split(end)[1]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(before + begin + "\n" + text.rstrip() + "\n" + end + after)


def write_tables(path: Path, lines: list[dict]) -> None:
    newest_first = sorted(by_cpu(lines).items(), key=lambda kind: max(line.get("run", "") for line in kind[1]), reverse=True)
    sections = [f"\n### {cpu}\n{generated(Record(of_kind))}" for cpu, of_kind in newest_first]
    write_between(path, BEGIN, END, "".join(sections), "Performance")
