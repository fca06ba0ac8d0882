// Curves over steps: loss, gradient norm, learning rate, accuracy, throughput.

const DEFAULT_SPAN = EXACT ? 21 : 5;
const NOTHING_SHOWN = "No variant is selected in the legend.";

function divergedRuns(groups) {
  return groups.flatMap((group) => group.members).filter((run) => run.state === "diverged");
}

function divergedList(groups) {
  const lost = divergedRuns(groups);
  if (!lost.length) return [];
  return [el("div", { class: "diverged-list" }, el("strong", {}, "\u2715 Diverged"),
    el("ul", {}, lost.map((run) => el("li", {}, DATA.sweep ? runName(run) + ": " : "",
      `ended at step ${formatCount(run.step)}`, run.message ? ` \u2013 ${run.message}` : ""))))];
}

function lossChart(family) {
  const show = { train: true, val: true };
  let span = DEFAULT_SPAN;
  const keys = [["train", "Train"], ["val", "Validation"]].map(([key, text]) =>
    el("button", {
      type: "button", class: "chip", "aria-pressed": "true",
      onclick: (event) => {
        show[key] = !show[key];
        event.currentTarget.setAttribute("aria-pressed", String(show[key]));
        refresh();
      },
    }, swatch(DATA.sweep ? "currentColor" : key === "train" ? "var(--series-0)" : "var(--series-1)", "", key === "val"), text));
  const axes = familyAxes(family);
  let axis = axes[0];
  const axisSwitch = axes.length > 1 ? segmented("Loss against", axes.map(({ key, name }) => [key, name]), axis.key, (key) => {
    axis = axes.find((one) => one.key === key);
    refresh(true);
  }) : null;
  const chart = createChart({
    title: "Loss", xLabel: "step", xToggle: "axis", height: 420, yLog: true, logToggles: "xy", formatTitle: stepTitle, formatValue: (value) => formatNumber(value, 4),
    empty: "No step has been recorded yet.",
    controls: [axisSwitch, smoothingSlider(span, (chosen) => { span = chosen; refresh(); })],
  });
  function refresh(whole = false) {
    const shown = visibleGroups(family);
    const groups = shown.filter((group) => isNumber(axis.factor(group)));
    const series = [];
    const marks = [];
    for (const group of groups) {
      const label = (text) => (DATA.sweep ? `${group.name} \u00b7 ${text}` : text);
      if (show.train) {
        const curves = onAxis(axis, group, groupCurves(group, "loss", span, { name: label("train"), crowded: groups.length > 3 }));
        series.push(...curves.series);
        marks.push(...curves.marks);
      }
      const evals = groupEvals(group, "loss");
      if (show.val && evals.x.length) {
        series.push(...onAxis(axis, group, { marks: [], series: [{
          ...evals, name: label("val"), group: group.index, color: DATA.sweep ? group.color : "var(--series-1)", points: true,
          errorBars: true, line: !DATA.sweep || !show.train, dash: show.train ? "" : group.dash, width: 1.25, radius: DATA.sweep ? 3 : 3.5,
        }] }).series);
      }
    }
    const note = [];
    if (DATA.sweep && groups.length) {
      note.push(el("p", {}, "Line: mean over the seeds that did not diverge, of a running median. Band and bars: lowest to highest seed, spikes kept. Dots: validation. A diverged run is drawn alone, thin, up to its cross. Drag to zoom, double-click to reset."));
    } else if (series.length) {
      note.push(el("p", {}, EXACT ? "Line: running median. Faint: every step. " : "Line: running median. Faint area: lowest to highest step within each point. ", "Drag to zoom, double-click to reset."));
    }
    if (series.length && !groups.some((group) => group.members.some((run) => run.evals.length))) {
      note.push(el("p", {}, "No evaluation has been recorded yet."));
    }
    if (shown.length > groups.length) {
      note.push(el("p", {}, `Not on this axis, because it is not known for them: ${shown.filter((group) => !groups.includes(group)).map((group) => group.name).join("; ")}.`));
    }
    chart.update({ series, marks, whole, legend: DATA.grid.first.length ? keys : [], note: [...note, ...divergedList(groups)],
      spec: { ...axis.spec, xLabel: axis.label, empty: shown.length ? "No step has been recorded yet." : NOTHING_SHOWN } });
  }
  onVisibleChange(() => refresh());
  refresh();
  return chart.node;
}

function quantityChart(family, quantity, spec, initialSpan) {
  let span = initialSpan;
  const chart = createChart({
    xLabel: "step", height: 280, formatTitle: stepTitle, ...spec,
    controls: spec.smoothing === false ? [] : [smoothingSlider(span, (chosen) => { span = chosen; refresh(); })],
  });
  function refresh() {
    const groups = visibleGroups(family);
    const curves = groups.map((group) =>
      groupCurves(group, quantity, span, {
        name: DATA.sweep ? group.name : spec.title.toLowerCase(), crowded: groups.length > 3 }));
    chart.update({
      series: [...curves.flatMap((curve) => curve.series), ...(spec.evals ? evalDots(groups, spec.evals) : [])],
      marks: spec.marks === false ? [] : curves.flatMap((curve) => curve.marks),
      spec: { empty: groups.length ? "No step has been recorded yet." : NOTHING_SHOWN },
    });
  }
  onVisibleChange(refresh);
  refresh();
  return chart.node;
}

function gradientChart(family) {
  return quantityChart(family, "grad_norm", { title: "Gradient norm", lead: "Global, before clipping", yLog: true }, EXACT ? 11 : 5);
}

function learningRateChart(family) {
  return quantityChart(family, "lr_curve", {
    title: "Learning rate", lead: "As scheduled", smoothing: false, fromZero: true, marks: false, formatY: formatLearningRate,
    formatValue: (value) => formatNumber(value, 3) }, 1);
}

function throughputChart(family) {
  return quantityChart(family, "speed", {
    title: "Throughput", lead: family.speed.words, fromZero: true, logToggles: "", marks: false,
    formatY: formatShort, formatValue: formatCount }, DEFAULT_SPAN);
}

// Held-out values beside a training curve.
function evalDots(groups, field) {
  return groups.map((group) => ({
    ...groupEvals(group, field), name: DATA.sweep ? `${group.name} \u00b7 val` : "validation", group: group.index,
    color: DATA.sweep ? group.color : "var(--series-1)", points: true, errorBars: true, line: !DATA.sweep, width: 1.25, radius: 3,
  })).filter((one) => one.x.length);
}

// A measure over evaluations. Several (fields: [[name, text]]): lines of their own in a run, a choice in a sweep, where
// hue and dash already say which setting a line is.
function evalChart(family, fields, spec) {
  let shown = DATA.sweep ? fields.slice(0, 1) : fields;
  const choice = DATA.sweep && fields.length > 1 ? [segmented("Measure", fields, fields[0][0], (name) => {
    shown = fields.filter((field) => field[0] === name);
    refresh();
  })] : [];
  const chart = createChart({ xLabel: "step", height: 280, logToggles: "", formatTitle: stepTitle, inset: 6, controls: choice, ...spec });
  // Of one run everything held out has one hue; several measures differ by their dash.
  const lineStyle = (group, at) => (DATA.sweep ? { color: group.color, dash: group.dash } : { color: seriesColor(1), dash: DASHES[at % DASHES.length] });
  function refresh() {
    const groups = visibleGroups(family);
    const series = groups.flatMap((group) => shown.map(([field, text], at) => ({
      ...groupEvals(group, field), name: DATA.sweep ? group.name : text, group: group.index, ...lineStyle(group, at),
      points: true, errorBars: true, radius: 3 }))).filter((one) => one.x.length);
    const several = !DATA.sweep && fields.length > 1;
    chart.update({
      series, legend: several ? series.map((one) => el("span", { class: "key" }, swatch(one.color, one.dash), one.name)) : [],
      spec: { empty: groups.length ? spec.empty : NOTHING_SHOWN },
    });
  }
  onVisibleChange(refresh);
  refresh();
  return chart.node;
}

const SHARE_AXIS = { fromZero: true, formatY: (value) => formatPercent(value, 0), formatValue: (value) => formatPercent(value) };

function accuracyChart(family) {
  return evalChart(family, [["accuracy", "accuracy"]], {
    title: "Accuracy over training", lead: "Share of exact answers, all groups", empty: "No accuracy has been measured yet.", ...SHARE_AXIS });
}
