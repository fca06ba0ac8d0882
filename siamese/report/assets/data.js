// The data island, and what the charts derive from it: groups with a style, smoothed curves, mean and band over seeds.

const DATA = JSON.parse(document.getElementById("report-data").textContent);

// The step a bucket is drawn at, and its name in a crosshair.
const GRID = DATA.grid.first.map((first, at) => (first + DATA.grid.last[at]) / 2);
const EXACT = DATA.grid.first.every((first, at) => first === DATA.grid.last[at]);

function stepTitle(x) {
  const at = GRID.indexOf(x);
  if (at < 0 || DATA.grid.first[at] === DATA.grid.last[at]) return "Step " + formatCount(x);
  return `Steps ${formatCount(DATA.grid.first[at])}\u2013${formatCount(DATA.grid.last[at])}`;
}

// Families of models share no table and no chart: a loss of one says nothing about a loss of another.
const FAMILY_TITLES = new Map([["lm", "Language models"], ["moe", "Mixtures of experts"], ["vit", "Image classifiers"], ["dit", "Image diffusion models"], ["not started", "Not started yet"]]);
const FAMILIES = [...new Set(DATA.groups.length ? DATA.groups.map((group) => group.family) : ["lm"])].map((name) => {
  const groups = DATA.groups.filter((group) => group.family === name);
  const images = name === "vit" || name === "dit";
  return {
    name, images, title: FAMILY_TITLES.get(name) || name,
    runs: DATA.runs.filter((run) => run.family === name),
    variants: [...new Set(groups.map((group) => group.variant))],
    rates: [...new Set(groups.map((group) => group.lr))].sort((a, b) => a - b),
    speed: images ? { field: "samples_per_s", title: "Images/s", words: "Images per second" }
      : { field: "tokens_per_s", title: "Tokens/s", words: "Tokens per second" },
  };
});

function variantColor(family, variant) {
  return seriesColor(family.variants.indexOf(variant));
}

// Hue is the variant, its shade the learning rate; past eight variants, where hues repeat, a dash tells them apart.
const GROUPS = DATA.groups.map((group, index) => {
  const family = FAMILIES.find((candidate) => candidate.name === group.family);
  const rates = DATA.groups.filter((other) => other.family === group.family && other.variant === group.variant).map((other) => other.lr);
  return {
    ...group,
    index,
    family,
    members: group.runs.map((at) => DATA.runs[at]),
    color: shadeOf(variantColor(family, group.variant), rates.indexOf(group.lr), rates.length),
    dash: DASHES[Math.floor(family.variants.indexOf(group.variant) / COLORS) % DASHES.length],
    name: family.rates.length > 1 ? `${group.variant} \u00b7 ${formatLearningRate(group.lr)}` : group.variant,
  };
});
FAMILIES.forEach((family) => { family.groups = GROUPS.filter((group) => group.family === family); });

// What is measured beside the loss; `best` is the end of the scale a result strives for; a `part` of the loss has a
// chart and a column among the runs, not among the results.
const MEASURES = [
  { name: "bits_per_byte", title: "Bits per byte", best: "lowest", format: (value) => formatFixed(value, 4) },
  { name: "top1", title: "Top-1", best: "highest", format: (value) => formatPercent(value) },
  { name: "top5", title: "Top-5", format: (value) => formatPercent(value) },
  { name: "feature_distance", title: "Feature distance", best: "lowest", format: (value) => formatFixed(value, 2) },
  { name: "class_agreement", title: "Class agreement", best: "highest", format: (value) => formatPercent(value) },
  { name: "mse", title: "MSE", part: true, format: (value) => formatFixed(value, 4) },
  { name: "vlb", title: "VLB", part: true, format: (value) => formatFixed(value, 5) },
  { name: "expert_max_load", title: "Max load", best: "lowest", format: (value) => formatFixed(value, 2) },
];

// A task of a language model by the metric it is reported by, "piqa/rc_0shot len_norm"; a held-out set by its loss, "web loss".
const TASK_LOSS = /(?:^| )(?:bpb|ce_loss|loss)\w*$/;
function taskMeasure(name) {
  const loss = TASK_LOSS.test(name);
  return { name, title: name, best: loss ? "lowest" : "highest", format: (value) => (loss ? formatFixed(value, 4) : formatPercent(value)) };
}

function familyMeasures(family) {
  const known = new Set(MEASURES.map(({ name }) => name));
  const tasks = new Set(family.runs.flatMap((run) => Object.keys(run.measures).filter((name) => !known.has(name))));
  return [...MEASURES, ...[...tasks].sort().map(taskMeasure)].filter(({ name }) => family.runs.some((run) => isNumber(run.measures[name])));
}

function groupMeasure(group, name) {
  return group.measures[name] || { mean: null, spread: null, count: 0 };
}

// Whose loss an evaluation is: said wherever it is not that of the trained weights.
function averagedWords(family) {
  const averaged = family.runs.filter((run) => run.averaged).length;
  if (!averaged) return "";
  return averaged === family.runs.length ? "Validation: of the averaged weights." : `Validation: of the averaged weights in ${averaged} of ${family.runs.length} runs.`;
}

function runName(run) {
  const parts = [run.variant];
  if (isNumber(run.lr)) parts.push("lr " + formatLearningRate(run.lr));
  if (isNumber(run.seed)) parts.push("seed " + run.seed);
  return parts.join(" \u00b7 ");
}

function columnExtreme(lists, at, pick) {
  let found = null;
  for (const list of lists) {
    if (at < list.length && isNumber(list[at])) found = found === null ? list[at] : pick(found, list[at]);
  }
  return found;
}

function columnMean(lists, at) {
  let sum = 0;
  let count = 0;
  for (const list of lists) {
    if (at < list.length && isNumber(list[at])) {
      sum += list[at];
      ++count;
    }
  }
  return count ? sum / count : null;
}

function lastFinite(values) {
  for (let at = values.length - 1; at >= 0; --at) if (isNumber(values[at])) return at;
  return -1;
}

// One run, smoothed; the way out of a diverged one is shown as recorded.
function runLine(run, quantity, span) {
  const raw = run[quantity].mean;
  const values = smooth(raw, span);
  if (run.state !== "diverged") return values;
  const end = lastFinite(raw);
  return values.map((value, at) => (at > end - span ? raw[at] : value));
}

// The lines of one group for one recorded quantity: the mean over seeds with its band; one line when there is one
// seed; and each diverged run on its own, thin, with a cross where it ended.
function groupCurves(group, quantity, span, options = {}) {
  const withData = group.members.filter((run) => run[quantity] && lastFinite(run[quantity].mean) >= 0);
  const alive = withData.filter((run) => run.state !== "diverged");
  const lost = withData.filter((run) => run.state === "diverged");
  const style = { color: options.color || group.color, dash: group.dash, group: group.index };
  const name = options.name || group.name;
  const series = [];
  if (alive.length === 1 || (alive.length === 0 && lost.length === 1 && !DATA.sweep)) {
    const run = alive[0] || lost[0];
    const curve = run[quantity];
    const xs = GRID.slice(0, curve.mean.length);
    if (span > 1 && !curve.low && !options.crowded) {
      series.push({ ...style, dash: "", name, x: xs, y: curve.mean, quiet: true, width: 1, opacity: 0.28 });
    }
    series.push({ ...style, name, x: xs, y: runLine(run, quantity, span), low: curve.low, high: curve.high, envelope: true });
  } else if (alive.length > 1) {
    const means = alive.map((run) => smooth(run[quantity].mean, span));
    const lows = span > 1 ? means : alive.map((run) => run[quantity].low || run[quantity].mean);
    const highs = alive.map((run, at) => withSpikes(run[quantity].high || run[quantity].mean, means[at], span));
    const xs = GRID.slice(0, Math.max(...means.map((list) => list.length)));
    series.push({
      ...style, name, x: xs,
      y: xs.map((_, at) => columnMean(means, at)),
      low: xs.map((_, at) => columnExtreme(lows, at, Math.min)),
      high: xs.map((_, at) => columnExtreme(highs, at, Math.max)),
    });
  }
  const marks = [];
  for (const run of lost) {
    const values = runLine(run, quantity, span);
    const end = lastFinite(values);
    if (DATA.sweep) {
      series.push({
        ...style, name: `${name} \u00b7 seed ${run.seed ?? "?"} (diverged)`, x: GRID.slice(0, values.length), y: values,
        low: run[quantity].low, high: run[quantity].high, envelope: true, width: 1.1, outer: true,
      });
    }
    marks.push({ x: GRID[end], y: values[end], color: style.color, group: group.index, label: `${runName(run)} diverged` });
  }
  return { series, marks };
}

// Evaluations of a group: the mean over its living seeds at each evaluated step, lowest to highest as a bar.
function groupEvals(group, field) {
  const living = group.members.filter((run) => run.state !== "diverged");
  const members = living.length ? living : group.members;
  const bySteps = new Map();
  for (const run of members) {
    for (const row of run.evals) {
      if (!isNumber(row[field])) continue;
      if (!bySteps.has(row.step)) bySteps.set(row.step, []);
      bySteps.get(row.step).push(row[field]);
    }
  }
  const steps = [...bySteps.keys()].sort((a, b) => a - b);
  const values = steps.map((step) => bySteps.get(step));
  const many = values.some((list) => list.length > 1);
  return {
    x: steps,
    y: values.map((list) => list.reduce((sum, value) => sum + value, 0) / list.length),
    low: many ? values.map((list) => Math.min(...list)) : null,
    high: many ? values.map((list) => Math.max(...list)) : null,
  };
}
