// Matrices over depth as colours, one panel for each analysis: a cell's value under the pointer or the arrow keys. All
// panels of a map share one range; the colours (viridis) mean the same in light and dark.

const RAMP = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];

function rampColor(share) {
  const at = Math.min(Math.max(share, 0), 1) * (RAMP.length - 1);
  const below = Math.min(Math.floor(at), RAMP.length - 2);
  return RAMP[below].map((part, i) => Math.round(part + (RAMP[below + 1][i] - part) * (at - below)));
}

// From 0, or below where values are, to 1, or to the largest.
function mapRange(panels) {
  const values = panels.flatMap((panel) => (panel ? panel.values.filter(isNumber) : []));
  let low = 0;
  let high = 1;
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return [low, high];
}

function mapCanvas(panel, [low, high]) {
  const canvas = el("canvas", { width: panel.columns, height: panel.rows, tabindex: "0", role: "img",
    style: "display:block;width:100%;image-rendering:pixelated;cursor:crosshair" });
  // Cells are square, unless a long side would leave no room for the other.
  canvas.style.aspectRatio = String(Math.min(Math.max(panel.columns / panel.rows, 0.75), 4));
  const context = canvas.getContext("2d");
  const pixels = context.createImageData(panel.columns, panel.rows);
  panel.values.forEach((value, at) => {
    const color = isNumber(value) ? [...rampColor((value - low) / (high - low)), 255] : [0, 0, 0, 0];
    pixels.data.set(color, 4 * at);
  });
  context.putImageData(pixels, 0, 0);
  return canvas;
}

function mapLegend([low, high]) {
  const stops = RAMP.map((color, at) => `rgb(${color.join(",")}) ${(100 * at) / (RAMP.length - 1)}%`).join(",");
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
    el("div", { style: "max-width:560px" }, canvas), said);
}

function depthMap(map, titles, names) {
  const range = mapRange(map.panels);
  return el("div", { class: "card" },
    el("div", { class: "card-head" }, el("div", {}, el("h3", {}, map.title), el("p", { class: "card-lead" }, map.lead))),
    mapLegend(range),
    el("div", { class: map.panels.length > 1 ? "panel-grid pairs" : "panel-grid single" },
      map.panels.map((panel, at) => mapPanel(map, panel, range, titles[at], names[at]))));
}
