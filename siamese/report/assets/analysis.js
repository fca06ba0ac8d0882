// The page of an analysis: charts by depth, one panel for each analysis. A colour and dash are a name (of a stream, a
// length, a kind of branch) on the whole page; side by side panels share their ranges.

const DATA = JSON.parse(document.getElementById("report-data").textContent);
const ANALYSES = DATA.analyses;
const SEVERAL = ANALYSES.length > 1;

function siteTitle(analysis) {
  return (x) => {
    const site = analysis.sites[x];
    if (!site) return `Site ${x}`;
    return site.kind === "close" ? "Close" : `Site ${x} \u00b7 block ${site.block} \u00b7 ${site.kind}`;
  };
}

// What others are held against: in the colour of text, which no name has.
const UNCHANGED = "nothing changed";
const ALL_STREAMS = "all streams";

// One map for the page, streams first, so that they take the hues that differ most.
const STYLES = (() => {
  const names = new Set(ANALYSES.flatMap((analysis) => analysis.sites.flatMap((site) => site.streams)));
  for (const line of DATA.sections.flatMap((one) => one.charts).flatMap((chart) => chart.panels).flat()) names.add(line.name);
  names.delete(UNCHANGED);
  names.delete(ALL_STREAMS);
  const styles = new Map([...names].map((name, at) => [name, {
    color: seriesColor(at), dash: DASHES[Math.floor(at / COLORS) % DASHES.length] }]));
  styles.set(UNCHANGED, { color: "var(--text)", dash: DASHES[2], points: false, line: true });
  return styles.set(ALL_STREAMS, { color: "var(--text)", dash: "" });
})();

function panelTitle(analysis) {
  return `${analysis.scheme} \u00b7 ${analysis.run}`;
}

function depthCharts(chart) {
  const byBlock = chart.x_label !== "site (depth)";
  const series = chart.panels.map((panel) => panel.map((line) => ({
    name: line.name, x: line.x, y: line.y, radius: 3, points: chart.points, line: !chart.points, ...STYLES.get(line.name) })));
  const span = xExtent(series.flat(), [], false);
  const common = SEVERAL && span ? { xDomain: span, yDomain: yExtent(series.flat(), span, chart.log, chart.from_zero) } : {};
  const charts = ANALYSES.map((analysis, at) => {
    const made = createChart({
      title: SEVERAL ? panelTitle(analysis) : chart.title, of: SEVERAL ? chart.title : null, ofLead: chart.lead, lead: SEVERAL ? null : chart.lead, height: SEVERAL ? 260 : 300,
      xLabel: chart.x_label, logToggles: SEVERAL ? "" : "y", yLog: chart.log, fromZero: chart.from_zero, inset: 6, formatX: (x) => String(x),
      formatTitle: byBlock ? (x) => `From block ${x}` : siteTitle(analysis), empty: "Not measured for this scheme." });
    made.update({
      series: series[at], scales: { yLog: chart.log, ...common },
      legend: series[at].map((line) => el("span", { class: "key" }, swatch(line.color, line.dash, line.points), line.name)) });
    return made.node;
  });
  if (!SEVERAL) return charts[0];
  return el("div", { class: "card" },
    el("div", { class: "card-head" }, el("div", {}, el("h3", {}, chart.title), el("p", { class: "card-lead" }, chart.lead))),
    el("div", { class: "panel-grid pairs" }, charts));
}

// What a row or column of a map is.
function axisNames(analysis) {
  const site = (at) => analysis.sites[at];
  const stream = (at, row) => (site(row) && site(row).streams[at]) ?? String(at);
  return {
    long: (axis, at, row) => (axis === "place" ? siteTitle(analysis)(at) : axis === "first" ? `from block ${at}` : axis === "last" ? `to block ${at}` : axis === "stream" ? `stream ${stream(at, row)}` : `${axis} ${at}`),
    short: (axis, at) => (axis === "place" ? (site(at) && site(at).kind === "close" ? "close" : String(at))
      : axis === "stream" ? stream(at, analysis.sites.length - 1) : String(at)),
  };
}

function maps(list) {
  return list.map((map) => depthMap(map, ANALYSES.map((analysis) => (SEVERAL ? panelTitle(analysis) : "")), ANALYSES.map(axisNames)));
}

// As a program would write it, so that a line break and a space are seen; on its own, so that what turns the direction of
// writing turns nothing else.
function tokenText(peak) {
  if (peak.token < 0) return MISSING;
  return peak.text ? [String(peak.token), " ", el("bdi", {}, el("code", {}, JSON.stringify(peak.text)))] : String(peak.token);
}

function peakTable(analysis) {
  const number = (text) => el("td", { class: "num" }, text);
  const head = ["Value", "Stream", "Where", "Sample", "Position", "Channel", "Token", "Loss unchanged", "at mean", "at zero"];
  return el("div", { class: "card" },
    el("div", { class: "card-head" }, el("div", {}, el("h3", {}, SEVERAL ? panelTitle(analysis) : "Largest values"),
      el("p", { class: "card-lead" }, "Of all streams at all places; a stream that is only carried on, once. Of a few channels the held-out loss of the changed samples, and with the channel set to its mean or to zero there"))),
    analysis.peaks.length ? scrollable(el("table", { class: "data" },
      el("thead", {}, el("tr", {}, head.map((name) => el("th", { scope: "col", class: name === "Stream" || name === "Where" ? null : "num" }, name)))),
      el("tbody", {}, analysis.peaks.map((peak) => el("tr", {}, number(formatNumber(peak.value)), el("td", {}, el("code", {}, peak.stream)),
        el("td", {}, siteTitle(analysis)(peak.place)), number(String(peak.sample)), number(String(peak.position)), number(String(peak.channel)),
        el("td", { class: "num" }, tokenText(peak)), number(isNumber(peak.loss_mean) ? formatLoss(analysis.changed_loss) : MISSING), number(formatLoss(peak.loss_mean)), number(formatLoss(peak.loss_zero))))))) : emptyNote("None."));
}

function facts(analysis) {
  const fact = (label, value) => el("div", { class: "key-number" }, el("div", { class: "label" }, label), el("div", { class: "value" }, value));
  return el("div", { class: "card" },
    el("div", { class: "card-head" }, el("div", {}, el("h3", {}, panelTitle(analysis)), el("p", { class: "card-lead" }, analysis.data))),
    el("div", { class: "key-numbers" }, fact("Held-out loss", formatLoss(analysis.loss)), fact("Family", analysis.family),
      fact("Step", formatCount(analysis.step)), fact("Parameters", formatShort(analysis.parameters)),
      fact("Blocks", formatCount(analysis.blocks)), fact("Samples", formatCount(analysis.samples)),
      fact(analysis.family === "lm" || analysis.family === "moe" ? "Tokens read by lenses" : "Samples read by lenses", formatCount(analysis.lens_tokens)),
      fact("Samples of changed passes", formatCount(analysis.changed_samples)), fact("Their loss, nothing changed", formatLoss(analysis.changed_loss)),
      isNumber(analysis.effective_depth) ? fact("Effective depth, in sites", `${formatCount(analysis.effective_depth)} of ${formatCount(2 * analysis.blocks)}`) : null),
    madeBy(analysis.made_by));
}

function madeBy(maker) {
  if (!maker) return el("p", { class: "card-lead" }, "Who made it is not recorded.");
  return el("details", { class: "fold" }, el("summary", {}, `Made by ${maker.build}`), el("p", { class: "card-lead" }, machineText(maker)),
    el("pre", { tabindex: "0" }, maker.command));
}

function build() {
  const peaks = section("peaks", "Largest values", null, ANALYSES.map(peakTable));
  const sections = DATA.sections.map((one) => [one.id, one.title, section(one.id, one.title, null, one.charts.map(depthCharts), maps(one.maps))]);
  document.getElementById("report").append(
    el("header", { class: "page-head" }, el("div", { class: "kicker" }, "siamese \u00b7 analysis"), el("h1", {}, DATA.title),
      DATA.unlike ? el("p", { class: "held" }, `These analyses are ${DATA.unlike}. What differs may be that, not the models.`) : null),
    ...ANALYSES.map(facts),
    el("nav", { "aria-label": "Sections" }, [...sections, ["peaks", "Largest values"]].map(([id, title]) => el("a", { href: "#" + id }, title))),
    ...sections.map(([, , node]) => node), peaks,
    el("footer", {}, "Written by siamese; docs/analyze.md defines every number. This page is one file and asks the network for nothing."));
}

build();
