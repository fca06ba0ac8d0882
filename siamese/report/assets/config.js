// Configuration: what differs between the runs of a sweep, and each resolved file word for word.

function differenceTable() {
  if (!DATA.differences.length) return emptyNote("The resolved configurations do not differ, or none has been written yet.");
  return scrollable(el("table", { class: "data" },
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Run"), DATA.differences.map((one) => el("th", { scope: "col" }, el("code", {}, one.key))))),
    el("tbody", {}, DATA.runs.map((run, at) => el("tr", {}, el("td", {}, el("code", {}, run.dir)),
      DATA.differences.map((one) => el("td", {}, one.values[at] === "" ? MISSING : one.values[at])))))));
}

function configDetails(run, open) {
  return el("details", { class: "fold config", open },
    el("summary", {}, DATA.sweep ? run.dir : "config.yaml", run.config ? null : el("span", { class: "muted" }, " \u2013 not written yet")),
    run.config ? el("pre", { tabindex: "0" }, run.config) : null);
}

function configSection() {
  if (!DATA.sweep) return [provenanceCard(), el("div", { class: "card" }, configDetails(DATA.runs[0], false))];
  return [
    provenanceCard(),
    el("div", { class: "card" }, el("div", { class: "card-head" }, el("div", {}, el("h3", {}, "What differs between the runs"))), differenceTable()),
    el("div", { class: "card" }, el("div", { class: "card-head" }, el("div", {}, el("h3", {}, "Resolved configurations"))),
      DATA.runs.map((run) => configDetails(run, false))),
  ];
}
