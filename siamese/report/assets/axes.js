// What a curve can be drawn against. A step of a setting stands for so many tokens, operations and seconds (medians over
// its runs), so that another axis is the steps times a number.

const TIME_UNITS = [[3600, "h"], [60, "min"], [1, "s"]];

function timeUnit(family) {
  const longest = Math.max(0, ...family.groups.filter((group) => isNumber(group.per_step.seconds))
    .map((group) => group.per_step.seconds * Math.max(0, ...group.members.map((run) => run.step))));
  return TIME_UNITS.find(([size]) => longest >= 3 * size) || TIME_UNITS[2];
}

// [{key, name, label, factor(group), spec}]; those that no setting of the family knows are left out.
function familyAxes(family) {
  const [size, unit] = timeUnit(family);
  const number = (value, text) => `${formatNumber(value, 4)} ${text}`;
  return [
    { key: "step", name: "Steps", label: "step", factor: () => 1, spec: { formatX: formatShort, formatTitle: stepTitle, wholeX: true } },
    { key: "tokens", name: "Tokens", label: family.images ? "tokens (patches)" : "tokens", factor: (group) => group.per_step.tokens,
      spec: { formatX: formatShort, formatTitle: (x) => formatShort(x) + " tokens", wholeX: true } },
    { key: "flops", name: "FLOPs", label: "floating-point operations, forward and backward", factor: (group) => group.per_step.flops,
      spec: { formatX: formatShort, formatTitle: (x) => number(x, "FLOPs"), wholeX: false } },
    { key: "seconds", name: "Time", label: `time of the steps (${unit})`, factor: (group) => group.per_step.seconds / size,
      spec: { formatX: (x) => formatNumber(x, 3), formatTitle: (x) => number(x, unit), wholeX: false } },
  ].filter((axis) => axis.key === "step" || family.groups.some((group) => isNumber(group.per_step[axis.key])));
}

// A group's lines and marks on an axis; nothing when the group does not know it.
function onAxis(axis, group, { series, marks }) {
  const factor = axis.factor(group);
  if (!isNumber(factor)) return { series: [], marks: [] };
  if (axis.key === "step") return { series, marks };
  return {
    series: series.map((one) => ({ ...one, x: one.x.map((x) => x * factor) })),
    marks: marks.map((mark) => ({ ...mark, x: mark.x * factor })),
  };
}
