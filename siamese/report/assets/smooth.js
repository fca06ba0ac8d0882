// Smoothing by a running median: it does not lag behind a falling loss, and a spike neither bends nor widens it.
// Spikes are then drawn as what they are: the raw values behind the line, or the tips of the band.

const smoothed = new WeakMap();

function insertSorted(sorted, value) {
  sorted.splice(sortedPlace(sorted, value), 0, value);
}

function sortedPlace(sorted, value) {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

// Median of the `span` values around each; fewer at the start (where a curve is steep, as many before as after) and at
// the end (as many as there are). Missing values are stepped over and stay missing.
function smooth(values, span) {
  if (span <= 1) return values;
  if (!smoothed.has(values)) smoothed.set(values, new Map());
  const cache = smoothed.get(values);
  if (cache.has(span)) return cache.get(span);
  const places = values.map((_, at) => at).filter((at) => isNumber(values[at]));
  const half = span >> 1;
  const result = values.map(() => null);
  const sorted = [];
  let [first, last] = [0, -1];  // the window, as indices into places
  places.forEach((place, at) => {
    const from = at - Math.min(half, at);
    const to = Math.min(places.length - 1, at + Math.min(half, at));
    while (last < to) insertSorted(sorted, values[places[++last]]);
    while (first < from) sorted.splice(sortedPlace(sorted, values[places[first++]]), 1);
    const middle = sorted.length >> 1;
    result[place] = sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
  });
  cache.set(span, result);
  return result;
}

// The smoothed values, except where the raw one stands out far above the usual scatter: a spike keeps its height.
function withSpikes(raw, smooth, span) {
  if (span <= 1) return raw;
  const scatter = raw.map((value, at) => Math.abs(value - smooth[at])).filter((_, at) => isNumber(raw[at])).sort((a, b) => a - b);
  const limit = 8 * (scatter[scatter.length >> 1] || 0);
  return smooth.map((value, at) => (isNumber(raw[at]) && isNumber(value) && raw[at] - value > limit ? raw[at] : value));
}

const SPANS = [1, 5, 11, 21, 51, 101];  // points in the running median

function smoothingSlider(initial, choose) {
  return stepSlider("Smoothing", SPANS, SPANS.indexOf(initial), (span) => (span > 1 ? String(span) : "off"), (at) => choose(SPANS[at]));
}
