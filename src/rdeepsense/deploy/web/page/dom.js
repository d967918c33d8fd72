// Elements by one function. What a model is called goes in as text and is never read as HTML.
const SVG = "http://www.w3.org/2000/svg";

export function h(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined)
      element.setAttribute(name, value);
  }
  element.append(...children.flat().filter(child => child !== null && child !== undefined));
  return element;
}

export function card(title, ...children) {
  return h("section", { class: "card" }, title ? h("h2", {}, title) : null, ...children);
}

// Four digits that matter; no 0.30000000000000004.
export function show(value, digits = 4) {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size && (size < 1e-4 || size >= 1e7)) return value.toExponential(digits - 2);
  return String(Number(value.toPrecision(digits))).replace("-", "\u2212");
}

export function percent(share) {
  if (!Number.isFinite(share)) return "–";
  return share > 0.995 && share < 1 ? "> 99 %" : `${Math.round(100 * share)} %`;
}

export function unitOf(unit) {
  return unit ? `\u00a0${unit}` : "";
}

// Text for screen readers: the last of many messages, and never two within some seconds.
export function announcer(element, pause = 3000) {
  let waiting = null, last = -Infinity;
  return text => {
    clearTimeout(waiting);
    const wait = Math.max(600, last + pause - performance.now());
    waiting = setTimeout(() => {
      last = performance.now();
      if (element.textContent !== text) element.textContent = text;
    }, wait);
  };
}

// The name of a file goes with the link; nothing leaves the device.
export function download(name, content, type = "text/csv") {
  const url = URL.createObjectURL(new Blob([content], { type }));
  h("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

export function fileButton(text, accept, take) {
  const input = h("input", {
    type: "file", accept, class: "hidden", tabindex: -1, "aria-label": text,
    onchange: async () => {
      if (input.files[0]) await take(input.files[0]);
      input.value = "";
    },
  });
  return h("span", {}, input, h("button", { type: "button", onclick: () => input.click() }, text));
}
