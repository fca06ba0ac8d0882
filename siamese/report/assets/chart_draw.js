// Drawing the content of a chart into SVG: pure functions of (data, scales).

function drawable(value, scale) {
  return isNumber(value) && (!scale.log || value > 0);
}

// A tenth of a pixel is enough.
function tenth(pixel) {
  return Math.round(pixel * 10) / 10;
}

// A path through the points; a missing value breaks it.
function linePath(xs, ys, sx, sy) {
  let path = "";
  let open = false;
  for (let at = 0; at < xs.length; ++at) {
    if (!drawable(xs[at], sx) || !drawable(ys[at], sy)) {
      open = false;
      continue;
    }
    path += (open ? "L" : "M") + tenth(sx(xs[at])) + " " + tenth(sy(ys[at]));
    open = true;
  }
  return path;
}

// The area between low and high, one piece per unbroken stretch. On a log axis what lies below is cut at its foot.
function bandPath(xs, lows, highs, sx, sy) {
  const floor = sy.domain[0];
  const parts = [];
  let stretch = [];
  const close = () => {
    if (stretch.length > 1) {
      const point = (at, value) => tenth(sx(xs[at])) + " " + tenth(sy(value));
      const upper = stretch.map((at) => point(at, highs[at]));
      const lower = stretch.map((at) => point(at, sy.log && lows[at] <= 0 ? floor : lows[at])).reverse();
      parts.push("M" + upper.join("L") + "L" + lower.join("L") + "Z");
    }
    stretch = [];
  };
  for (let at = 0; at < xs.length; ++at) {
    if (drawable(xs[at], sx) && drawable(highs[at], sy) && isNumber(lows[at])) stretch.push(at);
    else close();
  }
  close();
  return parts.join("");
}

// As many digits as it takes to tell the ticks apart, three at least.
function tickFormat(ticks) {
  const digits = [3, 4, 5, 6].find((count) => new Set(ticks.map((value) => formatNumber(value, count))).size === ticks.length) || 6;
  return (value) => formatNumber(value, digits);
}

function drawAxes(frame, sx, sy, spec) {
  const group = svg("g", { class: "axes" });
  const yCount = Math.max(2, Math.round((frame.bottom - frame.top) / 46));
  const xCount = Math.max(2, Math.round((frame.right - frame.left) / 90));
  const yTicks = axisTicks(sy, yCount, false);
  const formatY = spec.formatY || tickFormat(yTicks);
  const formatX = spec.formatX || ((value) => formatShort(value));
  for (const value of yTicks) {
    const y = Math.round(sy(value)) + 0.5;
    group.append(svg("line", { class: "grid", x1: frame.left, x2: frame.right, y1: y, y2: y }),
      svg("text", { class: "tick", x: frame.left - 8, y: y + 3.5, "text-anchor": "end" }, formatY(value)));
  }
  const ticks = spec.xTicks ? spec.xTicks.filter((value) => value >= sx.domain[0] && value <= sx.domain[1])
    : axisTicks(sx, xCount, spec.wholeX !== false);
  let lastLabelEnd = -Infinity;
  for (const value of ticks) {
    const x = Math.round(sx(value)) + 0.5;
    const label = formatX(value);
    group.append(svg("line", { class: "tick-mark", x1: x, x2: x, y1: frame.bottom, y2: frame.bottom + 4 }));
    if (x - label.length * 3.4 < lastLabelEnd + 6) continue;
    lastLabelEnd = x + label.length * 3.4;
    group.append(svg("text", { class: "tick", x, y: frame.bottom + 17, "text-anchor": "middle" }, label));
  }
  group.append(
    svg("line", { class: "axis", x1: frame.left, x2: frame.right, y1: frame.bottom + 0.5, y2: frame.bottom + 0.5 }),
    svg("text", { class: "axis-label", x: frame.right, y: frame.bottom + 32, "text-anchor": "end" }, spec.xLabel || ""));
  return group;
}

function drawSeries(one, sx, sy, highlight) {
  const group = svg("g", { class: "series", "data-group": highlight ?? null });
  if (one.low && one.high && !one.errorBars) {
    group.append(svg("path", {
      class: one.envelope ? "envelope" : "band", d: bandPath(one.x, one.low, one.high, sx, sy),
      style: `fill:${one.color}` + (one.envelope ? `;stroke:${one.color}` : ""),
    }));
  }
  if (one.line !== false) {
    group.append(svg("path", {
      class: "line", d: linePath(one.x, one.y, sx, sy), "stroke-dasharray": one.dash || null,
      style: `stroke:${one.color};stroke-width:${one.width || 1.75}px;opacity:${one.opacity || 1}`,
    }));
  }
  const lonely = one.y.filter(isNumber).length === 1;
  if (one.points || lonely) {
    for (let at = 0; at < one.x.length; ++at) {
      if (!drawable(one.x[at], sx) || !drawable(one.y[at], sy)) continue;
      const [x, y] = [sx(one.x[at]), sy(one.y[at])];
      if (one.errorBars && one.low && drawable(one.low[at], sy) && drawable(one.high[at], sy)) {
        group.append(svg("line", {
          class: "error-bar", x1: x, x2: x, y1: sy(one.low[at]), y2: sy(one.high[at]), style: `stroke:${one.color}`,
        }));
      }
      group.append(svg("circle", { class: "point", cx: x, cy: y, r: one.radius || 3.5, style: `fill:${one.color}` }));
    }
  }
  return group;
}

// A cross where a run ended, an arrow for what lies above the plot; both stay inside it.
function drawMark(mark, frame, sx, sy) {
  const x = sx(mark.x);
  const wanted = drawable(mark.y, sy) ? sy(mark.y) : frame.top;
  const y = Math.min(frame.bottom - 6, Math.max(frame.top + 6, wanted));
  const arm = 5;
  const cross = mark.above ? `M${x} ${y + 2 * arm}L${x} ${y - arm}M${x - arm} ${y}L${x} ${y - arm}L${x + arm} ${y}`
    : `M${x - arm} ${y - arm}L${x + arm} ${y + arm}M${x - arm} ${y + arm}L${x + arm} ${y - arm}`;
  return svg("g", { class: "mark", "data-group": mark.group ?? null },
    svg("title", {}, mark.label),
    svg("path", { class: "mark-halo", d: cross }),
    svg("path", { class: "mark-cross", d: cross, style: `stroke:${mark.color}` }));
}
