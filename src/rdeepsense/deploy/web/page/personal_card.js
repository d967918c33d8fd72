// A few labelled windows make the model the user's own; others tell whether that helped.
import { card, download, fileButton, h } from "./dom.js";
import { Status } from "./model.js";
import "./personal.js";

const TAUGHT = 3, ASIDE = 3; // windows of each label, that share no sample

export function personalCard(model) {
  const { facts, personal } = model, { recipe, classes } = facts;
  const apart = Math.ceil(recipe.length / recipe.step), aside = [], steps = [];
  const said = h("p", { role: "status" }, "Nothing learnt yet."), gain = h("p", { class: "soft" });
  let wanted = null, since = 0;

  const right = (some, logits) => some.filter(one => {
    const found = logits(one);
    return found.indexOf(Math.max(...found)) === one.y;
  }).length;
  const tell = () => {
    gain.textContent = aside.length ? `Of ${aside.length} windows of yours that it did not learn from, ` +
      `${right(aside, one => one.logits)} were right before and ` +
      `${right(aside, one => personal.corrected(one))} are now.` : "";
  };
  const decided = found => {
    if (!wanted || ++since < apart) return;
    if (found.status & (Status.NOT_ENOUGH_DATA | Status.MISSING)) return;
    since = 0;
    const seen = personal.seen();
    if (wanted.taught < TAUGHT) wanted.taught += personal.observe(wanted.y, seen);
    else {
      aside.push({ ...seen, y: wanted.y });
      wanted.aside += 1;
    }
    const left = TAUGHT + ASIDE - wanted.taught - wanted.aside;
    said.textContent = left ? `${classes[wanted.y]}: go on, ${left} more windows.`
      : `${classes[wanted.y]}: done. Teach another, or see how it does.`;
    if (!left) wanted = null;
    tell();
  };
  const begin = y => {
    wanted = { y, taught: 0, aside: 0 };
    steps.push(wanted);
    since = 0;
    said.textContent = `${classes[y]}: go on for ${Math.ceil((TAUGHT + ASIDE) * recipe.window)} s.`;
  };
  const undo = () => {
    const last = steps.pop();
    if (!last) return;
    wanted = null;
    personal.forget(last.taught);
    aside.splice(aside.length - last.aside);
    said.textContent = `What it learnt of ${classes[last.y]} is forgotten.`;
    tell();
  };
  const save = () => download("personal.json", JSON.stringify({ model: facts.source, classes,
    taught: personal.taught, aside }), "application/json");
  const take = async file => {
    try {
      const kept = JSON.parse(await file.text());
      if (kept.model !== facts.source) throw new Error("it was learnt by another model");
      const fits = one => one.phi.length === personal.features && [...one.phi, ...one.logits]
        .every(Number.isFinite) && one.logits.length === classes.length && one.y in classes;
      if (![...kept.taught, ...kept.aside].every(fits)) throw new Error("its numbers do not fit");
      personal.forget();
      steps.length = aside.length = 0;
      kept.taught.forEach(one => personal.observe(one.y, { phi: one.phi, logits: one.logits }));
      aside.push(...kept.aside);
      said.textContent = `${kept.taught.length} labelled windows were loaded.`;
      tell();
    } catch (error) {
      said.textContent = `This file cannot be used: ${error.message}.`;
    }
  };
  const element = card("Make it yours", h("p", { class: "soft" }, "Select your current activity and keep " +
    `doing it. The first ${TAUGHT} windows train the model, the next ${ASIDE} test it.`),
    h("div", { class: "row" }, classes.map((name, y) => h("button", { type: "button",
      "aria-label": `I am: ${name}`, onclick: () => begin(y) }, name))),
    h("div", { class: "row" }, h("button", { type: "button", onclick: undo }, "Undo"),
      h("button", { type: "button", onclick: save }, "Save"), fileButton("Load", ".json", take)),
    said, gain);
  return { element, decided };
}
