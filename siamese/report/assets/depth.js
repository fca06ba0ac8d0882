// Inside the model at one recorded step: gradient norm and stream RMS over depth.

// The newest profile of a run at or before `step`; a run that began recording later shows its first.
function profileAt(run, step) {
  if (!run.depth || !run.depth.steps.length) return null;
  let at = 0;
  while (at + 1 < run.depth.steps.length && run.depth.steps[at + 1] <= step) ++at;
  return { step: run.depth.steps[at], row: run.depth.rows[at], sites: run.depth.sites, streams: run.depth.streams };
}

function meanColumn(lists) {
  const length = Math.max(0, ...lists.map((list) => list.length));
  return Array.from({ length }, (_, at) => columnMean(lists, at));
}

// The profiles of a group at a step: living seeds; the diverged ones when there are no others.
function groupProfiles(group, step) {
  const living = group.members.filter((run) => run.state !== "diverged" && run.depth);
  return (living.length ? living : group.members).map((run) => profileAt(run, step)).filter(Boolean);
}

function depthSection(family) {
  const steps = [...new Set(family.runs.flatMap((run) => (run.depth ? run.depth.steps : [])))].sort((a, b) => a - b);
  if (!steps.length) return [el("div", { class: "card" }, emptyNote("No depth profile has been recorded yet."))];
  const view = { step: steps[steps.length - 1], kind: "all", log: true, what: "streams" };
  const kinds = [...new Set(family.runs.flatMap((run) => (run.depth ? run.depth.sites.map((site) => site.kind) : [])))];

  const keep = (sites) => sites.map((site, at) => at).filter((at) => view.kind === "all" || sites[at].kind === view.kind);
  const siteTitle = (x) => {
    const run = family.runs.find((candidate) => candidate.depth && candidate.depth.sites[x]);
    const site = run && run.depth.sites[x];
    return site ? `Site ${x} \u00b7 block ${site.block} \u00b7 ${site.kind}` : `Site ${x}`;
  };
  const axis = { xLabel: "site (depth)", formatX: (x) => String(x), formatTitle: siteTitle, yLog: true };

  const gradient = createChart({ title: "Gradient norm by depth", lead: "Of the parameters at each site", height: 280, ...axis });
  const panels = el("div", { class: "panel-grid" });
  const caption = el("p", { class: "card-lead" });
  const panelCharts = new Map();

  function drawGradient() {
    gradient.update({
      series: visibleGroups(family).flatMap((group) => {
        const profiles = groupProfiles(group, view.step);
        if (!profiles.length) return [];
        const at = keep(profiles[0].sites);
        const pick = (list) => at.map((index) => list[index]);
        const lists = profiles.map((profile) => pick(profile.row.grad));
        const low = lists.length > 1 ? at.map((_, i) => columnExtreme(lists, i, Math.min)) : null;
        const high = lists.length > 1 ? at.map((_, i) => columnExtreme(lists, i, Math.max)) : null;
        return [{ name: DATA.sweep ? group.name : "gradient norm", group: group.index, color: group.color, dash: group.dash, x: at, y: meanColumn(lists), low, high }];
      }),
      spec: { empty: visibleGroups(family).length ? "No depth profile has been recorded for these runs." : NOTHING_SHOWN },
    });
  }

  // In a sweep colour is the setting, as everywhere on the page, and the dash the stream; of one run colour is the stream.
  // Thick: before the norm (or into the branch); thin and pale: after it (or out of the branch).
  function panelSeries(group, profiles) {
    const at = keep(profiles[0].sites);
    // Sites where a stream has no norm of its own are joined over, with a dot where there is one.
    const style = (stream) => (DATA.sweep ? { color: group.color, dash: DASHES[stream % DASHES.length] } : { color: seriesColor(2 + stream), dash: "" });
    const line = (name, { color, dash }, after, lists) => {
      const values = meanColumn(lists.map((list) => at.map((index) => list[index] ?? null)));
      const there = at.map((_, i) => i).filter((i) => isNumber(values[i]));
      return { name, color, dash, x: there.map((i) => at[i]), y: there.map((i) => values[i]), width: after ? 1.25 : 2.25, opacity: after ? 0.6 : 1,
        points: there.length < at.length, radius: 2.5 };
    };
    const lines = view.what === "branch"
      ? [line("into the branch", style(0), false, profiles.map((p) => p.row.in)), line("out of the branch", style(1), true, profiles.map((p) => p.row.out))]
      : profiles[0].streams.flatMap((name, stream) => [
        line(`${name} before norm`, style(stream), false, profiles.map((p) => p.row.before[stream])),
        line(`${name} after norm`, style(stream), true, profiles.map((p) => p.row.after[stream]))]);
    return lines.filter((one) => one.y.length);
  }

  function drawPanels() {
    const groups = visibleGroups(family);
    const nodes = [];
    const single = groups.length === 1;
    // One common vertical range, or the panels could not be compared.
    const drawn = groups.map((group) => ({ group, profiles: groupProfiles(group, view.step) }));
    const all = drawn.flatMap(({ group, profiles }) => (profiles.length ? panelSeries(group, profiles) : []));
    const span = xExtent(all, [], false);
    const common = span && groups.length > 1 ? yExtent(all, span, view.log, false) : null;
    for (const { group, profiles } of drawn) {
      if (!panelCharts.has(group.index)) {
        panelCharts.set(group.index, createChart({ title: DATA.sweep ? group.name : "", of: "RMS by depth", height: 240, logToggles: "", ...axis }));
      }
      const chart = panelCharts.get(group.index);
      nodes.push(chart.node);
      const series = profiles.length ? panelSeries(group, profiles) : [];
      const lostAll = group.diverged === group.runs.length;
      const at = profiles.length ? Math.max(...profiles.map((profile) => profile.step)) : null;
      chart.update({
        series,
        legend: series.map((one) => el("span", { class: "key" }, swatch(one.color, one.dash, false, one), one.name)),
        note: profiles.length && (at !== view.step || lostAll)
          ? [el("p", {}, lostAll ? el("span", { class: "lost" }, "\u2715 diverged; ") : "", `recorded at step ${formatCount(at)}`)] : [],
        scales: { yLog: view.log, yDomain: common },
        spec: { height: single ? 340 : 240, empty: "No depth profile has been recorded." },
      });
    }
    panels.classList.toggle("single", single);
    panels.classList.toggle("pairs", groups.length === 2 || groups.length === 4);
    panels.replaceChildren(...(nodes.length ? nodes : [emptyNote(NOTHING_SHOWN)]));
    caption.textContent = (view.what === "branch" ? "RMS of what goes into each branch and what comes out"
      : "RMS of each stream as a site reads it: thick before its own norm, thin after") + (family.runs.length > 1 ? "; mean over seeds" : "");
  }

  const refresh = () => { drawGradient(); drawPanels(); };
  onVisibleChange(refresh);
  refresh();
  const controls = el("div", { class: "card control-bar" },
    stepSlider("Recorded step", steps, steps.length - 1, formatCount, (at) => { view.step = steps[at]; refresh(); }),
    kinds.length > 1 ? segmented("Sites", [["all", "All sites"], ...kinds.map((kind) => [kind, kind])], "all", (kind) => { view.kind = kind; refresh(); }) : null);
  return [controls, gradient.node, el("div", { class: "card" },
    el("div", { class: "card-head" }, el("div", {}, el("h3", {}, "RMS by depth"), caption),
      el("div", { class: "tools" },
        segmented("Quantity", [["streams", "Streams"], ["branch", "Branch"]], "streams", (what) => { view.what = what; drawPanels(); }),
        axisChoice("Vertical axis", true, (log) => { view.log = log; drawPanels(); }))),
    panels), heatCard(family)];
}

// Depth and time together, of one run.
function heatCard(family) {
  const runs = family.runs.filter((run) => run.depth && run.depth.steps.length);
  const view = { run: runs[0], choice: "grad" };
  const slot = el("span", {});
  const picker = runs.length > 1 ? el("select", { class: "run-picker", "aria-label": "Run", onchange: (event) => { view.run = runs[event.currentTarget.selectedIndex]; choose(); } },
    runs.map((run) => el("option", {}, runName(run)))) : null;
  const heat = createHeat({ title: "Over depth and time", lead: "Each column a recorded step, each row a site, the first at the bottom", height: 280, controls: [picker, slot] });
  const draw = () => heat.update(heatContent(view.run.depth, view.choice));
  const choose = () => {
    if (!heatChoices(view.run.depth).some(([key]) => key === view.choice)) view.choice = "grad";
    slot.replaceChildren(heatPicker(view.run.depth, view.choice, "Quantity", (choice) => { view.choice = choice; draw(); }));
    draw();
  };
  choose();
  return heat.node;
}
