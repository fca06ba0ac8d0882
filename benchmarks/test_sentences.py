#!/usr/bin/env python3
"""Differences and intervals that stand in the text of docs/results.md, README.md and other pages are those of the
records. The tables have a test of their own (benchmarks/results.py --check)."""

import itertools
import re
import sys
import unittest
from functools import lru_cache
from pathlib import Path
from statistics import correlation, mean, median, stdev

sys.path.insert(0, str(Path(__file__).resolve().parent))

import record  # noqa: E402
from rates import bits  # noqa: E402
from result_tables import holm, interval, student_p, two_sided  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
PRE, SIAMESE, HYBRID, QKV = "pre", "siamese", "siamese(x=hybrid)", "pre, attention_norm=qkv"
WARM, COLD = ", warmup=50", ", warmup=0"
GOES_ON = "pre goes on as "

# Record, what is subtracted from what (variant and rate), and how results.md says it, line breaks aside.
SAID = [
    ("stability", (SIAMESE, 0.01), (PRE, 0.01), "-0.158 (-0.479 to +0.162)"),
    ("stability", ("span", 0.003), (SIAMESE, 0.003), "-0.014 (-0.262 to +0.234)"),
    ("stability", ("post", 0.003), (PRE, 0.003), "+0.005 (-0.192 to +0.203)"),
    ("stability", (HYBRID, 0.01), (PRE, 0.01), "+0.029 (-0.467 to +0.526)"),
    ("stability", (HYBRID, 0.003), (PRE, 0.003), "+0.031 (-0.125 to +0.187)"),
    ("stability", (PRE, 0.03), (HYBRID, 0.03), "below Pre-Norm's by 0.328 (0.196 to 0.460)"),
    ("stability", (HYBRID, 0.03), (QKV, 0.03), "-0.032 (-0.208 to +0.144)"),
    ("stability", (PRE, 0.03), (PRE, 0.01), "+0.415 (+0.263 to +0.567)"),
    ("stability", (SIAMESE, 0.03), (SIAMESE, 0.01), "+0.491 (+0.210 to +0.772)"),
    ("stability", (SIAMESE, 0.03), (PRE, 0.03), "-0.083 (-0.246 to +0.081)"),
    ("stability", ("deepnorm", 0.003), (PRE, 0.003), "+0.167 (+0.068 to +0.267)"),
    ("depth", ("siamese, 48 blocks", 0.01), (SIAMESE, 0.01), "+0.046 (-0.163 to +0.255)"),
    ("depth", ("pre, 48 blocks", 0.01), (PRE, 0.01), "+0.023 (-0.132 to +0.178)"),
    ("depth", ("siamese, 48 blocks", 0.003), ("siamese, 4 blocks", 0.003), "+0.221 (+0.173 to +0.270)"),
    ("depth", ("pre, 48 blocks", 0.003), ("pre, 4 blocks", 0.003), "+0.209 (+0.108 to +0.309)"),
    ("depth", ("siamese(x=hybrid), 4 blocks", 0.01), ("pre, 4 blocks", 0.01), "-0.152 (-0.277 to -0.027)"),
    ("ablation", ("siamese(depth_scale=none)" + WARM, 0.01), (SIAMESE, 0.01), "+0.173 (+0.086 to +0.260)"),
    ("ablation", ("siamese(input_norm=false)" + WARM, 0.01), (SIAMESE, 0.01), "+0.416 (+0.117 to +0.715)"),
    ("ablation", ("siamese(input_norm=false, depth_scale=none)" + WARM, 0.01), (PRE, 0.01), "+0.388 (+0.133 to +0.644)"),
    ("ablation", ("siamese(x=hybrid, input_norm=false)" + WARM, 0.01), (HYBRID, 0.01), "+0.029 (-0.174 to +0.232)"),
    ("ablation", ("siamese(x=hybrid, input_norm=false, depth_scale=none)" + WARM, 0.01),
     ("siamese(x=hybrid, depth_scale=none)" + WARM, 0.01), "+0.013 (-0.288 to +0.314)"),
    ("ablation", (PRE + COLD, 0.01), (PRE, 0.01), "+0.300 (+0.135 to +0.464)"),
    ("ablation", (SIAMESE + COLD, 0.01), (SIAMESE, 0.01), "+0.405 (+0.253 to +0.558)"),
    ("ablation", (SIAMESE + COLD, 0.01), (PRE + COLD, 0.01), "-0.052 (-0.385 to +0.281)"),
    ("families", ("vit-micro, pre", 0.001), ("vit-micro, siamese", 0.001), "lower by 0.231 (0.199 to 0.263)"),
    ("families", ("moe-micro, siamese", 0.005), ("moe-micro, pre", 0.005), "+0.039 (-0.122 to +0.200)"),
    ("precision", ("siamese, precision=bfloat16", 0.01), (SIAMESE, 0.01), "-0.008 (-0.042 to +0.025)"),
    ("precision", ("pre, precision=bfloat16", 0.01), (PRE, 0.01), "+0.004 (-0.045 to +0.053)"),
    ("precision", (SIAMESE, 0.01), (PRE, 0.01), "-0.069 (-0.113 to -0.026)"),
    ("precision-experts", ("moe-micro, siamese, precision=bfloat16", 0.005), ("moe-micro, siamese", 0.005), "+0.022 (-0.094 to +0.138)"),
    ("upcycle", (GOES_ON + "siamese", 0.003), (GOES_ON + "pre", 0.003), "-0.002 (-0.022 to +0.018)"),
    ("upcycle", (GOES_ON + "siamese(input_norm=false, final_norm=false)", 0.003), (GOES_ON + "pre", 0.003), "+0.004 (-0.039 to +0.046)"),
    ("upcycle", (GOES_ON + "siamese", 0.01), (GOES_ON + "pre", 0.01), "-0.035 (-0.072 to +0.001)"),
    ("upcycle", (GOES_ON + "siamese(input_norm=false, final_norm=false)", 0.01), (GOES_ON + "pre", 0.01), "-0.025 (-0.092 to +0.042)"),
]


@lru_cache
def lines(name: str) -> tuple[dict, ...]:
    return tuple(record.read(ROOT / f"docs/results/{name}.jsonl"))


def values(name: str, variant: str, rate: float, of=lambda line: line["val_loss"]) -> dict[int, float]:
    return {line["seed"]: of(line) for line in lines(name) if (line["variant"], line["lr"]) == (variant, rate)}


def differences(first: dict[int, float], second: dict[int, float]) -> list[float]:
    return [first[seed] - second[seed] for seed in sorted(first.keys() & second.keys())]


def alike(first: dict[int, float], second: dict[int, float]) -> float:
    """How far the same seeds are the same luck: their correlation."""
    seeds = sorted(first.keys() & second.keys())
    return correlation([first[seed] for seed in seeds], [second[seed] for seed in seeds])


def text_of(page: str) -> str:
    return " ".join((ROOT / page).read_text(encoding="utf-8").split())


class Sentences(unittest.TestCase):
    def test_differences_of_losses(self):
        page = text_of("docs/results.md")
        for name, first, second, said in SAID:
            with self.subTest(f"{name}: {first} - {second}"):
                paired = differences(values(name, *first), values(name, *second))
                self.assertGreaterEqual(len(paired), 3)
                sign = "+" if said.split("(")[1][0] in "+-" else ""
                low, high = interval(paired)
                self.assertTrue(said.endswith(f"{mean(paired):{sign}.3f} ({low:{sign}.3f} to {high:{sign}.3f})"),
                                f"{mean(paired):+.3f} ({low:+.3f} to {high:+.3f})")
                self.assertIn(said, page)

    def test_top_1_and_exact_answers(self):
        top1 = {of: values("families", f"vit-micro, {of}", 0.001, lambda line: 100 * line["measures"]["top1"]) for of in (PRE, SIAMESE)}
        paired = differences(top1[SIAMESE], top1[PRE])
        said = f"{mean(paired):.1f} points in the mean ({interval(paired)[0]:.1f} to {interval(paired)[1]:.1f})"
        self.assertIn(said, text_of("docs/results.md"))
        self.assertGreater(min(paired), 0)
        exact = {of: values("families", f"moe-micro, {of}", 0.005, lambda line: 100 * line["accuracy"]["correct"] / line["accuracy"]["count"])
                 for of in (PRE, SIAMESE)}
        paired = differences(exact[SIAMESE], exact[PRE])
        self.assertIn(f"{mean(paired):+.1f} points ({interval(paired)[0]:+.1f} to {interval(paired)[1]:+.1f})", text_of("docs/results.md"))

    def test_other_pages(self):
        faq, reproduce = map(text_of, ("docs/faq.md", "docs/reproduce.md"))
        best = [interval(differences(values("stability", one, 0.01), values("stability", other, 0.01)))
                for one, other in ((SIAMESE, PRE), (HYBRID, PRE), (SIAMESE, HYBRID))]
        self.assertIn("within noise of Pre-Norm (on arithmetic {:.2f} to {:+.2f})".format(*best[1]), faq)
        self.assertIn("interval of the difference {:.3f} to {:+.3f}".format(*best[2]), faq)
        vit = interval(differences(*(values("families", f"vit-micro, {of}", 0.001) for of in (SIAMESE, PRE))))
        self.assertIn("on drawn shapes ({:.2f} to {:.2f})".format(*vit), faq)
        adamw = (values("optimizers-seeds", f"{of}, name=adamw", 0.01) for of in (SIAMESE, PRE))
        paired = differences(*adamw)
        self.assertIn("on arithmetic by AdamW {:.3f} ({:.3f} to {:.3f})".format(mean(paired), *interval(paired)), faq)
        low_high = interval(differences(values("depth", "siamese, 4 blocks", 0.003), values("depth", "pre, 4 blocks", 0.003)))
        self.assertIn("on arithmetic with 4 blocks ({:.2f} to {:.2f})".format(*low_high), faq)
        paired = differences(values("images-seeds", SIAMESE, 0.003), values("images-seeds", PRE, 0.001))
        self.assertIn("on photographs of clothes {:.3f} ({:.3f} to {:.3f};".format(mean(paired), *interval(paired)), faq)
        self.assertIn(f"lower by 0.231 (95 % interval {-vit[1]:.3f} to {-vit[0]:.3f})", reproduce)
        dit = interval(differences(*(values("families", f"dit-micro, {of}", 0.001) for of in (PRE, SIAMESE))))
        self.assertIn("by 0.0007 in the mean ({:.4f} to {:.4f}; p 0.046 alone".format(*dit), text_of("docs/results.md"))

    def test_what_leans_on_pairing(self):
        rows = text_of("docs/results.md").partition("<!-- table summary -->")[2].partition("<!-- end -->")[0].count("(#")
        for of in (lambda scheme: values("families", f"vit-micro, {scheme}", 0.001), lambda scheme: values("depth", f"{scheme}, 4 blocks", 0.003)):
            pre, siamese = (list(of(scheme).values()) for scheme in (PRE, SIAMESE))
            error = ((stdev(pre) ** 2 + stdev(siamese) ** 2) / len(pre)) ** 0.5
            self.assertGreater(rows * two_sided(abs(mean(siamese) - mean(pre)) / error, 2 * len(pre) - 2), 0.05)
        self.assertGreater(alike(*(values("families", f"vit-micro, {scheme}", 0.001) for scheme in (PRE, SIAMESE))), 0.9)

    def test_the_average_over_depths(self):
        for rate, said in ((0.003, "-0.062 (-0.087 to -0.037) at 3e-3"), (0.01, "-0.164 (-0.242 to -0.086) at 1e-2")):
            by_depth = [differences(values("depth", SIAMESE + blocks, rate), values("depth", PRE + blocks, rate))
                        for blocks in (", 4 blocks", "", ", 24 blocks", ", 48 blocks")]  # the runs of 12 are those of another sweep
            of_seeds = [mean(seed) for seed in zip(*by_depth, strict=True)]
            self.assertEqual(f"{mean(of_seeds):+.3f} ({interval(of_seeds)[0]:+.3f} to {interval(of_seeds)[1]:+.3f})", said.split(" at ")[0])
            self.assertIn(said, text_of("docs/results.md"))

    def test_what_a_seed_is_worth(self):
        page, rules = text_of("docs/results.md"), text_of("docs/comparing.md")
        in_two = [alike(values("precision", scheme, 0.01), values("precision", f"{scheme}, precision=bfloat16", 0.01))
                  for scheme in (SIAMESE, PRE)]
        self.assertIn("correlation {:.1f} and {:.1f}".format(*in_two), page)
        self.assertIn("({:.1f} and {:.1f}, eight seeds)".format(*in_two), rules)
        for family in ("vit", "dit"):
            self.assertGreater(alike(*(values(of, f"{family}-micro, siamese", 0.001) for of in ("families", "precision-families"))), 0.99)
        added = differences(*({seed: loss for seed, loss in values("precision", of, 0.01).items() if seed > 3} for of in (SIAMESE, PRE)))
        self.assertIn(f"they alone give {mean(added):+.3f} ({interval(added)[0]:+.3f} to {interval(added)[1]:+.3f})", page)

    def test_text(self):
        self.assertEqual({line["seed"] for line in lines("text")}, {1})
        at = {rate: values("text", SIAMESE, rate)[1] for rate in (0.01, 0.03)}
        self.assertLess(at[0.03], 0.5 * values("text", "post", 0.01)[1])  # "At 3e-2 ... it still learns"
        learned = [line["val_loss"] for line in lines("text") if line["lr"] == 0.01 and line["variant"] not in ("post", "hybrid")]
        self.assertEqual(len(learned), 7)
        self.assertLess(max(learned + [values("text", PRE, rate)[1] for rate in (0.001, 0.003, 0.01)]), at[0.03])
        self.assertIn(f"where it loses {at[0.03] - at[0.01]:.3f}", text_of("docs/results.md"))

    def test_text_with_fresh_seeds(self):
        page, readme, faq = map(text_of, ("docs/results.md", "README.md", "docs/faq.md"))
        found = {line["variant"]: {} for line in lines("text-seeds")}
        for line in lines("text-seeds"):
            found[line["variant"]][line["seed"]] = bits(line["val_loss"])
        self.assertEqual({len(of) for of in found.values()}, {5})
        self.assertEqual(sorted(found, key=lambda name: mean(found[name].values())),
                         ["span", SIAMESE, "attn_res(block=3)", HYBRID, QKV, PRE, "post"])  # the order of the sentence
        said = {}
        for first, second in (("span", PRE), (SIAMESE, PRE), ("attn_res(block=3)", PRE), (HYBRID, PRE), (QKV, PRE), ("post", PRE),
                              (SIAMESE, "span"), (HYBRID, QKV)):
            paired = differences(found[first], found[second])
            said[first, second] = f"{mean(paired):+.3f} ({interval(paired)[0]:+.3f} to {interval(paired)[1]:+.3f})"
            self.assertIn(said[first, second], page, (first, second))
        self.assertGreater(min(holm([student_p(differences(found[name], found[PRE])) for name in found if name != PRE])), 0.05)
        low_high = said[SIAMESE, PRE].partition("(")[2].rstrip(")")
        self.assertIn(f"-0.017 bits (95 % interval {low_high})", readme)
        self.assertIn("-0.026 bits (95 % interval " + said["span", PRE].partition("(")[2], readme)
        self.assertIn(f"is at {said[HYBRID, PRE]}", readme)
        self.assertIn(f"-0.017 bits per byte with a 95 % interval from {low_high}", faq)
        self.assertIn(f"needs {mean(found[PRE].values()):.3f} bits", readme)
        self.assertIn(f"less Pre-Norm's {mean(found[PRE].values()):.3f}", page)
        pairs = list(itertools.combinations(found, 2))
        self.assertIn(f"of about {median(stdev(differences(found[a], found[b])) for a, b in pairs):.3f} over the seeds", page)
        together = sorted(alike(found[a], found[b]) for a, b in pairs)
        self.assertIn(f"go from {together[0]:.1f} to {together[-1]:.1f}, {median(together):.1f} in the middle", page)
        shares = [-mean(differences(found[of], found[PRE])) / mean(found[PRE].values()) for of in (HYBRID, SIAMESE)]
        self.assertIn("differs by {:.1f} % of the loss, SiameseNorm by {:.1f} %".format(*(100 * share for share in shares)), page)

    def test_optimizers(self):
        page = text_of("docs/results.md")
        of = {(scheme, name): values("optimizers-seeds", f"{scheme}, name={name}", 0.01) for scheme in (PRE, SIAMESE) for name in ("adamw", "muon")}
        gains = {name: differences(of[SIAMESE, name], of[PRE, name]) for name in ("adamw", "muon")}
        changed = [muon - adamw for muon, adamw in zip(gains["muon"], gains["adamw"], strict=True)]
        across = differences(of[PRE, "muon"], of[SIAMESE, "adamw"])
        for paired in (*gains.values(), changed, across, *(differences(of[scheme, "muon"], of[scheme, "adamw"]) for scheme in (PRE, SIAMESE))):
            self.assertEqual(len(paired), 5)
            low, high = interval(paired)
            self.assertIn(f"{mean(paired):+.3f} ({low:+.3f} to {high:+.3f})", page)
        (low, high), (least, most) = (interval(gains[name]) for name in ("adamw", "muon"))
        self.assertIn(f"lower by {-mean(gains['adamw']):.3f} (95 % interval {-high:.3f} to {-low:.3f}) when AdamW trains", page)
        self.assertIn(f"by {-mean(gains['muon']):.3f} ({-most:.3f} to {-least:.3f})", page)
        trained_again = {(line["variant"].removesuffix(", name=adamw"), line["lr"], line["seed"]): line["val_loss"]
                         for line in lines("optimizers") if "adamw" in line["variant"]}
        self.assertEqual(trained_again, {key: loss for line in lines("stability") for key, loss in
                                         [((line["variant"], line["lr"], line["seed"]), line["val_loss"])] if key in trained_again})

    def test_photographs(self):
        at = {(line["variant"], line["lr"]): (line["val_loss"], 100 * line["measures"]["top1"]) for line in lines("images")}
        best = {name: min(both for (of, _), both in at.items() if of == name) for name, _ in at}
        self.assertEqual(sorted(best, key=best.__getitem__), ["post", SIAMESE, PRE, "attn_res(block=3)"])
        page = text_of("docs/results.md")
        for name, said in (("post", "({:.3f}, top-1 {:.1f} %)"), (SIAMESE, "({:.3f}, {:.1f} %)"), (PRE, "({:.3f}, {:.1f} %)"),
                           ("attn_res(block=3)", "({:.3f}, {:.1f} %)")):
            self.assertIn(said.format(*best[name]), page, name)
        self.assertIn("({:.3f}; Pre-Norm {:.3f}, Attention Residuals {:.3f})".format(
            *(at[name, 0.01][0] for name in (SIAMESE, PRE, "attn_res(block=3)"))), page)

    def test_photographs_with_fresh_seeds(self):
        page, readme = map(text_of, ("docs/results.md", "README.md"))
        rates = {line["variant"]: line["lr"] for line in lines("images-seeds")}
        loss = {name: values("images-seeds", name, rate) for name, rate in rates.items()}
        top1 = {name: values("images-seeds", name, rate, lambda line: 100 * line["measures"]["top1"]) for name, rate in rates.items()}
        self.assertEqual({len(of) for of in loss.values()}, {5})
        self.assertEqual(sorted(loss, key=lambda name: mean(loss[name].values())), ["post", SIAMESE, "attn_res(block=3)", PRE])
        self.assertIn(f"less Pre-Norm's {mean(loss[PRE].values()):.3f} and top-1 of {mean(top1[PRE].values()):.1f} %", page)
        for first, second in (("post", PRE), (SIAMESE, PRE), ("attn_res(block=3)", PRE)):
            paired = differences(loss[first], loss[second])
            low, high = interval(paired)
            self.assertIn(f"{mean(paired):+.3f} ({low:+.3f} to {high:+.3f})", page, (first, second))
        paired = differences(loss["attn_res(block=3)"], loss[SIAMESE])
        self.assertIn("above SiameseNorm by {:.3f}; the interval of this pair alone ({:.3f} to {:.3f})".format(mean(paired), *interval(paired)), page)
        for higher, lower, digits, of, said in ((SIAMESE, "post", 3, loss, "above it by"), (SIAMESE, "post", 3, loss, "lowest**, beyond noise of the three others: by"),
                                        (PRE, "post", 3, loss, "below SiameseNorm and by"), (PRE, SIAMESE, 3, loss, "SiameseNorm is below Pre-Norm by"),
                                        ("post", PRE, 1, top1, "top-1 higher by"), ("post", SIAMESE, 1, top1, "its top-1 is lower by"), (SIAMESE, PRE, 1, top1, "top-1 higher by")):
            paired = differences(of[higher], of[lower])
            low, high = interval(paired)
            points = " points" if of is top1 else ""
            self.assertIn(f"{said} {mean(paired):.{digits}f}{points} ({low:.{digits}f} to {high:.{digits}f})", page)
        tested = [name for name in loss if name != PRE]
        corrected = dict(zip(tested, holm([student_p(differences(loss[name], loss[PRE])) for name in tested]), strict=True))
        self.assertIn(f"p {corrected[SIAMESE]:.3f} corrected for three", page)
        self.assertGreater(corrected["attn_res(block=3)"], 0.05)
        pairs = list(itertools.combinations(loss, 2))
        of_pairs = dict(zip(pairs, holm([student_p(differences(loss[a], loss[b])) for a, b in pairs]), strict=True))
        self.assertLess(max(p for pair, p in of_pairs.items() if "post" in pair), 0.05)
        of_pair = next(p for pair, p in of_pairs.items() if set(pair) == {"attn_res(block=3)", SIAMESE})
        self.assertIn(f"within noise (p {of_pair:.3f})", page)
        clipped = {name: [grad > 1 for line in lines("images-seeds") if line["variant"] == name
                          for step, grad in zip(line["curve"]["steps"], line["curve"]["grad_norm"], strict=True) if step > 600] for name in loss}
        self.assertTrue(all(clipped[PRE] + clipped["attn_res(block=3)"]))
        self.assertIn("on {:.0%} of Post-Norm's and {:.0%} of SiameseNorm's".format(mean(clipped["post"]), mean(clipped[SIAMESE]))
                      .replace("%", " %"), page)
        first = {(line["variant"], line["lr"]): line["val_loss"] for line in lines("images")}
        for rate in (0.001, 0.003):
            self.assertLess(first["post", rate], first[SIAMESE, rate])
            self.assertLess(first[SIAMESE, rate], first[PRE, rate])
        self.assertIn(f"both at 1e-3, it is {first[PRE, 0.001] - first[SIAMESE, 0.001]:.3f}.", page)
        low, high = interval(differences(loss["post"], loss[PRE]))
        self.assertIn(f"by {-mean(differences(loss['post'], loss[PRE])):.3f} ({-high:.3f} to {-low:.3f}", readme)

    def test_a_model_that_nobody_here_trained(self):
        page = text_of("docs/results.md")

        def forgotten(line: dict) -> float:
            return line["measures"]["stories loss"]

        chances = []
        for form in ("siamese", "siamese(input_norm=false, final_norm=false)"):
            said = []
            for of in (lambda line: line["val_loss"], forgotten):
                paired = differences(values("stories", GOES_ON + form, 3e-4, of), values("stories", GOES_ON + "pre", 3e-4, of))
                self.assertEqual(len(paired), 3)
                said.append("{:+.4f} ({:+.4f} to {:+.4f})".format(mean(paired), *interval(paired)))
                chances.append(student_p(paired))
            self.assertRegex(page, re.escape(said[0]) + r" (on novels )?and " + re.escape(said[1]))
        self.assertGreater(min(holm(chances)), 0.05)
        lost = {rate: values("stories", GOES_ON + "pre", rate, forgotten) for rate in (1e-4, 3e-4, 1e-3)}
        self.assertIn(f"from 1.12 to {mean(lost[3e-4].values()):.2f}", page)
        self.assertIn(f"{lost[1e-4][11]:.2f} at 1e-4 and {lost[1e-3][11]:.2f} at 1e-3", page)
        self.assertIn("where novels end at {:.3f} and {:.3f}".format(*(values("stories", GOES_ON + "pre", rate)[11] for rate in (1e-4, 1e-3))), page)
        more, less = (differences(values("stories", GOES_ON + "siamese", 1e-3, of), values("stories", GOES_ON + "pre", 1e-3, of))[0]
                      for of in (forgotten, lambda line: line["val_loss"]))
        self.assertIn(f"lower on novels by {-less:.4f} and higher on stories by {more:.4f}", page)

    def test_chances_among_all_rows(self):
        page = text_of("docs/results.md")
        row = next(line for line in page.partition("<!-- table summary -->")[2].split(" | [") if line.startswith("photographs"))
        self.assertIn(f"of that sweep, {row.split(' | ')[5]} for the rows below", page)

    def test_families_in_bfloat16(self):
        page = text_of("docs/results.md")
        for family, rate, digits in (("vit", 0.001, 4), ("dit", 0.001, 4), ("moe", 0.005, 3)):
            of = f"{family}-micro, siamese"
            paired = differences(values("precision-families", of, rate), values("families", of, rate))
            self.assertEqual(len(paired), 3)
            low, high = interval(paired)
            self.assertIn(f"{mean(paired):+.{digits}f} ({low:+.{digits}f} to {high:+.{digits}f})", page, family)

    def test_what_is_said_to_be_within_noise_is(self):
        others = [(blocks, rate) for blocks in (4, 12, 24, 48) for rate in (0.003, 0.01) if (blocks, rate) != (4, 0.01)]
        for blocks, rate in others:
            names = [of if blocks == 12 else f"{of}, {blocks} blocks" for of in (HYBRID, PRE)]  # those of 12 are stability's
            low, high = interval(differences(*(values("depth", name, rate) for name in names)))
            self.assertTrue(low < 0 < high, (blocks, rate))
        order = ["siamese(depth_scale=none)", "siamese(input_norm=false)", "siamese(input_norm=false, depth_scale=none)"]
        for below, above in zip(order, order[1:]):
            low, high = interval(differences(values("ablation", above + WARM, 0.01), values("ablation", below + WARM, 0.01)))
            self.assertTrue(low < 0 < high, (below, above))


if __name__ == "__main__":
    unittest.main()
