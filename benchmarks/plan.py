"""What benchmarks/run.py measures at each shape: subjects (ours, and PyTorch's), prices of schemes, how often. All of it
takes about 50 minutes on two quiet cores; the first run some more, because it compiles."""

from dataclasses import dataclass, field

import shapes

LANGUAGE = ("s", "d", "m")
PARTS = (*shapes.NAMES, "schemes", "kernels")
QUICK = "s,v,x,e,kernels"
SCHEMES = ("pre", "siamese")
# Steps timed in each round and steps before them: some seconds a process.
STEPS = {"s": (6, 2), "d": (4, 1), "m": (2, 1), "v": (6, 2), "x": (4, 1), "e": (4, 1)}
ROUNDS = {"s": 3, "d": 3, "m": 2, "v": 3, "x": 2, "e": 2}
# Turns of two configs, step by step in one process.
TURNS = {"s": 24, "d": 20, "m": 8, "v": 12, "x": 8, "e": 8}


@dataclass(frozen=True)
class Subject:
    name: str
    ours: bool
    words: list[str] = field(default_factory=list)  # overrides of ours, arguments of torch_step.py
    once: bool = False                              # in the first round only: for what does not vary, memory


def subjects(shape: str, bfloat16: bool) -> list[Subject]:
    """`bfloat16`: whether the CPU multiplies it; then also in it, ours beside PyTorch's autocast."""
    found = []
    diffusion, mixture = shape == "x", shape == "e"
    for scheme in SCHEMES:
        ours = [f"model.residual={scheme}"]
        found.append(Subject(f"ours {scheme}", True, ours))
        found.append(Subject(f"ours {scheme} whole batch", True,
                             [*ours, f"train.micro_batch={shapes.load(shape).batch}"], once=True))
        if diffusion:
            found.append(Subject(f"ours {scheme} recompute", True, [*ours, "engine.recompute=1"]))
        if bfloat16:
            found.append(Subject(f"ours {scheme} bfloat16", True, [*ours, "engine.precision=bfloat16"]))
    for mode in ("eager", "compile"):
        for scheme in SCHEMES:
            name, words = f"{mode} {scheme}", ["--scheme", scheme, "--mode", mode]
            half = ["--precision", "bfloat16"]
            for way in ("loop", "grouped") if mixture else ("",):
                one, how = f"{name} {way}".strip(), [*words, *(["--experts", way] if way else [])]
                found.append(Subject(one, False, how))
                if bfloat16:
                    found.append(Subject(f"{one} autocast", False, [*how, *half]))
            if diffusion:
                found.append(Subject(f"{name} recompute", False, [*words, "--recompute"]))
    return found


@dataclass(frozen=True)
class Price:
    """Two configs of ours in turns: overrides, and what the other has instead."""

    label: str
    words: list[str]
    others: list[str]


def to_pre(scheme: str) -> Price:
    return Price(f"{scheme} / pre", [f"model.residual={scheme}"], ["model.residual=pre"])


def prices(shape: str, bfloat16: bool) -> list[Price]:
    """What a second stream costs everywhere; the other schemes of several streams at S and D."""
    found = [to_pre("siamese")]
    if shape in LANGUAGE:
        found.append(Price("siamese(x=hybrid) / pre with qkv norms", ["model.residual=siamese(x=hybrid)"],
                           ["model.residual=pre", "model.attention_norm=qkv"]))
        if bfloat16:
            found.append(Price("siamese / pre, bfloat16", ["model.residual=siamese", "engine.precision=bfloat16"],
                               ["model.residual=pre"]))
    if shape == "s":
        found += [to_pre(scheme) for scheme in ("siamese(form=write)", "resi_dual", "hc", "mhc", "attn_res(block=1)")]
    if shape == "d":
        found.append(to_pre("attn_res(block=3)"))
    return found


def scheme_prices() -> list[tuple[str, Price]]:
    """Part "schemes": what every scheme that `prices` leaves out costs at S, and the one that is not for causal models at V."""
    at_s = ("post", "peri", "olmo2", "hybrid", "span", "keel", "lambda", "denseformer", "orthogonal", "attn_res",
            "mhc(res=identity)", "mhc(res=permutations)")
    return [*(("s", to_pre(scheme)) for scheme in at_s), ("v", to_pre("mv_split"))]


def experts_shape(shape: str) -> shapes.MixtureShape | None:
    loaded = shapes.load(shape)
    return loaded if isinstance(loaded, shapes.MixtureShape) else None
