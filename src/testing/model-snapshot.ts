import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { HostError } from "../base/errors.ts";
import type { Host } from "../host/host.ts";
import { writeFileAtomic } from "../io/atomic-write.ts";
import { scriptedModel } from "../models/scripted-model.ts";
import type { SessionOptions } from "../session/session-config.ts";
import { toolAsTypeScript } from "../tools/schema/schema-as-typescript.ts";

/** The texts of skillhost, of the machine and of the user: they change without the skill. */
const foreignSections = [
  "identity",
  "tone",
  "guidelines",
  "safety",
  "tool_instructions",
  "environment_context",
  "custom_instructions",
  "runtime_instructions",
];

/**
 * What a model is given because of the host's skills, plugins and servers: their instructions and tools, as in a real request. Without
 * skillhost's own instructions and tools. Paths of the machine are replaced.
 */
export async function modelText({ host }: { readonly host: Host }, options: SessionOptions = {}): Promise<string> {
  const chatModel = scriptedModel("Done.");
  const sections = Object.fromEntries(foreignSections.map((name) => [name, { action: "remove" as const }]));
  const session = await host.createSession({
    ...options,
    persist: false,
    chatModel,
    currentDateTime: false,
    systemMessage: { mode: "customize", sections },
  });
  try {
    await session.ready();
    await session.sendAndWait("Hello.");
    const [{ messages, tools = [] } = { messages: [] }] = chatModel.requests;
    const system = messages.flatMap((message) => (message.role === "system" ? [message.content] : [])).join("\n\n");
    const { executables } = session.catalog;
    const own = tools.flatMap(({ name }) => {
      const tool = executables.get(name);
      return tool === undefined || tool.origin.kind === "builtin" ? [] : [toolAsTypeScript(tool.definition)];
    });
    const text = `# Instructions\n\n${system.trim() || "None."}\n\n# Tools\n\n${own.join("\n\n") || "None."}\n`;
    return withoutPaths(text, host);
  } finally {
    await session.disconnect();
  }
}

function withoutPaths(text: string, { skills, workingDirectory }: Host): string {
  const named = skills.reduce((replaced, { folder, name }) => replaced.replaceAll(folder, `<skill ${name}>`), text);
  return named.replaceAll(workingDirectory, "<working directory>");
}

/**
 * Compares a text, such as `modelText` gives, with a file that is kept with the test. A file that does not exist is written, except in CI
 * (the variable `CI`). `skillhost test --update-snapshots`, or `SKILLHOST_SNAPSHOTS=update`, replaces files that differ.
 * @throws HostError `SNAPSHOT_MISMATCH` with the lines that differ, `SNAPSHOT_MISSING`
 */
export async function matchSnapshot(file: string | URL, text: string): Promise<void> {
  const path = typeof file === "string" ? file : fileURLToPath(file);
  const before = await readSnapshot(path);
  if (before === text) return;
  const isUpdate = process.env["SKILLHOST_SNAPSHOTS"] === "update";
  const isCi = !["", "0", "false"].includes(process.env["CI"] ?? "");
  if (isUpdate || (before === undefined && !isCi)) return writeFileAtomic(path, text);
  const advice = "skillhost test --update-snapshots (or SKILLHOST_SNAPSHOTS=update with another test runner)";
  if (before === undefined) throw new HostError("SNAPSHOT_MISSING", `${path} does not exist. Write and commit it: ${advice}.`);
  throw new HostError(
    "SNAPSHOT_MISMATCH",
    `${path} differs:\n${difference(before, text)}\nIf the new text is right, update it: ${advice}.`,
  );
}

async function readSnapshot(path: string): Promise<string | undefined> {
  try {
    // Git may have changed the line ends.
    return (await readFile(path, "utf8")).replaceAll("\r\n", "\n");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

const mostLines = 12;

/** The lines between the equal beginning and the equal end. */
function difference(before: string, after: string): string {
  const [old, now] = [before.split("\n"), after.split("\n")];
  let start = 0;
  while (start < old.length && old[start] === now[start]) start++;
  let end = 0;
  while (end < Math.min(old.length, now.length) - start && old.at(-1 - end) === now.at(-1 - end)) end++;
  const lines = (mark: string, text: readonly string[]): readonly string[] => {
    const changed = text.slice(start, text.length - end).map((line) => `${mark} ${line}`);
    return changed.length > mostLines ? [...changed.slice(0, mostLines), `${mark} …`] : changed;
  };
  return [`line ${start + 1}:`, ...lines("-", old), ...lines("+", now)].join("\n");
}
