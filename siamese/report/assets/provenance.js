// Who made the numbers: program, machine and time of every stretch of training; what is alike is said once.

function machineText(stretch) {
  const threads = plural(stretch.threads, "thread") + (stretch.ranks > 1 ? ` on ${stretch.ranks} ranks` : "");
  return [stretch.cpu, stretch.simd, stretch.device, stretch.precision, threads].filter(Boolean).join(" \u00b7 ");
}

// [{build, machine, runs, started, ended}], most runs first.
function makersOf(runs) {
  const makers = new Map();
  for (const run of runs) {
    for (const stretch of run.stretches) {
      const machine = machineText(stretch);
      const key = stretch.build + "\n" + machine;
      if (!makers.has(key)) makers.set(key, { build: stretch.build, machine, runs: new Set(), started: stretch.started, ended: stretch.ended });
      const maker = makers.get(key);
      maker.runs.add(run);
      if (stretch.started && (!maker.started || stretch.started < maker.started)) maker.started = stretch.started;
      if (stretch.ended > maker.ended) maker.ended = stretch.ended;
    }
  }
  return [...makers.values()].sort((a, b) => b.runs.size - a.runs.size);
}

function timeText(text) {
  return text ? text.replace("T", " ").replace("Z", " UTC") : MISSING;
}

function provenanceCard() {
  const makers = makersOf(DATA.runs);
  const unknown = DATA.runs.filter((run) => !run.stretches.length && run.state !== "not started").length;
  const head = (name, numeric) => el("th", { scope: "col", class: numeric ? "num" : null }, name);
  const table = makers.length ? scrollable(el("table", { class: "data" },
    el("thead", {}, el("tr", {}, head("Program"), head("Machine"), DATA.sweep ? head("Runs", true) : null, head("From"), head("To"))),
    el("tbody", {}, makers.map((maker) => el("tr", {}, el("td", {}, maker.build), el("td", {}, maker.machine),
      DATA.sweep ? el("td", { class: "num" }, String(maker.runs.size)) : null, el("td", {}, timeText(maker.started)), el("td", {}, timeText(maker.ended)))))), "Who made it") : null;
  const commands = DATA.runs.flatMap((run) => run.stretches.filter((stretch) => stretch.command)
    .map((stretch) => [DATA.sweep ? run.dir : `steps ${formatCount(stretch.from)}\u2013${formatCount(stretch.to)}`, stretch.command]));
  return el("div", { class: "card provenance" }, el("div", { class: "card-head" }, el("div", {}, el("h3", {}, "Who made it"),
    el("p", { class: "card-lead" }, "Two runs of one program on one kind of CPU give the same bits"))),
    table || emptyNote("Not recorded."),
    unknown && makers.length ? el("div", { class: "chart-note" }, el("p", {}, `Not known of ${plural(unknown, "run")}.`)) : null,
    commands.length ? el("details", { class: "fold" }, el("summary", {}, DATA.sweep ? `Commands of ${plural(new Set(commands.map(([name]) => name)).size, "run")}` : "Commands"),
      el("pre", { tabindex: "0" }, commands.map(([name, command]) => `# ${name}\n${command}\n`).join(""))) : null);
}
