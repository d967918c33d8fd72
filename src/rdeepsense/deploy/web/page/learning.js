// Learning on from the truth of rows: what `model.live()` does, in the page.
import { card, download, fileButton, h, show, unitOf } from "./dom.js";

const KEPT = 50; // steps that can be undone

export function learningCard(model, refresh) {
  const { facts } = model, before = [], errors = [];
  const said = h("p", { role: "status", class: "soft" }, "No label yet.");
  const fields = Array.from({ length: facts.outputs }, (_, k) => {
    const id = `truth-${k}`, name = facts.targets[k] ?? "value";
    return h("div", { class: "row" }, h("label", { for: id }, `True ${name}${unitOf(facts.units[k])}`),
      h("input", { id, type: "number", step: "any", inputmode: "decimal" }));
  });
  const numbers = fields.map(field => field.querySelector("input"));
  const tell = () => {
    if (!errors.length) {
      said.textContent = "No label yet.";
      return;
    }
    const mean = which => errors.reduce((sum, one) => sum + one[which], 0) / errors.length;
    said.textContent = `${errors.length} labels. Before each of them was learnt, the prediction ` +
      `missed by ${show(mean("live"), 3)} on average; untouched, the model would have by ` +
      `${show(mean("frozen"), 3)}.`;
  };
  const frozen = x => {
    const kept = model.state();
    model.reset();
    const found = model.predict(x);
    model.restore(kept);
    return found;
  };
  const observe = () => {
    const y = numbers.map(one => (one.value === "" ? NaN : Number(one.value)));
    if (!y.every(Number.isFinite)) {
      said.textContent = "Give the true value as a number first.";
      return;
    }
    const x = Array.from(model.x), labels = model.labels, plain = frozen(x), kept = model.state();
    const live = model.predict(x);
    const off = found => Math.hypot(...found.mean.map((m, k) => m - y[k]));
    model.labels = labels;
    if (!model.observe(y)) {
      model.restore(kept);
      said.textContent = "Nothing was learnt: the value lies 100 standard deviations off or more.";
      return;
    }
    before.push(kept);
    if (before.length > KEPT) before.shift();
    errors.push({ live: off(live), frozen: off(plain) });
    refresh();
    tell();
  };
  const undo = () => {
    const kept = before.pop();
    if (!kept) return;
    model.restore(kept);
    errors.pop();
    refresh();
    tell();
  };
  const take = async file => {
    try {
      model.restore(new Uint8Array(await file.arrayBuffer()));
      said.textContent = "The personal state was loaded.";
      refresh();
    } catch (error) {
      said.textContent = `This is no state of this model: ${error.message}.`;
    }
  };
  return card("Teach it", h("p", {}, "Tell the truth of the inputs above, and it learns."), fields,
    h("div", { class: "row" },
      h("button", { type: "button", class: "main", onclick: observe }, "Learn"),
      h("button", { type: "button", onclick: undo }, "Undo"),
      h("button", { type: "button", onclick: () =>
        download("personal.state", model.state(), "application/octet-stream") }, "Save"),
      fileButton("Load", "", take)), said);
}
