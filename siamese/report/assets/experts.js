// Mixtures of experts: is the work shared? Losses of the router, the largest load, and the load of every expert.

const MAX_LOAD_WORDS = "Max load: largest load of any expert in any block, 1 = all alike.";
const CROWDED_EXPERTS = 24;

// 1 is the fair share: load x number of experts.
function fairLoad(loads, at) {
  return isNumber(loads[at]) ? loads[at] * loads.length : null;
}

// Colour from 0 to the largest load the run ever recorded, so that steps can be compared; from twice to four times the
// fair share, so that neither an even load looks uneven nor one early outlier makes all that follows pale.
const LEAST_SCALE = 2;
const MOST_SCALE = 4;

function largestLoad(run) {
  let largest = LEAST_SCALE;
  for (const { loads } of run.experts) {
    for (const row of loads) row.forEach((_, at) => { largest = Math.max(largest, fairLoad(row, at) ?? 0); });
  }
  return Math.min(largest, MOST_SCALE);
}

function expertTable({ blocks, loads }, largest) {
  const count = Math.max(0, ...loads.map((row) => row.length));
  const small = count > CROWDED_EXPERTS;
  const cell = (block, row, at) => {
    const fair = fairLoad(row, at);
    if (fair === null) return el("td", { class: "heat none" }, small ? "" : MISSING);
    const share = Math.min(1, fair / largest);
    return el("td", {
      class: "heat" + (share > 0.72 ? " strong" : "") + (fair < 0.1 ? " starved" : ""), style: `--share:${(share * 100).toFixed(1)}%`,
      title: `block ${block}, expert ${at}: ${formatPercent(row[at])} of the routed tokens, ${formatFixed(fair, 2)} of the fair share`,
    }, small ? "" : formatFixed(fair, 2));
  };
  const experts = Array.from({ length: count }, (_, at) => at);
  return scrollable(el("table", { class: "heat-table experts" + (small ? " small" : ""), style: `min-width:${84 + count * (small ? 10 : 40)}px` },
    el("thead", {}, el("tr", {}, el("th", { scope: "col", class: "corner" }, "expert"), experts.map((at) => el("th", { scope: "col" }, small && at % 8 ? "" : String(at))))),
    el("tbody", {}, loads.map((row, at) => el("tr", {}, el("th", { scope: "row" }, `block ${blocks[at]}`), experts.map((expert) => cell(blocks[at], row, expert)))))));
}

function expertCard(family) {
  const runs = family.runs.filter((run) => run.experts);
  if (!runs.length) return null;
  return pickerCard("Load by block and expert", "1 = the fair share of the routed tokens; red: below a tenth of it", runs, (run) => run.experts.map((one) => one.step), (run, at) => {
    const largest = largestLoad(run);
    return [expertTable(run.experts[at], largest),
      el("div", { class: "chart-note heat-scale" }, el("span", {}, "0"), el("span", { class: "heat-ramp" }), el("span", {}, `${formatNumber(largest, 3)} times the fair share${largest === MOST_SCALE ? " or more" : ""}`))];
  });
}

function expertParts(family) {
  const has = (name) => family.runs.some((run) => run[name]);
  const charts = [
    has("balance_loss") && quantityChart(family, "balance_loss", { title: "Balance loss", lead: "Least at equal load" }, DEFAULT_SPAN),
    has("router_z_loss") && quantityChart(family, "router_z_loss", { title: "Router z-loss", lead: "Keeps the router's logits small" }, DEFAULT_SPAN),
  ].filter(Boolean);
  const load = has("expert_max_load") ? quantityChart(family, "expert_max_load", { title: "Max load", lead: "Largest load of any expert in any block; 1 = all alike" }, DEFAULT_SPAN) : null;
  const heat = expertCard(family);
  if (!charts.length && !load && !heat) return [];
  return [["experts", "Experts", [charts.length ? el("div", { class: "pair" }, charts) : null, load, heat]]];
}
