import { closeSync, ftruncateSync, openSync, readFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { createHost, type Diagnostic, type Host } from "../../src/index.ts";
import { patience } from "../slowness.ts";

// Runs with a low limit of open files and writes the state of the host at each step to stdout.
const [folder = "", mode] = process.argv.slice(2);
const isWatching = mode === "watch";
const logger = { error() {}, warning() {}, info() {}, debug() {}, enabled: () => false };
const host = await createHost({ skillDirectories: [join(folder, "skills"), join(folder, "more/*")], watch: isWatching, logger });
const errors = (): readonly Diagnostic[] => host.diagnostics.filter(({ severity }) => severity === "error");
const steps: Record<string, unknown> = { started: stateOf(host) };

// Nothing can be opened later, so the file to be edited is opened first.
const edited = ["skills/tool/tools/tool.mjs", "skills/text/SKILL.md", "more/prompt/prompts/greet.md"].map((file) => {
  const path = join(folder, file);
  return { handle: openSync(path, "r+"), text: readFileSync(path, "utf8") };
});
const held: number[] = [];
try {
  for (;;) held.push(openSync(folder, "r"));
} catch {
  // The limit is reached.
}
for (const { handle, text } of edited) {
  ftruncateSync(handle, 0);
  writeSync(handle, text.replaceAll("before", "after"), 0);
}
await look(() => errors().length >= edited.length);
// The first call: what checks its arguments is loaded now.
steps["call"] = { exhausted: await called() };
steps["exhausted"] = { ...stateOf(host), diagnostics: errors().map(({ code, file, message }) => [code, file, message]) };
for (const handle of held) closeSync(handle);
await look(() => errors().length === 0);
steps["freed"] = { ...stateOf(host), diagnostics: errors() };
steps["call"] = { ...(steps["call"] as object), freed: await called() };
await host[Symbol.asyncDispose]();
process.stdout.write(JSON.stringify(steps));

async function called(): Promise<string> {
  const { ok, text } = await host.callTool("checked", { n: 1 });
  return `${ok} ${text}`;
}

async function look(isDone: () => boolean): Promise<void> {
  if (!isWatching) return host.reload();
  const deadline = Date.now() + patience(10_000);
  while (!isDone() && Date.now() < deadline) await new Promise((resolve) => setTimeout(resolve, 20));
}

function stateOf({ skills }: Host): object {
  const shown = skills.map(({ name, state, stale, description, tools, prompts }) => {
    const offers = [description, ...tools, ...prompts.map(({ text }) => text.trim())].join(", ");
    return `${name} ${state}${stale ? ", not as its files are" : ""}: ${offers}`;
  });
  return { skills: shown.toSorted() };
}
