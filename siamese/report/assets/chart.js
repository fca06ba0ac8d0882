// A card with a line chart: linear/log toggles, crosshair with values, drag to zoom, arrow keys to walk.
//   spec:   {title, lead, xLabel, yLabel, height, yLog, xLog, logToggles ("y", "xy", ""), fromZero, formatX, formatY,
//            formatTitle(x), xTicks, wholeX, empty, controls: [nodes], xToggle (name of the horizontal axis beside its
//            toggle, where that is not xLabel), of, ofLead (title and lead of the chart that this is a panel of)}
//   update: {series: [{name, group, color, dash, x, y, low, high, envelope, points, errorBars, line, width, opacity,
//            quiet (not in the crosshair), outer (a diverged run)}], marks: [{x, y, color, label, group, above (an arrow: its
//            value lies above the plot)}], note, legend, keys (of a saved picture, where
//            they are not those of the series), spec (changes to it), whole (forget the zoom), scales: {yLog, yDomain, xDomain} where the caller owns an axis}

function createChart(spec) {
  const view = { yLog: Boolean(spec.yLog), xLog: Boolean(spec.xLog), zoom: null, series: [], marks: [], shown: null };
  const toggles = spec.logToggles ?? "y";
  const reset = el("button", { type: "button", class: "quiet-button", hidden: true, onclick: () => setZoom(null) }, "Reset zoom");
  const tools = el("div", { class: "tools" }, reset, spec.controls,
    toggles.includes("x") && el("span", { class: "axis-choice" }, spec.xToggle ?? spec.xLabel, axisChoice("Horizontal axis", view.xLog,
      (log) => { view.xLog = log; setZoom(null); })),
    toggles.includes("y") && el("span", { class: "axis-choice" }, toggles.includes("x") ? spec.title.toLowerCase() : null,
      axisChoice("Vertical axis", view.yLog, (log) => { view.yLog = log; draw(); })),
    svgButton(spec.title || spec.of, () => plot.querySelector("svg"), about));
  const plot = el("div", { class: "plot", tabindex: "0", role: "img", "aria-roledescription": "chart" });
  const tooltip = el("div", { class: "tooltip", hidden: true, role: "status" });
  const legend = el("div", { class: "chart-legend" });
  const note = el("div", { class: "chart-note" });
  const node = el("div", { class: "card chart" },
    el("div", { class: "card-head" },
      el("div", {}, el("h3", {}, spec.title), spec.lead ? el("p", { class: "card-lead" }, spec.lead) : null), tools),
    legend, el("div", { class: "plot-frame" }, plot, tooltip), note);

  // What the page says around the chart, for a picture of it alone.
  function about() {
    const keys = view.series.filter((one) => !one.quiet).map((one) => ({ ...one, point: one.points && one.line === false }));
    return { title: [spec.of, spec.title].filter(Boolean).join(": "), lead: spec.lead || spec.ofLead, keys: view.keys || keys };
  }

  function setZoom(zoom) {
    view.zoom = zoom;
    reset.hidden = !zoom;
    draw();
  }

  function draw() {
    hideCrosshair();
    const width = Math.max(240, view.width || plot.clientWidth || 640);
    const height = width < 520 ? Math.min(spec.height || 300, 260) : spec.height || 300;
    const ownX = xExtent(view.series, view.marks, view.xLog);
    const wholeX = ownX && (view.xDomain || ownX);
    plot.replaceChildren();
    node.classList.toggle("is-empty", !wholeX);
    if (!wholeX) {
      view.shown = null;
      plot.setAttribute("aria-label", `${spec.title || "Values"}: ${spec.empty || "nothing recorded yet"}`);
      plot.append(emptyNote(spec.empty || "Nothing recorded yet."));
      return;
    }
    const xDomain = view.zoom || wholeX;
    const yDomain = view.yDomain || yExtent(view.series, xDomain, view.yLog, spec.fromZero);
    const frame = { left: 54, right: width - 14, top: spec.yLabel ? 24 : 10, bottom: height - 38 };
    // Points on the very edge keep their shape when nothing is cut off.
    const inset = spec.inset || 0;
    const sx = makeScale(xDomain, [frame.left + inset, frame.right - inset], view.xLog);
    const sy = makeScale(yDomain, [frame.bottom, frame.top], view.yLog);
    const clip = uniqueId("clip");
    const content = svg("g", { "clip-path": `url(#${clip})` },
      view.series.map((one) => drawSeries(one, sx, sy, one.group)));
    const cross = svg("g", { class: "crosshair" });
    plot.append(svg("svg", { class: "chart-svg", viewBox: `0 0 ${width} ${height}`, height, "aria-hidden": "true" },
      svg("clipPath", { id: clip }, svg("rect", {
        x: frame.left - 4, y: frame.top - 4, width: frame.right - frame.left + 8, height: frame.bottom - frame.top + 5 })),
      drawAxes(frame, sx, sy, spec), content,
      view.marks.filter((mark) => mark.x >= xDomain[0] && mark.x <= xDomain[1]).map((mark) => drawMark(mark, frame, sx, sy)),
      spec.yLabel && svg("text", { class: "axis-label", x: 4, y: 12 }, spec.yLabel), cross));
    view.shown = { frame, sx, sy, cross, width };
    describe(xDomain);
  }

  // What somebody who cannot see the chart is told of it; the arrow keys then read values.
  function describe([from, to]) {
    const named = [...new Set(view.series.filter((one) => !one.quiet).map((one) => one.name))];
    const format = spec.formatX || formatShort;
    plot.setAttribute("aria-label", `${spec.title || "Values"}: ${plural(named.length, "line")} over ${spec.xLabel} ${format(from)} to ${format(to)}`
      + (named.length <= 8 ? ` (${named.join("; ")})` : "") + ". Arrow keys read values.");
  }

  // The nearest recorded x to a pixel, over all series that take part.
  function nearestX(pixel) {
    let best = null;
    for (const one of view.series) {
      if (one.quiet) continue;
      const at = nearestIndex(one, view.shown.sx.invert(pixel));
      if (at < 0) continue;
      const distance = Math.abs(view.shown.sx(one.x[at]) - pixel);
      if (!best || distance < best.distance) best = { x: one.x[at], distance };
    }
    return best && best.x;
  }

  function showCrosshair(x) {
    const { frame, sx, sy, cross, width } = view.shown;
    if (!isNumber(x)) return;
    view.crosshair = x;
    const pixel = sx(x);
    const rows = [];
    for (const one of view.series) {
      if (one.quiet) continue;
      const at = nearestIndex(one, x);
      if (at < 0 || Math.abs(sx(one.x[at]) - pixel) > (one.points ? 7 : 5)) continue;
      rows.push({ one, at, value: one.y[at] });
    }
    rows.sort((a, b) => b.value - a.value);
    cross.replaceChildren(svg("line", { x1: pixel, x2: pixel, y1: frame.top, y2: frame.bottom }),
      ...rows.filter(({ value }) => drawable(value, sy) && value <= sy.domain[1] && value >= sy.domain[0]).map(({ one, at }) =>
        svg("circle", { cx: sx(one.x[at]), cy: sy(one.y[at]), r: 4, style: `fill:${one.color}` })));
    const format = spec.formatValue || spec.formatY || ((value) => formatNumber(value, 4));
    const limit = 14;
    tooltip.replaceChildren(
      el("div", { class: "tooltip-title" }, (spec.formatTitle || ((value) => `${spec.xLabel} ${formatCount(value)}`))(x)),
      el("table", {}, rows.slice(0, limit).map(({ one, at, value }) => {
        const ranged = one.low && isNumber(one.low[at]) && one.high[at] > one.low[at];
        return el("tr", {}, el("td", {}, swatch(one.color, one.dash, one.points && one.line === false)), el("td", {}, one.name),
          el("td", { class: "num" }, format(value)),
          el("td", { class: "num range" }, ranged ? `${format(one.low[at])}\u2009\u2026\u2009${format(one.high[at])}` : ""));
      })), rows.length > limit ? el("div", { class: "tooltip-more" }, `and ${rows.length - limit} more`) : "");
    tooltip.hidden = false;
    const box = tooltip.offsetWidth;
    const right = pixel + 16 + box <= width;
    tooltip.style.left = (right ? pixel + 16 : Math.max(0, pixel - 16 - box)) + "px";
    tooltip.style.top = frame.top + 6 + "px";
  }

  function hideCrosshair() {
    view.crosshair = null;
    tooltip.hidden = true;
    if (view.shown) view.shown.cross.replaceChildren();
  }

  function pointerX(event) {
    const { frame } = view.shown;
    const x = event.clientX - plot.getBoundingClientRect().left;
    return Math.min(frame.right, Math.max(frame.left, x));
  }

  let dragStart = null;
  plot.addEventListener("pointermove", (event) => {
    if (!view.shown) return;
    const x = pointerX(event);
    showCrosshair(nearestX(x));
    if (dragStart === null) return;
    const { frame, cross } = view.shown;
    cross.append(svg("rect", {
      class: "zoom-box", x: Math.min(dragStart, x), width: Math.abs(x - dragStart), y: frame.top, height: frame.bottom - frame.top }));
  });
  plot.addEventListener("pointerdown", (event) => {
    if (view.shown && event.pointerType === "mouse" && event.button === 0) dragStart = pointerX(event);
    else if (view.shown) showCrosshair(nearestX(pointerX(event)));
  });
  window.addEventListener("pointerup", (event) => {
    if (dragStart === null || !view.shown) return;
    const [from, to] = [dragStart, pointerX(event)].sort((a, b) => a - b);
    dragStart = null;
    if (to - from > 8) setZoom([view.shown.sx.invert(from), view.shown.sx.invert(to)]);
  });
  plot.addEventListener("dblclick", () => setZoom(null));
  plot.addEventListener("pointerleave", hideCrosshair);
  plot.addEventListener("blur", hideCrosshair);
  plot.addEventListener("keydown", (event) => {
    if (!view.shown || !["ArrowLeft", "ArrowRight", "Escape"].includes(event.key)) return;
    event.preventDefault();
    if (event.key === "Escape") return view.zoom ? setZoom(null) : hideCrosshair();
    const { frame, sx } = view.shown;
    const move = (event.shiftKey ? 40 : 8) * (event.key === "ArrowLeft" ? -1 : 1);
    const from = isNumber(view.crosshair) ? sx(view.crosshair) : move > 0 ? frame.left - move : frame.right - move;
    const reach = (away) => nearestX(Math.min(frame.right, Math.max(frame.left, from + away)));
    let away = move;
    while (reach(away) === view.crosshair && Math.abs(away) < frame.right - frame.left) away += move;  // points may lie far apart
    showCrosshair(reach(away));
  });
  // The width is told, not asked for: asking makes the browser lay out the whole page. Redrawn in the next frame: a redraw
  // inside the observer would change the size that is being observed.
  new ResizeObserver(([entry]) => {
    view.width = entry.contentRect.width;
    requestAnimationFrame(() => {
      if (!view.shown || Math.abs(view.shown.width - Math.max(240, view.width)) >= 1) draw();
    });
  }).observe(plot);

  return {
    node,
    update(content) {
      view.series = content.series;
      view.marks = content.marks || [];
      view.keys = content.keys;
      if (content.spec) Object.assign(spec, content.spec);
      if (content.whole) {
        view.zoom = null;
        reset.hidden = true;
      }
      if (content.scales) Object.assign(view, content.scales);
      legend.replaceChildren(...(content.legend || []));
      note.replaceChildren(...(content.note || []));
      draw();
    },
  };
}

function axisChoice(label, log, choose) {
  return segmented(label, [[false, "Linear"], [true, "Log"]], log, choose);
}

// Index of the point with a value nearest to x; -1 when the series has none.
function nearestIndex(one, x) {
  let low = 0;
  let high = one.x.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (one.x[middle] < x) low = middle + 1;
    else high = middle;
  }
  for (let away = 0; away < one.x.length; ++away) {
    const before = low - 1 - away;
    const after = low + away;
    const beforeOk = before >= 0 && isNumber(one.y[before]);
    const afterOk = after < one.x.length && isNumber(one.y[after]);
    if (beforeOk && (!afterOk || Math.abs(one.x[before] - x) <= Math.abs(one.x[after] - x))) return before;
    if (afterOk) return after;
  }
  return -1;
}
