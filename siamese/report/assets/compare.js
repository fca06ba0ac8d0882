// The variants against each other, each at its best rate. Everything here is computed in C++ (report/comparison.h).

function familyComparison(family) {
  return DATA.comparisons.find((comparison) => comparison.family === family.name) || null;
}

function signed(value, decimals) {
  return isNumber(value) ? (value > 0 ? "+" : "") + value.toFixed(decimals) : MISSING;
}

function intervalText(difference) {
  return isNumber(difference.low) ? `${signed(difference.low, 4)} \u2026 ${signed(difference.high, 4)}` : MISSING;
}

function verdictCell(difference) {
  const kind = { lower: "better", higher: "worse" }[difference.verdict];
  return el("span", { class: kind ? "verdict " + kind : "verdict" }, difference.verdict);
}

function factorText(value) {
  return isNumber(value) ? value.toFixed(2) + "\u00d7" : MISSING;
}

const RATE_PLACES = new Map([["lowest", ["\u2193", "the lowest rate that was tried: a better one may lie below"]], ["highest", ["\u2191", "the highest rate that was tried: a better one may lie above"]]]);

function bestRateCell(row) {
  const [mark, words] = RATE_PLACES.get(row.place) || [null, null];
  return [formatLearningRate(row.lr), mark ? el("span", { class: "edge", title: words }, " " + mark) : null];
}

function tunedTable(family) {
  const comparison = familyComparison(family);
  if (!comparison) return null;
  const group = (row) => GROUPS[row.group];
  const of = (row, pick) => (row.difference ? pick(row.difference) : null);
  const rows = comparison.variants;
  const columns = [
    { title: "Variant", value: (r) => r.variant, cell: (r) => [el("span", { class: "dot", style: `background:${variantColor(family, r.variant)}` }), r.variant] },
    { title: "Val loss", numeric: true, value: (r) => group(r).val_loss.mean, cell: (r) => lossCell(group(r)) },
    { title: "Best rate", numeric: true, value: (r) => r.lr, cell: bestRateCell },
    { title: "Difference", numeric: true, value: (r) => of(r, (d) => d.mean), cell: (r) => (r.difference ? signed(r.difference.mean, 4) : "reference") },
    { title: "95 % interval", numeric: true, value: (r) => of(r, (d) => d.low), cell: (r) => of(r, intervalText) },
    { title: "Seeds", numeric: true, value: (r) => of(r, (d) => d.n), cell: (r) => of(r, (d) => String(d.n)) },
    { title: "p (Holm)", numeric: true, value: (r) => of(r, (d) => d.holm), cell: (r) => of(r, (d) => formatFixed(d.holm, 3)) },
    { title: "Verdict", value: (r) => of(r, (d) => d.verdict), cell: (r) => of(r, verdictCell) },
    { title: "Training", numeric: true, value: (r) => r.training, cell: (r) => (r.difference ? factorText(r.training) : null) },
    { title: "Time", numeric: true, value: (r) => r.time, cell: (r) => (r.difference ? factorText(r.time) : null) },
  ];
  const note = `Difference: held-out loss minus that of ${comparison.reference}, mean over the seeds that both finished, with Student's interval of these paired differences. `
    + "The best rate is chosen by the same losses. "
    + `Training: how many times less training a variant needs for the loss of ${comparison.reference}; Time: the same, charged with its own ${family.speed.title.toLowerCase()}. `
    + "Both read the smoothed training curves, and credit a variant that is ahead with too little where the learning rate decays.";
  return el("div", { class: "card" },
    el("div", { class: "card-head" }, el("div", {}, el("h3", {}, family.rates.length > 1 ? "Each variant at its best learning rate" : "The variants compared"),
      el("p", { class: "card-lead" }, `Against ${comparison.reference}, seed by seed`))),
    sortableTable(columns, rows), el("div", { class: "chart-note" }, el("p", {}, comparison.noise), el("p", {}, el("strong", {}, comparison.sentence)), el("p", {}, note)));
}

function pairsTable(family) {
  const comparison = familyComparison(family);
  if (!comparison || comparison.pairs.length < 2) return null;
  const columns = [
    { title: "Variant", value: (p) => p.first, cell: (p) => p.first },
    { title: "minus", value: (p) => p.second, cell: (p) => p.second },
    { title: "Difference", numeric: true, value: (p) => p.mean, cell: (p) => signed(p.mean, 4) },
    { title: "95 % interval", numeric: true, value: (p) => p.low, cell: intervalText },
    { title: "Seeds", numeric: true, value: (p) => p.n, cell: (p) => String(p.n) },
    { title: "p", numeric: true, value: (p) => p.p, cell: (p) => formatFixed(p.p, 4) },
    { title: "p (Holm)", numeric: true, value: (p) => p.holm, cell: (p) => formatFixed(p.holm, 3) },
    { title: "Verdict", value: (p) => p.verdict, cell: verdictCell },
  ];
  return el("details", { class: "card fold" }, el("summary", {}, `All ${plural(comparison.pairs.length, "pair")} of variants, corrected for as many`), sortableTable(columns, comparison.pairs));
}
