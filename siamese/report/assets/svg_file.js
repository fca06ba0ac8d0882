// A chart as a file of its own: the SVG on the page with its styles written into it, so that it looks the same anywhere.

const KEPT_STYLES = ["fill", "fill-opacity", "stroke", "stroke-opacity", "stroke-width", "stroke-dasharray", "stroke-linecap",
  "stroke-linejoin", "opacity", "font-family", "font-size", "font-weight", "text-anchor", "shape-rendering", "visibility"];

// "color(srgb 0.1 0.2 0.3)", which a mixed colour comes out as, in the notation that every program reads.
function plainColor(text) {
  const mixed = /^color\(srgb ([\d.e-]+) ([\d.e-]+) ([\d.e-]+)(?: \/ ([\d.e-]+))?\)$/.exec(text);
  if (!mixed) return text;
  const parts = mixed.slice(1, 4).map((part) => Math.round(Math.min(1, Math.max(0, Number(part))) * 255));
  return mixed[4] === undefined ? `rgb(${parts.join(", ")})` : `rgba(${parts.join(", ")}, ${mixed[4]})`;
}

function svgText(node, title) {
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
  const [, , width, height] = node.getAttribute("viewBox").split(" ").map(Number);
  copy.setAttribute("xmlns", SVG_NAMESPACE);
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  copy.removeAttribute("aria-hidden");
  copy.prepend(svg("title", {}, title), svg("rect", { width, height, fill: plainColor(getComputedStyle(node.closest(".card") || document.body).backgroundColor) }));
  return new XMLSerializer().serializeToString(copy);
}

function fileName(title) {
  return (title.toLowerCase().replace(/[^a-z0-9.]+/g, "-").replace(/^-|-$/g, "") || "chart") + ".svg";
}

// A button that hands out what `find()` shows at that moment.
function svgButton(title, find) {
  return el("button", {
    type: "button", class: "quiet-button svg-button", title: "Download this chart as an SVG file", "aria-label": `Download ${title || "chart"} as SVG`,
    onclick: () => {
      const node = find();
      if (!node) return;
      const address = URL.createObjectURL(new Blob([svgText(node, title)], { type: "image/svg+xml" }));
      el("a", { href: address, download: fileName(title) }).click();
      setTimeout(() => URL.revokeObjectURL(address), 10000);
    },
  }, "SVG");
}
