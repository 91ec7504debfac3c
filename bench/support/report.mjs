import { cpus, release } from "node:os";

export function machine() {
  const models = cpus();
  const date = new Date().toISOString().slice(0, 16).replace("T", " ");
  return `${models[0].model.trim()}, ${models.length} cores, ${process.platform} ${release()}, Node ${process.version}, ${date} UTC`;
}

export function title(text) {
  console.log(`\n## ${text}\n`);
}

/** Prints rows (objects with equal keys) as a table that is also Markdown. Numbers are shortened to what they can say. */
export function table(rows) {
  const heads = Object.keys(rows[0]);
  const cells = rows.map((row) => heads.map((head) => format(row[head])));
  const widths = heads.map((head, column) => Math.max(head.length, ...cells.map((line) => line[column].length)));
  const isText = heads.map((head) => typeof rows[0][head] === "string");
  const line = (values) =>
    `| ${values.map((value, column) => value[isText[column] ? "padEnd" : "padStart"](widths[column])).join(" | ")} |`;
  console.log([line(heads), `|${widths.map((width) => "-".repeat(width + 2)).join("|")}|`, ...cells.map(line)].join("\n"));
}

/** Says whether a figure keeps within its goal. */
export function goal(what, value, limit, unit) {
  console.log(`${value <= limit ? "met   " : "MISSED"}  ${what}: ${format(value)} ${unit}, goal ${format(limit)} ${unit} or less`);
}

function format(value) {
  if (value === undefined || value === null) return "–";
  if (typeof value !== "number") return String(value);
  if (Number.isInteger(value)) return value.toLocaleString("en-US");
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : Math.abs(value) >= 0.1 ? 2 : 4;
  return value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

/** How many times as much. */
export function ratio(value, of) {
  return `${format(value / of)}×`;
}
