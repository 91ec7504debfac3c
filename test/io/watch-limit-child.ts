import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type WatchBackend, watchTree } from "../../src/io/watch/watch-tree.ts";

// Runs where the kernel allows very few watches; writes the missed changes to stdout.
const root = mkdtempSync(join(tmpdir(), "watch-limit-"));
const expected = new Set<string>();
const problems: (readonly string[])[] = [];
for (let i = 0; i < 40; i++) {
  mkdirSync(join(root, `s${i}`));
  writeFileSync(join(root, `s${i}/SKILL.md`), "x");
}
await using watcher = watchTree({
  roots: [root],
  backend: process.argv[2] as WatchBackend,
  pollInterval: 50,
  onChange: (changes) => {
    for (const change of changes) expected.delete(`${change.kind} ${change.path}`);
  },
  onProblem: ({ code, message }) => problems.push([code, /ENOSPC|EMFILE/.exec(message)?.[0] ?? message]),
});
await watcher.ready;
for (let i = 0; i < 40; i++) {
  expected.add(`changed ${join(root, `s${i}/SKILL.md`)}`).add(`added ${join(root, `s${i}/new/deep.md`)}`);
  writeFileSync(join(root, `s${i}/SKILL.md`), "longer");
  mkdirSync(join(root, `s${i}/new`));
  writeFileSync(join(root, `s${i}/new/deep.md`), "x");
}
const deadline = Date.now() + 10_000;
while (expected.size > 0 && Date.now() < deadline) await new Promise((resolve) => setTimeout(resolve, 20));
rmSync(root, { recursive: true });
process.stdout.write(JSON.stringify({ problems, missing: [...expected] }));
