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
  const rows = table.rows.map(row => {
    const [seconds, ...values] = at.map(column => table.number(row[column]));
    return { seconds: seconds * scale, values, truth: truth < 0 ? null : row[truth] };
  }).filter(one => Number.isFinite(one.seconds));
  if (!rows.length) throw new Error("the recording has no row with a time");
  return rows;
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
      const { seconds, values, truth } = this.rows[this.at++];
      this.take(seconds, values, truth);
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
