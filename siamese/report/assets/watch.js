// The live page: what is shown is drawn anew when the server says something new, once a second at most (less often where
// drawing takes long), and not while nobody looks at the page.

const REDRAW_MS = 1000;
const DRAWING_SHARE = 10;  // of the time at most a tenth is spent on drawing
const ALERT_ORDER = ["diverged", "collapse", "spike", "skipped", "stopped", "file", "plateau"];
const MOST_ALERTS = 12;

function alertList() {
  const list = el("ul", { class: "alert-list" });
  const title = el("h2", {}, "Alerts");
  let all = false;
  const more = el("button", { type: "button", class: "quiet-button", hidden: true, onclick: () => { all = !all; refresh(last); } });
  const quiet = emptyNote("Nothing to report.");
  const node = el("section", { class: "section alerts", "aria-label": "Alerts" }, el("div", { class: "section-head" }, title), list, quiet, more);
  let last = [];
  let drawn = "";
  function refresh(runs) {
    last = runs;
    const alerts = runs.flatMap((run) => run.alerts.map((alert) => ({ run, ...alert })));
    alerts.sort((a, b) => ALERT_ORDER.indexOf(a.kind) - ALERT_ORDER.indexOf(b.kind) || b.step - a.step);
    const shown = all ? alerts : alerts.slice(0, MOST_ALERTS);
    const now = JSON.stringify([shown.map(({ run, kind, text }) => [run.id, kind, text]), alerts.length, all]);
    if (now === drawn) return;
    drawn = now;
    title.textContent = alerts.length ? `Alerts (${alerts.length})` : "Alerts";
    list.replaceChildren(...shown.map(({ run, kind, text }) => el("li", {}, el("span", { class: "pill alert " + kind }, kind), " ", el("code", {}, run.name), " ", text)));
    quiet.hidden = alerts.length > 0;
    more.hidden = alerts.length <= MOST_ALERTS;
    more.textContent = all ? "Show fewer" : `Show all ${alerts.length}`;
  }
  return { node, refresh };
}

function buildWatch() {
  const status = el("span", { class: "pill", role: "status" }, "connecting");
  const counts = el("div", { class: "pills" });
  const heading = el("h1", {}, STORE.title);
  const notes = el("div", { class: "callout diverged", role: "alert", hidden: true });
  const families = el("span", {});
  const shownCount = el("span", { class: "muted" });
  const alerts = alertList();
  const charts = watchCharts();
  const depth = watchDepth();
  const table = watchTable(() => refresh());

  const filter = el("input", { type: "search", class: "filter", placeholder: "Filter: words, -without", "aria-label": "Filter runs", oninput: () => { VIEW.filter = filter.value; refresh(); } });
  const only = el("button", { type: "button", class: "quiet-button", "aria-pressed": "false", onclick: () => {
    VIEW.onlyPinned = !VIEW.onlyPinned;
    only.setAttribute("aria-pressed", String(VIEW.onlyPinned));
    refresh();
  } }, "Only pinned");
  const clear = el("button", { type: "button", class: "quiet-button", onclick: () => { VIEW.pinned.clear(); refresh(); } }, "Unpin all");
  const controls = el("div", { class: "sticky" }, el("div", { class: "legend watch-bar" }, filter, families,
    el("span", { class: "axis-choice" }, "group by", segmented("Group by", GROUPINGS, VIEW.group, (group) => { VIEW.group = group; VIEW.hidden.clear(); refresh(); })), only, clear, shownCount));

  document.getElementById("report").append(
    el("header", { class: "page-head" }, el("div", { class: "kicker" }, "siamese \u00b7 watch"), el("div", { class: "title-row" }, heading, status, counts)),
    notes, controls, alerts.node, section("curves", "Curves", null, charts.nodes),
    section("depth", "Inside the models", "Over steps and depth, of pinned runs; without a pin, of the first that is shown", el("div", { class: "card" }, depth.node)),
    section("runs", "Runs", null, el("div", { class: "card" }, table.node)),
    el("footer", {}, "Read-only, and for this machine alone. Nothing is asked of any other."));

  let familyNames = "";
  let firstReading = true;  // runs still come in: which family is the newest is not known yet
  function refreshFamilies() {
    const names = familiesThere();
    if (!names.includes(VIEW.family) || (firstReading && !VIEW.familyChosen)) VIEW.family = newestFamily();
    firstReading = firstReading && STORE.reading;
    const now = [VIEW.family, ...names].join();
    if (now === familyNames) return;
    familyNames = now;
    families.replaceChildren(...(names.length > 1 ? [segmented("Family", names.map((name) => [name, name]), VIEW.family, (name) => {
      VIEW.family = name;
      VIEW.familyChosen = true;
      refresh();
    })] : []));
  }

  function refreshHeader(runs) {
    heading.textContent = STORE.title;
    const states = new Map();
    for (const run of RUNS.values()) states.set(shownState(run), (states.get(shownState(run)) || 0) + 1);
    counts.replaceChildren(...[...states].map(([state, count]) => el("span", { class: "pill " + state.replace(" ", "-") }, `${count} ${state}`)));
    const others = [...RUNS.values()].filter((run) => run.family !== VIEW.family).length;
    setText(shownCount, `${runs.length} of ${plural(RUNS.size - others, "run")}` + (others ? `, ${others} in other families` : "") + (STORE.reading ? ", reading\u2026" : ""));
    const lines = [...STORE.problems, ...STORE.removed.map((name) => `${name}: deleted while it was watched`)];
    notes.hidden = !lines.length;
    notes.replaceChildren(el("ul", {}, lines.map((line) => el("li", {}, line))));
  }

  function refresh() {
    refreshFamilies();
    const runs = filteredRuns();
    const colors = colorsOf();
    const drawn = drawnRuns(runs);
    refreshHeader(runs);
    alerts.refresh(runs);
    charts.refresh(drawn, colors);
    depth.refresh(drawn);
    table.refresh(groupsOf(runs), colors);
  }

  let due = null;
  let drawnAt = -Infinity;
  let pause = REDRAW_MS;
  function soon() {
    if (due !== null || document.hidden) return;
    due = setTimeout(() => requestAnimationFrame(() => {
      due = null;
      const begin = performance.now();
      refresh();
      drawnAt = performance.now();
      pause = Math.max(REDRAW_MS, DRAWING_SHARE * (drawnAt - begin));
      document.body.dataset.drawMs = String(Math.round(drawnAt - begin));
      document.body.dataset.runs = String(RUNS.size);
    }), Math.max(0, drawnAt + pause - performance.now()));
  }
  document.addEventListener("visibilitychange", soon);
  setInterval(soon, 30000);  // "silent for" grows without news

  const say = (text, kind) => {
    status.textContent = text;
    status.className = "pill " + kind;
  };
  const source = new EventSource("/events");
  source.onopen = () => {
    forgetAll();
    depth.forget();
    table.forget();
    say("live", "finished");
  };
  source.onmessage = (event) => {
    const message = JSON.parse(event.data);
    mergeMessage(message);
    if (!message.more) soon();  // else the rest is on its way
  };
  source.onerror = () => say("no answer; trying again", "diverged");
  refresh();
}

buildWatch();
