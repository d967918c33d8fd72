// Recording of labelled samples, in the form that `rdeepsense fit --window` reads.
import { writeCsv } from "./csv.js";
import { card, download, h, show } from "./dom.js";
import { openStore, Recording } from "./store.js";

const COUNTDOWN = 3; // seconds, to put the phone where it belongs
const SILENCE = 5000; // milliseconds
const UNIT = { ns: 1e-9, us: 1e-6, ms: 1e-3, s: 1 };

export function recordCard(model, tell) {
  const { facts } = model, { recipe } = facts, columns = Object.values(recipe.sensors).flat();
  const label = recipe.label[0] ?? "label";
  const state = h("p", { role: "status", class: "soft" }, "Start the sensors, then choose what you do.");
  const list = h("tbody", {}), table = h("div", { class: "wide", hidden: true }, h("table", {}, h("thead", {},
    h("tr", {}, [label, "seconds", "samples", "by", ""].map(name => h("th", {}, name)))), list));
  const who = h("input", { type: "text", id: "who", value: "me", size: 8, maxlength: 60 });
  const other = h("input", { type: "text", id: "other", placeholder: "another label", size: 12,
    maxlength: 60, "aria-label": "another label" });
  let store = null, current = null, paused = false, last = -Infinity, timer = null;
  const opened = openStore().then(found => { store = found; return refresh(); })
    .catch(() => tell("record", "This browser keeps no data for the page, so recordings end with it: " +
      "leave private browsing, or export before you close it."));

  const row = one => h("tr", {}, h("td", {}, one.label), h("td", {}, show(one.seconds, 3)),
    h("td", {}, String(one.samples)), h("td", {}, one.who), h("td", {}, h("button", { type: "button",
      "aria-label": `delete the recording of ${one.label}`,
      onclick: async () => { await store.remove(one.id); await refresh(); } }, "Delete")));
  const refresh = async () => {
    const all = await store.list();
    table.hidden = !all.length;
    list.replaceChildren(...all.map(row));
  };

  const begin = name => {
    if (!store) return;
    if (performance.now() - last > SILENCE) {
      state.textContent = "No samples come: start the sensors first.";
      return;
    }
    clearInterval(timer);
    let left = COUNTDOWN;
    const count = async () => {
      if (left) {
        state.textContent = `${name}: begins in ${left--} …`;
        return;
      }
      clearInterval(timer);
      await finish();
      current = await new Recording(store, { label: name, who: who.value, source: facts.source,
        columns, samples: 0, seconds: 0 }).begin();
      paused = false;
      buttons(true);
    };
    count();
    timer = setInterval(count, 1000);
  };
  const finish = async () => {
    clearInterval(timer);
    if (!current) return;
    const done = current;
    current = null;
    buttons(false);
    await done.flush();
    await refresh();
    state.textContent = `${done.facts.samples} samples of ${done.facts.label} are kept in this browser.`;
  };
  const pause = h("button", { type: "button", disabled: true, onclick: () => {
    paused = !paused;
    pause.textContent = paused ? "Go on" : "Pause";
    if (current) state.textContent = paused ? "Paused." : `Recording ${current.facts.label}.`;
  } }, "Pause");
  const stop = h("button", { type: "button", disabled: true, onclick: finish }, "Stop recording");
  const buttons = on => {
    pause.disabled = stop.disabled = !on;
    pause.textContent = "Pause";
  };
  const save = async () => {
    await opened;
    await current?.flush();
    const header = [recipe.time, ...columns, label, "user", "recording"], scale = UNIT[recipe.time_unit] ?? 1;
    const texts = [writeCsv([header])];
    for (const one of await store.list()) {
      if (one.columns.join() !== columns.join()) continue; // another model's page of this site
      for (const { times, values } of await store.parts(one.id))
        texts.push(writeCsv(Array.from(times, (t, k) => [(t / scale).toFixed(6),
          ...Array.from(values.subarray(k * columns.length, (k + 1) * columns.length), v =>
            Number.isNaN(v) ? "" : Number(v.toPrecision(7))), one.label, one.who, one.id])));
    }
    if (texts.length > 1) download("recordings.csv", texts.join(""));
    else state.textContent = "There is no recording yet.";
  };
  const sample = (seconds, values) => {
    last = performance.now();
    if (!current || paused) return;
    const { before } = current;
    if (before !== undefined && seconds > before)
      current.facts.seconds += Math.min(seconds - before, recipe.gap ?? 1);
    current.before = seconds;
    current.add(performance.timeOrigin / 1000 + seconds, values);
    if (current.facts.samples % 25 === 1) state.textContent =
      `Recording ${current.facts.label}: ${show(current.facts.seconds, 3)} s.`;
  };
  const names = facts.classes ?? [];
  const element = card("Record", h("p", { class: "soft" }, "For a model of your own, or to see how this one " +
    "does. Recordings stay in this browser until you delete them."),
    h("div", { class: "row" }, names.map(name =>
      h("button", { type: "button", onclick: () => begin(name) }, name))),
    h("div", { class: "row" }, other, h("button", { type: "button",
      onclick: () => other.value && begin(other.value) }, "Record it")),
    h("div", { class: "row" }, h("label", { for: "who" }, "by"), who, pause, stop,
      h("button", { type: "button", onclick: save }, "Export CSV")), state, table);
  return { element, sample };
}
