// The page: header, key numbers, sections in the order one asks for them.

function keyNumber(label, value, detail) {
  return el("div", { class: "key-number" }, el("div", { class: "label" }, label), el("div", { class: "value" }, value),
    el("div", { class: "detail" }, detail || "\u00a0"));
}

function countStates() {
  const counts = new Map();
  DATA.runs.forEach((run) => counts.set(run.state, (counts.get(run.state) || 0) + 1));
  return [...counts.entries()];
}

function sweepNumbers() {
  const best = bestGroup();
  const accurate = GROUPS.filter((group) => isNumber(group.accuracy.mean));
  const top = accurate.length ? accurate.reduce((a, b) => (b.accuracy.mean > a.accuracy.mean ? b : a)) : null;
  const speeds = GROUPS.map((group) => group.tokens_per_s).filter(isNumber);
  const sizes = [...new Set(DATA.runs.map((run) => run.parameters).filter((count) => count > 0))];
  const count = (state) => DATA.runs.filter((run) => run.state === state).length;
  const named = (group) => `${group.variant}, lr ${formatLearningRate(group.lr)}`;
  return [
    keyNumber("Best val loss", best ? meanAndSpread(best.val_loss, (v) => formatFixed(v, 4), best.partial) : MISSING, best ? named(best) : "no evaluation yet"),
    top && keyNumber("Best accuracy", meanAndSpread(top.accuracy, (v) => formatPercent(v), top.partial), named(top)),
    keyNumber("Finished", `${count("finished")}\u2009/\u2009${DATA.runs.length}`, plural(GROUPS.length, "setting") + ", " + plural(VARIANTS.length, "variant")),
    keyNumber("Diverged", el("span", { class: count("diverged") ? "lost" : null }, String(count("diverged"))), count("diverged") ? "listed below the loss" : "none"),
    keyNumber("Parameters", sizes.length ? formatShort(Math.max(...sizes)) : MISSING, sizes.length > 1 ? `from ${formatShort(Math.min(...sizes))}` : null),
    keyNumber("Tokens/s", speeds.length ? formatShort(Math.max(...speeds)) : MISSING, speeds.length > 1 ? `slowest setting ${formatShort(Math.min(...speeds))}` : "median"),
  ];
}

function runNumbers(run) {
  const total = run.steps || run.step;
  const last = run.evals[run.evals.length - 1];
  return [
    keyNumber("Step", formatCount(run.step), run.steps ? `of ${formatCount(run.steps)} (${formatPercent(total ? run.step / total : null, 0)})` : null),
    keyNumber("Train loss", formatFixed(run.train_loss, 4), "mean of the last 50 steps"),
    keyNumber("Val loss", formatFixed(run.val_loss, 4), last ? `step ${formatCount(last.step)}, perplexity ${formatNumber(isNumber(last.loss) ? Math.exp(last.loss) : null, 3)}` : "no evaluation yet"),
    isNumber(run.accuracy) && keyNumber("Accuracy", formatPercent(run.accuracy), "exact answers"),
    keyNumber("Tokens/s", formatShort(run.tokens_per_s), isNumber(run.tokens) ? `${formatShort(run.tokens)} tokens in ${formatDuration(run.seconds)}` : "median"),
    keyNumber("Parameters", run.parameters ? formatShort(run.parameters) : MISSING, run.skipped ? plural(run.skipped, "step") + " skipped" : null),
  ];
}

function header() {
  const run = DATA.runs[0];
  const schemes = [...new Set(DATA.runs.map((one) => one.scheme).filter(Boolean))];
  const facts = DATA.sweep ? [] : [run.label !== run.scheme && run.label, isNumber(run.lr) && `lr ${formatLearningRate(run.lr)}`, isNumber(run.seed) && `seed ${run.seed}`].filter(Boolean);
  const states = DATA.sweep ? countStates().map(([state, count]) => el("span", { class: "pill " + state.replace(" ", "-") }, `${count} ${state}`)) : [statusPill(run.state)];
  return el("header", { class: "page-head" },
    el("div", { class: "kicker" }, "siamese \u00b7 " + (DATA.sweep ? "sweep report" : "run report")),
    el("div", { class: "title-row" }, el("h1", {}, DATA.name), el("div", { class: "pills" }, states)),
    el("div", { class: "facts" },
      schemes.length ? el("span", {}, schemes.length > 1 ? "Schemes " : "Scheme ", schemes.map((scheme) => el("code", {}, scheme))) : null,
      facts.map((fact) => el("span", {}, fact))),
    !DATA.sweep && run.message ? el("p", { class: "callout " + run.state }, run.message) : null);
}

function problems() {
  const notes = DATA.runs.filter((run) => !run.recorded).flatMap((run) => run.notes);
  if (!notes.length) return null;
  return el("div", { class: "callout diverged", role: "alert" }, el("strong", {}, "Some files could not be read"),
    el("ul", {}, notes.map((note) => el("li", {}, note))));
}

// Not a fault, but whoever reads the page should know.
function fromRecord() {
  const recorded = DATA.runs.filter((run) => run.recorded);
  if (!recorded.length) return null;
  return el("p", { class: "callout", role: "note" }, `${recorded.length} of ${plural(DATA.runs.length, "run")} from the record; no run folder here. `
    + "Their curves are thinned, and what is recorded by depth and of the speed during the run is not in them.");
}

function build() {
  const page = document.getElementById("report");
  const measured = DATA.runs.some((run) => isNumber(run.accuracy));
  const sections = [
    DATA.sweep && ["results", "Results", section("results", "Results", null,
      RATES.length > 1 ? rateChart() : null, resultsTable(), runsTable())],
    ["loss", "Loss", section("loss", "Loss", null, lossChart())],
    ["optimisation", "Optimisation", section("optimisation", "Optimisation", null, el("div", { class: "pair" }, gradientChart(), learningRateChart()))],
    measured && ["accuracy", "Accuracy", section("accuracy", "Accuracy", null,
      DATA.sweep ? [accuracyTables(), accuracyChart()] : el("div", { class: "pair" }, accuracyTables(), accuracyChart()))],
    ["depth", "Depth", section("depth", "Inside the model", null, depthSection())],
    ["throughput", "Throughput", section("throughput", "Throughput", null, throughputChart())],
    ["config", "Configuration", section("config", "Configuration", null, configSection())],
  ].filter(Boolean);
  const nav = el("nav", { "aria-label": "Sections" }, sections.map(([id, title]) => el("a", { href: "#" + id }, title)));
  page.append(...[
    header(), problems(), fromRecord(), el("div", { class: "key-numbers" }, DATA.sweep ? sweepNumbers() : runNumbers(DATA.runs[0])), nav,
    DATA.sweep && GROUPS.length ? el("div", { class: "sticky" }, buildLegend()) : null,
    ...sections.map(([, , node]) => node),
    el("footer", {}, "Written by siamese. This page is one file and asks the network for nothing."),
  ].filter(Boolean));
}

build();
