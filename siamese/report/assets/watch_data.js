// What the server told: the runs by id, their curves put together from what is new. Names are text and stay text.

const DATA = JSON.parse(document.getElementById("report-data").textContent);
const RUNS = new Map();
const STORE = { title: DATA.title, reading: true, problems: [], removed: [] };

// A new list each time: what is derived from a list is kept by the list (smooth.js).
function appended(list, from, values) {
  return list.slice(0, from).concat(values);
}

function mergeCurve(curve, news) {
  curve.width = news.width;
  curve.loss = appended(curve.loss, news.from, news.loss);
  curve.grad = appended(curve.grad, news.from, news.grad);
  for (const name of ["low", "high", "grad_high"]) curve[name] = appended(curve[name], news[name] ? news.from : 0, news[name] || []);
  curve.x = curve.loss.map((_, at) => at * news.width + (news.width + 1) / 2);
}

function emptyRun(id) {
  return { id, curve: { x: [], loss: [], low: [], high: [], grad: [], grad_high: [], width: 1 }, evals: { step: [], loss: [], accuracy: [] } };
}

function mergeRun(news) {
  if (!RUNS.has(news.id)) RUNS.set(news.id, emptyRun(news.id));
  const run = RUNS.get(news.id);
  const { curve, evals, ...facts } = news;
  Object.assign(run, facts);
  mergeCurve(run.curve, curve);
  for (const name of ["step", "loss", "accuracy"]) run.evals[name] = appended(run.evals[name], evals.from, evals[name]);
}

// A connection begins with everything, so a new one begins with nothing.
function forgetAll() {
  RUNS.clear();
  STORE.reading = true;
  STORE.problems = [];
}

function mergeMessage(message) {
  for (const id of message.gone || []) {
    const run = RUNS.get(id);
    if (run) STORE.removed.unshift(run.name);
    STORE.removed.length = Math.min(STORE.removed.length, 5);
    RUNS.delete(id);
  }
  (message.runs || []).forEach(mergeRun);
  if (message.reading !== undefined) STORE.reading = message.reading;
  if (message.problems) STORE.problems = message.problems;
  if (message.title) STORE.title = message.title;
}

// "running" as run.json says; of one that has been silent for long, that it may be dead.
const SILENT_SECONDS = 120;

function secondsSilent(run) {
  return run.changed ? Math.max(0, Date.now() / 1000 - run.changed) : null;
}

function shownState(run) {
  const slow = Math.max(SILENT_SECONDS, 20 * (run.step_ms || 0) / 1000);
  return run.state === "running" && secondsSilent(run) > slow ? "silent" : run.state;
}

function remainingSeconds(run) {
  if (run.state !== "running" || !isNumber(run.step_ms) || !(run.steps > run.step)) return null;
  return (run.steps - run.step) * run.step_ms / 1000;
}
