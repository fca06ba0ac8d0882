// Image classifiers: top-1 and top-5 beside the held-out loss, and which class is taken for which.

const CROWDED_CLASSES = 24;  // past it cells are too small for a number, and
const PACKED_CLASSES = 64;   // past it names are too many to read: both are in the titles of the cells

// Rows are what an image shows, columns what the model says; colour is the share of the row.
function confusionTable({ classes, counts }) {
  const small = classes.length > CROWDED_CLASSES;
  const totals = counts.map((row) => row.reduce((sum, value) => sum + value, 0));
  const cell = (row, column) => {
    const [count, total] = [counts[row][column], totals[row]];
    const share = total ? count / total : 0;
    return el("td", {
      class: "heat" + (row === column ? " hit" : "") + (share > 0.72 ? " strong" : "") + (count ? "" : " zero"), style: `--share:${(share * 100).toFixed(1)}%`,
      title: `${classes[row]} predicted as ${classes[column]}: ${formatCount(count)} of ${formatCount(total)} (${formatPercent(share)})`,
    }, small ? "" : formatCount(count));
  };
  const head = (name) => el("th", { scope: "col", title: name }, el("span", {}, name));
  const packed = classes.length > PACKED_CLASSES;
  const size = ["heat-table confusion", small && "small", packed && "packed", classes.length > 12 && !packed && "upright"].filter(Boolean).join(" ");
  const width = (cell) => (packed ? 24 : 200) + classes.length * cell;
  return scrollable(el("table", { class: size, style: `min-width:${width(packed ? 4 : small ? 10 : 52)}px;max-width:${width(packed ? 6 : small ? 16 : 76)}px` },
    el("thead", {}, el("tr", {}, el("th", { scope: "col", class: "corner" }, "true \u2193  predicted \u2192"), classes.map(head), el("th", { scope: "col", class: "recall" }, el("span", {}, "right")))),
    el("tbody", {}, classes.map((name, row) => el("tr", {}, el("th", { scope: "row", title: name }, name),
      classes.map((_, column) => cell(row, column)), el("td", { class: "recall" }, formatPercent(totals[row] ? counts[row][row] / totals[row] : null, 0)))))));
}

function confusionCard(family) {
  const runs = family.runs.filter((run) => run.confusion);
  if (!runs.length) return null;
  return pickerCard("Confusion matrix", "Held-out images by true class (rows) and predicted class (columns); colour: share of the row", runs, (run) => [run.confusion.step],
    (run) => [confusionTable(run.confusion), el("div", { class: "chart-note" }, el("p", {}, `Evaluation at step ${formatCount(run.confusion.step)}. `,
      run.confusion.classes.length > PACKED_CLASSES ? "Diagonal: right answers. Rest the pointer on a cell for its classes and count." : "Outlined: right answers; last column: their share of the row."))]);
}

function visionParts(family) {
  if (!family.runs.some((run) => run.confusion || run.evals.some((row) => isNumber(row.top1)))) return [];
  return [["classification", "Accuracy", [
    el("div", { class: "pair" },
      evalChart(family, [["top1", "Top-1"], ["top5", "Top-5"]], {
        title: "Accuracy over training", lead: "Held-out images whose class is the first guess (top-1) or among the first five (top-5)", empty: "No accuracy has been measured yet.", ...SHARE_AXIS }),
      evalChart(family, [["loss", "held-out loss"]], {
        title: "Held-out loss", lead: "Of the same evaluations", logToggles: "y", yLog: true, empty: "No evaluation has been recorded yet." })),
    confusionCard(family)]]];
}
