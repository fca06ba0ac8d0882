// One hue for each variant, one shade of it for each of its learning rates; nothing else on a page of variants has these hues.

const COLORS = 8;
const DASHES = ["", "7 3", "2 3", "10 3 2 3", "5 2 1 2 1 2"];

function seriesColor(at) {
  return `var(--series-${at % COLORS})`;
}

// Shade number `at` of `count`: from pale, towards the background, to deep, towards the text.
function shadeOf(color, at, count) {
  if (count < 2 || at < 0) return color;
  const place = at / (count - 1) - 0.5;
  if (Math.abs(place) < 1e-9) return color;
  const share = Math.round(100 - 90 * Math.abs(place));
  return `color-mix(in srgb, ${color} ${share}%, var(${place < 0 ? "--surface" : "--text"}))`;
}

// A ramp for heat maps, dark to light, even in lightness (after matplotlib's viridis).
const RAMP = [[68, 1, 84], [65, 68, 135], [42, 120, 142], [34, 168, 132], [122, 209, 81], [253, 231, 37]];

function rampColor(share) {
  const place = Math.min(1, Math.max(0, share)) * (RAMP.length - 1);
  const at = Math.min(RAMP.length - 2, Math.floor(place));
  return `rgb(${RAMP[at].map((from, channel) => Math.round(from + (place - at) * (RAMP[at + 1][channel] - from))).join(",")})`;
}
