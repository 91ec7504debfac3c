import { cpSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Diagnostic, SkillInfo, SkillsChange } from "skillhost";
import { createTestHost, type TestHost, type TestHostOptions } from "skillhost/testing";
import { onTestFinished, vi } from "vitest";
import { patience } from "../slowness.ts";

/** The folder of a fixture, which is named for its situation. */
export function fixture(name: string): string {
  return fileURLToPath(new URL(`../fixtures/skills/${name}`, import.meta.url));
}

export type Files = Readonly<Record<string, string | Uint8Array>>;

/** Creates a folder with these files and deletes it after the test. */
export function tempFolder(files: Files = {}): string {
  const folder = realpathSync.native(mkdtempSync(join(tmpdir(), "skillhost-skills-")));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  putAll(folder, files);
  return folder;
}

export function put(path: string, text: string | Uint8Array): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

export function putAll(folder: string, files: Files): void {
  for (const [path, text] of Object.entries(files)) put(join(folder, path), text);
}

/** Copies fixtures to the directory of user skills for the rest of the test and returns that directory. */
export function asUserSkills(...names: readonly string[]): string {
  const home = tempFolder();
  vi.stubEnv("SKILLHOST_HOME", home);
  onTestFinished(() => void vi.unstubAllEnvs());
  for (const name of names) cpSync(fixture(name), join(home, "skills", name), { recursive: true });
  return join(home, "skills");
}

export function skillMd(name: string, body = "Be brief."): string {
  return `---\nname: ${name}\ndescription: The skill ${name}, for a test.\n---\n${body}\n`;
}

/** The source of a module with one tool that returns the value of the expression. */
export function toolSource(name: string, expression: string, head = ""): string {
  return `import { defineTool } from "skillhost";
${head}
export default defineTool(${JSON.stringify(name)}, { description: "For a test.", handler: () => ${expression} });
`;
}

export interface Kit extends TestHost {
  /** Every change that the host has reported, except those of the marker skill. */
  readonly changes: readonly SkillsChange[];
  /** The text of a successful call, or the type of any other result. */
  says(tool: string, args?: unknown): Promise<string>;
  skill(name: string): SkillInfo;
  /** All diagnostics with a code. */
  found(code: string): Diagnostic[];
  /** Edits files and waits for the reported change and those that follow from it. Returns all changes since. */
  saved(edit: () => void, until?: (changes: readonly SkillsChange[]) => boolean): Promise<readonly SkillsChange[]>;
  /** Edits files and waits until the host would have noticed the edit. Returns all changes since. */
  unnoticed(edit: () => void): Promise<readonly SkillsChange[]>;
}

/** Starts a host over some directories for the test. Changes of a marker skill show how far the host has noticed edits. */
export async function openKit(skillDirectories: readonly string[], options: TestHostOptions = {}): Promise<Kit> {
  const marker = options.watch === false ? undefined : tempFolder({ "the-marker/SKILL.md": skillMd("the-marker", "0") });
  const host = await createTestHost({ ...options, skillDirectories: [...skillDirectories, ...(marker ? [marker] : [])] });
  onTestFinished(() => host.close());
  return createKit(host, marker);
}

function createKit(kit: TestHost, marker: string | undefined): Kit {
  const changes: SkillsChange[] = [];
  let marks = 0;
  kit.host.on("skills.changed", (change) => {
    if (!JSON.stringify(change).includes("the-marker")) changes.push(change);
  });
  // Changes are noticed in order, so a change of the marker comes after all earlier ones.
  const mark = async (): Promise<void> => {
    if (marker === undefined) throw new Error("This host does not watch.");
    await kit.change(() => put(join(marker, "the-marker/SKILL.md"), skillMd("the-marker", String(++marks))), {
      until: (change) => JSON.stringify(change).includes("the-marker"),
      timeout: patience(10_000),
    });
    await kit.host.idle();
  };
  return {
    ...kit,
    changes,
    says: async (tool, args) => {
      const result = await kit.call(tool, args);
      return result.resultType === "success" ? result.textResultForLlm : `(${result.resultType})`;
    },
    skill: (name) => {
      const skill = kit.host.skills.find((each) => each.name === name);
      if (skill === undefined) throw new Error(`No skill "${name}" among ${kit.host.skills.map((each) => each.name).join(", ")}.`);
      return skill;
    },
    found: (code) => kit.host.diagnostics.filter((diagnostic) => diagnostic.code === code),
    saved: async (edit, until = (seen) => seen.length > 0) => {
      const before = changes.length;
      const isDone = (): boolean => until(changes.slice(before));
      await untilTrue("the host reports a change", isDone, (check) => kit.host.on("skills.changed", check), edit);
      await mark();
      return changes.slice(before);
    },
    unnoticed: async (edit) => {
      const before = changes.length;
      edit();
      await mark();
      await mark();
      return changes.slice(before);
    },
  };
}

async function untilTrue(
  claim: string,
  isTrue: () => boolean,
  subscribe: (check: () => void) => Disposable,
  begin: () => void,
): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  let subscription: Disposable | undefined;
  try {
    const done = new Promise<void>((resolve, reject) => {
      timer = setTimeout(() => reject(new Error(`It did not happen in time that ${claim}.`)), patience(10_000));
      subscription = subscribe(() => {
        if (isTrue()) resolve();
      });
    });
    done.catch(() => {});
    begin();
    await done;
  } finally {
    clearTimeout(timer);
    subscription?.[Symbol.dispose]();
  }
}

/** Polls until a condition holds for which no event exists. */
export async function poll(claim: string, isTrue: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = Date.now() + patience(10_000);
  while (!(await isTrue())) {
    if (Date.now() > deadline) throw new Error(`It did not happen in time that ${claim}.`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** A change report in short: `+added ~updated -removed`, and the names of skills that failed to load with a "!". */
export function short(change: SkillsChange | undefined): string {
  if (change === undefined) return "nothing";
  const tools = (sign: string, pick: "added" | "updated" | "removed"): string[] =>
    [...change.added, ...change.updated, ...change.removed].flatMap((each) => each.tools[pick].map((name) => sign + name));
  const skills = [
    ...change.added.map(({ name }) => `+${name}`),
    ...change.updated.map(({ name }) => `~${name}`),
    ...change.removed.map(({ name }) => `-${name}`),
    ...change.failed.map(({ name }) => `!${name}`),
  ];
  return `${skills.join(" ")}: ${[...tools("+", "added"), ...tools("~", "updated"), ...tools("-", "removed")].join(" ")}`.replace(
    /: $/,
    "",
  );
}
