// A heat map over time and depth: a column for each recorded step, a row for each site, the first at the bottom.
//   spec:   {title, lead, height, controls, empty (what stands there without content), keeps (the height is kept
//            free for the map that is on its way: what is below does not move when it comes)}
//   update: {steps, sites: [{block, kind}], values: [[of the sites] of each step], what (they are), note}
// Colour is the logarithm of the value where all are positive. The pointer or the arrow keys read a cell.

function createHeat(spec) {
  const view = { content: null, shown: null, at: null };
  const plot = el("div", { class: "plot heat-plot", tabindex: "0", role: "img", "aria-roledescription": "heat map" });
  const tooltip = el("div", { class: "tooltip", hidden: true, role: "status" });
  if (spec.keeps) plot.style.minHeight = spec.height + "px";
  const scale = el("div", { class: "heat-scale" });
  const title = el("h3", {}, spec.title);
  const node = el("div", { class: "card chart heat-map" },
    el("div", { class: "card-head" }, el("div", {}, title, spec.lead ? el("p", { class: "card-lead" }, spec.lead) : null),
      el("div", { class: "tools" }, spec.controls, svgButton(spec.title, () => plot.querySelector("svg"), () => view.about))),
    el("div", { class: "plot-frame" }, plot, tooltip), el("div", { class: "chart-note" }, scale));

  function extent(values) {
    let [low, high] = [Infinity, -Infinity];
    for (const column of values) {
      for (const value of column) {
        if (!isNumber(value)) continue;
        if (value < low) low = value;
        if (value > high) high = value;
      }
    }
    return low <= high ? [low, high] : null;
  }

  function draw() {
    hide();
    plot.replaceChildren();
    view.shown = null;
    const content = view.content;
    const range = content && extent(content.values);
    node.classList.toggle("is-empty", !range);
    if (!range) {
      plot.setAttribute("aria-label", `${spec.title}: nothing recorded yet`);
      scale.replaceChildren(...(spec.keeps ? ["\u00a0"] : []));
      return plot.append(emptyNote(spec.empty || "No depth profile has been recorded yet."));
    }
    const { steps, sites, values } = content;
    const log = range[0] > 0;
    const of = log ? Math.log10 : (value) => value;
    const span = of(range[1]) - of(range[0]) || 1;
    const width = Math.max(240, view.width || plot.clientWidth || 480);
    const height = spec.height || 240;
    const frame = { left: 40, right: width - 10, top: 8, bottom: height - 34 };
    const cell = { width: (frame.right - frame.left) / steps.length, height: (frame.bottom - frame.top) / sites.length };
    const x = (at) => frame.left + at * cell.width;
    const y = (site) => frame.bottom - (site + 1) * cell.height;
    const cells = svg("g", { class: "heat-cells" });
    values.forEach((column, at) => column.forEach((value, site) => {
      if (!isNumber(value)) return;
      cells.append(svg("rect", { x: x(at).toFixed(2), y: y(site).toFixed(2), width: (cell.width + 0.3).toFixed(2), height: (cell.height + 0.3).toFixed(2),
        fill: rampColor((of(value) - of(range[0])) / span) }));
    }));
    const axes = svg("g", { class: "axes" });
    const every = Math.max(1, Math.ceil(steps.length / Math.max(2, Math.floor((frame.right - frame.left) / 70))));
    steps.forEach((step, at) => {
      if (at % every) return;
      axes.append(svg("text", { class: "tick", x: x(at) + cell.width / 2, y: frame.bottom + 15, "text-anchor": "middle" }, formatShort(step)));
    });
    const rows = Math.max(1, Math.ceil(sites.length / Math.max(2, Math.floor((frame.bottom - frame.top) / 22))));
    sites.forEach((_, site) => {
      if (site % rows) return;
      axes.append(svg("text", { class: "tick", x: frame.left - 6, y: y(site) + cell.height / 2 + 3.5, "text-anchor": "end" }, String(site)));
    });
    axes.append(svg("text", { class: "axis-label", x: frame.right, y: frame.bottom + 29, "text-anchor": "end" }, "step"),
      svg("text", { class: "axis-label", x: 2, y: frame.bottom + 15 }, "site"));
    const cross = svg("g", { class: "crosshair" });
    plot.append(svg("svg", { class: "chart-svg", viewBox: `0 0 ${width} ${height}`, height, "aria-hidden": "true" }, cells, axes, cross));
    view.shown = { frame, cell, x, y, cross, width };
    plot.setAttribute("aria-label", `${spec.title}: ${plural(sites.length, "site")} at ${plural(steps.length, "recorded step")}, from ${formatNumber(range[0], 3)} to ${formatNumber(range[1], 3)}. Arrow keys read cells.`);
    const ends = [formatNumber(range[0], 3), formatNumber(range[1], 3) + (log ? ", log scale" : "")];
    view.about = { title: [spec.title, content.what].filter(Boolean).join(": "), lead: spec.lead || content.note, scale: ends };
    scale.replaceChildren(content.what ? el("span", { class: "print-only" }, content.what) : "", el("span", {}, ends[0]), el("span", { class: "heat-ramp live", style: `background:linear-gradient(to right, ${RAMP.map((color) => `rgb(${color.join(",")})`).join(",")})` }),
      el("span", {}, ends[1]), ...(content.note ? [el("span", {}, content.note)] : []));
  }

  function show(at, site) {
    const { steps, sites, values } = view.content;
    view.at = [at, site];
    const { cell, x, y, cross, width, frame } = view.shown;
    cross.replaceChildren(svg("rect", { class: "heat-cursor", x: x(at), y: y(site), width: cell.width, height: cell.height }));
    tooltip.replaceChildren(el("div", { class: "tooltip-title" }, `Step ${formatCount(steps[at])} \u00b7 site ${site}`),
      el("div", {}, sites[site] ? `block ${sites[site].block} \u00b7 ${sites[site].kind}: ` : "", formatNumber(values[at][site], 4)));
    tooltip.hidden = false;
    const right = x(at) + cell.width + 12 + tooltip.offsetWidth <= width;
    tooltip.style.left = (right ? x(at) + cell.width + 12 : Math.max(0, x(at) - 12 - tooltip.offsetWidth)) + "px";
    tooltip.style.top = frame.top + 4 + "px";
  }

  function hide() {
    view.at = null;
    tooltip.hidden = true;
    if (view.shown) view.shown.cross.replaceChildren();
  }

  plot.addEventListener("pointermove", (event) => {
    if (!view.shown) return;
    const box = plot.getBoundingClientRect();
    const { frame, cell } = view.shown;
    const at = Math.floor((event.clientX - box.left - frame.left) / cell.width);
    const site = Math.floor((frame.bottom - (event.clientY - box.top)) / cell.height);
    if (at < 0 || site < 0 || at >= view.content.steps.length || site >= view.content.sites.length) return hide();
    show(at, site);
  });
  plot.addEventListener("pointerleave", hide);
  plot.addEventListener("blur", hide);
  plot.addEventListener("keydown", (event) => {
    const move = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
    if (!view.shown || (!move && event.key !== "Escape")) return;
    event.preventDefault();
    if (!move) return hide();
    const last = [view.content.steps.length - 1, view.content.sites.length - 1];
    const from = view.at || [last[0] - move[0], -move[1]];
    show(...from.map((value, axis) => Math.min(last[axis], Math.max(0, value + move[axis]))));
  });
  new ResizeObserver(([entry]) => {
    view.width = entry.contentRect.width;
    requestAnimationFrame(() => {
      if (view.shown && Math.abs(view.shown.width - Math.max(240, view.width)) >= 1) draw();
    });
  }).observe(plot);

  return {
    node,
    update(content, name) {
      view.content = content;
      if (name) {
        spec.title = name;
        title.textContent = name;
      }
      draw();
    },
  };
}

// What a heat map of a recorded run can show: [key, name] and its values by step and site.
function heatChoices(depth) {
  return [["grad", "Gradient norm"], ...depth.streams.map((name, at) => [at, `Stream ${name}`]), ["out", "Branch output"]];
}

// A choice of them; `choose(key)` is told.
function heatPicker(depth, chosen, name, choose) {
  const choices = heatChoices(depth);
  return el("select", { class: "run-picker", "aria-label": name, onchange: (event) => choose(choices[event.currentTarget.selectedIndex][0]) },
    choices.map(([key, text]) => el("option", { selected: key === chosen }, text)));
}

function heatContent(depth, choice) {
  const column = (row) => (typeof choice === "number" ? row.before[choice] : row[choice]);
  const [, what] = heatChoices(depth).find(([key]) => key === choice) || [];
  return { steps: depth.steps, sites: depth.sites, what, values: depth.rows.map((row) => column(row) || []) };
}
