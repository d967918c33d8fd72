// A model of windows: the phone's sensors or a recording in, decisions out, live.
import { announcer, card, fileButton, h, percent, show, unitOf } from "../dom.js";
import { classBars, wavePicture } from "../draw.js";
import { faces } from "../faces.js";
import { personalCard } from "../personal_card.js";
import { recordCard } from "../record.js";
import { recordingOf, Replay } from "../replay.js";
import { PhoneMotion } from "../sensors.js";
import { stripOf, tracesOf } from "../traces.js";
import { verdict } from "../words.js";

const SLOW = 0.8; // of the rate that the model was trained at

faces.windows = (model, main) => {
  const { facts } = model, { recipe } = facts;
  main.classList.add("two");
  const notes = notesOf(), traces = tracesOf(recipe, facts.inputs.map(one => one.unit));
  const answer = facts.classes ? classesAnswer(facts) : numbersAnswer(facts);
  const figures = figuresOf(facts), record = recordCard(model, notes.tell);
  const personal = facts.personal ? personalCard(model) : null;
  let source = null, dirty = false;

  const take = (seconds, values, truth, name = null) => {
    notes.tell("recording", name && `Now playing: ${name}.`);
    const begin = performance.now(), decisions = model.push(seconds, values);
    if (decisions.length) figures.latency((performance.now() - begin) / decisions.length);
    figures.sample(seconds, notes.tell);
    traces.add(seconds, values);
    record.sample(seconds, values);
    for (const one of decisions) {
      answer.update(one, truth);
      if (decisions.length === 1) personal?.decided(one);
      main.dispatchEvent(new CustomEvent("decision", { detail: one, bubbles: true }));
    }
    dirty = true;
  };
  const phone = new PhoneMotion(recipe, take, notes.tell);

  const change = started => {
    source?.stop();
    source = started;
    model.restart();
    go.textContent = started ? "Stop" : "Start the sensors";
    go.classList.toggle("main", !started);
  };
  const begin = started => {
    change(started);
    answer.clear();
    figures.clear();
  };
  const go = h("button", { type: "button", class: "main", onclick: async () => {
    if (source) {
      begin(null);
      notes.clear();
      return;
    }
    if (await phone.start()) {
      begin(phone);
      navigator.wakeLock?.request("screen").catch(() => {}); // the battery may be low
    }
  } }, "Start the sensors");

  const speed = h("select", { id: "speed", onchange: () => {
    if (source instanceof Replay) source.speed = Number(speed.value);
  } }, [1, 2, 4, 16].map(k => h("option", { value: k }, `${k}×`)));
  const play = text => {
    try {
      const rows = recordingOf(text, recipe);
      const replay = new Replay(rows, take, () => {
        change(null); // the last answers stay
        notes.tell("replay", "End of recording. Replay it or start the sensors.");
      });
      notes.clear();
      begin(replay);
      replay.speed = Number(speed.value);
      replay.start();
    } catch (error) {
      notes.tell("replay", `This recording cannot be played: ${error.message}. It needs the columns ` +
        [recipe.time, ...Object.values(recipe.sensors).flat()].join(", ") + ".");
    }
  };
  const example = facts.recording ? h("button", { type: "button", onclick: async () =>
    play(await (await fetch("recording.csv")).text()) }, "Replay an example") : null;

  main.append(
    h("div", { class: "column" },
      card(null, h("div", { class: "row" }, go, example,
        fileButton("Replay a CSV file", ".csv,text/csv", async file => play(await file.text())),
        h("label", { for: "speed" }, "speed"), speed), notes.element),
      answer.element,
      card("Sensors", traces.element, figures.element)),
    h("div", { class: "column" }, answer.history, personal?.element, record.element, phoneCard(phone, facts)));

  const calm = matchMedia("(prefers-reduced-motion: reduce)");
  let drawn = 0;
  const frame = now => {
    // Calm pages move twice a second: the numbers are all there, without the flow.
    if (dirty && now - drawn > (calm.matches ? 500 : 30)) {
      traces.draw();
      answer.draw();
      dirty = false;
      drawn = now;
    }
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
  addEventListener("resize", () => { dirty = true; });
  if (location.hash === "#replay") example?.click();
};

// Sentences by subject, so that each is shown once and goes when it no longer holds.
function notesOf() {
  const element = h("div", { role: "status" }), shown = new Map();
  const tell = (about, text) => {
    if ((shown.get(about)?.textContent ?? null) === text) return;
    shown.get(about)?.remove();
    shown.delete(about);
    if (text === null) return;
    const note = h("p", { class: "note", "data-about": about }, text);
    shown.set(about, note);
    element.append(note);
  };
  return { element, tell, clear: () => [...shown.keys()].forEach(about => tell(about, null)) };
}

function classesAnswer(facts) {
  const bars = classBars(facts.classes), strip = stripOf(facts.classes);
  const said = h("div", { class: "verdict waiting" }, "Not started");
  const truthful = h("p", { class: "soft" }), aloud = h("p", { class: "hidden", "aria-live": "polite" });
  const announce = announcer(aloud, 5000);
  let last = "";
  return {
    element: card(null, said, bars.element, truthful, aloud),
    history: card("The last decisions", strip.element),
    update(found, truth) {
      const { kind, text } = verdict(found, facts);
      const best = found.probs.indexOf(Math.max(...found.probs));
      said.className = `verdict ${kind}`;
      said.replaceChildren(text, h("small", {}, {
        sure: `right with probability ${percent(found.probability)}`,
        unsure: `most probable now: ${facts.classes[best]}, ${percent(found.probs[best])}`,
        unlike: "no answer is better than a wrong one: carry the phone as in the training",
        waiting: `the first window takes ${facts.recipe.window} s`,
      }[kind]));
      bars.update(found.probs, kind === "sure" ? found.label : best);
      truthful.textContent = truth ? `In the recording: ${truth}` : "";
      strip.add({ kind, label: found.label });
      if (text !== last) announce(text);
      last = text;
    },
    draw: strip.draw,
    clear() {
      strip.clear();
      said.className = "verdict waiting";
      said.textContent = "Listening …";
      last = "";
    },
  };
}

function numbersAnswer(facts) {
  const place = h("div", {}), big = h("div", { class: "big" }), line = h("p", { class: "soft" });
  const name = facts.targets[0] ?? "prediction", unit = facts.units[0] ?? "", kept = [];
  return {
    element: card(name, big, line),
    history: card("The last decisions", place),
    update(found) {
      const known = Number.isFinite(found.mean[0]);
      big.textContent = known ? `${show(found.mean[0])}${unitOf(unit)}` : "Listening …";
      line.textContent = known ? `90 % interval ${show(found.low[0])} to ${show(found.high[0])}` : "";
      if (known) kept.push(found);
      if (kept.length > 90) kept.shift();
    },
    draw() {
      if (kept.length < 2) return;
      const part = key => kept.map(one => one[key][0]);
      wavePicture(place, { lines: [{ values: part("mean") }], unit, label: "decisions",
        band: { low: part("low"), high: part("high") }, said: `${name}, the last decisions` });
    },
    clear() {
      kept.length = 0;
      big.textContent = "Listening …";
    },
  };
}

function figuresOf(facts) {
  const { recipe } = facts, rate = h("dd", {}, "–"), latency = h("dd", {}, "–");
  const times = [];
  return {
    element: h("dl", {}, h("dt", {}, "samples"), rate, h("dt", {}, "computing"), latency,
      h("dt", {}, "window"), h("dd", {}, `${show(recipe.window)} s, every ${show(recipe.hop)} s`)),
    sample(seconds, tell) {
      if (times.length && seconds < times[times.length - 1]) times.length = 0;
      times.push(seconds);
      while (times[0] < seconds - 2) times.shift();
      if (times.length < 10 || times.length % 10) return;
      const found = (times.length - 1) / (seconds - times[0]);
      rate.textContent = `${found.toFixed(0)} a second; the model reads ${show(recipe.rate)}`;
      tell("slow", found < SLOW * recipe.rate ? `Only ${found.toFixed(0)} samples a second come, and ` +
        `the model was trained on ${show(recipe.rate)}: close other pages and end the battery saver.` : null);
    },
    latency: took => {
      latency.textContent = took < 0.1 ? "less than 0.1 ms a decision"
        : `${took.toFixed(1)} ms a decision`;
    },
    clear: () => { times.length = 0; },
  };
}

function phoneCard(phone, facts) {
  const said = h("p", { role: "status" });
  const read = facts.recipe.phone.some(one => one.source);
  return card("Your phone", h("p", {}, "iPhones and Androids give acceleration with opposite signs, and " +
    "the model knows one of them. Lay the phone flat, screen up, and check. Axes stay with the phone " +
    "when the screen turns: carry it as in the training."),
    h("div", { class: "row" }, h("button", { type: "button", disabled: !read, onclick: async () => {
      said.textContent = "Hold still …";
      said.textContent = await phone.checkSign();
    } }, "Check the signs")), said);
}
