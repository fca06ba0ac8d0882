// The curves of all runs that are shown: one line each, pinned ones in front.

const CROWD = 12;  // more lines than this are drawn thin, without their extremes

const CROWDED_POINTS = 160;  // of each such line: more cannot be told apart among so many

const thinnedLists = new WeakMap();

// Means of so many neighbours each that few enough are left; kept as long as the list itself.
function thinned(list) {
  const stride = Math.ceil(list.length / CROWDED_POINTS);
  if (stride < 2) return list;
  if (!thinnedLists.has(list)) {
    const means = [];
    for (let from = 0; from < list.length; from += stride) means.push(meanOfStretch(list, from, Math.min(list.length, from + stride)));
    thinnedLists.set(list, means);
  }
  return thinnedLists.get(list);
}

function meanOfStretch(list, from, to) {
  let [sum, count] = [0, 0];
  for (let at = from; at < to; ++at) {
    if (!isNumber(list[at])) continue;
    sum += list[at];
    ++count;
  }
  return count ? sum / count : null;
}

function curveSeries(runs, colors, quantity, span) {
  const crowded = runs.length > CROWD;
  const anyPinned = runs.some(isPinned);
  const line = (run) => {
    const pinned = isPinned(run);
    const alone = pinned || !crowded;
    const { color, dash } = colors.get(run.id);
    const [low, high] = quantity === "loss" ? [run.curve.low, run.curve.high] : [run.curve.grad, run.curve.grad_high];
    const extremes = alone && high.length ? { low, high, envelope: true } : {};
    return {
      name: run.name, color, dash, x: alone ? run.curve.x : thinned(run.curve.x), y: alone ? smooth(run.curve[quantity], span) : thinned(smooth(run.curve[quantity], span)), ...extremes,
      width: pinned ? 2.25 : crowded ? 1 : 1.75, opacity: alone ? 1 : anyPinned ? 0.25 : 0.55, outer: run.state === "diverged",
    };
  };
  return [...runs.filter((run) => !isPinned(run)), ...runs.filter(isPinned)].map(line).filter((one) => one.x.length);
}

function evalSeries(runs, colors) {
  return runs.filter((run) => run.evals.step.length).map((run) => ({
    name: run.name, color: colors.get(run.id).color, dash: colors.get(run.id).dash, x: run.evals.step, y: run.evals.loss, points: runs.length <= CROWD || isPinned(run),
    radius: 2.5, width: isPinned(run) ? 2.25 : runs.length > CROWD ? 1 : 1.5, outer: run.state === "diverged",
  }));
}

function divergedMarks(runs, colors) {
  return runs.filter((run) => run.state === "diverged" && run.curve.x.length).map((run) => {
    const at = run.curve.x.length - 1;
    return { x: run.curve.x[at], y: run.curve.loss[at] ?? NaN, color: colors.get(run.id).color, label: `${run.name} diverged` };
  });
}

function watchCharts() {
  let span = 1;
  const axis = { xLabel: "step", formatTitle: (x) => "Step " + formatCount(x) };
  const loss = createChart({
    title: "Training loss", lead: "Each line a run; colour: variant, shade: learning rate. Drag to zoom, double-click to reset", height: 380, yLog: true, logToggles: "xy", xToggle: "step",
    empty: "No step has been recorded yet.", ...axis, controls: [smoothingSlider(span, (chosen) => { span = chosen; last && refresh(last.runs, last.colors); })] });
  const held = createChart({ title: "Held-out loss", lead: "At each evaluation", height: 280, yLog: true, inset: 6, empty: "No evaluation has been recorded yet.", ...axis });
  const gradient = createChart({ title: "Gradient norm", lead: "Global, before clipping", height: 280, yLog: true, empty: "No step has been recorded yet.", ...axis });
  let last = null;

  function refresh(runs, colors) {
    last = { runs, colors };
    const variants = new Map(runs.map((run) => [run.variant, colors.get(run.id)]));
    const keys = [...variants].map(([name, { hue, dash }]) => ({ name, color: hue, dash }));
    const legend = keys.slice(0, 24).map(({ name, color, dash }) => el("span", { class: "key" }, swatch(color, dash), name));
    loss.update({ series: curveSeries(runs, colors, "loss", span), marks: divergedMarks(runs, colors), legend, keys });
    held.update({ series: evalSeries(runs, colors), keys });
    gradient.update({ series: curveSeries(runs, colors, "grad", span), keys });
  }
  return { nodes: [loss.node, el("div", { class: "pair" }, held.node, gradient.node)], refresh };
}
