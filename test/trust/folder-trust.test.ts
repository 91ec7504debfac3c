import { mkdirSync, readFileSync, realpathSync, renameSync, rmSync, statSync, symlinkSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { type FolderChoice, FolderTrust, readTrustVariable, trustCommand, trustRootOf } from "../../src/trust/folder-trust.ts";
import { changeTrustFile, readTrustFile, trustFolderIn } from "../../src/trust/trust-file.ts";
import { tempFolder } from "../skills/kit.ts";

interface Place {
  readonly root: string;
  readonly file: string;
  readonly at: (path: string) => string;
  readonly trust: FolderTrust;
}

function place(named: FolderChoice = []): Place {
  const root = tempFolder({ "project/skills/a/SKILL.md": "", "other/SKILL.md": "", "home/skills/mine/SKILL.md": "" });
  const file = join(root, "home/trust.json");
  return { root, file, at: (path) => join(root, path), trust: new FolderTrust({ file, home: join(root, "home"), named }) };
}

test("a folder is trusted with all that lies below it, and nothing beside or above it", async () => {
  const { at, file, root, trust } = place();
  expect(trust.standingOf(at("project/skills/a"))).toBe("untrusted");
  await trustFolderIn(file, at("project"));
  expect(["project", "project/skills/a", "project/later/b"].map((path) => trust.standingOf(at(path)))).toEqual([
    "trusted",
    "trusted",
    "trusted",
  ]);
  expect(["other", "project-2", "project/../other", "."].map((path) => trust.allows(join(root, path)))).toEqual([
    false,
    false,
    false,
    false,
  ]);
});

test("trusted folders are stored by real path, readable for the owner only, beside existing entries", async () => {
  const { at, file } = place();
  symlinkSync(at("project"), at("link"), "dir");
  await changeTrustFile(file, () => ({ policy: { project: "require" } }));
  await trustFolderIn(file, at("link"));
  await trustFolderIn(file, at("project"));
  expect(statSync(file).mode & 0o077).toBe(0);
  expect(JSON.parse(readFileSync(file, "utf8"))).toMatchObject({ policy: { project: "require" }, folders: [{ path: at("project") }] });
  expect(readTrustFile(file).folders).toHaveLength(1);
});

describe("another folder at the path of a trusted one is not trusted", () => {
  const changes: readonly [string, (place: Place) => void][] = [
    ["created again", ({ at }) => remake(at("project"))],
    [
      "moved there",
      ({ at }) => {
        rmSync(at("project"), { recursive: true });
        renameSync(at("other"), at("project"));
      },
    ],
    [
      "reached by a link that took its place",
      ({ at }) => {
        renameSync(at("project"), at("away"));
        symlinkSync(at("other"), at("project"), "dir");
      },
    ],
    ["gone", ({ at }) => rmSync(at("project"), { recursive: true })],
  ];
  test.each(changes)("%s", async (_, change) => {
    const made = place();
    await trustFolderIn(made.file, made.at("project"));
    expect(made.trust.allows(made.at("project/skills/a"))).toBe(true);
    change(made);
    expect(made.trust.standingOf(made.at("project/skills/a"))).toBe("changed");
    expect(made.trust.allows(made.at("project/skills/a"))).toBe(false);
  });

  test("the trusted folder is trusted through a link at any place", async () => {
    const { at, file, trust } = place();
    await trustFolderIn(file, at("project"));
    symlinkSync(at("project"), at("link"), "dir");
    expect(trust.allows(at("link/skills/a"))).toBe(true);
  });
});

test("a link in a trusted folder is that folder's; a link in another one decides nothing", async () => {
  const { at, file, trust } = place();
  await trustFolderIn(file, at("project"));
  symlinkSync(at("other"), at("project/skills/linked"), "dir");
  expect(trust.allows(at("project/skills/linked"))).toBe(true);
  expect(trust.allows(at("other"))).toBe(false);
  mkdirSync(at("stranger"));
  symlinkSync(at("other"), at("stranger/linked"), "dir");
  expect(trust.allows(at("stranger/linked"))).toBe(false);
});

test("a folder in the options is trusted, and the user's own folder always is", () => {
  const { at, root, trust } = place();
  expect(trust.standingOf(at("home/skills/mine"))).toBe("own");
  trust.name([at("other")]);
  expect([trust.standingOf(at("other/x")), trust.standingOf(at("project"))]).toEqual(["named", "untrusted"]);
  expect(new FolderTrust({ file: at("none.json"), home: at("home"), named: true }).allows(dirname(root))).toBe(true);
});

test("a folder is not trusted after its trust is revoked", async () => {
  const { at, file, trust } = place();
  await trustFolderIn(file, at("project"));
  expect(trust.allows(at("project"))).toBe(true);
  await changeTrustFile(file, (before) => ({ ...before, folders: [] }));
  expect(trust.allows(at("project"))).toBe(false);
});

test("a folder that holds a whole home folder, or none, cannot be trusted", async () => {
  const { at, file } = place();
  const codes = [homedir(), dirname(realpathSync(homedir())), "/"].map((folder) => trustFolderIn(file, folder).catch(({ code }) => code));
  expect(await Promise.all(codes)).toEqual(["FOLDER_TOO_WIDE", "FOLDER_TOO_WIDE", "FOLDER_TOO_WIDE"]);
  await expect(trustFolderIn(file, at("nowhere"))).rejects.toMatchObject({ code: "FOLDER_MISSING" });
  await expect(trustFolderIn(file, at("project/skills/a/SKILL.md"))).rejects.toMatchObject({ code: "FOLDER_MISSING" });
});

test("an unreadable file of trusted folders trusts nothing and is reported", () => {
  const { at } = place();
  const broken = tempFolder({ "trust.json": '{ "folders": [{ "path": 7 }] }' });
  const trust = new FolderTrust({ file: join(broken, "trust.json"), home: at("home"), named: [] });
  expect(() => trust.allows(at("project"))).toThrow(expect.objectContaining({ code: "TRUST_FILE_INVALID" }));
});

test("the variable is 1 or a list of absolute folders", () => {
  expect(["1", "true", "", "0", undefined].map(readTrustVariable)).toEqual([true, true, [], [], []]);
  expect(readTrustVariable(["/a", "/b/c"].join(delimiter))).toEqual(["/a", "/b/c"]);
  expect(() => readTrustVariable("yes please")).toThrow(expect.objectContaining({ code: "SKILLHOST_TRUST_INVALID" }));
});

test("the folder to trust is the top of the checkout that one works in, else that around the code", () => {
  const root = tempFolder({ "p/.git/HEAD": "", "p/deep/skills/a/SKILL.md": "", "q/.git/HEAD": "", "q/s/SKILL.md": "" });
  expect(trustRootOf(join(root, "p/deep/skills/a"), join(root, "p/deep"))).toBe(join(root, "p"));
  expect(trustRootOf(join(root, "q/s"), join(root, "p/deep"))).toBe(join(root, "q"));
});

test("the command can be pasted into a shell", () => {
  expect(trustCommand("/home/me/a-b")).toBe("skillhost trust add /home/me/a-b");
  if (process.platform !== "win32") expect(trustCommand("/a b/$(x)/it's")).toBe("skillhost trust add '/a b/$(x)/it'\\''s'");
});

/** The number of the old folder may be given to the new one, which is born later. */
function remake(folder: string): void {
  rmSync(folder, { recursive: true });
  mkdirSync(join(folder, "skills/a"), { recursive: true });
}
