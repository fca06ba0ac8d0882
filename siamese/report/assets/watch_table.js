// The runs as rows below their groups. Rows stay the same elements while numbers change, so that a focus, a selection or
// a pointer on a button is not lost once a second.

const RUN_COLUMNS = [
  { title: "Run", value: (run) => run.name },
  { title: "Val loss", numeric: true, value: (run) => run.val_loss, text: (run) => formatLoss(run.val_loss) },
  { title: "State", value: (run) => shownState(run) },
  { title: "Step", numeric: true, value: (run) => run.step, text: (run) => formatCount(run.step) + (run.steps ? `\u2009/\u2009${formatCount(run.steps)}` : "") },
  { title: "Train loss", numeric: true, value: (run) => run.train_loss, text: (run) => formatLoss(run.train_loss) },
  { title: "Rate", numeric: true, value: (run) => run.lr, text: (run) => formatLearningRate(run.lr) },
  { title: "Seed", numeric: true, value: (run) => run.seed, text: (run) => (isNumber(run.seed) ? String(run.seed) : MISSING) },
  { title: "Speed", numeric: true, value: (run) => speedOf(run)[0], text: (run) => (isNumber(speedOf(run)[0]) ? formatShort(speedOf(run)[0]) + speedOf(run)[1] : MISSING) },
  { title: "Left", numeric: true, value: remainingSeconds, text: (run) => formatDuration(remainingSeconds(run)) },
  { title: "Alerts", value: (run) => -run.alerts.length },
];

const [STATE_COLUMN, ALERT_COLUMN] = ["State", "Alerts"].map((title) => RUN_COLUMNS.findIndex((column) => column.title === title));

function speedOf(run) {
  return run.family === "vit" || run.family === "dit" ? [run.samples_per_s, " im/s"] : [run.tokens_per_s, " tok/s"];
}

function spanText(values) {
  const [low, high] = [Math.min(...values), Math.max(...values)].map(formatLoss);
  return low === high ? low : `${low} to ${high}`;
}

function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

function watchTable(changed) {
  const rows = new Map();
  const heads = new Map();
  const folded = new Set();
  let order = { column: RUN_COLUMNS[0], down: false };
  const body = el("tbody");

  const columnHeads = RUN_COLUMNS.map((column) => {
    const head = el("th", { scope: "col", class: column.numeric ? "num" : null, "aria-sort": column === order.column ? "ascending" : "none" },
      el("button", { type: "button", onclick: () => {
        order = { column, down: order.column === column ? !order.down : false };
        columnHeads.forEach((other) => other.setAttribute("aria-sort", other === head ? (order.down ? "descending" : "ascending") : "none"));
        changed();
      } }, column.title));
    return head;
  });

  function makeRow(run) {
    const pin = el("button", { type: "button", class: "pin", "aria-label": `Pin ${run.name}`, title: "Pinned runs are drawn in front and by depth", onclick: () => {
      if (!VIEW.pinned.delete(run.name)) VIEW.pinned.add(run.name);
      changed();
    } }, "\u25cf");
    const cells = RUN_COLUMNS.map((column) => el("td", { class: column.numeric ? "num" : null }));
    const name = el("a", { href: `/report/${run.id}`, target: "_blank", rel: "noopener", title: "The report of this run as it is now" }, breakable(run.name));
    const dot = el("span", { class: "dot" });
    cells[0].append(dot, name);
    return { node: el("tr", {}, el("td", {}, pin), cells), pin, dot, cells, state: null, alerts: null };
  }

  function fillRow(row, run, { color }) {
    row.pin.setAttribute("aria-pressed", String(isPinned(run)));
    if (row.color !== color) row.dot.style.background = row.color = color;
    RUN_COLUMNS.forEach((column, at) => column.text && setText(row.cells[at], column.text(run)));
    const state = shownState(run);
    const told = state === "silent" ? `silent for ${formatDuration(secondsSilent(run))}` : state;
    if (row.state !== told) row.cells[STATE_COLUMN].replaceChildren(el("span", { class: "pill " + state.replace(" ", "-") }, row.state = told));
    const alerts = run.alerts.map((alert) => alert.kind).join(" ");
    if (row.alerts !== alerts) row.cells[ALERT_COLUMN].replaceChildren(...run.alerts.map((alert) => el("span", { class: "pill alert", title: alert.text }, alert.kind)));
    row.alerts = alerts;
  }

  function groupHead(group) {
    if (!heads.has(group.name)) {
      const fold = el("button", { type: "button", class: "fold-button", onclick: () => {
        if (!folded.delete(group.name)) folded.add(group.name);
        changed();
      } });
      const show = el("button", { type: "button", class: "quiet-button", onclick: () => {
        if (!VIEW.hidden.delete(group.name)) VIEW.hidden.add(group.name);
        changed();
      } });
      heads.set(group.name, { node: el("tr", { class: "group-row" }, el("th", { colspan: RUN_COLUMNS.length + 1, scope: "rowgroup" }, el("div", { class: "group-head" }, fold, show))), fold, show });
    }
    const head = heads.get(group.name);
    const open = !folded.has(group.name);
    const losses = group.runs.map((run) => run.train_loss).filter(isNumber);
    const running = group.runs.filter((run) => run.state === "running").length;
    head.fold.setAttribute("aria-expanded", String(open));
    setText(head.fold, `${open ? "\u25be" : "\u25b8"} ${group.name} \u2013 ${plural(group.runs.length, "run")}, ${running} running` + (losses.length ? `, train loss ${spanText(losses)}` : ""));
    head.show.setAttribute("aria-pressed", String(!group.hidden));
    setText(head.show, group.hidden ? "Show curves" : "Hide curves");
    return head.node;
  }

  function refresh(groups, colors) {
    const nodes = [];
    for (const group of groups) {
      if (VIEW.group !== "none") nodes.push(groupHead(group));
      if (VIEW.group !== "none" && folded.has(group.name)) continue;
      for (const run of [...group.runs].sort(compareBy(order.column.value, order.down))) {
        if (!rows.has(run.id)) rows.set(run.id, makeRow(run));
        const row = rows.get(run.id);
        fillRow(row, run, colors.get(run.id));
        nodes.push(row.node);
      }
    }
    for (const id of [...rows.keys()]) if (!RUNS.has(id)) rows.delete(id);
    const same = nodes.length === body.children.length && nodes.every((node, at) => node === body.children[at]);
    if (!same) body.replaceChildren(...nodes);
  }
  return { node: scrollable(el("table", { class: "data watch-table" }, el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Pin"), columnHeads)), body), "Runs"), refresh, forget: () => rows.clear() };
}
