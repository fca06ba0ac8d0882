// Which runs are shown, in which groups and colours, and which are pinned. Pins go by name: they survive a new
// connection, and a run that was deleted and came back.

const VIEW = { filter: "", group: "variant", family: null, familyChosen: false, pinned: new Set(), hidden: new Set(), onlyPinned: false };

const GROUPINGS = [["variant", "Variant"], ["setting", "Variant and rate"], ["folder", "Folder"], ["state", "State"], ["none", "None"]];

function folderOf(run) {
  const at = run.name.lastIndexOf("/");
  return at > 0 ? run.name.slice(0, at) : "here";
}

function groupName(run) {
  switch (VIEW.group) {
    case "variant": return run.variant;
    case "setting": return `${run.variant} \u00b7 ${formatLearningRate(run.lr)}`;
    case "folder": return folderOf(run);
    case "state": return shownState(run);
    default: return "All runs";
  }
}

// Every word must be found in what is written about a run; a word after a minus must not.
function matches(run, words) {
  if (!words.length) return true;
  const text = [run.name, run.variant, run.scheme, run.family, shownState(run), isNumber(run.lr) ? "lr " + formatLearningRate(run.lr) : "",
    isNumber(run.seed) ? "seed " + run.seed : "", ...run.alerts.map((alert) => alert.kind)].join(" ").toLowerCase();
  return words.every((word) => (word.length > 1 && word.startsWith("-") ? !text.includes(word.slice(1)) : text.includes(word)));
}

function familiesThere() {
  return [...new Set([...RUNS.values()].map((run) => run.family))].sort();
}

// What somebody who opens the page came for: a family with a run that is running, of several the one that wrote last, or
// the larger one.
function newestFamily() {
  const found = new Map();
  for (const run of RUNS.values()) {
    const [running, changed, count] = found.get(run.family) || [0, 0, 0];
    found.set(run.family, [Math.max(running, run.state === "running" ? 1 : 0), Math.max(changed, run.changed || 0), count + 1]);
  }
  const later = ([, a], [, b]) => b[0] - a[0] || b[1] - a[1] || b[2] - a[2];
  return [...found].sort(later)[0]?.[0] ?? null;
}

// The runs of the chosen family that the filter lets through, as they came.
function filteredRuns() {
  const words = VIEW.filter.toLowerCase().split(/\s+/).filter(Boolean);
  const families = familiesThere();
  const family = families.includes(VIEW.family) ? VIEW.family : families[0];
  return [...RUNS.values()].filter((run) => run.family === family && matches(run, words));
}

function isPinned(run) {
  return VIEW.pinned.has(run.name);
}

// [{name, runs, hidden}], in the order of their first run; rates of a variant stand together, ascending.
function groupsOf(runs) {
  const groups = new Map();
  const variants = [...new Set(runs.map((run) => run.variant))];
  const place = (run) => variants.indexOf(run.variant);
  const ordered = VIEW.group === "setting" ? [...runs].sort((a, b) => place(a) - place(b) || (a.lr ?? Infinity) - (b.lr ?? Infinity)) : runs;
  for (const run of ordered) {
    const name = groupName(run);
    if (!groups.has(name)) groups.set(name, { name, runs: [], hidden: VIEW.hidden.has(name) });
    groups.get(name).runs.push(run);
  }
  return [...groups.values()];
}

// Hue: the variant, in the order of its first run on the page; shade: its learning rate. So a colour means the same in
// every grouping and under every filter.
function colorsOf() {
  const variants = [...new Set([...RUNS.values()].map((run) => run.variant))];
  const ratesOf = new Map();  // of a variant in a family: a rate of another family says nothing here
  const setting = (run) => JSON.stringify([run.family, run.variant]);
  for (const run of RUNS.values()) {
    if (!ratesOf.has(setting(run))) ratesOf.set(setting(run), new Set());
    if (isNumber(run.lr)) ratesOf.get(setting(run)).add(run.lr);
  }
  const sorted = new Map([...ratesOf].map(([name, rates]) => [name, [...rates].sort((a, b) => a - b)]));
  const colors = new Map();
  for (const run of RUNS.values()) {
    const at = variants.indexOf(run.variant);
    const rates = sorted.get(setting(run));
    colors.set(run.id, { color: shadeOf(seriesColor(at), rates.indexOf(run.lr), rates.length), hue: seriesColor(at), dash: DASHES[Math.floor(at / COLORS) % DASHES.length] });
  }
  return colors;
}

function drawnRuns(runs) {
  const shown = runs.filter((run) => isPinned(run) || !VIEW.hidden.has(groupName(run)));
  const pinned = shown.filter(isPinned);
  return VIEW.onlyPinned && pinned.length ? pinned : shown;
}
