// Tables: results per variant and learning rate, all runs; and final loss against learning rate.

// columns: [{title, value(row) for sorting, cell(row), numeric}]
function sortableTable(columns, rows, caption, mark) {
  const body = el("tbody");
  let order = { at: -1, down: false };
  const heads = columns.map((column, at) => {
    const head = el("th", { scope: "col", class: column.numeric ? "num" : null, "aria-sort": "none" },
      el("button", {
        type: "button",
        onclick: () => {
          order = { at, down: order.at === at ? !order.down : false };
          heads.forEach((other, place) =>
            other.setAttribute("aria-sort", place !== at ? "none" : order.down ? "descending" : "ascending"));
          render();
        },
      }, column.title));
    return head;
  });
  function render() {
    const sorted = [...rows];
    if (order.at >= 0) {
      const value = columns[order.at].value;
      sorted.sort((a, b) => {
        const [left, right] = [value(a), value(b)];
        const [noLeft, noRight] = [left === null || left === undefined, right === null || right === undefined];
        if (noLeft || noRight) return Number(noLeft) - Number(noRight);
        const difference = typeof left === "string" ? left.localeCompare(right) : left - right;
        return order.down ? -difference : difference;
      });
    }
    body.replaceChildren(...sorted.map((row) => el("tr", { class: mark && mark(row) ? "best" : null },
      columns.map((column) => el("td", { class: column.numeric ? "num" : null }, column.cell(row))))));
  }
  render();
  return scrollable(el("table", { class: "data" }, caption ? el("caption", {}, caption) : null, el("thead", {}, el("tr", {}, heads)), body));
}

function meanAndSpread(value, format, partial) {
  if (!value.count) return MISSING;
  return [format(value.mean), value.count > 1 ? el("span", { class: "spread" }, ` \u00b1 ${format(value.spread).replace("%", "")}`) : null,
    partial ? el("span", { class: "spread", title: "no run has finished: latest so far" }, "*") : null];
}

function statusPill(state) {
  return el("span", { class: "pill " + state.replace(" ", "-") }, state);
}

function bestGroup(family) {
  const judged = family.groups.filter((group) => isNumber(group.val_loss.mean));
  const complete = judged.filter((group) => !group.partial);
  const pool = complete.length ? complete : judged;
  return pool.length ? pool.reduce((a, b) => (b.val_loss.mean < a.val_loss.mean ? b : a)) : null;
}

function speedColumn(family) {
  return { title: family.speed.title, numeric: true, value: (row) => row[family.speed.field], cell: (row) => formatCount(row[family.speed.field]) };
}

function resultsTable(family) {
  const best = bestGroup(family);
  const anyAccuracy = family.groups.some((group) => group.accuracy.count);
  const measures = familyMeasures(family).filter((measure) => !measure.part);
  const columns = [
    { title: "Variant", value: (g) => g.variant, cell: (g) => [el("span", { class: "dot", style: `background:${g.color}` }), g.variant, g.other_build ? el("span", { title: DATA.builds_note }, " ^") : null] },
    { title: "Learning rate", numeric: true, value: (g) => g.lr, cell: (g) => formatLearningRate(g.lr) },
    { title: "Val loss", numeric: true, value: (g) => g.val_loss.mean, cell: (g) => meanAndSpread(g.val_loss, (v) => formatFixed(v, 4), g.partial) },
    { title: "Train loss", numeric: true, value: (g) => g.train_loss.mean, cell: (g) => meanAndSpread(g.train_loss, (v) => formatFixed(v, 4), g.partial) },
    anyAccuracy && { title: "Accuracy", numeric: true, value: (g) => g.accuracy.mean, cell: (g) => meanAndSpread(g.accuracy, (v) => formatPercent(v), g.partial) },
    ...measures.map(({ name, title, format }) => ({
      title, numeric: true, value: (g) => groupMeasure(g, name).mean, cell: (g) => meanAndSpread(groupMeasure(g, name), format, g.partial) })),
    { title: "Finished", numeric: true, value: (g) => g.finished, cell: (g) => `${g.finished}\u2009/\u2009${g.runs.length}` },
    { title: "Diverged", numeric: true, value: (g) => g.diverged, cell: (g) => (g.diverged ? el("span", { class: "lost" }, String(g.diverged)) : "0") },
    speedColumn(family),
  ].filter(Boolean);
  const note = [`Mean \u00b1 sample standard deviation over the seeds that finished; diverged runs are counted, not averaged. Train loss: last 50 steps. ${family.speed.title}: median.`];
  if (measures.some(({ name }) => name === "feature_distance")) note.push(` ${FEATURE_DISTANCE_WORDS}`);
  if (measures.some(({ name }) => name === "expert_max_load")) note.push(` ${MAX_LOAD_WORDS} Mean of the last 50 steps.`);
  if (family.groups.some((group) => group.partial && group.val_loss.count)) note.push(" * no run has finished yet: latest so far.");
  if (averagedWords(family)) note.push(` ${averagedWords(family)}`);
  const stuck = family.groups.reduce((sum, group) => sum + group.stuck, 0);
  if (stuck) {
    note.push(` ${plural(stuck, "diverged run")} stuck rather than not finite: the loss at the end is above half of the first, while the same variant at another learning rate ends at or below half.`);
  }
  if (DATA.builds_note) note.push(` ${DATA.builds_note}.`);
  return el("div", { class: "card" }, el("div", { class: "card-head" }, el("div", {}, el("h3", {}, "Final results"))),
    sortableTable(columns, family.groups, null, (group) => group === best), el("div", { class: "chart-note" }, el("p", {}, note)));
}

function runsTable(family) {
  const accuracy = family.name === "lm" || family.runs.some((run) => isNumber(run.accuracy));
  const columns = [
    { title: "Run", value: (r) => r.dir, cell: (r) => el("code", {}, r.dir) },
    { title: "Status", value: (r) => r.state, cell: (r) => statusPill(r.state) },
    { title: "Step", numeric: true, value: (r) => r.step, cell: (r) => formatCount(r.step) + (r.steps ? `\u2009/\u2009${formatCount(r.steps)}` : "") },
    { title: "Val loss", numeric: true, value: (r) => r.val_loss, cell: (r) => formatFixed(r.val_loss, 4) },
    { title: "Train loss", numeric: true, value: (r) => r.train_loss, cell: (r) => formatFixed(r.train_loss, 4) },
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

// The picture of a sweep: how each variant takes a learning rate. Worth drawing from two rates on.
function rateChart(family) {
  const chart = createChart({
    title: "Final validation loss by learning rate", lead: "Mean over seeds, bars from lowest to highest; a cross at the top: every seed diverged",
    xLabel: "learning rate", height: 320, xLog: family.rates.every((rate) => rate > 0), logToggles: "y", xTicks: family.rates.filter(isNumber), wholeX: false,
    formatX: formatLearningRate, formatTitle: (rate) => "Learning rate " + formatLearningRate(rate), formatValue: (value) => formatFixed(value, 4),
    inset: 24, empty: "No evaluation has been recorded yet.",
  });
  const series = family.variants.map((variant) => {
    const groups = family.groups.filter((group) => group.variant === variant && isNumber(group.val_loss.mean) && isNumber(group.lr));
    const values = groups.map((group) => group.members.filter((run) => run.state === (group.partial ? run.state : "finished"))
      .map((run) => run.val_loss).filter(isNumber));
    return {
      name: variant, color: variantColor(family, variant), x: groups.map((group) => group.lr), y: groups.map((group) => group.val_loss.mean),
      low: values.map((list) => Math.min(...list)), high: values.map((list) => Math.max(...list)), points: true, errorBars: true, radius: 4.5, width: 2,
    };
  }).filter((one) => one.x.length);
  const lost = family.groups.filter((group) => group.diverged === group.runs.length && isNumber(group.lr));
  const legend = family.variants.map((variant) => el("span", { class: "key" }, swatch(variantColor(family, variant)), variant));
  chart.update({
    series, legend,
    marks: lost.map((group) => ({ x: group.lr, y: NaN, color: group.color, label: `${group.name}: all diverged` })),
  });
  return chart.node;
}
