import {
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { type Change, closeStaging, commitChanges, openStaging, recoverProject, type Staging } from "../../src/packages/commit.ts";

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
      if (stat.isSymbolicLink()) return [[path, "(link)"]];
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
    "node_modules/linked": "(link)",
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

test("wherever a process is killed, the next one takes back what it had done", async () => {
  const folder = project(before);
  const { staging, changes } = await staged(folder);
  const moments: string[] = [];
  const keepMoment = (): void => {
    const moment = realpathSync.native(mkdtempSync(join(tmpdir(), "skillhost-commit-")));
    onTestFinished(() => rmSync(moment, { recursive: true, force: true }));
    cpSync(folder, moment, { recursive: true, verbatimSymlinks: true });
    moments.push(moment);
  };
  // What is on the disk whenever a change is about to be made is what a process leaves that is killed there.
  const watched = changes.map((change) => ({
    ...change,
    get path() {
      if (existsSync(join(folder, "node_modules/.skillhost-journal.json"))) keepMoment();
      return change.path;
    },
  }));
  await commitChanges(staging, watched, async () => {
    writeFileSync(join(folder, "package.json"), "half");
    keepMoment();
  });
  expect(new Set(moments.map((moment) => JSON.stringify(contents(moment)))).size).toBeGreaterThan(changes.length);
  for (const moment of moments) {
    expect(await recoverProject(moment)).toEqual(changes.map(({ path }) => path));
    expect(contents(moment)).toEqual(before);
    expect(await recoverProject(moment)).toEqual([]);
  }
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

test("what others had staged and left is deleted, and so is nothing else", async () => {
  const folder = project(before);
  const staging = await openStaging(folder);
  writeFileSync(join(staging.folder, "x"), "");
  expect(await recoverProject(folder)).toEqual([]);
  expect(contents(folder)).toEqual(before);
  const another = await openStaging(folder);
  await closeStaging(another);
  expect(existsSync(another.folder)).toBe(false);
});

test.each<[string, unknown]>([
  ["is no JSON", undefined],
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
  ["restores a file that is no manifest", { staging: ownStaging, changes: [], manifests: { "../.bashrc": "evil" } }],
  ["restores what is no text", { staging: ownStaging, changes: [], manifests: { "package.json": 7 } }],
])("a journal that %s is not followed: it may have come with the project", async (_what, journal) => {
  const text = journal === undefined ? "{" : JSON.stringify(journal);
  const folder = project({ ...before, "node_modules/.skillhost-journal.json": text });
  const all = contents(folder);
  await expect(recoverProject(folder)).rejects.toMatchObject({ code: "PACKAGES_JOURNAL" });
  expect(contents(folder)).toEqual(all);
});
