// Numbers for people. A missing number is an en dash everywhere.

const MISSING = "\u2013";

// Making a formatter costs far more than using it: one for each number of digits.
const FORMATTERS = new Map();

function withDigits(value, digits) {
  if (!FORMATTERS.has(digits)) FORMATTERS.set(digits, new Intl.NumberFormat("en-US", { maximumSignificantDigits: digits }));
  return FORMATTERS.get(digits).format(value);
}

const WHOLE = new Intl.NumberFormat("en-US");

function isNumber(value) {
  return typeof value === "number" && Number.isFinite(value);
}

// About `digits` significant digits: 0.01234, 12.34, 12,340, 1.2e-7.
function formatNumber(value, digits = 4) {
  if (!isNumber(value)) return MISSING;
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size >= 1e7 || size < 1e-3) {
    const [mantissa, exponent] = value.toExponential(Math.max(0, digits - 2)).split("e");
    return (mantissa.includes(".") ? mantissa.replace(/\.?0+$/, "") : mantissa) + "e" + exponent.replace("+", "");
  }
  return withDigits(value, Math.max(digits, size >= 1000 ? 5 : 1));
}

function formatFixed(value, decimals) {
  return isNumber(value) ? value.toFixed(decimals) : MISSING;
}

// Four decimals; a loss that broke without becoming infinite would be a row of digits.
function formatLoss(value) {
  return isNumber(value) && Math.abs(value) >= 1e6 ? formatNumber(value, 4) : formatFixed(value, 4);
}

function formatCount(value) {
  return isNumber(value) ? WHOLE.format(Math.round(value)) : MISSING;
}

// 812 -> 812, 812345 -> 812k, 1.3e9 -> 1.3B.
function formatShort(value) {
  if (!isNumber(value)) return MISSING;
  for (const [unit, suffix] of [[1e12, "T"], [1e9, "B"], [1e6, "M"], [1e3, "k"]]) {
    if (Math.abs(value) >= unit * 0.9995) {
      return withDigits(value / unit, 3) + suffix;
    }
  }
  return withDigits(value, 3);
}

function formatPercent(fraction, decimals = 1) {
  return isNumber(fraction) ? (fraction * 100).toFixed(decimals) + "%" : MISSING;
}

function formatLearningRate(value) {
  return isNumber(value) ? String(Number(value.toPrecision(6))).replace("e+", "e") : MISSING;
}

function formatDuration(seconds) {
  if (!isNumber(seconds)) return MISSING;
  if (seconds < 60) return seconds.toFixed(seconds < 10 ? 1 : 0) + " s";
  const minutes = Math.round(seconds / 60);
  if (minutes < 60) return minutes + " min";
  return Math.floor(minutes / 60) + " h " + String(minutes % 60).padStart(2, "0") + " min";
}

function plural(count, word) {
  return count + " " + word + (count === 1 ? "" : "s");
}
