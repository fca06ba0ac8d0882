// Language models: each held-out set of data.mix, and the downstream tasks of eval.tasks, at each evaluation.

function numbersTable(heads, rows) {
  return scrollable(el("table", { class: "data" },
    el("thead", {}, el("tr", {}, heads.map((head, at) => el("th", { scope: "col", class: at ? "num" : null }, head)))),
    el("tbody", {}, rows.map(([name, ...values]) => el("tr", {}, el("th", { scope: "row" }, name), values.map((value) => el("td", { class: "num" }, value)))))));
}

function heldOutCard(family, key, title, lead, heads, row) {
  const rows = (run) => run.evals.filter((each) => each[key]);
  const runs = family.runs.filter((run) => rows(run).length);
  if (!runs.length) return null;
  return pickerCard(title, lead, runs, (run) => rows(run).map((each) => each.step), (run, at) => [numbersTable(heads, rows(run)[at][key].map(row))]);
}

function heldOutParts(family) {
  const fixed = (value, digits) => (isNumber(value) ? formatFixed(value, digits) : MISSING);
  const sets = heldOutCard(family, "sets", "Held-out sets", "Each source of data.mix; the held-out loss is their mean by weight; move the slider for earlier evaluations",
    ["set", "loss", "perplexity", "bits per byte"], ([name, loss, perplexity, bits]) => [name, fixed(loss, 4), fixed(perplexity, 3), fixed(bits, 4)]);
  const tasks = heldOutCard(family, "tasks", "Downstream tasks", "Each by the metric that its set is reported by; move the slider for earlier evaluations",
    ["task", "metric", "value", "documents"], ([name, metric, value, documents]) => [name, metric, fixed(value, 4), formatCount(documents)]);
  return [sets && ["sets", "Held-out sets", sets], tasks && ["tasks", "Tasks", tasks]].filter(Boolean);
}
