// Image diffusion models: the parts of the loss, and what drawn samples look like.

const FEATURE_DISTANCE_WORDS = "Feature distance: Fr\u00e9chet distance between the features the named classifier gives to samples and to held-out images; comparable only under the same classifier and number of samples.";

function classifiers(family) {
  return [...new Set(family.runs.flatMap((run) => run.evals.map((row) => row.samples && row.samples.classifier)).filter(Boolean))];
}

// Small pictures are enlarged by a whole factor, so that every point stays a square.
function gridImage(source, name) {
  return el("img", {
    class: "sample-grid", src: source, alt: name,
    onload: ({ currentTarget: image }) => { image.style.width = image.naturalWidth * Math.max(1, Math.floor(768 / image.naturalWidth)) + "px"; },
  });
}

function gridCard(family) {
  const rows = (run) => run.evals.filter((row) => row.samples && row.samples.grid);
  const runs = family.runs.filter((run) => rows(run).length);
  if (!runs.length) return el("div", { class: "card" }, el("h3", {}, "Samples"), emptyNote("No picture of samples has been recorded."));
  const card = pickerCard("Samples", "As drawn at an evaluation; move the slider for earlier ones", runs, (run) => rows(run).map((row) => row.step), (run, at) => {
    const row = rows(run)[at];
    const { count, sampler, steps, guidance, classifier } = row.samples;
    const facts = [
      `step ${formatCount(row.step)}`, count && `${formatCount(count)} samples drawn`, sampler && sampler + (steps ? `, ${plural(steps, "step")}` : ""),
      isNumber(guidance) && `guidance ${formatNumber(guidance, 3)}`, isNumber(row.feature_distance) && `feature distance ${formatFixed(row.feature_distance, 2)}`,
      isNumber(row.class_agreement) && `class agreement ${formatPercent(row.class_agreement)}`, classifier && ["classifier ", el("code", {}, classifier)],
    ].filter(Boolean);
    return [gridImage(row.samples.grid, `Samples of ${runName(run)} at step ${row.step}`), el("div", { class: "facts" }, facts.map((fact) => el("span", {}, fact)))];
  });
  if (DATA.grids_left_out) {
    card.append(el("div", { class: "chart-note" }, el("p", {}, `${plural(DATA.grids_left_out, "older picture")} left out: a page holds at most 8 MB of them. The run folders have them all.`)));
  }
  return card;
}

function sampleCharts(family) {
  const measured = (name) => family.runs.some((run) => run.evals.some((row) => isNumber(row[name])));
  if (!measured("feature_distance") && !measured("class_agreement")) {
    return el("div", { class: "card" }, emptyNote("No classifier was given to judge the samples: feature distance and class agreement were not measured."));
  }
  const named = classifiers(family);
  const judge = named.length === 1 ? named[0] : "the classifier";
  return el("div", { class: "pair" },
    evalChart(family, [["feature_distance", "feature distance"]], {
      title: "Feature distance", lead: `Fr\u00e9chet distance of samples and held-out images in the features of ${judge}; lower is better`, fromZero: true, empty: "Not measured yet." }),
    evalChart(family, [["class_agreement", "class agreement"]], {
      title: "Class agreement", lead: `Share of the samples that ${judge} takes for the class they were drawn as`, empty: "Not measured yet.", ...SHARE_AXIS }));
}

function diffusionParts(family) {
  const parts = [];
  if (family.runs.some((run) => run.mse || run.vlb || run.evals.some((row) => isNumber(row.mse)))) {
    const part = (name, title, lead) => quantityChart(family, name, { title, lead, yLog: true, evals: name }, DEFAULT_SPAN);
    parts.push(["diffusion", "Parts of the loss", el("div", { class: "pair" },
      part("mse", "MSE", "Error of the predicted noise; dots: held-out"),
      part("vlb", "VLB", "Bound that trains the variance; dots: held-out"))]);
  }
  if (family.runs.some((run) => run.evals.some((row) => row.samples))) parts.push(["samples", "Samples", [gridCard(family), sampleCharts(family)]]);
  return parts;
}
