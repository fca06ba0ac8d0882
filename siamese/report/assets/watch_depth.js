// Streams and gradients over depth and time of a few runs: the pinned ones, else the first that is shown. Profiles are
// asked for when a run has recorded a new one, not by the clock.

const MOST_MAPS = 4;

// The stream that most sites recorded at the newest step, the last of them: of sources that come up with depth, the
// last one is seen by one site.
function fullestStream(depth) {
  const newest = depth.rows[depth.rows.length - 1];
  const counts = depth.streams.map((_, at) => ((newest && newest.before[at]) || []).filter(isNumber).length);
  return counts.lastIndexOf(Math.max(...counts));
}

function watchDepth() {
  const cards = new Map();  // by id: {run, version, heat, depth, choice}
  const grid = el("div", { class: "panel-grid pairs" });

  function makeCard(run) {
    const card = { version: "", depth: null, choice: null };
    const slot = el("span", {});
    const heat = createHeat({ title: run.name, height: 240, controls: [slot], empty: "Reading\u2026", keeps: true });
    const draw = () => heat.update(card.depth ? heatContent(card.depth, card.choice) : null, run.name);
    const choose = () => {
      if (!card.depth) return slot.replaceChildren();
      const streams = card.depth.streams.length;
      if (!heatChoices(card.depth).some(([key]) => key === card.choice)) card.choice = streams ? fullestStream(card.depth) : "grad";
      slot.replaceChildren(heatPicker(card.depth, card.choice, `Quantity of ${run.name}`, (choice) => { card.choice = choice; draw(); }));
    };
    const load = async (version) => {
      card.version = version;
      try {
        const answer = await fetch(`/depth/${run.id}`);
        if (answer.ok) card.depth = (await answer.json()).depth;
      } catch (_) {
        card.version = "";  // the server is gone; the next message comes with a new one
        return;
      }
      choose();
      draw();
    };
    draw();
    return Object.assign(card, { heat, load });
  }

  function refresh(runs) {
    const recorded = runs.filter((run) => run.recorded > 0);
    const pinned = recorded.filter(isPinned);
    const chosen = (pinned.length ? pinned : recorded.slice(0, 1)).slice(0, MOST_MAPS);
    for (const id of [...cards.keys()]) if (!chosen.some((run) => run.id === id)) cards.delete(id);
    for (const run of chosen) {
      if (!cards.has(run.id)) cards.set(run.id, makeCard(run));
      const version = `${run.restarts} ${run.recorded}`;
      if (cards.get(run.id).version !== version) cards.get(run.id).load(version);
    }
    const nodes = chosen.map((run) => cards.get(run.id).heat.node);
    const same = nodes.length === grid.children.length && nodes.every((node, at) => node === grid.children[at]);
    if (same && nodes.length) return;
    grid.classList.toggle("single", nodes.length === 1);
    grid.replaceChildren(...(nodes.length ? nodes : [emptyNote("No depth profile has been recorded yet (train.record_every).")]));
  }
  return { node: grid, refresh, forget: () => cards.clear() };
}
