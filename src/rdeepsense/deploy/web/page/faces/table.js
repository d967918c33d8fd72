// A table's model: a field for each input, and the prediction as it changes.
import { columnsOf, parseCsv, writeCsv } from "../csv.js";
import { announcer, card, download, fileButton, h, percent, show, unitOf } from "../dom.js";
import { classBars, densityPicture, sentence } from "../draw.js";
import { dropped } from "../dropped.js";
import { faces } from "../faces.js";
import { learningCard } from "../learning.js";
import { likeliest, problems, verdict } from "../words.js";

const SHOWN = 8; // rows of a pasted table

faces.table = (model, main) => {
  const { facts } = model;
  main.classList.add("two");
  const values = facts.inputs.map(one => one.typical ?? 0);
  const answer = answerCard(model);
  let coverage = 0.9;
  const refresh = () => answer.update(model.predict(values, coverage), coverage);
  answer.onCoverage(chosen => { coverage = chosen; refresh(); });
  const fields = facts.inputs.map((one, k) => field(one, values[k], value => {
    values[k] = value;
    refresh();
  }));
  answer.onFlag(flagged => fields.forEach((one, k) => one.classList.toggle("off", k === flagged)));
  main.append(
    h("div", { class: "column first" }, answer.element),
    h("div", { class: "column second" }, card("Inputs", fields),
      facts.live ? learningCard(model, refresh) : null, manyRows(model)));
  addEventListener("resize", refresh);
  refresh();
};

// A slider beside a number; of a category a list.
function field(one, start, change) {
  const id = `input-${Math.random().toString(36).slice(2)}`;
  const label = h("label", { for: id }, one.name + (one.unit ? ` (${one.unit})` : ""));
  if (one.levels) {
    const options = one.levels.map((level, k) => h("option", { value: k }, level));
    return h("div", { class: "field" }, label, h("small", {}, `one of ${one.levels.length}`),
      h("select", { id, onchange: event => change(Number(event.target.value)) }, options));
  }
  const known = one.least !== undefined;
  const span = (known ? one.most - one.least : one.high - one.low) || 1;
  const least = Math.max(one.low ?? -Infinity, known ? one.least - span : -Infinity);
  const most = Math.min(one.high ?? Infinity, known ? one.most + span : Infinity);
  const [from, to] = [least - 0.05 * span, most + 0.05 * span];
  const slider = h("input", { type: "range", min: from, max: to, step: "any", value: start,
    "aria-label": `${one.name}, slider`, oninput: () => {
      number.value = Number(Number(slider.value).toPrecision(4));
      change(Number(number.value));
    } });
  const number = h("input", { id, type: "number", step: "any", inputmode: "decimal",
    value: Number(start.toPrecision(4)),
    placeholder: one.missing ? "missing" : "", oninput: () => {
      const value = number.value === "" ? NaN : Number(number.value);
      if (Number.isFinite(value)) slider.value = value;
      change(value);
    } });
  const said = known ? `trained on about ${show(one.least, 3)} to ${show(one.most, 3)}`
    : `known from ${show(one.low, 3)} to ${show(one.high, 3)}`;
  return h("div", { class: "field" }, label, number,
    h("small", {}, said + (one.missing ? "; empty: missing" : "")), slider);
}

function answerCard(model) {
  const { facts } = model;
  const warnings = h("div", { role: "status" }), aloud = h("p", { class: "hidden", "aria-live": "polite" });
  const announce = announcer(aloud);
  let flag = () => {}, changed = () => {};
  const choose = facts.coverages ? h("select", { id: "coverage",
    onchange: () => changed(Number(choose.value)) }, facts.coverages.map(c =>
    h("option", { value: c, selected: c === 0.9 }, percent(c)))) : null;
  const shown = facts.classes ? classAnswer(facts) : numberAnswer(facts);
  const element = card("Prediction", choose ? h("div", { class: "row" },
    h("label", { for: "coverage" }, "Interval that should hold the truth in"), choose, "of cases")
    : null, warnings, shown.element, aloud);
  return {
    element,
    onFlag: listen => { flag = listen; },
    onCoverage: listen => { changed = listen; },
    update(found, coverage) {
      const told = problems(found, facts);
      warnings.replaceChildren(...told.map(text => h("p", { class: "warning" }, text)));
      flag(found.flagged);
      announce([shown.update(found, coverage), ...told].join(". "));
    },
  };
}

function classAnswer(facts) {
  const bars = classBars(facts.classes), said = h("p", { class: "verdict" });
  return {
    element: h("div", { class: "output" }, said, bars.element),
    update(found) {
      const { kind, text } = verdict(found, facts);
      said.className = `verdict ${kind}`;
      const most = likeliest(found, facts);
      said.replaceChildren(text, h("small", {}, kind === "sure"
        ? `right with probability ${percent(found.probability)}`
        : most && `most probable: ${most}`));
      bars.update(found.probs, found.label);
      return most ? `${text}, ${most}` : text;
    },
  };
}

function numberAnswer(facts) {
  const outputs = Array.from({ length: facts.outputs }, (_, k) => {
    const big = h("div", { class: "big" }), line = h("p", { class: "soft" }), place = h("div", {});
    return { big, line, place, name: facts.targets[k] ?? `output ${k + 1}`,
      unit: facts.units[k] ?? "",
      box: h("div", { class: "output" }, facts.outputs > 1
        ? h("h3", {}, facts.targets[k] ?? `output ${k + 1}`) : null, big, line, place) };
  });
  return {
    element: h("div", {}, outputs.map(one => one.box)),
    update(found, coverage) {
      const said = outputs.map((one, k) => {
        if (!Number.isFinite(found.mean[k])) {
          one.big.textContent = "No prediction";
          one.line.textContent = "";
          one.place.replaceChildren();
          return `${one.name}: no prediction`;
        }
        const text = sentence(one.name, found, k, one.unit, coverage);
        one.big.textContent = `${show(found.mean[k])}${unitOf(one.unit)}`;
        one.line.textContent = `± ${show(found.std[k], 3)}${unitOf(one.unit)} standard deviation; ` +
          `${percent(coverage)} interval ${show(found.low[k])} to ${show(found.high[k])}` +
          unitOf(one.unit);
        const { density, reach } = facts.curve;
        densityPicture(one.place, { mean: found.mean[k], std: found.std[k], low: found.low[k],
          high: found.high[k], curve: density[k] ?? density[0], reach,
          range: facts.range?.[k], unit: one.unit, said: text });
        return text;
      });
      return said.slice(0, 2).join("; ");
    },
  };
}

// Many rows at once: pasted or from a file, and back as a file.
function manyRows(model) {
  const { facts } = model, shown = h("div", { role: "status" });
  const take = text => {
    try {
      const table = predictions(model, text);
      const count = table.length - 1;
      shown.replaceChildren(
        h("p", {}, `${count} rows predicted, ${table.flagged} of them flagged.`),
        h("div", { class: "wide", tabindex: 0 }, h("table", {},
          h("thead", {}, h("tr", {}, table[0].map(name => h("th", {}, name)))),
          h("tbody", {}, table.slice(1, 1 + SHOWN).map(row => h("tr", {}, row.map(value =>
            h("td", {}, typeof value === "number" ? show(value) : value))))))),
        h("div", { class: "row" }, h("button", { type: "button", class: "main",
          onclick: () => download("predictions.csv", writeCsv(table)) }, "Download predictions")));
    } catch (error) {
      shown.replaceChildren(h("p", { class: "warning" }, `This cannot be predicted: ${error.message}.`));
    }
  };
  const area = h("textarea", { id: "rows", spellcheck: "false",
    placeholder: facts.inputs.map(one => one.name).join(",") });
  const box = h("div", { class: "drop" },
    h("label", { for: "rows" }, "Paste rows with a header, or drop a CSV file here"), area);
  dropped(box, take);
  return card("Many rows", box, h("div", { class: "row" },
    h("button", { type: "button", class: "main", onclick: () => take(area.value) }, "Predict"),
    fileButton("Open a CSV file", ".csv,text/csv,text/plain", async file => take(await file.text()))),
    shown);
}

function predictions(model, text) {
  const { facts } = model, table = parseCsv(text);
  if (!table.rows.length) throw new Error("there are no rows");
  const at = columnsOf(table.header, facts.inputs.map(one => one.name));
  const named = (k, what) => facts.targets[k] ? `${what}_${facts.targets[k]}` : `${what}_${k}`;
  const header = facts.classes
    ? ["prediction", "probability", ...facts.classes.map(name => `p_${name}`), "status"]
    : [...Array(facts.outputs).keys()].flatMap(k =>
      ["mean", "std", "low_90", "high_90"].map(what => named(k, what))).concat("status");
  const found = [header];
  found.flagged = 0;
  for (const row of table.rows) {
    const x = at.map((column, k) => {
      const { levels } = facts.inputs[k];
      if (!levels) return table.number(row[column]);
      return row[column] === "" ? NaN : levels.indexOf(row[column]);
    });
    const one = model.predict(x);
    found.flagged += one.status > 0;
    found.push(facts.classes
      ? [facts.classes[one.label] ?? "", one.probability, ...one.probs, one.status]
      : [...one.mean.flatMap((m, k) => [m, one.std[k], one.low[k], one.high[k]]), one.status]);
  }
  return found;
}
