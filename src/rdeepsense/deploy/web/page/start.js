// What happens when the page opens: the model is loaded and tested, then its face is shown.
import { h } from "./dom.js";
import { faces } from "./faces.js";
import { load } from "./model.js";

async function start(place) {
  let model;
  try {
    model = await load();
  } catch (error) {
    place.replaceChildren(h("p", { class: "warning", role: "alert" },
      `The model cannot run here: ${error.message}. ` +
      "Use a browser of the last years, and open the page from a server, not as a file."));
    return;
  }
  const { facts } = model;
  const more = facts.targets.length > 3 ? ` and ${facts.targets.length - 3} more` : "";
  const subject = facts.targets.length ? facts.targets.slice(0, 3).join(", ") + more
    : "A model that says how sure it is";
  document.title = subject;
  const main = h("main", {});
  place.replaceChildren(
    h("header", {}, h("h1", {}, subject), h("p", { class: "soft" },
      `${facts.note} Everything runs on this device. Your data never leaves it.`)),
    main,
    h("footer", { class: "soft" }, `Self-test passed. ${facts.dtype} weights, model ` +
      `${facts.source}, rdeepsense ${facts.version}.`));
  faces[facts.face](model, main);
  place.dataset.ready = "yes";
  if ("serviceWorker" in navigator && isSecureContext)
    navigator.serviceWorker.register("worker.js").catch(() => {}); // it works online without
}

// Another page may import this script for its `load` alone.
const own = globalThis.document?.getElementById("rdeepsense");
if (own) start(own);
