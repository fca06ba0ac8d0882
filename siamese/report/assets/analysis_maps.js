// Matrices over depth as colours, one panel for each analysis: a cell's value under the pointer or the arrow keys. All
// panels of a map share one range, or, where rows have more and more cells, each row has its own; the ramp (colors.js)
// means the same in light and dark.

const MAP_AXES = { place: "site (depth)", block: "block", head: "head", stream: "stream", first: "first block left out", last: "last block left out" };

// From 0, or below where values are, to the largest.
function rangeOf(values) {
  let [low, high] = [0, 0];
  for (const value of values) {
    if (!isNumber(value)) continue;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return high > low ? [low, high] : [low, low + 1];
}

// The colours of a panel as the address of a picture: thousands of cells would be too many elements. Enlarged here, as
// not every program that reads an SVG keeps the edges of a small one.
function mapImage(panel, ranges, cell) {
  const canvas = el("canvas", { width: panel.columns * cell, height: panel.rows * cell });
  const context = canvas.getContext("2d");
  panel.values.forEach((value, at) => {  // a cell that is none stays clear
    if (!isNumber(value)) return;
    const row = Math.floor(at / panel.columns);
    const [low, high] = ranges[row];
    context.fillStyle = rampColor((value - low) / (high - low));
    context.fillRect((at % panel.columns) * cell, row * cell, cell, cell);
  });
  return canvas.toDataURL("image/png");
}

function mapScale(map, range) {
  return map.by_row ? ["0", "largest of the row"] : range.map((value) => formatNumber(value, 3));
}

function mapLegend([low, high]) {
  return el("div", { class: "heat-scale chart-legend" }, el("span", {}, low),
    el("span", { class: "heat-ramp live", style: `background:linear-gradient(to right, ${RAMP.map((_, at) => rampColor(at / (RAMP.length - 1))).join(",")})` }),
    el("span", {}, high));
}

// As many labels of `count` as have room, the first and evenly on.
function everyLabel(count, cell, room) {
  return Math.max(1, Math.ceil(room / cell));
}

// `names`: {long(axis, at, row) of a cell that is read, short(axis, at) beside an axis}
function drawMap(map, panel, range, names) {
  const rows = Array.from({ length: panel.rows }, (_, at) => at);
  const columns = Array.from({ length: panel.columns }, (_, at) => at);
  const ranges = rows.map((row) => (map.by_row ? rangeOf(panel.values.slice(row * panel.columns, (row + 1) * panel.columns)) : range));
  const cell = Math.min(Math.max(480 / Math.max(panel.columns, panel.rows), 3), 28);
  const labels = rows.map((row) => names.short(map.row, row));
  const left = 14 + Math.max(...labels.map((label) => measureText(label, 11)));
  const [wide, high] = [panel.columns * cell, panel.rows * cell];
  const top = 22;
  const [width, height] = [Math.max(left + wide + 14, 210), top + high + 38];
  const axes = svg("g", { class: "axes" });
  const everyRow = everyLabel(panel.rows, cell, 15);
  labels.forEach((label, row) => row % everyRow || axes.append(
    svg("text", { class: "tick", x: left - 6, y: top + (row + 0.5) * cell + 3.5, "text-anchor": "end" }, label)));
  const feet = columns.map((column) => names.short(map.column, column));
  const everyColumn = everyLabel(panel.columns, cell, Math.max(...feet.map((label) => measureText(label, 11))) + 8);
  feet.forEach((label, column) => column % everyColumn || axes.append(
    svg("text", { class: "tick", x: left + (column + 0.5) * cell, y: top + high + 15, "text-anchor": "middle" }, label)));
  axes.append(svg("text", { class: "axis-label", x: 4, y: 12 }, MAP_AXES[map.row]),
    svg("text", { class: "axis-label", x: Math.max(left + wide, left + measureText(MAP_AXES[map.column], 11)), y: top + high + 31, "text-anchor": "end" }, MAP_AXES[map.column]));
  const picture = svg("image", { x: left, y: top, width: wide, height: high, preserveAspectRatio: "none", style: "image-rendering:pixelated",
    href: mapImage(panel, ranges, Math.max(1, Math.round(Math.min(2 * cell, 2048 / Math.max(panel.rows, panel.columns))))) });
  const cursor = svg("g", { class: "crosshair" });
  const node = svg("svg", { class: "chart-svg", viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true", style: `max-width:${width}px;height:auto` }, picture, axes, cursor);
  return { node, picture,
    mark: (row, column) => cursor.replaceChildren(svg("rect", { class: "heat-cursor", x: left + column * cell, y: top + row * cell, width: cell, height: cell })) };
}

// `head`: {title, lead, of (the map that it is a panel of)}
function mapPanel(map, panel, range, head, names) {
  const said = el("div", { class: "chart-note", role: "status", style: "min-height:1.5em" }, "\u00a0");
  const words = el("div", {}, el("h3", {}, head.title), head.lead ? el("p", { class: "card-lead" }, head.lead) : null);
  if (!panel) return el("div", { class: "card chart is-empty" }, el("div", { class: "card-head" }, words), emptyNote("Not measured for this scheme."));
  const drawn = drawMap(map, panel, range, names);
  const scale = mapScale(map, range);
  const title = head.of ? `${head.of}: ${head.title}` : head.title;
  const plot = el("div", { class: "plot map-plot", tabindex: "0", role: "img", "aria-roledescription": "heat map",
    "aria-label": `${title}: ${map.row} by ${map.column}, ${panel.rows} by ${panel.columns}. Arrow keys read its values.` }, drawn.node);
  const shown = { row: 0, column: 0 };
  const say = (row, column) => {
    shown.row = Math.min(Math.max(row, 0), panel.rows - 1);
    shown.column = Math.min(Math.max(column, 0), panel.columns - 1);
    const value = panel.values[shown.row * panel.columns + shown.column];
    drawn.mark(shown.row, shown.column);
    said.textContent = `${names.long(map.row, shown.row)}, ${names.long(map.column, shown.column, shown.row)}: ${isNumber(value) ? formatNumber(value, 4) : MISSING}`;
  };
  plot.addEventListener("pointermove", (event) => {
    const box = drawn.picture.getBoundingClientRect();
    say(Math.floor(((event.clientY - box.top) / box.height) * panel.rows), Math.floor(((event.clientX - box.left) / box.width) * panel.columns));
  });
  plot.addEventListener("focus", () => say(shown.row, shown.column));
  plot.addEventListener("keydown", (event) => {
    const by = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!by) return;
    event.preventDefault();
    say(shown.row + by[0], shown.column + by[1]);
  });
  return el("div", { class: "card chart" },
    el("div", { class: "card-head" }, words,
      el("div", { class: "tools" }, svgButton(title, () => plot.querySelector("svg"), () => ({ title, lead: map.lead, scale })))),
    head.of ? null : mapLegend(scale), plot, said);
}

function depthMap(map, titles, names) {
  const range = rangeOf(map.panels.flatMap((panel) => (panel ? panel.values : [])));
  if (map.panels.length === 1) return mapPanel(map, map.panels[0], range, { title: map.title, lead: map.lead }, names[0]);
  return el("div", { class: "card" },
    el("div", { class: "card-head" }, el("div", {}, el("h3", {}, map.title), el("p", { class: "card-lead" }, map.lead))),
    mapLegend(mapScale(map, range)),
    el("div", { class: "panel-grid pairs" },
      map.panels.map((panel, at) => mapPanel(map, panel, range, { title: titles[at], of: map.title }, names[at]))));
}
