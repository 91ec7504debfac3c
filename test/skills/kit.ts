import { cpSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Diagnostic, SkillInfo, SkillsChange } from "skillhost";
import { createTestHost, type TestHost, type TestHostOptions } from "skillhost/testing";
import { onTestFinished, vi } from "vitest";
import { patience } from "../slowness.ts";

/** The folder of a fixture: one situation, named for it. */
export function fixture(name: string): string {
  return fileURLToPath(new URL(`../fixtures/skills/${name}`, import.meta.url));
}

export type Files = Readonly<Record<string, string | Uint8Array>>;

/** Makes a folder with these files that goes when the test has ended. */
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

/** Copies fixtures to where a user's own skills are, for the rest of the test. Gives the directory. */
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

/** The source of a module that defines one tool, which returns what the expression gives. */
export function toolSource(name: string, expression: string, head = ""): string {
  return `import { defineTool } from "skillhost";
${head}
export default defineTool(${JSON.stringify(name)}, { description: "For a test.", handler: () => ${expression} });
`;
}

export interface Kit extends TestHost {
  /** Every change that the host has told of, but those of the marker skill. */
  readonly changes: readonly SkillsChange[];
  /** What a tool says when it is called, or the type of its result if it is no success. */
  says(tool: string, args?: unknown): Promise<string>;
  skill(name: string): SkillInfo;
  /** All diagnostics of a code. */
  found(code: string): Diagnostic[];
  /** Edits files, waits until the host has told of a change, and for whatever else comes of it. All changes since. */
  saved(edit: () => void, until?: (changes: readonly SkillsChange[]) => boolean): Promise<readonly SkillsChange[]>;
  /** Edits files and waits until the host must have noticed if it notices at all. All changes since. */
  unnoticed(edit: () => void): Promise<readonly SkillsChange[]>;
}

/** Starts a host over some directories, and ends it with the test. A marker skill beside them tells what has been noticed. */
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
  // What is noticed in order is noticed up to here once the marker has been.
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
      await untilTrue("the host tells of a change", isDone, (check) => kit.host.on("skills.changed", check), edit);
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

/** Looks again and again until something is so, for what no event tells of. */
export async function poll(claim: string, isTrue: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = Date.now() + patience(10_000);
  while (!(await isTrue())) {
    if (Date.now() > deadline) throw new Error(`It did not happen in time that ${claim}.`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** A diff in short: `+added ~updated -removed`, and the names of skills whose load failed with a "!". */
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
