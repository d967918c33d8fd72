// Waves: a file in, the predicted wave with its band out; of windows without a recipe as well.
import { columnsOf, parseCsv, writeCsv } from "../csv.js";
import { card, download, fileButton, h, percent, show, unitOf } from "../dom.js";
import { classBars, wavePicture } from "../draw.js";
import { dropped } from "../dropped.js";
import { faces } from "../faces.js";
import { likeliest, problems, verdict } from "../words.js";

const LINES = 3; // of the inputs, that are drawn

faces.wave = (model, main) => {
  const { facts } = model, channels = facts.inputs.length, size = model.x.length;
  let waves = facts.example ? [facts.example] : [], at = 0, coverage = 0.9;
  const said = h("p", { role: "status" }), warnings = h("div", { role: "status" });
  const input = h("div", {}), output = h("div", {}), line = h("p", {});
  const bars = facts.classes ? classBars(facts.classes) : null, answer = h("div", { class: "verdict" });
  const count = h("span", { class: "soft" });
  const choose = facts.coverages ? h("select", { id: "coverage", onchange: () => {
    coverage = Number(choose.value);
    draw();
  } }, facts.coverages.map(c => h("option", { value: c, selected: c === 0.9 }, percent(c)))) : null;

  const draw = () => {
    if (!waves.length) return;
    const x = waves[at], found = model.predict(x, coverage);
    count.textContent = `${at + 1} of ${waves.length}`;
    warnings.replaceChildren(...problems(found, facts).map(text => h("p", { class: "warning" }, text)));
    const step = facts.window.length ? channels : 1, shown = Math.min(step, LINES);
    wavePicture(input, { unit: facts.inputs[0].unit, label: "samples", said: "the input",
      lines: Array.from({ length: shown }, (_, k) => ({ kind: `input i${k}`,
        values: x.filter((_, i) => i % step === k).map(v => v ?? NaN) })) });
    if (bars) {
      const { kind, text } = verdict(found, facts);
      answer.className = `verdict ${kind}`;
      const most = likeliest(found, facts);
      answer.replaceChildren(text, h("small", {}, most && `most probable: ${most}`));
      bars.update(found.probs, found.label);
      return;
    }
    const unit = facts.units[0] ?? "", mean = found.mean;
    const wide = found.high.map((v, k) => v - found.low[k]);
    line.textContent = `From ${show(Math.min(...mean), 3)} to ${show(Math.max(...mean), 3)}${unitOf(unit)}; the ` +
      `${percent(coverage)} band is ${show(Math.min(...wide), 3)} to ${show(Math.max(...wide), 3)}${unitOf(unit)} wide.`;
    wavePicture(output, { unit, label: "points", lines: [{ values: mean }],
      band: { low: found.low, high: found.high }, said: `the predicted wave. ${line.textContent}` });
  };
  const take = text => {
    try {
      waves = wavesOf(parseCsv(text), facts, size);
      at = 0;
      said.textContent = `${waves.length} read.`;
      draw();
    } catch (error) {
      said.textContent = `This file cannot be read: ${error.message}. A row of ${size} numbers is one ` +
        `wave, or give one sample a row${channels > 1 && facts.window.length ? `, ${channels} columns` : ""}.`;
    }
  };
  const save = () => {
    const named = what => Array.from({ length: facts.outputs }, (_, k) => `${what}_${k}`);
    const rows = waves.map(x => model.predict(x, coverage));
    download("predictions.csv", writeCsv(facts.classes
      ? [["prediction", ...facts.classes.map(name => `p_${name}`), "status"],
        ...rows.map(one => [facts.classes[one.label] ?? "", ...one.probs, one.status])]
      : [[...named("mean"), ...named("std"), "status"],
        ...rows.map(one => [...one.mean, ...one.std, one.status])]));
  };
  const move = by => () => {
    at = Math.min(Math.max(at + by, 0), waves.length - 1);
    draw();
  };
  const button = (text, onclick) => h("button", { type: "button", onclick }, text);
  const box = h("div", { class: "drop" }, h("p", {}, `Drop a CSV file here. ${size} numbers are one wave.`),
    h("div", { class: "row" }, fileButton("Open a CSV file", ".csv,text/csv,text/plain",
      async file => take(await file.text())), button("Download predictions", save)), said);
  dropped(box, take);
  main.append(card(null, box, h("div", { class: "row" }, button("Previous", move(-1)),
    button("Next", move(1)), count)),
    card("Input", input),
    card(facts.targets[0] ?? "Prediction", choose ? h("div", { class: "row" },
      h("label", { for: "coverage" }, "Band that should hold the truth in"), choose, "of cases") : null,
      warnings, bars ? [answer, bars.element] : [output, line]));
  addEventListener("resize", draw);
  draw();
};

// Rows of whole waves; or one sample a row, cut into waves that follow each other.
function wavesOf(table, facts, size) {
  const { rows, number } = table;
  if (!rows.length) throw new Error("there are no rows");
  const channels = facts.window.length ? facts.inputs.length : 1;
  if (rows[0].length >= size && size > channels) {
    const at = columnsOf(facts.window.length ? null : table.header, Array(size).fill(0)
      .map((_, k) => facts.inputs[k]?.name));
    return rows.map(row => at.map(k => number(row[k])));
  }
  const at = channels > 1 && table.header ? columnsOf(table.header, facts.inputs.map(one => one.name))
    : Array.from({ length: channels }, (_, k) => k);
  const flat = rows.flatMap(row => at.map(k => number(row[k])));
  const found = [];
  for (let k = 0; k + size <= flat.length; k += size) found.push(flat.slice(k, k + size));
  if (!found.length) throw new Error(`${rows.length} samples are fewer than a wave has`);
  return found;
}
