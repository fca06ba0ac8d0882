// Accuracy by operation and number of digits: one small heat table per group, answers pooled over its seeds.

function heatCell(correct, count) {
  if (!count) return el("td", { class: "heat none" }, MISSING);
  const share = correct / count;
  return el("td", {
    class: "heat" + (share > 0.72 ? " strong" : ""), style: `--share:${(share * 100).toFixed(1)}%`, title: `${formatCount(correct)} of ${formatCount(count)}`,
  }, formatPercent(share, share === 1 ? 0 : 1).replace("%", ""));
}

function heatTable(groups) {
  const operations = [...new Set(groups.map((group) => group.operation))];
  const digits = [...new Set(groups.map((group) => group.digits))].sort((a, b) => a - b);
  const pooled = (match) => groups.filter(match).reduce(([correct, count], g) => [correct + g.correct, count + g.count], [0, 0]);
  const line = (name, match) => el("tr", {}, el("th", { scope: "row" }, name),
    digits.map((digit) => heatCell(...pooled((g) => match(g) && g.digits === digit))), heatCell(...pooled(match)));
  return scrollable(el("table", { class: "heat-table" },
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "digits"), digits.map((digit) => el("th", { scope: "col" }, String(digit))), el("th", { scope: "col" }, "all"))),
    el("tbody", {}, operations.map((operation) => line(operation, (g) => g.operation === operation)), operations.length > 1 ? line("all", () => true) : null)));
}

function accuracyTables(family) {
  const holder = el("div", { class: "card" });
  const refresh = () => {
    const cards = [];
    for (const group of visibleGroups(family)) {
      const cells = DATA.sweep ? group.accuracy_groups : group.members[0].accuracy_groups;
      if (!cells.length) {
        if (DATA.sweep) cards.push([group, emptyNote(group.diverged === group.runs.length ? "Every run diverged." : "Not measured yet.")]);
        continue;
      }
      cards.push([group, heatTable(cells)]);
    }
    const measured = cards.some(([, node]) => !node.classList.contains("empty"));
    holder.replaceChildren(
      el("div", { class: "card-head" }, el("div", {}, el("h3", {}, "Accuracy by operation and digits"),
        el("p", { class: "card-lead" }, "Percent of exact answers at the last evaluation" + (DATA.sweep ? ", pooled over seeds" : "")))),
      measured ? el("div", { class: "heat-grid" }, cards.map(([group, table]) => el("div", { class: "heat-card" },
        DATA.sweep ? el("h4", {}, el("span", { class: "dot", style: `background:${group.color}` }), group.name) : null, table)))
        : emptyNote(visibleGroups(family).length ? "No accuracy has been measured by operation." : NOTHING_SHOWN));
  };
  onVisibleChange(refresh);
  refresh();
  return holder;
}
