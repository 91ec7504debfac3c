// Runs the benchmarks one after the other, each in a process of its own: `npm run bench`, or some by name:
// `npm run bench -- calls assemble`. Build first: what is measured is what is in dist/ and build/.
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { built } from "./support/built.mjs";
import { machine } from "./support/report.mjs";

const names = [
  "start",
  "reload",
  "memory",
  "load",
  "scale",
  "watch",
  "calls",
  "inspector",
  "page",
  "blocking",
  "isolation",
  "assemble",
  "sessions",
  "turns",
  "mcp",
  "http",
  "copilot",
  "python",
  "trust",
  "packages",
  "fleet",
];

const wanted = process.argv.slice(2);
const unknown = wanted.filter((name) => !names.includes(name));
if (unknown.length > 0) {
  console.error(`There is no benchmark ${unknown.join(", ")}. There are ${names.join(", ")}.`);
  process.exit(2);
}
await built("base/package-root.js");
console.log(machine());
let failed = 0;
for (const name of wanted.length > 0 ? wanted : names) {
  const file = fileURLToPath(new URL(`${name}.mjs`, import.meta.url));
  const { status } = spawnSync(process.execPath, ["--expose-gc", file], { stdio: "inherit" });
  if (status !== 0) failed++;
}
process.exitCode = failed === 0 ? 0 : 1;
