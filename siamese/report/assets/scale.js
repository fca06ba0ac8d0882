// Axes: value -> pixel and back, and where the ticks go.

function makeScale(domain, range, log) {
  const forward = log ? Math.log10 : (value) => value;
  const backward = log ? (value) => Math.pow(10, value) : (value) => value;
  const from = forward(domain[0]);
  const span = forward(domain[1]) - from || 1;
  const scale = (value) => range[0] + ((forward(value) - from) / span) * (range[1] - range[0]);
  scale.invert = (pixel) => backward(from + ((pixel - range[0]) / (range[1] - range[0] || 1)) * span);
  scale.domain = domain;
  scale.range = range;
  scale.log = log;
  return scale;
}

function linearTicks([low, high], count, wholeOnly) {
  const rough = (high - low) / Math.max(1, count);
  if (!(rough > 0)) return [low];
  const power = Math.pow(10, Math.floor(Math.log10(rough)));
  let step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough * 0.999) || rough;
  if (wholeOnly) step = Math.max(1, step);
  const ticks = [];
  for (let at = Math.ceil(low / step - 1e-9); at * step <= high + step * 1e-9; ++at) {
    ticks.push(Number((at * step).toPrecision(12)));
  }
  return ticks;
}

// Powers of ten; 2s and 5s between them when there is room; linear ticks when the axis spans less than a decade.
function logTicks([low, high], count) {
  const decades = Math.log10(high / low);
  if (decades < 0.9) return linearTicks([low, high], count).filter((value) => value > 0);
  const first = Math.floor(Math.log10(low));
  const last = Math.ceil(Math.log10(high));
  const factors = decades * 3 <= count + 1 ? [1, 2, 5] : decades * 2 <= count + 1 ? [1, 3] : [1];
  const stride = Math.max(1, Math.ceil((last - first) / Math.max(1, count)));
  const ticks = [];
  for (let power = first; power <= last; power += factors.length > 1 ? 1 : stride) {
    for (const factor of factors) {
      const value = Number((factor * Math.pow(10, power)).toPrecision(12));
      if (value >= low * 0.9999 && value <= high * 1.0001) ticks.push(value);
    }
  }
  return ticks;
}

function axisTicks(scale, count, wholeOnly) {
  return scale.log ? logTicks(scale.domain, count) : linearTicks(scale.domain, count, wholeOnly);
}

// The x range of all series: [low, high], or null without a point.
function xExtent(series, marks, log) {
  let low = Infinity;
  let high = -Infinity;
  const see = (value) => {
    if (!isNumber(value) || (log && value <= 0)) return;
    low = Math.min(low, value);
    high = Math.max(high, value);
  };
  for (const one of series) {
    for (let at = 0; at < one.x.length; ++at) if (isNumber(one.y[at])) see(one.x[at]);
  }
  for (const mark of marks) see(mark.x);
  if (low > high) return null;
  if (low === high) return log ? [low / 1.5, high * 1.5] : [low - 0.5, high + 0.5];
  return [low, high];
}

function valueExtent(series, [from, to], log) {
  let low = Infinity;
  let high = -Infinity;
  const see = (value) => {
    if (!isNumber(value) || (log && value <= 0)) return;
    if (value < low) low = value;
    if (value > high) high = value;
  };
  for (const one of series) {
    for (let at = 0; at < one.x.length; ++at) {
      if (one.x[at] < from || one.x[at] > to) continue;
      see(one.y[at]);
      if (one.low) see(one.low[at]);
      if (one.high) see(one.high[at]);
    }
  }
  return low <= high ? [low, high] : null;
}

// The y range with some air. Series marked `outer` (diverged runs) may stretch it a little, not without limit.
function yExtent(series, xDomain, log, fromZero) {
  const inner = valueExtent(series.filter((one) => !one.outer), xDomain, log);
  const outer = valueExtent(series.filter((one) => one.outer), xDomain, log);
  let [low, high] = inner || outer || [log ? 0.1 : 0, 1];
  if (inner && outer) {
    const room = log ? (value, sign) => value * Math.pow(high / low || 1, 0.35 * sign) || value
      : (value, sign) => value + sign * 0.35 * (high - low);
    const [top, bottom] = [room(high, 1), room(low, -1)];
    high = Math.max(high, Math.min(outer[1], top));
    low = Math.min(low, Math.max(outer[0], bottom));
  }
  if (log) {
    const ratio = Math.pow(high / low, 0.05) || 1;
    return low === high ? [low / 2, high * 2] : [low / ratio, high * ratio];
  }
  if (fromZero) return [Math.min(0, low), high > 0 ? high * 1.06 : 1];
  const air = (high - low) * 0.05 || Math.abs(high) * 0.1 || 1;
  return [low - air, high + air];
}
