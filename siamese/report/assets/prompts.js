// Language models: what was made of the texts of eval.prompts at each evaluation.

function promptParts(family) {
  const rows = (run) => run.evals.filter((row) => row.prompts);
  const runs = family.runs.filter((run) => rows(run).length);
  if (!runs.length) return [];
  const card = pickerCard("Continuations", "The likeliest continuation of each prompt; move the slider for earlier evaluations", runs, (run) => rows(run).map((row) => row.step),
    (run, at) => rows(run)[at].prompts.map(([prompt, text]) => el("pre", { class: "continuation" }, el("strong", {}, prompt), text)));
  return [["prompts", "Prompts", [card]]];
}
