// Pictures in SVG, as wide as their place on the page.
import { h, percent, show, svg, unitOf } from "./dom.js";

// Some three to six round numbers between two ends.
export function ticks(low, high) {
  const rough = (high - low) / 4, size = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find(k => k * size >= rough) * size;
  const found = [];
  for (let k = Math.ceil(low / step); k * step <= high + 1e-9 * step; ++k) found.push(k * step);
  return found;
}

function axis(at, low, high, width, bottom, unit) {
  const marks = ticks(low, high).filter(v => at(v) > 14 && at(v) < width - 14);
  return svg("g", { class: "axis" },
    svg("line", { x1: 0, x2: width, y1: bottom, y2: bottom }),
    marks.map(v => svg("line", { x1: at(v), x2: at(v), y1: bottom, y2: bottom + 4 })),
    marks.map(v => svg("text", { x: at(v), y: bottom + 17, "text-anchor": "middle" }, show(v))),
    unit ? svg("text", { x: width, y: bottom + 30, "text-anchor": "end" }, unit) : null);
}

// The density of one output with its interval; `range` are the targets of the training rows.
export function densityPicture(place, { mean, std, low, high, curve, reach, range, unit, said }) {
  const width = Math.max(place.clientWidth, 200), height = 150, bottom = height - 34;
  const spread = std > 0 ? std : Math.abs(mean) * 1e-3 || 1;
  const a = Math.min(mean - reach * spread, range?.[0] ?? Infinity);
  const b = Math.max(mean + reach * spread, range?.[1] ?? -Infinity);
  const at = v => ((v - a) / (b - a)) * width;
  const top = Math.max(...curve), n = curve.length - 1;
  const points = curve.map((d, k) =>
    [at(mean + spread * reach * ((2 * k) / n - 1)), bottom - (d / top) * (bottom - 8)]);
  const path = some => some.map(p => p.map(v => v.toFixed(1)).join(" ")).join("L");
  const inside = points.filter(p => p[0] >= at(low) && p[0] <= at(high));
  const filled = inside.length
    ? `M${at(low).toFixed(1)} ${bottom}L${path(inside)}L${at(high).toFixed(1)} ${bottom}Z` : "M0 0";
  place.replaceChildren(svg("svg", { width, height, role: "img", "aria-label": said },
    svg("path", { class: "inside", d: filled }),
    svg("path", { class: "curve", d: `M${path(points)}` }),
    svg("line", { class: "middle", x1: at(mean), x2: at(mean), y1: 8, y2: bottom }),
    axis(at, a, b, width, bottom, unit)));
}

// Of each class a bar; the parts are kept, so that a live page only moves them.
export function classBars(classes) {
  const rows = classes.map(name => {
    const bar = h("span", { class: "bar" }), value = h("span", { class: "value" }, "–");
    const row = h("div", { class: "class" }, h("span", { class: "name" }, name),
      h("span", { class: "track" }, bar), value);
    return { row, bar, value };
  });
  const element = h("div", { class: "classes" }, rows.map(one => one.row));
  const update = (probs, chosen) => rows.forEach(({ row, bar, value }, k) => {
    bar.style.width = `${100 * (probs[k] || 0)}%`;
    value.textContent = percent(probs[k]);
    row.classList.toggle("chosen", k === chosen);
  });
  return { element, update };
}

// A wave with its band, over the numbers of its points.
export function wavePicture(place, { lines, band, unit, said, label }) {
  const width = Math.max(place.clientWidth, 200), height = 210, left = 44, bottom = height - 30;
  const all = [...lines.flatMap(one => one.values), ...(band ? [...band.low, ...band.high] : [])]
    .filter(Number.isFinite);
  const least = Math.min(...all), most = Math.max(...all), pad = (most - least) * 0.06 || 1;
  const count = Math.max(...lines.map(one => one.values.length));
  const x = k => left + (k / Math.max(count - 1, 1)) * (width - left - 6);
  const y = v => bottom - ((v - least + pad) / (most - least + 2 * pad)) * (bottom - 8);
  const points = values => values.map((v, k) => `${x(k).toFixed(1)} ${y(v).toFixed(1)}`);
  const marks = ticks(least - pad, most + pad);
  place.replaceChildren(svg("svg", { width, height, role: "img", "aria-label": said },
    svg("g", { class: "axis" },
      marks.map(v => svg("line", { class: "grid", x1: left, x2: width, y1: y(v), y2: y(v) })),
      marks.map(v =>
        svg("text", { x: left - 5, y: y(v) + 4, "text-anchor": "end" }, show(v, 3))),
      svg("text", { x: width - 6, y: height - 8, "text-anchor": "end" }, label),
      svg("text", { x: 0, y: height - 8 }, unit)),
    band ? svg("path", { class: "inside",
      d: `M${points(band.high).join("L")}L${points(band.low)
        .map((_, k, every) => every[every.length - 1 - k]).join("L")}Z` }) : null,
    lines.map(one => svg("path", { class: `curve ${one.kind ?? ""}`,
      d: `M${points(one.values).join("L")}` }))));
}

// A sentence for what a picture shows.
export function sentence(name, found, k, unit, coverage) {
  return `${name}: ${show(found.mean[k])}${unitOf(unit)}, ${percent(coverage)} of the time ` +
    `between ${show(found.low[k])} and ${show(found.high[k])}${unitOf(unit)}`;
}
