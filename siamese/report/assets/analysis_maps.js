// Matrices over depth as colours, one panel for each analysis: a cell's value under the pointer or the arrow keys. All
// panels of a map share one range; the ramp (colors.js) means the same in light and dark.

// From 0, or below where values are, to the largest.
function mapRange(panels) {
  const values = panels.flatMap((panel) => (panel ? panel.values.filter(isNumber) : []));
  let low = 0;
  let high = 0;
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return high > low ? [low, high] : [low, low + 1];
}

function mapCanvas(panel, [low, high]) {
  const canvas = el("canvas", { width: panel.columns, height: panel.rows, tabindex: "0", role: "img",
    style: "display:block;max-width:100%;image-rendering:pixelated;cursor:crosshair" });
  const cell = Math.min(Math.max(520 / Math.max(panel.columns, panel.rows), 3), 28);  // pixels a side
  canvas.style.width = `${Math.round(panel.columns * cell)}px`;
  canvas.style.height = `${Math.round(panel.rows * cell)}px`;
  const context = canvas.getContext("2d");
  panel.values.forEach((value, at) => {  // a cell that is none stays clear
    if (!isNumber(value)) return;
    context.fillStyle = rampColor((value - low) / (high - low));
    context.fillRect(at % panel.columns, Math.floor(at / panel.columns), 1, 1);
  });
  return canvas;
}

function mapLegend([low, high]) {
  const stops = RAMP.map((_, at) => rampColor(at / (RAMP.length - 1))).join(",");
  return el("div", { class: "chart-legend" }, el("span", { class: "key" }, formatNumber(low, 3),
    el("span", { style: `display:inline-block;width:120px;height:10px;margin:0 6px;background:linear-gradient(to right,${stops})` }),
    formatNumber(high, 3)));
}

// `name(axis, at)` says what a row or column is.
function mapPanel(map, panel, range, title, name) {
  const said = el("div", { class: "chart-note", role: "status", style: "min-height:1.5em" }, "\u00a0");
  if (!panel) return el("div", { class: "card chart" }, el("h3", {}, title), emptyNote("Not measured for this scheme."));
  const canvas = mapCanvas(panel, range);
  canvas.setAttribute("aria-label", `${map.title}: ${map.row} by ${map.column}, ${panel.rows} by ${panel.columns}; arrow keys read its values`);
  const shown = { row: 0, column: 0 };
  const say = (row, column) => {
    shown.row = Math.min(Math.max(row, 0), panel.rows - 1);
    shown.column = Math.min(Math.max(column, 0), panel.columns - 1);
    const value = panel.values[shown.row * panel.columns + shown.column];
    said.textContent = `${name(map.row, shown.row)}, ${name(map.column, shown.column)}: ${isNumber(value) ? formatNumber(value, 4) : MISSING}`;
  };
  canvas.addEventListener("pointermove", (event) => {
    const box = canvas.getBoundingClientRect();
    say(Math.floor(((event.clientY - box.top) / box.height) * panel.rows), Math.floor(((event.clientX - box.left) / box.width) * panel.columns));
  });
  canvas.addEventListener("focus", () => say(shown.row, shown.column));
  canvas.addEventListener("keydown", (event) => {
    const by = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!by) return;
    event.preventDefault();
    say(shown.row + by[0], shown.column + by[1]);
  });
  return el("div", { class: "card chart" }, el("div", { class: "card-head" }, el("h3", {}, title)),
    el("div", { class: "chart-note" }, `${map.row} down, ${map.column} across`),
    canvas, said);
}

function depthMap(map, titles, names) {
  const range = mapRange(map.panels);
  return el("div", { class: "card" },
    el("div", { class: "card-head" }, el("div", {}, el("h3", {}, map.title), el("p", { class: "card-lead" }, map.lead))),
    mapLegend(range),
    el("div", { class: map.panels.length > 1 ? "panel-grid pairs" : "panel-grid single" },
      map.panels.map((panel, at) => mapPanel(map, panel, range, titles[at], names[at]))));
}
