// Lists the syntax errors of JavaScript and TypeScript files as JSON. Usage: find-syntax-errors.mjs -- <file or folder>...
// It is a program of its own because a file that nests too deeply overflows the parser's stack, which ends the process.
import { lstat, readdir, readFile } from "node:fs/promises";
import { extname, join } from "node:path";
import { parseSync } from "oxc-parser";

const maxFiles = 2000;
const maxBytes = 1024 * 1024;
const skipped = new Set(["node_modules", "dist", "coverage"]);
// JSX in a .js file is common, and everything else parses the same.
const languages = { ".js": "jsx", ".mjs": "jsx", ".cjs": "jsx", ".jsx": "jsx", ".ts": "ts", ".mts": "ts", ".cts": "ts", ".tsx": "tsx" };

async function* findFiles(path) {
  const found = await lstat(path).catch(() => undefined);
  if (found?.isFile() && languages[extname(path).toLowerCase()]) yield { path, size: found.size };
  if (!found?.isDirectory()) return;
  const names = await readdir(path).catch(() => []);
  for (const name of names.sort()) if (!name.startsWith(".") && !skipped.has(name)) yield* findFiles(join(path, name));
}

function errorsIn(file, source) {
  const text = source.replace(/^\uFEFF/, "");
  const lang = languages[extname(file).toLowerCase()];
  const sourceType = /\.c[jt]s$/i.test(file) ? "commonjs" : "unambiguous";
  return parseSync(file, text, { lang, sourceType, showSemanticErrors: true }).errors.map(({ message, severity, labels }) => {
    const before = text.slice(0, labels[0]?.start ?? 0).split("\n");
    return { file, line: before.length, column: before.at(-1).length + 1, severity: severity.toLowerCase(), message };
  });
}

const found = [];
let files = 0;
for (const path of process.argv.slice(3)) {
  for await (const { path: file, size } of findFiles(path)) {
    if (files++ === maxFiles) process.stderr.write(`Only the first ${maxFiles} files of ${path} were checked.\n`);
    if (files > maxFiles) break;
    // Where the parser ends the process, this is the last line on stderr.
    process.stderr.write(`Parsing ${file}\n`);
    if (size <= maxBytes) found.push(...errorsIn(file, await readFile(file, "utf8")));
    else found.push({ file, line: 1, column: 1, severity: "warning", message: `Not checked: larger than ${maxBytes} bytes.` });
  }
}
process.stdout.write(JSON.stringify(found));
process.exitCode = found.length > 0 ? 1 : 0;
