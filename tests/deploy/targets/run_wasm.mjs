// Runs `start` of a WebAssembly file; the exit status is what it returns.
import { readFileSync } from "node:fs";

let memory;

function text(at) {
  const bytes = new Uint8Array(memory.buffer);
  return Buffer.from(bytes.subarray(at, bytes.indexOf(0, at))).toString();
}

function printf(format, values) {
  const view = new DataView(memory.buffer);
  const shown = text(format).replace(/%(s|08lx)/g, (_, kind) => {
    const value = view.getUint32(values, true);
    values += 4;
    return kind === "s" ? text(value) : value.toString(16).padStart(8, "0");
  });
  process.stdout.write(shown);
  return shown.length;
}

const { instance } = await WebAssembly.instantiate(readFileSync(process.argv[2]), { env: { printf } });
memory = instance.exports.memory;
process.exitCode = instance.exports.start();
