// Times modules by turns; for node and for a page alike.
function measured(modules, rounds, times, rows) {
  const runs = {}, best = {}, bits = {};
  for (const [name, text] of Object.entries(modules)) {
    const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    runs[name] = new WebAssembly.Instance(new WebAssembly.Module(bytes), {}).exports.run;
    bits[name] = runs[name](times) >>> 0;
    best[name] = Infinity;
  }
  for (let round = 0; round < rounds; ++round) {
    for (const name in runs) {
      const begin = performance.now();
      runs[name](times);
      best[name] = Math.min(best[name], performance.now() - begin);
    }
  }
  const lines = [];
  for (const name in runs) {
    const [dtype] = name.split(" ");
    const microseconds = (1000 * best[name]) / (times * rows);
    const ratio = best[`${dtype} plain`] / best[name];
    const same = dtype !== "int8" || bits[name] === bits["int8 plain"];
    lines.push(
      `${name.padEnd(20)} ${microseconds.toFixed(2).padStart(9)} us  ${ratio.toFixed(2)} times plain` +
        (same ? "" : "  OTHER BITS"),
    );
  }
  return lines.join("\n");
}
