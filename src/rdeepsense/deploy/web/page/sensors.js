// A phone's motion sensors as samples of the model's channels, and what is the matter with them.
const SILENT = 1500; // milliseconds without an event
const STUCK = 2; // seconds of one and the same value
const LOOKED_AT = 60; // values, before it is said that a browser rounds them
const SIGN = "rdeepsense-sign";
const FLAT = 7; // m/s2 along z of a phone that lies flat

// iOS gives acceleration with the opposite sign of Android and of the standard.
function likelySign() {
  try {
    const kept = Number(localStorage.getItem(SIGN));
    if (kept) return kept;
  } catch {
    // no storage: guess each time
  }
  const apple = /iPhone|iPad|iPod/.test(navigator.userAgent) ||
    (/Macintosh/.test(navigator.userAgent) && navigator.maxTouchPoints > 1);
  return apple ? -1 : 1;
}

export class PhoneMotion {
  // `take(seconds, values)` gets the samples, `tell(about, sentence)` what to do; null: no more.
  constructor(recipe, take, tell) {
    Object.assign(this, { recipe, take, tell, sign: likelySign() });
    this.listen = event => this.event(event);
    this.sleep = () => document.hidden &&
      tell("hidden", "Browsers stop the sensors of a page that is not in front: keep it open.");
  }

  // Must be called by a click: iOS asks for permission then, and only then.
  async start() {
    const { tell } = this;
    tell("start", null);
    if (!isSecureContext) {
      tell("start", "Browsers give motion sensors to https pages alone, and this one is not: open " +
        "it by https, for example from any host of static files, or on this machine by localhost.");
      return false;
    }
    if (typeof DeviceMotionEvent === "undefined") {
      tell("start", "This browser has no motion sensors: open the page on a phone, or replay a " +
        "recording.");
      return false;
    }
    if (!this.recipe.phone.some(one => one.source)) {
      tell("start", "None of the model's channels is a motion sensor of a phone by its name: " +
        "replay a recording, or name the sensors accelerometer or gyroscope when you fit.");
      return false;
    }
    if (DeviceMotionEvent.requestPermission && !(await this.permitted())) {
      tell("start", "Motion sensors were not allowed: reload the page and allow them when asked. On " +
        "an iPhone, clear this site under Settings, Safari, Advanced, Website Data if it does not ask.");
      return false;
    }
    Object.assign(this, { last: null, same: 0, seen: 0, rounded: true, flat: null });
    addEventListener("devicemotion", this.listen);
    document.addEventListener("visibilitychange", this.sleep);
    this.waiting = setTimeout(() => tell("start", "No motion sensor answered: open the page on a " +
      "phone, allow motion sensors in the browser's site settings, or replay a recording."), SILENT);
    return true;
  }

  async permitted() {
    try {
      return (await DeviceMotionEvent.requestPermission()) === "granted";
    } catch {
      return false;
    }
  }

  stop() {
    clearTimeout(this.waiting);
    removeEventListener("devicemotion", this.listen);
    document.removeEventListener("visibilitychange", this.sleep);
  }

  event(event) {
    const own = { gravity: event.accelerationIncludingGravity, acceleration: event.acceleration,
      rotation: event.rotationRate };
    const read = ({ source, axis, factor }) => {
      const value = own[source]?.[source === "rotation" ? ["alpha", "beta", "gamma"][axis] : "xyz"[axis]];
      if (typeof value !== "number") return NaN;
      return value * factor * (source === "rotation" ? 1 : this.sign);
    };
    const values = this.recipe.phone.map(read), seconds = event.timeStamp / 1000;
    if (values.every(Number.isNaN)) return; // a machine without sensors sends one empty event
    clearTimeout(this.waiting);
    this.tell("start", null);
    this.check(seconds, values, own);
    this.take(seconds, values);
  }

  check(seconds, values, own) {
    const { tell, last, recipe } = this;
    const lacking = recipe.phone.flatMap((one, k) =>
      one.source === "rotation" && Number.isNaN(values[k]) ? [recipe.sensorOf?.[k] ?? "gyroscope"] : []);
    tell("gyroscope", lacking.length ? "This phone gives no gyroscope, which the model reads: use a " +
      "phone that has one, or train a model on the accelerometer alone." : null);
    if (last) {
      if (seconds - last.seconds > Math.max(recipe.gap ?? 1, 0.5))
        tell("gap", `No samples came for ${(seconds - last.seconds).toFixed(1)} s, so the window ` +
          "begins anew: keep the page in front and the screen on.");
      const equal = values.every((v, k) => v === last.values[k] || Number.isNaN(v));
      this.same = equal ? this.same + seconds - last.seconds : 0;
      tell("stuck", this.same > STUCK ? "The sensor repeats one and the same value: move the phone; " +
        "if that changes nothing, close other pages that use it and reload, or restart the phone." : null);
    }
    this.last = { seconds, values };
    const g = own.gravity;
    if (g && typeof g.x === "number" && this.seen < LOOKED_AT) {
      this.rounded &&= [g.x, g.y, g.z].every(v => Math.abs(v * 10 - Math.round(v * 10)) < 1e-6);
      if (++this.seen === LOOKED_AT && this.rounded)
        tell("rounded", "This browser rounds accelerations to 0.1 m/s²: walking is told all the same; " +
          "for finer movements record with an app and train on that.");
    }
    if (this.flat) this.flat(g?.z);
  }

  // A phone that lies flat, screen up, has z = +9.8 m/s2 by the standard.
  checkSign() {
    if (!this.last) return Promise.resolve("Start the sensors first, then lay the phone flat.");
    return new Promise(resolve => {
      const found = [];
      this.flat = z => {
        found.push(z);
        if (found.length < 30) return;
        this.flat = null;
        const mean = found.reduce((a, b) => a + b, 0) / found.length;
        if (!(Math.abs(mean) > FLAT)) {
          resolve("The phone does not lie flat and still: put it on a table, screen up, and try again.");
          return;
        }
        const turned = Math.sign(mean) !== this.sign;
        this.sign = Math.sign(mean);
        try {
          localStorage.setItem(SIGN, this.sign);
        } catch {
          // it holds until the page is closed
        }
        resolve(turned ? "The signs were the other way round; they are right now, and kept."
          : "The signs are right: nothing to do.");
      };
    });
  }
}
