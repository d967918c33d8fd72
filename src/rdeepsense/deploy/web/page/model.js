/**
 * A model exported by rdeepsense, in a page of your own:
 *
 *   import { load } from "./rdeepsense.js";
 *   const model = await load();              // runs the model's self-test before it returns
 *   model.predict([21.5, 0.3]);              // {mean, std, low, high, status} or {probs, label, ...}
 *   model.push(seconds, [ax, ay, az]);       // models of windows: the decisions that are now due
 *   model.observe([22.1]);                   // exports with live: the truth of the last prediction,
 *                                            // numbers, or the label of the last window
 *
 * Units are those of the training. NaN, null and undefined are missing values.
 */
export const Status = {
  OK: 0, MISSING: 1, OUT_OF_RANGE: 2, UNKNOWN_LEVEL: 4, UNSURE: 8, UNLIKE: 16, DRIFTING: 32,
  NOT_ENOUGH_DATA: 64,
};

/** Load a model: the address of a .wasm file, by default the one beside this script, or its bytes. */
export async function load(source = new URL("model.wasm", import.meta.url)) {
  let bytes = source;
  if (!(source instanceof ArrayBuffer || ArrayBuffer.isView(source))) {
    const answer = await fetch(source);
    if (!answer.ok) throw new Error(`${source}: ${answer.status} ${answer.statusText}`);
    bytes = await answer.arrayBuffer();
  }
  const module = await WebAssembly.compile(bytes);
  const [section] = WebAssembly.Module.customSections(module, "rdeepsense");
  if (!section) throw new Error("this WebAssembly is no model of rdeepsense");
  const facts = JSON.parse(new TextDecoder().decode(section));
  return new Model(facts, (await WebAssembly.instantiate(module)).exports);
}

export class Model {
  constructor(facts, wasm) {
    if (wasm.page_selftest() !== 0)
      throw new Error("the self-test failed: this browser computes other numbers than the model's");
    this.facts = facts;
    this.wasm = wasm;
    this.outputs = facts.outputs;
    const floats = (at, count) => new Float32Array(wasm.memory.buffer, at, count);
    const size = facts.inputs.length * facts.window.reduce((a, b) => a * b, 1);
    this.x = floats(wasm.page_inputs(), size);
    this.out = floats(wasm.page_outputs(), 4 * this.outputs);
    if (facts.live) this.truth = floats(wasm.page_truth(), this.outputs);
    if (wasm.page_push) {
      this.sample = floats(wasm.page_sample(), facts.inputs.length);
      this.times = new Float64Array(wasm.memory.buffer, wasm.page_times(), 2);
    }
    if (facts.personal) this.personal = Model.personalOf?.(this);
    this.reset();
  }

  /** Forget what was learnt from labels, and the samples of a stream. */
  reset() {
    this.wasm.page_begin?.();
    this.personal?.forget();
    this.labels = 0;
    this.restart();
  }

  /** Begin a new stream of samples; what was learnt from labels stays. */
  restart() {
    this.wasm.page_begin_stream?.();
  }

  /** Predict one row, or a window of it: numbers, or lists of the channels at each time. */
  predict(x, coverage = 0.9) {
    const values = x.flat ? x.flat() : x;
    if (values.length !== this.x.length)
      throw new Error(`${values.length} numbers; the model takes ${this.x.length}`);
    for (let i = 0; i < this.x.length; ++i) this.x[i] = number(values[i]);
    const status = this.facts.live ? this.wasm.page_live() : this.wasm.page_predict();
    const found = this.read(status, coverage);
    const flagged = status && this.wasm.page_flagged ? this.wasm.page_flagged() : this.x.length;
    if (flagged < this.x.length) found.flagged = flagged % this.facts.inputs.length;
    return found;
  }

  /** Take a sample in and return the decisions that are due; time in seconds, ever later. */
  push(seconds, values) {
    if (!this.wasm.page_push) throw new Error("push() is for models of windows with a recipe");
    for (let i = 0; i < this.sample.length; ++i) this.sample[i] = number(values[i]);
    this.taken = this.wasm.page_push(Math.round(seconds * 1e6));
    const found = [];
    for (let status; (status = this.wasm.page_decide()) >= 0; ) {
      const one = this.read(status, 0.9);
      one.start = this.times[0] / 1e6;
      one.end = this.times[1] / 1e6;
      if (this.facts.classes) {
        one.label = this.wasm.page_label();
        one.probability = this.wasm.page_probability();
      }
      found.push(one);
    }
    return found;
  }

  /** Learn from the truth of the last prediction; true where it was taken in. */
  observe(y) {
    if (this.personal) return this.personal.observe(y);
    if (!this.facts.live) throw new Error("observe() is for exports with live");
    [y].flat().forEach((value, k) => (this.truth[k] = number(value)));
    const taken = this.wasm.page_observe() === 0;
    this.labels += taken;
    return taken;
  }

  /** What was learnt from labels, as bytes; give them to `restore` later. */
  state() {
    const own = this.learnt();
    this.wasm.page_seal();
    return own.slice();
  }

  restore(bytes) {
    const own = this.learnt(), before = own.slice();
    if (bytes.length !== own.length)
      throw new Error(`a state of ${bytes.length} bytes; this model's has ${own.length}`);
    own.set(bytes);
    if (this.wasm.page_check() === 0) return;
    own.set(before);
    throw new Error("it is damaged, or was learnt by another model");
  }

  learnt() {
    if (!this.facts.live) throw new Error("this export has no state: export it with live");
    const { memory, page_state, page_state_bytes } = this.wasm;
    return new Uint8Array(memory.buffer, page_state(), page_state_bytes());
  }

  read(status, coverage) {
    const n = this.outputs, part = k => Array.from(this.out.subarray(k * n, (k + 1) * n));
    if (this.facts.classes) {
      const probs = part(0), label = probs.indexOf(Math.max(...probs));
      return { status, probs, label, probability: probs[label] };
    }
    const found = { status, mean: part(0), std: part(1) };
    if (this.facts.epistemic) found.epistemic = part(2);
    if (this.facts.live === coverage) return { ...found, low: part(2), high: part(3) };
    const at = this.facts.coverages.indexOf(coverage);
    const end = factors => found.mean.map((m, k) =>
      m + (factors[at].length > 1 ? factors[at][k] : factors[at][0]) * found.std[k]);
    if (at >= 0) Object.assign(found, { low: end(this.facts.low), high: end(this.facts.high) });
    return found;
  }
}

function number(value) {
  return value === null || value === undefined || value === "" ? NaN : Number(value);
}
