// Making elements: el("div", {class: "x", onclick: f}, child, "text", ...) and the same for SVG.
// Text always goes in as a text node: nothing that a run wrote is ever parsed as HTML.

const SVG_NAMESPACE = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "style") node.style.cssText = value;
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return node;
}

function el(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

function svg(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG_NAMESPACE, tag), attributes, children);
}

let lastId = 0;
function uniqueId(prefix) {
  return prefix + "-" + ++lastId;
}

// A name that may be broken where its parts meet, before it is broken inside a word.
function breakable(name) {
  return name.split(/(?<=[/_,=(+-])/).flatMap((part, at) => (at ? [el("wbr"), part] : [part]));
}

// One of several: options are [value, label] pairs.
function segmented(label, options, chosen, choose) {
  const buttons = options.map(([value, text]) =>
    el("button", {
      type: "button",
      "aria-pressed": String(value === chosen),
      onclick: () => {
        buttons.forEach((button, at) => button.setAttribute("aria-pressed", String(options[at][0] === value)));
        choose(value);
      },
    }, text));
  return el("div", { class: "segmented", role: "group", "aria-label": label }, buttons);
}

// A slider over a short list of values; `text(value)` names the chosen one.
function stepSlider(label, values, chosenIndex, text, choose) {
  const output = el("output", {}, text(values[chosenIndex]));
  const input = el("input", {
    type: "range", min: 0, max: Math.max(0, values.length - 1), step: 1, "aria-label": label,
    oninput: () => {
      output.textContent = text(values[Number(input.value)]);
      choose(Number(input.value));
    },
  });
  input.value = String(chosenIndex);
  return el("label", { class: "slider" }, el("span", {}, label), input, output);
}

// The key of a chart line: a short piece of the line itself.
function swatch(color, dash, point, { width, opacity } = {}) {
  return svg("svg", { class: "swatch", viewBox: "0 0 22 10", width: 22, height: 10, "aria-hidden": "true" },
    point ? svg("circle", { cx: 11, cy: 5, r: 3.5, style: `fill:${color}` })
      : svg("line", { x1: 1, x2: 21, y1: 5, y2: 5, "stroke-dasharray": dash || null,
        style: `stroke:${color}` + (width ? `;stroke-width:${width}px;opacity:${opacity || 1}` : "") }));
}

function section(id, title, lead, ...children) {
  return el("section", { id, class: "section" },
    el("div", { class: "section-head" }, el("h2", {}, title), lead ? el("p", { class: "lead" }, lead) : null), children);
}

function emptyNote(text) {
  return el("p", { class: "empty" }, text);
}

// Narrow screens scroll a wide table instead of breaking the page.
function scrollable(node, name = "Table") {
  return el("div", { class: "scroll-x", tabindex: "0", role: "region", "aria-label": name }, node);
}
