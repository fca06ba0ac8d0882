// Which groups are shown: one choice for the whole page, made in the legend, heard by every chart.

const visible = new Set();
const listeners = [];

function onVisibleChange(listener) {
  listeners.push(listener);
}

function visibleGroups(family) {
  return family.groups.filter((group) => visible.has(group.index));
}

function announce() {
  listeners.forEach((listener) => listener());
}

// The learning rate at which each variant did best; the first one while there is no result.
function bestPerVariant(family) {
  return family.variants.map((variant) => {
    const own = family.groups.filter((group) => group.variant === variant);
    return own.find((group) => group.best_rate) || own[0];
  });
}

function setVisible(family, groups) {
  family.groups.forEach((group) => visible.delete(group.index));
  groups.forEach((group) => visible.add(group.index));
  announce();
}

const CROWDED = 8;
FAMILIES.forEach((family) => (family.groups.length > CROWDED ? bestPerVariant(family) : family.groups).forEach((group) => visible.add(group.index)));

function highlight(indices) {
  document.querySelectorAll("[data-group]").forEach((node) =>
    node.classList.toggle("dimmed", indices !== null && !indices.includes(Number(node.dataset.group))));
}

// Rows of variants, each with its learning rates; every name switches what it names.
function buildLegend(family) {
  const buttons = [];
  const toggle = (groups) => {
    const allShown = groups.every((group) => visible.has(group.index));
    groups.forEach((group) => (allShown ? visible.delete(group.index) : visible.add(group.index)));
    highlight(null);
    announce();
  };
  const button = (groups, kind, ...content) => {
    const indices = groups.map((group) => group.index);
    const node = el("button", {
      type: "button", class: kind,
      onclick: () => toggle(groups),
      onmouseenter: () => indices.some((at) => visible.has(at)) && highlight(indices),
      onmouseleave: () => highlight(null),
    }, content);
    buttons.push([node, groups]);
    return node;
  };
  const rows = family.variants.map((variant) => {
    const groups = family.groups.filter((group) => group.variant === variant);
    const rates = family.rates.length > 1 ? groups.map((group) =>
      button([group], "chip rate", el("span", { class: "swatch-slot" }), formatLearningRate(group.lr),
        group.diverged ? el("span", { class: "lost", title: plural(group.diverged, "run") + " diverged" }, "\u2715") : null,
        group.stuck ? el("span", { class: "held", title: plural(group.stuck, "run") + " stuck" }, "\u2013") : null)) : [];
    return el("div", { class: "legend-row" },
      button(groups, "chip variant", el("span", { class: "dot", style: `background:${variantColor(family, variant)}` }), variant), rates);
  });
  const refresh = () => buttons.forEach(([node, groups]) => {
    node.setAttribute("aria-pressed", String(groups.some((group) => visible.has(group.index))));
    node.querySelector(".swatch-slot")?.replaceChildren(swatch(groups[0].color, groups[0].dash));
  });
  onVisibleChange(refresh);
  refresh();
  const quick = (text, groups) => el("button", { type: "button", class: "quiet-button", onclick: () => setVisible(family, groups()) }, text);
  return el("div", { class: "legend" },
    el("div", { class: "legend-head" },
      el("span", { class: "legend-title" }, family.rates.length > 1 ? "Variant and learning rate" : "Variant"),
      quick("All", () => family.groups),
      family.rates.length > 1 ? quick("Best rate of each", () => bestPerVariant(family)) : null,
      quick("None", () => [])),
    el("div", { class: "legend-rows" }, rows));
}
