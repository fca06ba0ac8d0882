// The page: header, key numbers, sections in the order one asks for them.

function keyNumber(label, value, detail) {
  return el("div", { class: "key-number" }, el("div", { class: "label" }, label), el("div", { class: "value" }, value),
    el("div", { class: "detail" }, detail || "\u00a0"));
}

function countStates() {
  const counts = new Map();
  const add = (state) => counts.set(state, (counts.get(state) || 0) + 1);
  DATA.runs.forEach((run) => add(run.state));
  DATA.runs.filter((run) => run.stuck).forEach(() => add("stuck"));
  return [...counts.entries()];
}

// The best setting by each measure that has a good and a bad end.
function bestByMeasures(family) {
  return familyMeasures(family).filter((measure) => measure.best).map((measure) => {
    const judged = family.groups.filter((group) => groupMeasure(group, measure.name).count);
    if (!judged.length) return null;
    const sign = measure.best === "highest" ? 1 : -1;
    const top = judged.reduce((a, b) => (sign * groupMeasure(b, measure.name).mean > sign * groupMeasure(a, measure.name).mean ? b : a));
    return keyNumber(measure.title, meanAndSpread(groupMeasure(top, measure.name), measure.format, top.partial), `${measure.best}: ${settingName(top)}`);
  });
}

function settingName(group) {
  return `${group.variant}, lr ${formatLearningRate(group.lr)}`;
}

function sweepNumbers(family) {
  const best = bestGroup(family);
  const accurate = family.groups.filter((group) => isNumber(group.accuracy.mean));
  const top = accurate.length ? accurate.reduce((a, b) => (b.accuracy.mean > a.accuracy.mean ? b : a)) : null;
  const speeds = family.groups.map((group) => group[family.speed.field]).filter(isNumber);
  const sizes = [...new Set(family.runs.map((run) => run.parameters).filter((count) => count > 0))];
  const count = (state) => family.runs.filter((run) => run.state === state).length;
  const stuck = family.runs.filter((run) => run.stuck).length;
  return [
    keyNumber("Best val loss", best ? meanAndSpread(best.val_loss, formatLoss, best.partial) : MISSING, best ? settingName(best) : "no evaluation yet"),
    top && keyNumber("Best accuracy", meanAndSpread(top.accuracy, (v) => formatPercent(v), top.partial), top.accuracy.mean > 0 ? settingName(top) : "of every setting"),
    ...bestByMeasures(family),
    keyNumber("Finished", `${count("finished")}\u2009/\u2009${family.runs.length}`, plural(family.groups.length, "setting") + ", " + plural(family.variants.length, "variant")),
    keyNumber("Diverged", el("span", { class: count("diverged") ? "lost" : null }, String(count("diverged"))), count("diverged") ? "listed below the loss" : "none"),
    family.groups.some((group) => group.judged) && keyNumber("Stuck", el("span", { class: stuck ? "held" : null }, String(stuck)), "near the best constant prediction"),
    keyNumber("Parameters", sizes.length ? formatShort(Math.max(...sizes)) : MISSING, sizes.length > 1 ? `from ${formatShort(Math.min(...sizes))}` : null),
    keyNumber(family.speed.title, speeds.length ? formatShort(Math.max(...speeds)) : MISSING, speeds.length > 1 ? `slowest setting ${formatShort(Math.min(...speeds))}` : "median"),
  ];
}

function runMeasures(run) {
  const value = (name, format) => (isNumber(run.measures[name]) ? format(run.measures[name]) : null);
  const percent = (name) => value(name, (share) => formatPercent(share));
  const classifier = run.evals.map((row) => row.samples && row.samples.classifier).filter(Boolean).pop();
  return [
    percent("top1") && keyNumber("Top-1", percent("top1"), percent("top5") && `top-5 ${percent("top5")}`),
    value("feature_distance", String) && keyNumber("Feature distance", value("feature_distance", (distance) => formatFixed(distance, 2)), classifier ? `features of ${classifier}` : "lower is better"),
    percent("class_agreement") && keyNumber("Class agreement", percent("class_agreement"), "samples of the class asked for"),
    value("expert_max_load", String) && keyNumber("Max load", value("expert_max_load", (load) => formatFixed(load, 2)), "1 = all experts alike"),
  ];
}

function valLossDetail(family, last) {
  if (!last) return "no evaluation yet";
  const perplexity = `, perplexity ${formatNumber(isNumber(last.loss) ? Math.exp(last.loss) : null, 3)}`;
  return `step ${formatCount(last.step)}` + (family.images ? "" : perplexity) + (family.runs[0].averaged ? ", averaged weights" : "");
}

function skippedText(run) {
  if (!run.skipped) return null;
  return plural(run.skipped, "step") + " skipped" + (run.outliers ? `, ${formatCount(run.outliers)} as outliers` : "");
}

function runNumbers(family, run) {
  const total = run.steps || run.step;
  const seen = family.images ? (isNumber(run.seconds) ? `median; ${formatDuration(run.seconds)} in all` : "median")
    : isNumber(run.tokens) ? `${formatShort(run.tokens)} tokens in ${formatDuration(run.seconds)}` : "median";
  return [
    keyNumber("Step", formatCount(run.step), run.steps ? `of ${formatCount(run.steps)} (${formatPercent(total ? run.step / total : null, 0)})` : null),
    keyNumber("Train loss", formatLoss(run.train_loss), "mean of the last 50 steps"),
    keyNumber("Val loss", formatLoss(run.val_loss), valLossDetail(family, run.evals[run.evals.length - 1])),
    isNumber(run.baseline) && keyNumber("Baseline", formatLoss(run.baseline), "best constant prediction"),
    isNumber(run.accuracy) && keyNumber("Accuracy", formatPercent(run.accuracy), "exact answers"),
    ...runMeasures(run),
    keyNumber(family.speed.title, formatShort(run[family.speed.field]), seen),
    keyNumber("Parameters", run.parameters ? formatShort(run.parameters) : MISSING, skippedText(run)),
  ];
}

function header() {
  const run = DATA.runs[0];
  const families = FAMILIES.filter((family) => family.runs.some((one) => one.state !== "not started"));
  const schemes = [...new Set(DATA.runs.map((one) => one.scheme).filter(Boolean))];
  const facts = DATA.sweep ? [] : [run.label !== run.scheme && run.label, isNumber(run.lr) && `lr ${formatLearningRate(run.lr)}`, isNumber(run.seed) && `seed ${run.seed}`].filter(Boolean);
  const states = DATA.sweep ? countStates().map(([state, count]) => el("span", { class: "pill " + state.replace(" ", "-") }, `${count} ${state}`)) : [statusPill(run.state), run.stuck && statusPill("stuck")];
  return el("header", { class: "page-head" },
    el("div", { class: "kicker" }, "siamese \u00b7 " + (DATA.comparison ? "comparison" : DATA.sweep ? "sweep report" : "run report")),
    el("div", { class: "title-row" }, el("h1", {}, DATA.name), el("div", { class: "pills" }, states)),
    el("div", { class: "facts" },
      families.some((family) => family.name !== "lm") ? el("span", {}, families.length > 1 ? "Families " : "Family ", families.map((family) => el("code", {}, family.name))) : null,
      schemes.length ? el("span", {}, schemes.length > 1 ? "Schemes " : "Scheme ", schemes.map((scheme) => el("code", {}, scheme))) : null,
      facts.map((fact) => el("span", {}, fact))),
    !DATA.sweep && run.message ? el("p", { class: "callout " + run.state }, run.message) : null);
}

function problems() {
  const notes = DATA.runs.filter((run) => !run.recorded).flatMap((run) => run.notes);
  if (!notes.length) return null;
  return el("div", { class: "callout diverged", role: "alert" }, el("strong", {}, "Some of the files could not be read or shown"),
    el("ul", {}, notes.map((note) => el("li", {}, note))));
}

// Not a fault, but whoever reads the page should know.
function fromRecord() {
  const recorded = DATA.runs.filter((run) => run.recorded);
  if (!recorded.length) return null;
  return el("p", { class: "callout", role: "note" }, `${recorded.length} of ${plural(DATA.runs.length, "run")} from the record; no run folder here. `
    + "Their curves are thinned, and what is recorded by depth and of the speed during the run is not in them.");
}

// [id, title, node] of everything that is about one family. Ids stay as they are while there is only one.
function familySections(family) {
  const prefix = FAMILIES.length > 1 ? `family-${FAMILIES.indexOf(family)}-` : "";
  const answered = family.runs.some((run) => isNumber(run.accuracy));
  const made = (id, name, title, ...content) => [prefix + id, name, section(prefix + id, title, null, ...content)];
  const results = DATA.sweep && made("results", "Results", "Results", family.rates.length > 1 ? rateChart(family) : null, tunedTable(family), resultsTable(family), pairsTable(family), runsTable(family));
  // Among families that have begun, one that has not would only be a row of empty charts.
  if (FAMILIES.length > 1 && family.runs.every((run) => run.state === "not started")) return [results];
  return [
    results,
    made("loss", "Loss", "Loss", lossChart(family)),
    ...[...visionParts(family), ...diffusionParts(family), ...expertParts(family), ...heldOutParts(family), ...promptParts(family)].map(([id, title, content]) => made(id, title, title, content)),
    made("optimisation", "Optimisation", "Optimisation", el("div", { class: "pair" }, gradientChart(family), learningRateChart(family))),
    answered && made("accuracy", "Accuracy", "Accuracy",
      DATA.sweep ? [accuracyTables(family), accuracyChart(family)] : el("div", { class: "pair" }, accuracyTables(family), accuracyChart(family))),
    made("depth", "Depth", "Inside the model", depthSection(family)),
    made("throughput", "Throughput", "Throughput", throughputChart(family)),
  ].filter(Boolean);
}

// What the seeds allow to say, before any number (report/headline.h).
function familyHeadline(family) {
  const comparison = familyComparison(family);
  return comparison && comparison.headline ? el("p", { class: "headline" }, comparison.headline) : null;
}

function familyNumbers(family) {
  return el("div", { class: "key-numbers" }, DATA.sweep ? sweepNumbers(family) : runNumbers(family, DATA.runs[0]));
}

function familyLegend(family) {
  return DATA.sweep && family.groups.length ? el("div", { class: "sticky" }, buildLegend(family)) : null;
}

function links(sections) {
  return sections.map(([id, title]) => el("a", { href: "#" + id }, title));
}

function build() {
  const page = document.getElementById("report");
  const several = FAMILIES.length > 1;
  const families = FAMILIES.map((family, at) => ({ family, id: `family-${at}`, sections: familySections(family) }));
  const config = ["config", "Provenance", section("config", "Provenance and configuration", null, configSection())];
  const nodes = (sections) => sections.map(([, , node]) => node);
  const content = several ? [
    el("nav", { class: "family-nav", "aria-label": "Sections" },
      families.map(({ family, id, sections }) => el("div", {}, el("a", { class: "family-link", href: "#" + id }, family.title), links(sections))), el("div", {}, links([config]))),
    families.map(({ family, id, sections }) => el("div", { class: "family", id },
      el("div", { class: "family-head" }, el("h2", {}, family.title), el("code", {}, family.name)), familyHeadline(family), familyNumbers(family), familyLegend(family), nodes(sections))),
  ] : [
    familyHeadline(FAMILIES[0]), familyNumbers(FAMILIES[0]), el("nav", { "aria-label": "Sections" }, links([...families[0].sections, config])), familyLegend(FAMILIES[0]), nodes(families[0].sections),
  ];
  page.append(...[
    header(), problems(), fromRecord(), ...content.flat(Infinity), config[2],
    el("footer", {}, "Written by siamese. This page is one file and asks the network for nothing."),
  ].filter(Boolean));
}

build();
