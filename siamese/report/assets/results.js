// Tables: results per variant and learning rate, all runs; and final loss against learning rate.

function meanAndSpread(value, format, partial) {
  if (!value.count) return MISSING;
  return [format(value.mean), value.count > 1 ? el("span", { class: "spread" }, ` \u00b1 ${format(value.spread).replace("%", "")}`) : null,
    partial ? el("span", { class: "spread", title: "no run has finished: latest so far" }, "*") : null];
}

function bestGroup(family) {
  return family.groups.find((group) => group.lowest) || null;
}

function stuckCell(group) {
  if (!group.judged) return MISSING;
  return group.stuck ? el("span", { class: "held" }, String(group.stuck)) : "0";
}

// A mean that leaves runs out says so.
function lossCell(group) {
  const cell = meanAndSpread(group.val_loss, (v) => formatLoss(v), group.partial);
  const fewer = !group.partial && group.diverged > 0 && group.val_loss.count > 0;
  return [cell, fewer ? el("span", { class: "spread" }, ` (${group.val_loss.count} of ${group.runs.length})`) : null];
}

function speedColumn(family) {
  return { title: family.speed.title, numeric: true, value: (row) => row[family.speed.field], cell: (row) => formatCount(row[family.speed.field]) };
}

function resultsTable(family) {
  const best = bestGroup(family);
  const anyAccuracy = family.groups.some((group) => group.accuracy.count);
  const measures = familyMeasures(family).filter((measure) => !measure.part);
  const columns = [
    { title: "Variant", value: (g) => g.variant, cell: (g) => [el("span", { class: "dot", style: `background:${g.color}` }), breakable(g.variant), g.other_build ? el("span", { title: DATA.builds_note }, " ^") : null] },
    { title: "Val loss", numeric: true, value: (g) => g.val_loss.mean, cell: lossCell },
    { title: "Learning rate", numeric: true, value: (g) => g.lr, cell: (g) => formatLearningRate(g.lr) },
    { title: "Train loss", numeric: true, value: (g) => g.train_loss.mean, cell: (g) => meanAndSpread(g.train_loss, formatLoss, g.partial) },
    anyAccuracy && { title: "Accuracy", numeric: true, value: (g) => g.accuracy.mean, cell: (g) => meanAndSpread(g.accuracy, (v) => formatPercent(v), g.partial) },
    ...measures.map(({ name, title, format }) => ({
      title, numeric: true, value: (g) => groupMeasure(g, name).mean, cell: (g) => meanAndSpread(groupMeasure(g, name), format, g.partial) })),
    { title: "Finished", numeric: true, value: (g) => g.finished, cell: (g) => `${g.finished}\u2009/\u2009${g.runs.length}` },
    { title: "Diverged", numeric: true, value: (g) => g.diverged, cell: (g) => (g.diverged ? el("span", { class: "lost" }, String(g.diverged)) : "0") },
    { title: "Stuck", numeric: true, value: (g) => (g.judged ? g.stuck : null), cell: stuckCell },
    speedColumn(family),
  ].filter(Boolean);
  const note = [`Mean \u00b1 sample standard deviation over the seeds that finished. Diverged runs (not finite, or trained from scratch and worse at the end than before the first step) have no final loss: they are counted, and a mean without them says over how many it is. Stuck runs are in the means. Train loss: last 50 steps. ${family.speed.title}: median.`];
  const baseline = familyBaseline(family);
  if (isNumber(baseline)) note.push(` Stuck: finished within a tenth of the way from the baseline, ${formatLoss(baseline)}, the loss of the best constant prediction, to the best run.`);
  const unknown = family.groups.reduce((sum, group) => sum + group.finished - group.judged, 0);
  if (unknown) note.push(` Of ${plural(unknown, "finished run")} nobody knows whether they are stuck: no baseline was recorded.`);
  if (measures.some(({ name }) => name === "feature_distance")) note.push(` ${FEATURE_DISTANCE_WORDS}`);
  if (measures.some(({ name }) => name === "expert_max_load")) note.push(` ${MAX_LOAD_WORDS} Mean of the last 50 steps.`);
  if (family.groups.some((group) => group.partial && group.val_loss.count)) note.push(" * no run has finished yet: latest so far.");
  if (averagedWords(family)) note.push(` ${averagedWords(family)}`);
  if (DATA.builds_note) note.push(` ${DATA.builds_note}.`);
  if (DATA.data_note) note.push(` ${DATA.data_note}.`);
  return el("div", { class: "card" }, el("div", { class: "card-head" }, el("div", {}, el("h3", {}, "Final results"))),
    sortableTable(columns, family.groups, null, (group) => group === best), el("div", { class: "chart-note" }, el("p", {}, note)));
}

function runsTable(family) {
  const accuracy = family.name === "lm" || family.runs.some((run) => isNumber(run.accuracy));
  const columns = [
    { title: "Run", value: (r) => r.dir, cell: (r) => el("code", {}, breakable(r.dir)) },
    { title: "Val loss", numeric: true, value: (r) => r.val_loss, cell: (r) => formatLoss(r.val_loss) },
    { title: "Status", value: (r) => r.state, cell: (r) => [statusPill(r.state), r.stuck ? [" ", statusPill("stuck")] : null] },
    { title: "Step", numeric: true, value: (r) => r.step, cell: (r) => formatCount(r.step) + (r.steps ? `\u2009/\u2009${formatCount(r.steps)}` : "") },
    { title: "Train loss", numeric: true, value: (r) => r.train_loss, cell: (r) => formatLoss(r.train_loss) },
    family.runs.some((run) => isNumber(run.progress)) && { title: "Progress", numeric: true, value: (r) => r.progress, cell: (r) => formatPercent(r.progress, 0) },
    accuracy && { title: "Accuracy", numeric: true, value: (r) => r.accuracy, cell: (r) => formatPercent(r.accuracy) },
    ...familyMeasures(family).map(({ name, title, format }) => ({
      title, numeric: true, value: (r) => r.measures[name], cell: (r) => format(r.measures[name]) })),
    { title: "Skipped steps", numeric: true, value: (r) => r.skipped, cell: (r) => formatCount(r.skipped) },
    speedColumn(family),
    { title: "Time", numeric: true, value: (r) => r.seconds, cell: (r) => formatDuration(r.seconds) },
    { title: "Message", value: (r) => r.message, cell: (r) => el("span", { class: "message" }, r.recorded ? [...r.notes, r.message].filter(Boolean).join("; ") : r.message) },
  ].filter(Boolean);
  return el("details", { class: "card fold" }, el("summary", {}, `All ${plural(family.runs.length, "run")}`), sortableTable(columns, family.runs));
}

// The baseline of a family's runs: the same for all that were asked the same.
function familyBaseline(family) {
  const known = family.runs.map((run) => run.baseline).filter(isNumber);
  return known.length ? Math.max(...known) : null;
}

// The picture of a sweep: how each variant takes a learning rate. Worth drawing from two rates on. Losses that are far
// above the others (`outlier`) are arrows at the top: they would press the rest into one line.
function rateChart(family) {
  const chart = createChart({
    title: "Final validation loss by learning rate",
    lead: "Mean over seeds, bars from lowest to highest. A cross at the top: every seed diverged; an arrow: a loss far above the chart",
    xLabel: "learning rate", height: 320, yLog: true, xLog: family.rates.every((rate) => rate > 0), logToggles: "y", xTicks: family.rates.filter(isNumber), wholeX: false,
    formatX: formatLearningRate, formatTitle: (rate) => "Learning rate " + formatLearningRate(rate), formatValue: (value) => formatFixed(value, 4),
    inset: 24, empty: "No evaluation has been recorded yet.",
  });
  const series = family.variants.map((variant) => {
    const groups = family.groups.filter((group) => group.variant === variant && isNumber(group.val_loss.mean) && isNumber(group.lr) && !group.outlier);
    return {
      name: variant, color: variantColor(family, variant), x: groups.map((group) => group.lr), y: groups.map((group) => group.val_loss.mean),
      low: groups.map((group) => group.val_loss.low), high: groups.map((group) => group.val_loss.high), points: true, errorBars: true, radius: 4.5, width: 2,
    };
  }).filter((one) => one.x.length);
  const rates = family.rates.filter(isNumber);
  const baseline = familyBaseline(family);
  if (isNumber(baseline) && series.length) {
    series.push({ name: "baseline: best constant prediction", color: "var(--muted)", dash: "4 4", width: 1.25, x: [rates[0], rates[rates.length - 1]], y: [baseline, baseline] });
  }
  const marks = family.groups.filter((group) => isNumber(group.lr)).flatMap((group) => {
    if (group.diverged === group.runs.length) return [{ x: group.lr, y: NaN, color: group.color, label: `${group.name}: all diverged` }];
    if (!group.outlier) return [];
    return [{ x: group.lr, y: NaN, color: group.color, above: true, label: `${group.name}: ${formatLoss(group.val_loss.mean)}, above the chart` }];
  });
  const legend = family.variants.map((variant) => el("span", { class: "key" }, swatch(variantColor(family, variant)), variant));
  if (isNumber(baseline)) legend.push(el("span", { class: "key" }, swatch("var(--muted)", "4 4"), "baseline"));
  chart.update({ series, legend, marks });
  return chart.node;
}
