"""Tables of docs/results.md that `siamese sweep` does not print, from the records: blocks <!-- table NAME --> of
benchmarks/results.py."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev

import record

ROOT = Path(__file__).resolve().parent.parent
# Student's t, 97.5 %, by degrees of freedom: what the paired intervals of a few seeds need.
STUDENT_T = {1: 12.7062, 2: 4.3027, 3: 3.1824, 4: 2.7764, 5: 2.5706, 6: 2.4469, 7: 2.3646, 8: 2.3060, 9: 2.2622,
             10: 2.2281, 11: 2.2010, 12: 2.1788, 13: 2.1604, 14: 2.1448, 15: 2.1314, 16: 2.1199, 17: 2.1098, 18: 2.1009, 19: 2.0930}
RUN = re.compile(r"(.*)-seed(\d+)")

Counts = Callable[[str], tuple[int, int] | None]  # of a sweep: its runs, and how many are recorded; None: there is no such file


def table(titles: list[str], alignment: list[str], rows: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(row) + " |" for row in [titles, *rows]).replace("\n", f"\n|{'|'.join(alignment)}|\n", 1) + "\n"


def spread(values: list[float], digits: int, unit: str = "") -> str:
    return f"{mean(values):.{digits}f} +- {stdev(values):.{digits}f}{unit}"


def interval(differences: list[float]) -> tuple[float, float]:
    """95 %, of the mean of paired differences (docs/comparing.md)."""
    half = STUDENT_T[len(differences) - 1] * stdev(differences) / len(differences) ** 0.5
    return mean(differences) - half, mean(differences) + half


def student_p(differences: list[float]) -> float:
    """How probable a mean that far from 0 is if there were no difference."""
    return two_sided(abs(mean(differences)) / (stdev(differences) / len(differences) ** 0.5), len(differences) - 1)


def two_sided(t: float, freedom: int) -> float:
    """Student's 1 - A(t | v), by its finite sums for whole v."""
    angle = math.atan(t / freedom**0.5)
    odd = freedom % 2
    term, total = (math.cos(angle), 0.0) if odd else (1.0, 0.0)
    for step in range(1 + odd, freedom, 2):
        total += term
        term *= math.cos(angle) ** 2 * step / (step + 1)
    inside = 2 / math.pi * (angle + math.sin(angle) * total) if odd else math.sin(angle) * total
    return 1 - inside


def holm(values: list[float]) -> list[float]:
    """Each corrected for all."""
    corrected, least = [0.0] * len(values), 0.0
    for rank, at in enumerate(sorted(range(len(values)), key=values.__getitem__)):
        least = max(least, min(1.0, (len(values) - rank) * values[at]))
        corrected[at] = least
    return corrected


def difference(first: dict[int, float], second: dict[int, float], digits: int) -> str:
    """first - second, seed by seed."""
    paired = [first[seed] - second[seed] for seed in sorted(first.keys() & second.keys())]
    low, high = interval(paired)
    return f"{mean(paired):+.{digits}f} ({low:+.{digits}f} to {high:+.{digits}f})"


def at_best_rate(lines: list[dict], variant: str) -> dict[int, float]:
    """Losses by seed, at the rate with the lowest mean among those at which no run diverged. Empty where there is none."""
    by_rate: dict[float, dict[int, float | None]] = {}
    for line in lines:
        if line["variant"] == variant:
            ended = line.get("status", "finished") != "diverged"
            by_rate.setdefault(line["lr"], {})[line["seed"]] = line["val_loss"] if ended else None
    ended = [losses for _, losses in sorted(by_rate.items()) if None not in losses.values()]
    return min(ended, key=lambda losses: mean(losses.values())) if ended else {}


@dataclass(frozen=True)
class Question:
    """A row of the table of all comparisons of SiameseNorm with Pre-Norm."""

    title: str  # with the anchor of its section
    record: str
    rates: str  # how they were found
    names: str = "{}"  # of variants in the record
    digits: int = 3
    bits: bool = False  # losses of bytes, shown in bits
    seeds: int = 3
    rate: float | None = None  # the one that has all seeds; None: the best


QUESTIONS = [
    Question("[English text](#text), bits per byte", "text-seeds", "searched, then fresh seeds", bits=True, seeds=5),
    Question("[English text](#48-blocks), 48 blocks, bits per byte", "text-depth", "searched with these seeds", bits=True),
    Question("[photographs of clothes](#photographs), vision", "images-seeds", "searched, then fresh seeds", seeds=5),
    Question("[arithmetic](#optimizers), 12 blocks", "optimizers-seeds", "searched, then fresh seeds", names="{}, name=adamw", seeds=5),
    Question("[the same by Muon](#optimizers) instead of AdamW", "optimizers-seeds", "searched, then fresh seeds", names="{}, name=muon",
             seeds=5),
    Question("[arithmetic](#learning-rates), 12 blocks, the first stage of these", "stability", "searched with these seeds"),
    *(Question(f"[arithmetic](#depth), {blocks} blocks", "depth", "searched with these seeds", names=f"{{}}, {blocks} blocks")
      for blocks in (4, 24, 48)),
    Question("[arithmetic](#bfloat16), 12 blocks, twice the batch", "precision", "1e-2 for both", seeds=8),
    Question("[drawn shapes](#families), vision", "families", "1e-3 for both", names="vit-micro, {}"),
    Question("[arithmetic](#families), experts", "families", "5e-3 for both", names="moe-micro, {}"),
    Question("[drawn shapes](#families), diffusion", "families", "1e-3 for both", names="dit-micro, {}", digits=4),
    Question("[arithmetic](#upcycling), a trained Pre-Norm model goes on", "upcycle", "searched with these seeds", names="pre goes on as {}"),
    Question("[novels](#a-model-that-nobody-here-trained), stories15M goes on", "stories", "3e-4 for both", names="pre goes on as {}", digits=4,
             rate=3e-4),
]


def summary(of_record: Callable[[str], list[dict]]) -> str:
    """SiameseNorm less Pre-Norm wherever both were trained with all seeds, and who had the lowest mean."""
    rows, chances = [], []
    for question in QUESTIONS:
        lines = [line for line in of_record(question.record) if question.rate in (None, line["lr"])]
        own = re.compile(re.escape(question.names).replace(r"\{\}", "(?!.*precision=)(.*)"))  # in float32
        variants = {found[1]: {seed: loss / math.log(2) if question.bits else loss for seed, loss in at_best_rate(lines, line["variant"]).items()}
                    for line in lines if (found := own.fullmatch(line["variant"]))}
        whole = {name: losses for name, losses in variants.items() if len(losses) == question.seeds}
        if not {"pre", "siamese"} <= whole.keys():
            continue
        lowest = min(whole, key=lambda name: mean(whole[name].values()))
        hybrid = difference(whole["siamese(x=hybrid)"], whole["pre"], question.digits) if "siamese(x=hybrid)" in whole else ""
        chances.append(student_p([whole["siamese"][seed] - whole["pre"][seed] for seed in whole["pre"]]))
        rows.append([question.title, question.rates, str(question.seeds), f"{mean(whole['pre'].values()):.{question.digits}f}",
                     difference(whole["siamese"], whole["pre"], question.digits), hybrid,
                     f"`{lowest}` of {len(whole)}" if len(whole) > 2 else ""])
    for row, chance in zip(rows, holm(chances), strict=True):
        row.insert(5, f"{chance:.3f}")
    titles = ["what is learned", "learning rate", "seeds", "`pre`", "`siamese` - `pre` (95 % interval)", "p (Holm, these rows)",
              "`siamese(x=hybrid)` - `pre`", "lowest mean"]
    return table(titles, ["---", "---", "---:", "---:", "---:", "---:", "---:", "---"], rows)


USABLE = 0.9  # of the way from the baseline to the best run of the same variant
SETTING = re.compile(r"(.*), (\d+) blocks, warmup=(\d+)")


def largest_rates(lines: list[dict]) -> str:
    """By scheme, depth and warm-up: the largest rate at which, as at every lower one that was tried, a run comes USABLE of the way;
    behind it the largest at which one was at least not stuck."""
    found: dict[str, dict[tuple[int, bool], str]] = {}
    for variant in dict.fromkeys(line["variant"] for line in lines):
        scheme, blocks, warm = SETTING.fullmatch(variant).groups()
        way: dict[float, float] = {}  # from the baseline to 0, by rate; 0: diverged
        for line in lines:
            if line["variant"] == variant:
                ended = line.get("status", "finished") != "diverged" and line["val_loss"] is not None
                way[line["lr"]] = max(0.0, line["baseline"] - line["val_loss"]) if ended else 0.0
        best = max(way.values())
        shares = {rate: way[rate] / best if best else 0.0 for rate in sorted(way)}
        usable = [rate for at, rate in enumerate(shares) if all(share >= USABLE for share in list(shares.values())[: at + 1])]
        trained = [rate for rate, share in shares.items() if share >= 0.1]
        text = f"{usable[-1]:g}" if usable else f"below {min(shares):g}"
        if usable and usable[-1] == max(shares):
            text = f"{usable[-1]:g} or more"
        elif trained and (not usable or trained[-1] > usable[-1]):
            text += f" ({trained[-1]:g})"
        found.setdefault(scheme, {})[int(blocks), warm != "0"] = text
    if not found:
        return ""
    settings = sorted({setting for of in found.values() for setting in of}, key=lambda of: (of[0], not of[1]))
    titles = ["usable up to (not stuck up to)", *(f"{blocks} blocks, {'warm-up' if warm else 'none'}" for blocks, warm in settings)]
    return table(titles, ["---"] * len(titles), [[scheme, *(of.get(setting, "") for setting in settings)] for scheme, of in found.items()])


def sensitivity(records: dict[str, list[dict]]) -> str:
    """What a wrong rate costs: the mean, over the rates that all variants of a record have, of min(loss, baseline) less the loss at the
    best of them. A run that diverged has the baseline."""
    rows: dict[str, list[str]] = {}
    for at, lines in enumerate(records.values()):
        by_variant: dict[str, dict[float, list[float]]] = {}
        for line in lines:
            ended = line.get("status", "finished") != "diverged" and line["val_loss"] is not None
            loss = min(line["val_loss"], line["baseline"]) if ended else line["baseline"]
            by_variant.setdefault(line["variant"], {}).setdefault(line["lr"], []).append(loss)
        rates = set.intersection(*(set(of) for of in by_variant.values()))
        for variant, of in by_variant.items():
            losses = [mean(of[rate]) for rate in sorted(rates)]
            rows.setdefault(variant, [""] * len(records))[at] = f"{mean(losses) - min(losses):.3f}"
    order = sorted(rows, key=lambda variant: [float(cell or "inf") for cell in rows[variant]])
    return table(["variant", *records], ["---", *["---:"] * len(records)], [[variant, *rows[variant]] for variant in order])


def spoken(run: str) -> str:
    """vit-micro-pre-seed1 -> vit-micro, pre, seed 1"""
    name, seed = RUN.fullmatch(run).groups()
    recipe, _, scheme = name.rpartition("-")
    return f"{recipe}, {scheme}, seed {seed}"


def distance(lines: list[dict]) -> str:
    """What the diffusion models drew, in the eyes of each judge: the schemes, and the second less the first."""
    found: dict[str, dict[str, dict[int, tuple[float, float]]]] = {}
    for line in lines:
        name, seed = RUN.fullmatch(line["run"]).groups()
        samples = line["samples"]
        of_judge = found.setdefault(Path(samples["classifier"]).name, {})
        of_judge.setdefault(name, {})[int(seed)] = samples["feature_distance"], 100 * samples["class_agreement"]
    rows = []
    for judge, models in found.items():
        by_seed = {name: [{seed: both[i] for seed, both in runs.items()} for i in (0, 1)] for name, runs in models.items()}
        for name, (distances, agreements) in by_seed.items():
            rows.append([", ".join(name.rsplit("-", 1)), spoken(judge), spread([*distances.values()], 2),
                         spread([*agreements.values()], 1, " %")])
        first, second = by_seed.values()
        rows.append(["difference, seed by seed (95 % interval)", spoken(judge), difference(second[0], first[0], 2),
                     difference(second[1], first[1], 1)])
    return table(["variant", "judge", "feature distance", "class agreement"], ["---", "---", "---:", "---:"], rows)


def depth(lines: list[dict]) -> str:
    """SiameseNorm less Pre-Norm, by number of blocks and learning rate."""
    found: dict[tuple[str, int, float], dict[int, float]] = {}
    for line in lines:
        found.setdefault((line["scheme"], int(line["config"]["model.blocks"]), line["lr"]), {})[line["seed"]] = line["val_loss"]
    blocks = sorted({blocks for _, blocks, _ in found})
    rows = [[f"at {rate:g}", *(difference(found["siamese", of, rate], found["pre", of, rate], 3) for of in blocks)]
            for rate in sorted({rate for _, _, rate in found})]
    return table(["SiameseNorm - Pre-Norm", *(f"{of} blocks" for of in blocks)], ["---"] * (1 + len(blocks)), rows)


def text_depth(deep: list[dict], shallow: list[dict]) -> str:
    """Bits per byte of each variant less Pre-Norm's, at the better rate of each, with 48 blocks and with 12, and how the seeds that
    both have changed from one to the other."""
    seeds = {line["seed"] for line in deep}

    def less_pre(lines: list[dict], variant: str) -> dict[int, float]:
        own, pre = (at_best_rate(lines, name) for name in (variant, "pre"))
        return {seed: (own[seed] - pre[seed]) / math.log(2) for seed in seeds & own.keys() & pre.keys()}

    rows, nothing = [], dict.fromkeys(seeds, 0.0)
    for variant in dict.fromkeys(line["variant"] for line in deep if line["variant"] != "pre"):
        family = variant.split("(block=")[0]  # Attention Residuals have larger blocks with more layers
        twin = next(line["variant"] for line in shallow if line["variant"].split("(block=")[0] == family)
        at_48, at_12 = less_pre(deep, variant), less_pre(shallow, twin)
        rows.append([family, difference(at_12, nothing, 3), difference(at_48, nothing, 3), difference(at_48, at_12, 3)])
    return table(["less Pre-Norm, bits per byte", "12 blocks", "48 blocks", "change"], ["---", "---:", "---:", "---:"], rows)


def first_losses(lines: list[dict]) -> str:
    """The training loss of each run's first step, which no update precedes: the same at every learning rate, or an error."""
    found: dict[str, dict[int, set[float]]] = {}
    for line in lines:
        found.setdefault(line["variant"], {}).setdefault(line["seed"], set()).add(line["first_loss"])
    seeds = sorted({seed for of_variant in found.values() for seed in of_variant})
    for variant, of_variant in found.items():
        if any(len(losses) != 1 for losses in of_variant.values()):
            raise ValueError(f"{variant}: expected one loss of the first step, whatever the rate")
    rows = [[variant, *(f"{min(of_variant[seed]):.6f}" if seed in of_variant else "" for seed in seeds)]
            for variant, of_variant in found.items()]
    return table(["first step's loss", *(f"seed {seed}" for seed in seeds)], ["---", *["---:"] * len(seeds)], rows)


def not_run(old: str, counts: Counts) -> str:
    """Questions and times stay as they were typed; runs are counted, and a sweep that is recorded whole leaves the table."""
    kept = []
    for line in old.strip().splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        name = re.search(r"([\w-]+)\.yaml", cells[1]) if len(cells) == 4 else None
        known = counts(name[1]) if name else None
        if known is not None:
            runs, recorded = known
            if recorded == runs:
                continue
            cells[1], cells[2] = f"`configs/sweeps/{name[1]}.yaml`", f"{runs - recorded} of {runs}" if recorded else str(runs)
            line = "| " + " | ".join(cells) + " |"
        kept.append(line)
    return "\n".join(kept) + "\n"


def recorded(name: str) -> list[dict]:
    file = ROOT / f"docs/results/{name}.jsonl"
    return record.read(file) if file.is_file() else []


def made(name: str, old: str, counts: Counts) -> str:
    """A block of this name, between its marks."""
    if name == "not-run":
        return f"\n{not_run(old, counts)}\n"

    def when_whole(sweep: str, table: Callable[[], str]) -> str:
        """Nothing while a run is missing: no verdict before the last."""
        runs, done = counts(sweep) or (0, 0)
        return table() if runs and done == runs else ""

    makers = {"depth": lambda: depth(recorded("depth")), "distance": lambda: distance(recorded("families-distance")),
              "first-losses": lambda: first_losses(recorded("upcycle")), "summary": lambda: summary(recorded),
              "sensitivity": lambda: sensitivity({"English text, 1e-3 to 1e-2": recorded("text"),
                                                  "arithmetic, 3e-3 to 3e-2": recorded("stability")}),
              "text-depth": lambda: when_whole("text-depth", lambda: text_depth(recorded("text-depth"), recorded("text-seeds"))),
              "largest-rate": lambda: when_whole("largest-rate", lambda: largest_rates(recorded("largest-rate")))}
    if name not in makers:
        raise ValueError(f"<!-- table {name} -->: expected not-run, {', '.join(makers)}")
    return f"\n{makers[name]()}\n"
