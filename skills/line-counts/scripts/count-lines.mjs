// Counts the lines of text files below a path of the current directory, by extension. Usage: count-lines.mjs [--] [path]
import { lstat, open, readdir, realpath } from "node:fs/promises";
import { extname, isAbsolute, join, relative, resolve, sep } from "node:path";

const skipped = new Set([".git", "node_modules"]);
const maxFiles = 50_000;
const chunk = Buffer.alloc(256 * 1024);

/** Writes the result, or the reason of a failure, to stdout, because only stdout is passed to the model. */
async function main(path) {
  const base = await realpath(".");
  const target = await realpath(resolve(base, path)).catch(() => undefined);
  if (target === undefined) return fail(`"${path}" was not found in the working directory.`);
  const way = relative(base, target);
  if (way === ".." || way.startsWith(`..${sep}`) || isAbsolute(way))
    return fail(`"${path}" is outside the working directory. Give a path inside it.`);
  const { kinds, isCut } = await count(target);
  process.stdout.write(`${format(kinds)}${isCut ? `\nOnly the first ${maxFiles} files were counted.` : ""}\n`);
}

function fail(message) {
  process.stdout.write(`${message}\n`);
  process.exitCode = 1;
}

async function count(target) {
  const kinds = new Map();
  let files = 0;
  const waiting = [target];
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    const stat = await lstat(path).catch(() => undefined);
    if (stat?.isDirectory()) waiting.push(...(await childrenOf(path)));
    if (!stat?.isFile()) continue;
    if (++files > maxFiles) return { kinds, isCut: true };
    const lines = await countLines(path);
    if (lines !== undefined) addTo(kinds, extname(path).toLowerCase() || "(no extension)", lines);
  }
  return { kinds, isCut: false };
}

async function childrenOf(folder) {
  // Skip folders that may not be read.
  const names = await readdir(folder).catch(() => []);
  return names.filter((name) => !skipped.has(name)).map((name) => join(folder, name));
}

function addTo(kinds, kind, { lines, blank }) {
  const sum = kinds.get(kind) ?? { files: 0, lines: 0, blank: 0 };
  kinds.set(kind, { files: sum.files + 1, lines: sum.lines + lines, blank: sum.blank + blank });
}

/** Counts the lines and blank lines of a text file. Undefined: the file is binary or cannot be read. */
async function countLines(path) {
  const file = await open(path).catch(() => undefined);
  if (file === undefined) return undefined;
  try {
    const counter = { lines: 0, blank: 0, hasText: false, isOpen: false };
    for (;;) {
      const { bytesRead } = await file.read(chunk, 0, chunk.length, null);
      if (bytesRead === 0) break;
      if (!takeBytes(counter, chunk.subarray(0, bytesRead))) return undefined;
    }
    if (counter.isOpen) endLine(counter);
    return counter;
  } catch {
    // The file was deleted or the disk failed: skip it like any file that cannot be read.
    return undefined;
  } finally {
    await file.close();
  }
}

/** Returns false if a NUL byte shows that the file is binary. */
function takeBytes(counter, bytes) {
  for (const byte of bytes) {
    if (byte === 0) return false;
    counter.isOpen = true;
    if (byte === 10) endLine(counter);
    else if (byte !== 13 && byte !== 32 && byte !== 9) counter.hasText = true;
  }
  return true;
}

function endLine(counter) {
  counter.lines++;
  if (!counter.hasText) counter.blank++;
  counter.hasText = false;
  counter.isOpen = false;
}

function format(kinds) {
  const rows = [...kinds].sort(([kindA, a], [kindB, b]) => b.lines - a.lines || (kindA < kindB ? -1 : 1));
  const total = { files: 0, lines: 0, blank: 0 };
  for (const [, row] of rows) for (const key of Object.keys(total)) total[key] += row[key];
  const table = [
    ["kind", "files", "lines", "blank"],
    ...[...rows, ["total", total]].map(([kind, row]) => [kind, row.files, row.lines, row.blank]),
  ];
  const widths = [0, 1, 2, 3].map((column) => Math.max(...table.map((row) => String(row[column]).length)));
  return table
    .map((row) => row.map((cell, column) => (column === 0 ? cell.padEnd(widths[0]) : String(cell).padStart(widths[column]))).join("  "))
    .join("\n");
}

const args = process.argv.slice(2);
await main((args[0] === "--" ? args[1] : args[0]) ?? ".");
