// Tables as text: commas, semicolons or tabs, quotes, decimal commas where columns are not.
export function parseCsv(text) {
  const first = text.slice(0, text.search(/\r?\n|$/));
  const mark = [";", "\t", ","].find(one => first.includes(one)) ?? ",";
  const rows = [[""]];
  let quoted = false;
  for (let i = text[0] === "\ufeff" ? 1 : 0; i < text.length; ++i) {
    const c = text[i], row = rows[rows.length - 1];
    if (quoted) {
      if (c === '"' && text[i + 1] === '"') row[row.length - 1] += text[++i];
      else if (c === '"') quoted = false;
      else row[row.length - 1] += c;
    } else if (c === '"') quoted = true;
    else if (c === mark) row.push("");
    else if (c === "\n") rows.push([""]);
    else if (c !== "\r") row[row.length - 1] += c;
  }
  const filled = rows.map(row => row.map(cell => cell.trim())).filter(row => row.some(c => c));
  if (!filled.length) return { header: null, rows: [] };
  const decimal = mark === "," ? null : ",";
  const isNumber = cell => cell === "" || Number.isFinite(parseNumber(cell, decimal)) ||
    /^(nan|na|null)$/i.test(cell);
  const named = !filled[0].every(isNumber);
  return {
    header: named ? filled[0] : null,
    rows: named ? filled.slice(1) : filled,
    number: cell => parseNumber(cell ?? "", decimal),
  };
}

function parseNumber(cell, decimal) {
  if (cell === "") return NaN;
  return Number(decimal ? cell.replace(decimal, ".") : cell);
}

export function writeCsv(rows) {
  const cell = value => {
    const text = String(value ?? "");
    // A name that begins like a formula would be one in a spreadsheet.
    const safe = typeof value === "string" && /^[=+@-]/.test(text) ? `'${text}` : text;
    return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  return rows.map(row => row.map(cell).join(",") + "\n").join("");
}

// Where each input of a model stands in a table: by name, else by place.
export function columnsOf(header, names) {
  if (!header) return names.map((_, k) => k);
  const at = names.map(name => header.indexOf(name));
  const lacking = names.filter((_, k) => at[k] < 0);
  if (lacking.length)
    throw new Error(`the table has no column ${lacking.slice(0, 3).join(", ")}` +
      (lacking.length > 3 ? ` and ${lacking.length - 3} more` : ""));
  return at;
}
