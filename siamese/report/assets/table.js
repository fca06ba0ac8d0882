// Tables that are sorted by their heads.

// What is missing comes last in either direction.
function compareBy(value, down) {
  return (a, b) => {
    const [left, right] = [value(a), value(b)];
    const [noLeft, noRight] = [left === null || left === undefined, right === null || right === undefined];
    if (noLeft || noRight) return Number(noLeft) - Number(noRight);
    const difference = typeof left === "string" ? left.localeCompare(right, "en", { numeric: true }) : left - right;
    return down ? -difference : difference;
  };
}

// columns: [{title, value(row) for sorting, cell(row), numeric}]
function sortableTable(columns, rows, caption, mark) {
  const body = el("tbody");
  let order = { at: -1, down: false };
  const heads = columns.map((column, at) => {
    const head = el("th", { scope: "col", class: column.numeric ? "num" : null, "aria-sort": "none" },
      el("button", {
        type: "button",
        onclick: () => {
          order = { at, down: order.at === at ? !order.down : false };
          heads.forEach((other, place) =>
            other.setAttribute("aria-sort", place !== at ? "none" : order.down ? "descending" : "ascending"));
          render();
        },
      }, column.title));
    return head;
  });
  function render() {
    const sorted = [...rows];
    if (order.at >= 0) {
      sorted.sort(compareBy(columns[order.at].value, order.down));
    }
    body.replaceChildren(...sorted.map((row) => el("tr", { class: mark && mark(row) ? "best" : null },
      columns.map((column) => el("td", { class: column.numeric ? "num" : null }, column.cell(row))))));
  }
  render();
  return scrollable(el("table", { class: "data" }, caption ? el("caption", {}, caption) : null, el("thead", {}, el("tr", {}, heads)), body));
}

function statusPill(state) {
  return el("span", { class: "pill " + state.replace(" ", "-") }, state);
}
