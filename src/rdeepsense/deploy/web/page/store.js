// Recordings in the browser's own database: they survive a reload, and an hour takes little memory,
// because samples go there in parts.
const NAME = "rdeepsense", PART = 512; // samples

function asked(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

export async function openStore() {
  const request = indexedDB.open(NAME, 1);
  request.onupgradeneeded = () => {
    request.result.createObjectStore("recordings", { keyPath: "id", autoIncrement: true });
    request.result.createObjectStore("parts", { keyPath: ["recording", "part"] });
  };
  const base = await asked(request);
  const within = (names, mode, work) => {
    const transaction = base.transaction(names, mode);
    return work(...[names].flat().map(name => transaction.objectStore(name)));
  };
  const whole = id => IDBKeyRange.bound([id, 0], [id, Infinity]);
  return {
    list: () => within("recordings", "readonly", all => asked(all.getAll())),
    begin: facts => within("recordings", "readwrite", all => asked(all.add(facts))),
    keep: recording => within("recordings", "readwrite", all => asked(all.put(recording))),
    add: part => within("parts", "readwrite", all => asked(all.put(part))),
    parts: id => within("parts", "readonly", all => asked(all.getAll(whole(id)))),
    remove: id => within(["recordings", "parts"], "readwrite", (all, parts) =>
      Promise.all([asked(all.delete(id)), asked(parts.delete(whole(id)))])),
  };
}

// One recording as it grows; at most PART samples are in memory.
export class Recording {
  constructor(store, facts) {
    Object.assign(this, { store, facts, parts: 0, times: [], values: [] });
    this.written = Promise.resolve();
  }

  async begin() {
    this.facts.id = await this.store.begin(this.facts);
    return this;
  }

  add(seconds, values) {
    this.times.push(seconds);
    this.values.push(...values);
    this.facts.samples += 1;
    if (this.times.length >= PART) this.flush();
  }

  flush() {
    const { facts, store, times, values } = this;
    if (!times.length) return this.written;
    const part = { recording: facts.id, part: this.parts++, times: Float64Array.from(times),
      values: Float32Array.from(values) };
    [this.times, this.values] = [[], []];
    this.written = this.written.then(() => store.add(part)).then(() => store.keep({ ...facts }));
    return this.written;
  }
}
