"""What the benchmark should reach, judged by a record; floors, not ceilings."""

from dataclasses import dataclass

from record import Record, activations_mb
from second_stream import second_streams

JUNCTION_SHARE = 0.90
KERNEL_SHARE = 0.85
# Memory is what limits these; a loss spends its time in exp.
OTHER_PASSES = ("rms_norm", "layer_norm", "swiglu", "adamw")
SECOND_STREAM = {"s": 1.015, "d": 1.015, "m": 1.01}
JUDGED_PRICES = ("siamese / pre", "siamese(x=hybrid) / pre with qkv norms")
ATTENDED = {"attn_res(block=1) / pre": 1.10, "attn_res(block=3) / pre": 1.10}
EAGER = {"s": 1.5, "d": 1.35, "m": 1.45}
COMPILE = 1.25
OTHER_FAMILIES = {"eager": 1.3, "compile": 1.15}
BFLOAT16 = {"d": 1.4, "m": 1.6}
AUTOCAST = {"eager": 1.4, "compile": 1.2}
ACTIVATIONS = 0.4
SECOND_STREAM_OF_BYTES = 1.3
GENERATION = {"s": 1.6, "d": 1.6, "m": 1.25}
EXPERTS = 0.85


@dataclass(frozen=True)
class Target:
    what: str
    measured: float
    relation: str  # "<=" or ">="
    wanted: float

    @property
    def met(self) -> bool:
        return self.measured <= self.wanted if self.relation == "<=" else self.measured >= self.wanted


def in_precision(line: dict) -> str:
    return "" if line.get("precision", "float32") == "float32" else f", {line['precision']}"


def rate(line: dict) -> float:
    return line["tokens_per_s"]


def speed(record: Record, shape: str) -> list[tuple]:
    found = []
    language = shape in EAGER
    for scheme in ("pre", "siamese"):
        for mode in ("eager", "compile"):
            wanted = (EAGER[shape] if mode == "eager" else COMPILE) if language else OTHER_FAMILIES[mode]
            # Experts are written in two ways, a diffusion model runs with and without recomputation.
            for ending in ("", " loop", " grouped"):
                found.append((f"tokens/s, {scheme}, ours / {mode}{ending}",
                              record.ratio(shape, f"ours {scheme}", f"{mode} {scheme}{ending}", rate), ">=", wanted))
            again = f"{scheme} recompute"
            found.append((f"tokens/s, {again}, ours / {mode}",
                          record.ratio(shape, f"ours {again}", f"{mode} {again}", rate), ">=", wanted))
        half = f"ours {scheme} bfloat16"
        if shape in BFLOAT16:
            found.append((f"tokens/s, {scheme}, ours bfloat16 / float32",
                          record.ratio(shape, half, f"ours {scheme}", rate), ">=", BFLOAT16[shape]))
        for mode, wanted in (AUTOCAST if language else OTHER_FAMILIES).items():
            for ending in ("", " loop", " grouped"):
                found.append((f"tokens/s, {scheme}, ours bfloat16 / {mode}{ending} autocast",
                              record.ratio(shape, half, f"{mode} {scheme}{ending} autocast", rate), ">=", wanted))
    return found


def memory(record: Record, shape: str) -> list[tuple]:
    """Like for like: the whole batch in one pass on both sides."""
    found = []
    for scheme in ("pre", "siamese"):
        for ending in ("", " grouped"):
            found.append((f"activations and workspace of the whole batch, {scheme}, ours / eager{ending}",
                          record.ratio(shape, f"ours {scheme} whole batch", f"eager {scheme}{ending}", activations_mb),
                          "<=", ACTIVATIONS))
        if shape == "m":
            found.append((f"share of the multiply-add peak, {scheme}",
                          record.value(shape, f"ours {scheme}", lambda line: line["peak_share"]), ">=", 0.7))
    return found


def of_shape(record: Record, shape: str) -> list[tuple]:
    found = [(f"step, {line['label']}", line["ratio"], "<=", SECOND_STREAM[shape]) for line in record.against
             if line["shape"] == shape and shape in SECOND_STREAM and line["label"] in JUDGED_PRICES]
    found += [(f"step, {line['label']}", line["ratio"], "<=", ATTENDED[line["label"]]) for line in record.against
              if line["shape"] == shape and line["label"] in ATTENDED]
    found += speed(record, shape) + memory(record, shape)
    found += [("the second stream, bfloat16: extra time / its extra bytes at streaming rate", one.of_bound, "<=",
               SECOND_STREAM_OF_BYTES)
              for one in second_streams(record) if (one.shape, one.precision) == (shape, "bfloat16")]
    for line in record.generate:
        if line["shape"] == shape:
            one = "generation" + in_precision(line)
            found.append((f"{one}, ms a token, siamese / pre", line["ratio"], "<=", 1.02))
            found.append((f"{one}, ms a token against reading the weights once", line.get("of_bound"), "<=",
                          GENERATION[shape]))
    for line in record.experts:
        if line.get("shape") == shape:
            found.append(("GFLOP/s of the experts / of a dense branch of the active size", line["ratio"], ">=", EXPERTS))
    return [(f"{shape.upper()}: {what}", *rest) for what, *rest in found]


def of_kernels(record: Record) -> list[tuple]:
    found = []
    for line in record.kernels:
        if line["in_cache"]:
            continue
        for name, prefix, wanted in (("junction passes", "junction", JUNCTION_SHARE),
                                     ("other passes", OTHER_PASSES, KERNEL_SHARE)):
            judged = [kernel for kernel in line["kernels"] if kernel["kernel"].startswith(prefix)]
            if not judged:
                continue
            least = min(judged, key=lambda kernel: kernel["share"])
            below = sum(kernel["share"] < wanted for kernel in judged)
            found.append((f"{name} beyond cache: the least share of streaming ({least['kernel']}, {least['pass']}; "
                          f"{below} of {len(judged)} below)", least["share"], ">=", wanted))
    return found


def targets(record: Record) -> list[Target]:
    """Of what was measured; the rest is not judged."""
    found = [entry for shape in record.shapes for entry in of_shape(record, shape)] + of_kernels(record)
    return [Target(*entry) for entry in found if entry[1] is not None]
