// Runs calls on a page's own script: node run_page.mjs FOLDER < calls.json > results.json
import { readFileSync } from "node:fs";

const folder = process.argv[2];
// The script as a module whatever its name is; it has no import.
const source = readFileSync(`${folder}/rdeepsense.js`);
const { load } = await import(`data:text/javascript;base64,${source.toString("base64")}`);
const model = await load(readFileSync(`${folder}/model.wasm`));
const calls = JSON.parse(readFileSync(0, "utf8"));
const found = calls.map(([name, ...given]) => model[name](...given));
process.stdout.write(JSON.stringify(found, (_, v) => (Number.isNaN(v) ? null : v)));
