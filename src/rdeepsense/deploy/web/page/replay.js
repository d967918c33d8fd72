// A recording played back by its own timestamps, as if the sensors gave it now.
import { columnsOf, parseCsv } from "./csv.js";

const EVERY = 40; // milliseconds

const UNITS = { ns: 1e-9, us: 1e-6, ms: 1e-3, s: 1 };

export function recordingOf(text, recipe) {
  const table = parseCsv(text), names = Object.values(recipe.sensors).flat();
  if (!table.header) throw new Error("the recording has no header with the names of its columns");
  const at = columnsOf(table.header, [recipe.time, ...names]);
  const truth = table.header.indexOf(recipe.label[0] ?? "label");
  const scale = UNITS[recipe.time_unit] ?? 1;
  const by = (recipe.by ?? []).map(name => table.header.indexOf(name)).filter(place => place >= 0);
  const rows = table.rows.map(row => {
    const [seconds, ...values] = at.map(column => table.number(row[column]));
    return { seconds: seconds * scale, values, truth: truth < 0 ? null : row[truth],
      name: by.map(place => `${table.header[place]} ${row[place]}`).join(", ") };
  }).filter(one => Number.isFinite(one.seconds));
  if (!rows.length) throw new Error("the recording has no row with a time");
  return inTurn(by.length ? byName(rows) : byFalls(rows, recipe.gap ?? 1), recipe.gap ?? 1);
}

// Rows of one name are one recording, wherever they lie.
function byName(rows) {
  const found = new Map();
  for (const one of rows) {
    if (!found.has(one.name)) found.set(one.name, []);
    found.get(one.name).push(one);
  }
  return [...found.values()].map(own => own.sort((a, b) => a.seconds - b.seconds));
}

// Where the time falls back by more than a gap another recording begins.
function byFalls(rows, gap) {
  const found = [];
  let last = -Infinity;
  for (const one of rows) {
    if (!found.length || one.seconds < last - gap) found.push([]);
    found[found.length - 1].push({ ...one, name: `recording ${found.length}` });
    last = one.seconds;
  }
  return found;
}

// Recordings one after the other, so far apart that no window reaches from one into the next.
function inTurn(recordings, gap) {
  let begin = recordings[0][0].seconds;
  return recordings.flatMap(rows => {
    const shift = begin - rows[0].seconds, last = rows[rows.length - 1].seconds;
    begin = last + shift + 2 * gap;
    return rows.map(one => ({ ...one, seconds: one.seconds + shift,
      name: recordings.length > 1 ? one.name : null }));
  });
}

export class Replay {
  constructor(rows, take, done) {
    Object.assign(this, { rows, take, done, speed: 1, at: 0 });
  }

  start() {
    this.clock = this.rows[this.at].seconds;
    this.before = performance.now();
    this.timer = setInterval(() => this.step(), EVERY);
  }

  step() {
    const now = performance.now();
    this.clock += ((now - this.before) / 1000) * this.speed;
    this.before = now;
    while (this.at < this.rows.length && this.rows[this.at].seconds <= this.clock) {
      const { seconds, values, truth, name } = this.rows[this.at++];
      this.take(seconds, values, truth, name);
    }
    const next = this.rows[this.at];
    if (!next) {
      this.stop();
      this.done();
    } else if (next.seconds - this.clock > 5) this.clock = next.seconds; // nobody waits for a pause
  }

  stop() {
    clearInterval(this.timer);
  }
}
