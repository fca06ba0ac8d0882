// A chart as a file of its own: the SVG on the page with its styles written into it, so that it looks the same anywhere.
// What stands around it on the page (title, words, keys of lines, scale of colours) is drawn above it.

const KEPT_STYLES = ["fill", "fill-opacity", "stroke", "stroke-opacity", "stroke-width", "stroke-dasharray", "stroke-linecap",
  "stroke-linejoin", "opacity", "font-family", "font-size", "font-weight", "text-anchor", "shape-rendering", "image-rendering", "visibility"];

const MOST_KEYS = 60;

// "color(srgb 0.1 0.2 0.3)", which a mixed colour comes out as, in the notation that every program reads.
function plainColor(text) {
  const mixed = /^color\(srgb ([\d.e-]+) ([\d.e-]+) ([\d.e-]+)(?: \/ ([\d.e-]+))?\)$/.exec(text);
  if (!mixed) return text;
  const parts = mixed.slice(1, 4).map((part) => Math.round(Math.min(1, Math.max(0, Number(part))) * 255));
  return mixed[4] === undefined ? `rgb(${parts.join(", ")})` : `rgba(${parts.join(", ")}, ${mixed[4]})`;
}

// Width of a text in the type of the page.
const measureText = (() => {
  let context = null;
  return (text, size, weight = 400) => {
    context = context || document.createElement("canvas").getContext("2d");
    context.font = `${weight} ${size}px ${getComputedStyle(document.documentElement).getPropertyValue("--sans") || "sans-serif"}`;
    return context.measureText(text).width;
  };
})();

// Words in lines no wider than `width`; a word that is wider has a line of its own.
function brokenLines(text, width, size, weight) {
  const lines = [];
  for (const word of text.split(" ")) {
    const longer = lines.length ? `${lines[lines.length - 1]} ${word}` : word;
    if (lines.length && measureText(longer, size, weight) <= width) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines;
}

// about: {title, lead, keys: [{name, color, dash, point}], scale: [text of its low end, of its high end]}
function pictureHead(width, { title, lead, keys = [], scale }) {
  const node = svg("g", { class: "picture-head" });
  const [left, room] = [8, width - 16];
  let y = 4;
  const write = (text, size, weight, color) => {
    for (const line of brokenLines(text, room, size, weight)) {
      y += size + 4;
      node.append(svg("text", { x: left, y, style: `font-size:${size}px;font-weight:${weight};fill:var(${color})` }, line));
    }
  };
  if (title) write(title, 14, 600, "--text");
  if (lead) write(lead, 11.5, 400, "--muted");
  const word = (text, x) => svg("text", { x, y, style: "font-size:11.5px;fill:var(--muted)" }, text);
  const shown = [...new Map(keys.map((key) => [[key.name, key.color, key.dash].join("\n"), key])).values()];
  if (shown.length > MOST_KEYS) shown.splice(MOST_KEYS, Infinity, { name: `and ${shown.length - MOST_KEYS} more` });
  let x = left;
  shown.forEach((key, at) => {
    const long = 27 + measureText(key.name, 11.5);
    if (at === 0 || x + long > left + room) [x, y] = [left, y + 17];
    if (key.color && key.point) node.append(svg("circle", { cx: x + 11, cy: y - 4, r: 3.5, style: `fill:${key.color}` }));
    else if (key.color) node.append(svg("line", { x1: x, x2: x + 22, y1: y - 4, y2: y - 4, "stroke-dasharray": key.dash || null, style: `stroke:${key.color};stroke-width:2.5px` }));
    node.append(word(key.name, x + 27));
    x += long + 14;
  });
  if (scale) {
    y += 17;
    const from = left + measureText(scale[0], 11.5) + 7;
    const parts = 40;
    node.append(word(scale[0], left), word(scale[1], from + 127),
      ...Array.from({ length: parts }, (_, at) => svg("rect", { x: from + 3 * at, y: y - 9, width: 3.2, height: 10, fill: rampColor(at / (parts - 1)) })));
  }
  return { node, height: y + 8 };
}

function svgText(node, about) {
  const [, , width, below] = node.getAttribute("viewBox").split(" ").map(Number);
  const head = pictureHead(width, about);
  node.append(head.node);  // among the chart's own, so that it has their colours and type
  const copy = node.cloneNode(true);
  const [from, to] = [[node, ...node.querySelectorAll("*")], [copy, ...copy.querySelectorAll("*")]];
  from.forEach((one, at) => {
    if (one.classList.contains("crosshair")) return to[at].remove();
    const style = getComputedStyle(one);
    to[at].removeAttribute("class");
    to[at].removeAttribute("style");
    for (const name of KEPT_STYLES) {
      const value = style.getPropertyValue(name);
      if (value) to[at].setAttribute(name, plainColor(value));
    }
  });
  head.node.remove();
  const top = copy.lastElementChild;
  const chart = svg("g", { transform: `translate(0 ${head.height})` });
  chart.append(...[...copy.childNodes].filter((child) => child !== top));
  const height = head.height + below;
  copy.setAttribute("xmlns", SVG_NAMESPACE);
  copy.setAttribute("viewBox", `0 0 ${width} ${height}`);
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  copy.removeAttribute("aria-hidden");
  copy.replaceChildren(svg("title", {}, about.title || ""),
    svg("rect", { width, height, fill: plainColor(getComputedStyle(node.closest(".card") || document.body).backgroundColor) }), top, chart);
  return new XMLSerializer().serializeToString(copy);
}

function fileName(title) {
  return (title.toLowerCase().replace(/[^a-z0-9.]+/g, "-").replace(/^-|-$/g, "") || "chart") + ".svg";
}

// A button that hands out what `find()` shows at that moment, under what `about()` says of it.
function svgButton(title, find, about) {
  return el("button", {
    type: "button", class: "quiet-button svg-button", title: "Download this chart as an SVG file", "aria-label": `Download ${title || "chart"} as SVG`,
    onclick: () => {
      const node = find();
      if (!node) return;
      const said = about();
      const address = URL.createObjectURL(new Blob([svgText(node, said)], { type: "image/svg+xml" }));
      el("a", { href: address, download: fileName(said.title || "") }).click();
      setTimeout(() => URL.revokeObjectURL(address), 10000);
    },
  }, "SVG");
}
