// Learning of classes from a few labelled windows: `model.adapt` of the library, in the page.
//
// With logits z and B^T phi = psi of the windows, G = psi psi^T, the change of the last layer is
// B psi^T a where a is least of sum_n -log softmax(z_n + (G a)_n)[y_n] + tr(a^T G a) / 2. There
// a = onehot(y) - softmax(z + G a), which Newton's steps find; a step that would not help is halved.
import { Model } from "./model.js";

const MOST = 48; // windows; the oldest are forgotten
const STEPS = 60, NEAR = 1e-11;

Model.personalOf = model => new Personal(model);

class Personal {
  constructor(model) {
    const { facts, wasm } = model, { features, root } = facts.personal;
    const bytes = Uint8Array.from(atob(root), c => c.charCodeAt(0));
    this.root = new Float32Array(bytes.buffer);
    Object.assign(this, { features, classes: facts.classes, taught: [] });
    const count = facts.outputs;
    const at = wasm.page_personal(), size = count * features, { buffer } = wasm.memory;
    this.change = new Float32Array(buffer, at, size);
    this.read = new Float32Array(buffer, at + 4 * size, features - 1);
    this.logits = new Float32Array(buffer, at + 4 * (size + features - 1), count);
  }

  // What the last layer read and said of the last window, without what was learnt.
  seen() {
    return { phi: [...this.read, 1], logits: [...this.logits] };
  }

  observe(label, seen = this.seen()) {
    const y = typeof label === "number" ? label : this.classes.indexOf(label);
    if (!(y >= 0 && y < this.classes.length) || !seen.logits.every(Number.isFinite)) return false;
    this.taught.push({ ...seen, y });
    if (this.taught.length > MOST) this.taught.shift();
    this.solve();
    return true;
  }

  forget(count = Infinity) {
    this.taught.splice(Math.max(this.taught.length - count, 0));
    this.solve();
  }

  // The logits of a window as the model knows them now.
  corrected({ phi, logits }) {
    return logits.map((z, k) =>
      z + phi.reduce((sum, v, i) => sum + v * this.change[k * this.features + i], 0));
  }

  solve() {
    const { taught, features, root, classes } = this, count = classes.length;
    this.change.fill(0);
    if (!taught.length) return;
    const psi = taught.map(({ phi }) => {
      const found = new Float64Array(features);
      for (let i = 0, at = 0; i < features; ++i)
        for (let j = 0; j <= i; ++j) found[j] += root[at++] * phi[i];
      return found;
    });
    const gram = psi.map(a => psi.map(b => a.reduce((sum, v, i) => sum + v * b[i], 0)));
    const alpha = mostProbable(gram, taught.map(one => one.logits), taught.map(one => one.y));
    for (let k = 0; k < count; ++k) {
      const along = new Float64Array(features);
      psi.forEach((own, n) => own.forEach((v, i) => { along[i] += alpha[n * count + k] * v; }));
      for (let i = 0, at = 0; i < features; ++i) {
        let sum = 0;
        for (let j = 0; j <= i; ++j) sum += root[at++] * along[j];
        this.change[k * features + i] = sum;
      }
    }
  }
}

function mostProbable(gram, logits, labels) {
  const rows = labels.length, count = logits[0].length, size = rows * count;
  const judge = alpha => {
    let loss = 0;
    const rest = new Float64Array(size), probs = [];
    for (let n = 0; n < rows; ++n) {
      const moved = logits[n].map((_, k) => {
        let sum = 0;
        for (let m = 0; m < rows; ++m) sum += gram[n][m] * alpha[m * count + k];
        loss += 0.5 * alpha[n * count + k] * sum;
        return logits[n][k] + sum;
      });
      const most = Math.max(...moved), odds = moved.map(v => Math.exp(v - most));
      const total = odds.reduce((a, b) => a + b, 0), p = odds.map(v => v / total);
      loss -= moved[labels[n]] - most - Math.log(total);
      probs.push(p);
      p.forEach((v, k) => { rest[n * count + k] = alpha[n * count + k] + v - (k === labels[n]); });
    }
    return { loss, rest, probs };
  };
  let alpha = new Float64Array(size), now = judge(alpha);
  for (let step = 0; step < STEPS && now.rest.some(v => Math.abs(v) > NEAR); ++step) {
    const matrix = Array.from({ length: size }, (_, at) => {
      const n = Math.floor(at / count), k = at % count, p = now.probs[n];
      const line = new Float64Array(size + 1);
      for (let m = 0; m < rows; ++m)
        for (let l = 0; l < count; ++l)
          line[m * count + l] = p[k] * ((k === l) - p[l]) * gram[n][m] + (at === m * count + l);
      line[size] = -now.rest[at];
      return line;
    });
    const change = solved(matrix);
    let next = null;
    for (let share = 1; share > 1e-6; share /= 2) {
      const moved = alpha.map((v, i) => v + share * change[i]), found = judge(moved);
      if (found.loss <= now.loss + 1e-13 * Math.abs(now.loss)) {
        next = [moved, found];
        break;
      }
    }
    if (!next) break;
    [alpha, now] = next;
  }
  return alpha;
}

// Gauss's elimination, with the largest of each column on the diagonal.
function solved(matrix) {
  const size = matrix.length;
  for (let i = 0; i < size; ++i) {
    let best = i;
    for (let r = i + 1; r < size; ++r)
      if (Math.abs(matrix[r][i]) > Math.abs(matrix[best][i])) best = r;
    [matrix[i], matrix[best]] = [matrix[best], matrix[i]];
    for (let r = i + 1; r < size; ++r) {
      const factor = matrix[r][i] / matrix[i][i];
      if (factor) for (let c = i; c <= size; ++c) matrix[r][c] -= factor * matrix[i][c];
    }
  }
  const found = new Float64Array(size);
  for (let i = size - 1; i >= 0; --i) {
    let sum = matrix[i][size];
    for (let c = i + 1; c < size; ++c) sum -= matrix[i][c] * found[c];
    found[i] = sum / matrix[i][i];
  }
  return found;
}
