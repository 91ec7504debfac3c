import {
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import {
  type Change,
  type CommitOptions,
  type CommitStep,
  closeStaging,
  commitChanges,
  openStaging,
  recoverProject,
  type Staging,
} from "../../src/packages/commit.ts";

function project(files: Readonly<Record<string, string>>): string {
  const folder = realpathSync.native(mkdtempSync(join(tmpdir(), "skillhost-commit-")));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  mkdirSync(join(folder, "node_modules"));
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  return folder;
}

/** All files with what they hold. */
function contents(folder: string): Record<string, string> {
  const paths = readdirSync(folder, { recursive: true, encoding: "utf8" }).sort();
  return Object.fromEntries(
    paths.flatMap((path): [string, string][] => {
      const stat = lstatSync(join(folder, path));
      if (stat.isSymbolicLink()) return [[path, `(link to ${readlinkSync(join(folder, path))})`]];
      return stat.isFile() ? [[path, readFileSync(join(folder, path), "utf8")]] : [];
    }),
  );
}

const ownStaging = "node_modules/.skillhost-0123456789ab";

const before = {
  "package.json": "old manifest",
  "node_modules/kept/a.txt": "kept",
  "node_modules/updated/a.txt": "1",
  "node_modules/removed/a.txt": "gone soon",
};

async function staged(folder: string): Promise<{ readonly staging: Staging; readonly changes: readonly Change[] }> {
  const staging = await openStaging(folder);
  for (const [name, text] of Object.entries({ updated: "2", "@me/added": "new" })) {
    mkdirSync(join(staging.folder, "node_modules", name), { recursive: true });
    writeFileSync(join(staging.folder, "node_modules", name, "a.txt"), text);
  }
  const at = (name: string): string => join(staging.folder.slice(folder.length + 1), "node_modules", name);
  return {
    staging,
    changes: [
      { kind: "remove", path: "node_modules/removed" },
      { kind: "put", path: "node_modules/@me/added", staged: at("@me/added") },
      { kind: "link", path: "node_modules/linked", target: "../elsewhere" },
      { kind: "put", path: "node_modules/updated", staged: at("updated") },
    ],
  };
}

test("all changes are carried out, and nothing of the preparations is left", async () => {
  const folder = project(before);
  const { staging, changes } = await staged(folder);
  await commitChanges(staging, changes, async () => writeFileSync(join(folder, "package.json"), "new manifest"));
  expect(contents(folder)).toEqual({
    "package.json": "new manifest",
    "node_modules/@me/added/a.txt": "new",
    "node_modules/kept/a.txt": "kept",
    "node_modules/linked": "(link to ../elsewhere)",
    "node_modules/updated/a.txt": "2",
  });
});

test("when the last step fails everything is as before", async () => {
  const folder = project(before);
  const { staging, changes } = await staged(folder);
  const finish = async (): Promise<void> => {
    writeFileSync(join(folder, "package.json"), "half");
    writeFileSync(join(folder, "skillhost-lock.json"), "half");
    throw new Error("no space left");
  };
  await expect(commitChanges(staging, changes, finish)).rejects.toThrow("no space left");
  expect(contents(folder)).toEqual(before);
});

/** Keeps a copy of a folder as it is now: what a process leaves that is killed at this moment. */
function copyOf(folder: string): string {
  const copy = realpathSync.native(mkdtempSync(join(tmpdir(), "skillhost-commit-")));
  onTestFinished(() => rmSync(copy, { recursive: true, force: true }));
  cpSync(folder, copy, { recursive: true, verbatimSymlinks: true });
  return copy;
}

const isPending = (folder: string): boolean => existsSync(join(folder, "node_modules/.skillhost-journal.json"));

/** Everything that `change` does to a folder, step by step, with what a process leaves that is killed right after it. */
async function momentsOf(folder: string, change: (onStep: (step: CommitStep) => void) => Promise<unknown>): Promise<Moment[]> {
  const moments: Moment[] = [];
  await change(({ kind, path }) => moments.push({ at: path === undefined ? kind : `${kind} ${path}`, folder: copyOf(folder) }));
  return moments;
}

interface Moment {
  readonly at: string;
  readonly folder: string;
}

const commitSteps = [
  "journal",
  "away node_modules/removed",
  "placed node_modules/@me/added",
  "placed node_modules/linked",
  "away node_modules/relinked",
  "placed node_modules/relinked",
  "away node_modules/updated",
  "placed node_modules/updated",
  "manifests",
  "settled",
];

/** A project that is about to change, among other things a link to another. */
async function withLinks(): Promise<{ readonly folder: string; carryOut(options: CommitOptions): Promise<void> }> {
  const folder = project(before);
  symlinkSync("../one", join(folder, "node_modules/relinked"));
  const { staging, changes } = await staged(folder);
  const all: Change[] = changes.toSpliced(3, 0, { kind: "link", path: "node_modules/relinked", target: "../other" });
  const finish = async (): Promise<void> => writeFileSync(join(folder, "package.json"), "new manifest");
  return { folder, carryOut: (options) => commitChanges(staging, all, finish, options) };
}

async function killedEverywhere(): Promise<{ readonly moments: readonly Moment[]; readonly after: Record<string, string> }> {
  const { folder, carryOut } = await withLinks();
  const moments = await momentsOf(folder, (onStep) => carryOut({ onStep }));
  return { moments, after: contents(folder) };
}

const relinked = (to: string): Record<string, string> => ({ "node_modules/relinked": `(link to ${to})` });

test("wherever a process is killed, the next one finds a journal and undoes everything, or everything is done", async () => {
  const { moments, after } = await killedEverywhere();
  expect(moments.map(({ at }) => at)).toEqual(commitSteps);
  expect(after).toMatchObject({ ...relinked("../other"), "node_modules/updated/a.txt": "2", "package.json": "new manifest" });
  for (const { at, folder } of moments) {
    const isDone = at === "settled";
    expect([at, isPending(folder)]).toEqual([at, !isDone]);
    expect([at, (await recoverProject(folder)).length]).toEqual([at, isDone ? 0 : 5]);
    expect([at, contents(folder)]).toEqual([at, isDone ? after : { ...before, ...relinked("../one") }]);
    expect(await recoverProject(folder)).toEqual([]);
  }
});

test("a package is absent at a moment only if a journal is there, and both of its versions beside it", async () => {
  const { moments } = await killedEverywhere();
  const absent = moments.filter(({ folder }) => !existsSync(join(folder, "node_modules/updated")));
  expect(absent.map(({ at }) => at)).toEqual(["away node_modules/updated"]);
  const texts = Object.values(contents(absent[0]!.folder));
  expect([isPending(absent[0]!.folder), texts.includes("1"), texts.includes("2")]).toEqual([true, true, true]);
});

test("wherever a recovering process is killed, a third one undoes the rest", async () => {
  const { moments } = await killedEverywhere();
  const steps = new Set<string>();
  for (const first of moments.filter(({ at }) => at !== "settled")) {
    for (const second of await momentsOf(first.folder, (onStep) => recoverProject(first.folder, { onStep }))) {
      steps.add(second.at);
      await recoverProject(second.folder);
      const where = `${first.at}, then ${second.at}`;
      expect([where, contents(second.folder)]).toEqual([where, { ...before, ...relinked("../one") }]);
    }
  }
  expect([...steps].sort()).toEqual([
    "restored",
    "returned node_modules/relinked",
    "returned node_modules/removed",
    "returned node_modules/updated",
    "settled",
    "undone node_modules/@me/added",
    "undone node_modules/linked",
    "undone node_modules/relinked",
    "undone node_modules/updated",
  ]);
});

test.each(commitSteps.filter((step) => step !== "settled"))("what fails at the step %s leaves everything as before", async (failing) => {
  const { folder, carryOut } = await withLinks();
  const onStep = ({ kind, path }: CommitStep): void => {
    if ((path === undefined ? kind : `${kind} ${path}`) === failing) throw new Error(`no more at ${failing}`);
  };
  await expect(carryOut({ onStep })).rejects.toThrow(`no more at ${failing}`);
  expect(contents(folder)).toEqual({ ...before, ...relinked("../one") });
});

test("a link in the way does not lead what is installed elsewhere", async () => {
  const outside = project({ "x/a.txt": "theirs" });
  const folder = project({});
  symlinkSync(outside, join(folder, "node_modules/@me"));
  const staging = await openStaging(folder);
  const change: Change = { kind: "remove", path: "node_modules/@me/x" };
  await expect(commitChanges(staging, [change], async () => {})).rejects.toMatchObject({ code: "PACKAGES_PLACE" });
  expect(readFileSync(join(outside, "x/a.txt"), "utf8")).toBe("theirs");
});

test("a journal is not followed through a link", async () => {
  const outside = project({ "x/a.txt": "theirs" });
  const folder = project({});
  symlinkSync(outside, join(folder, "node_modules/@me"));
  const changes = [{ kind: "put", path: "node_modules/@me/x", staged: `${ownStaging}/x` }];
  writeFileSync(join(folder, "node_modules/.skillhost-journal.json"), JSON.stringify({ staging: ownStaging, changes, manifests: {} }));
  await expect(recoverProject(folder)).rejects.toMatchObject({ code: "PACKAGES_JOURNAL" });
  expect(readFileSync(join(outside, "x/a.txt"), "utf8")).toBe("theirs");
});

test("deletes only what other processes staged and left behind", async () => {
  const folder = project(before);
  const staging = await openStaging(folder);
  writeFileSync(join(staging.folder, "x"), "");
  expect(await recoverProject(folder)).toEqual([]);
  expect(contents(folder)).toEqual(before);
  const another = await openStaging(folder);
  await closeStaging(another);
  expect(existsSync(another.folder)).toBe(false);
});

test("a journal without its staging folder removes nothing", async () => {
  const { moments } = await killedEverywhere();
  const { folder } = moments.find(({ at }) => at === "manifests")!;
  const [staging] = readdirSync(join(folder, "node_modules")).filter((name) => /^\.skillhost-[0-9a-f]/.test(name));
  rmSync(join(folder, "node_modules", staging!), { recursive: true });
  await expect(recoverProject(folder)).rejects.toMatchObject({ code: "PACKAGES_JOURNAL" });
  expect(contents(folder)).toMatchObject({ "node_modules/updated/a.txt": "2", "package.json": "new manifest" });
});

test.each<[string, unknown]>([
  ["is not valid JSON", undefined],
  ["names a staging folder elsewhere", { staging: "..", changes: [], manifests: {} }],
  ["names no folder of ours for staging", { staging: "node_modules/kept", changes: [], manifests: {} }],
  [
    "changes something elsewhere",
    { staging: ownStaging, changes: [{ kind: "put", path: "../x", staged: `${ownStaging}/x` }], manifests: {} },
  ],
  [
    "takes what was staged from elsewhere",
    { staging: ownStaging, changes: [{ kind: "put", path: "node_modules/x", staged: "../x" }], manifests: {} },
  ],
  ["restores a file that is not a manifest", { staging: ownStaging, changes: [], manifests: { "../.bashrc": "evil" } }],
  ["restores what is not a text", { staging: ownStaging, changes: [], manifests: { "package.json": 7 } }],
])("a journal that %s is not followed: it may have come with the project", async (_what, journal) => {
  const text = journal === undefined ? "{" : JSON.stringify(journal);
  const folder = project({ ...before, "node_modules/.skillhost-journal.json": text });
  const all = contents(folder);
  await expect(recoverProject(folder)).rejects.toMatchObject({ code: "PACKAGES_JOURNAL" });
  expect(contents(folder)).toEqual(all);
});
