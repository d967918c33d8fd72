// Canvases that move: the last seconds of each sensor, and the strip of decisions.
import { h } from "./dom.js";

const SECONDS = 6, STRIP = 90; // seconds, and decisions
const colour = name => getComputedStyle(document.documentElement).getPropertyValue(name);

function prepared(canvas, height) {
  const width = canvas.clientWidth || 300, ratio = devicePixelRatio || 1;
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  canvas.style.height = `${height}px`;
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  return { pen, width };
}

export function tracesOf(recipe, units) {
  const sensors = Object.entries(recipe.sensors), samples = [];
  let first = 0;
  const parts = sensors.map(([name, columns]) => {
    const canvas = h("canvas", { role: "img", "aria-label": `${name}, the last ${SECONDS} seconds` });
    const part = { canvas, from: first, count: columns.length, low: Infinity, high: -Infinity };
    const unit = units[first] ? ` (${units[first]})` : "";
    first += columns.length;
    return { ...part, element: h("div", {}, h("small", {}, name + unit), canvas,
      h("div", { class: "legend" }, columns.map((column, k) =>
        h("span", {}, h("i", { class: `k${k % 8}` }), column)))) };
  });
  const element = h("div", {}, parts.map(part => part.element));
  const add = (seconds, values) => {
    if (samples.length && seconds < samples[samples.length - 1].seconds) samples.length = 0;
    samples.push({ seconds, values });
    while (samples[0].seconds < seconds - SECONDS) samples.shift();
  };
  const draw = () => parts.forEach(part => {
    const { pen, width } = prepared(part.canvas, 84);
    if (!samples.length) return;
    const end = samples[samples.length - 1].seconds;
    const own = samples.flatMap(one => one.values.slice(part.from, part.from + part.count))
      .filter(Number.isFinite);
    const least = Math.min(...own), most = Math.max(...own), pad = (most - least) * 0.05 || 0.1;
    // The ends follow slowly, so that lines do not jump.
    part.low = Math.min(least - pad, part.low + 0.03 * (least - pad - part.low) || least - pad);
    part.high = Math.max(most + pad, part.high + 0.03 * (most + pad - part.high) || most + pad);
    if (!Number.isFinite(part.low)) [part.low, part.high] = [least - pad, most + pad];
    for (let k = 0; k < part.count; ++k) {
      pen.strokeStyle = colour(`--c${k % 8}`);
      pen.lineWidth = 1.5;
      pen.beginPath();
      let before = null;
      for (const { seconds, values } of samples) {
        const value = values[part.from + k];
        const x = width * (1 - (end - seconds) / SECONDS);
        const y = 80 - (76 * (value - part.low)) / (part.high - part.low);
        if (!Number.isFinite(value)) before = null;
        else if (before === null || seconds - before > 0.5) pen.moveTo(x, y);
        else pen.lineTo(x, y);
        if (Number.isFinite(value)) before = seconds;
      }
      pen.stroke();
    }
  });
  return { element, add, draw };
}

// The last decisions, one block each, the newest on the right.
export function stripOf(classes) {
  const canvas = h("canvas", { role: "img", "aria-label": "the last decisions" }), kept = [];
  const legend = [...classes.map((name, k) => [name, `k${k % 8}`])];
  const element = h("div", {}, canvas, h("div", { class: "legend" },
    legend.map(([name, kind]) => h("span", {}, h("i", { class: kind }), name)),
    h("span", {}, h("i", { class: "unsure" }), "not sure"),
    h("span", {}, h("i", { class: "unlike" }), "unlike the training")));
  const add = one => {
    kept.push(one);
    if (kept.length > STRIP) kept.shift();
  };
  const draw = () => {
    const { pen, width } = prepared(canvas, 40), wide = width / STRIP;
    kept.forEach(({ kind, label }, k) => {
      const x = width - (kept.length - k) * wide;
      if (kind === "waiting") return;
      // Abstentions differ in height too, for those who cannot tell colours.
      const [name, high] = { sure: [`--c${label % 8}`, 40], unsure: ["--soft", 10],
        unlike: ["--ink", 22] }[kind];
      pen.fillStyle = colour(name);
      pen.fillRect(x, 40 - high, wide - 1, high);
    });
  };
  return { element, add, draw, clear: () => { kept.length = 0; } };
}
