// Parses files in a process of its own and tells which of them came through. A source that nests too deeply overflows
// the native parser's stack, which ends the process: better this one than the host.
import { readFileSync, writeSync } from "node:fs";
import { parseSync } from "oxc-parser";

/** Uses up some stack first, so that what passes here passes where the caller's own frames lie on the stack as well. */
function deeper(frames, then) {
  return frames === 0 ? then() : deeper(frames - 1, then) + 0;
}

for (const [index, file] of process.argv.slice(2).entries()) {
  const source = readFileSync(file, "utf8");
  // The tree is asked for as well: turning it into objects recurses too.
  deeper(3000, () => parseSync(file.replace(/\.[cm]?js$/, ".jsx"), source, { showSemanticErrors: true }).program.start);
  writeSync(1, `${index}\n`);
}
