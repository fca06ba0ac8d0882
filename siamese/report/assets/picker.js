// A card about one run at one of its recorded steps: a choice of the run where there are several, a slider over steps.
//   draw(run, at) -> nodes, `at` an index into stepsOf(run); the newest step of the first run is shown first.
function pickerCard(title, lead, runs, stepsOf, draw) {
  const view = { run: runs[0], at: stepsOf(runs[0]).length - 1 };
  const body = el("div");
  const slot = el("span", { class: "slider-slot" });
  const show = (at) => {
    view.at = at;
    body.replaceChildren(...draw(view.run, at));
  };
  // Another run is shown at the same point of its training: its newest step, or the last one not after the present one.
  const choose = (run) => {
    const before = stepsOf(view.run);
    const steps = stepsOf(run);
    const newest = run === view.run || view.at === before.length - 1;
    const at = newest ? steps.length - 1 : Math.max(0, steps.filter((step) => step <= before[view.at]).length - 1);
    view.run = run;
    slot.replaceChildren(...(steps.length > 1 ? [stepSlider("Step", steps, at, formatCount, show)] : []));
    show(at);
  };
  const picker = runs.length > 1 ? el("select", { class: "run-picker", "aria-label": "Run", onchange: (event) => choose(runs[event.currentTarget.selectedIndex]) },
    runs.map((run) => el("option", {}, runName(run)))) : null;
  choose(view.run);
  return el("div", { class: "card" }, el("div", { class: "card-head" },
    el("div", {}, el("h3", {}, title), el("p", { class: "card-lead" }, lead)), el("div", { class: "tools" }, picker, slot)), body);
}
