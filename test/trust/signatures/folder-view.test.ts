import { createHash } from "node:crypto";
import { mkdirSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { pathInSkill } from "../../../src/skills/load/skill-path.ts";
import { listToolEntries } from "../../../src/skills/load/tool-entries.ts";
import { FolderView } from "../../../src/trust/checked-folder.ts";
import { digestFolder } from "../../../src/trust/folder-digests.ts";
import { openKit, put, tempFolder } from "../../skills/kit.ts";
import { greeterFiles, makeKey, requireOf, resign, signedGreeter } from "./signing-kit.ts";

const alice = makeKey();

function look(folder: string): FolderView {
  const view = new FolderView(folder);
  digestFolder(folder, {
    onRead: (file, bytes, digest) => view.noteRead(file, bytes, digest),
    onList: (path, entries) => view.noteList(path, entries),
  });
  return view;
}

describe("what a folder held when it was checked", () => {
  test("a file that is put there afterwards is not looked for, and one that is gone is", () => {
    const folder = tempFolder({ "tools/greet.json": "{}", "tools/wave.json": "{}" });
    const view = look(folder);
    put(join(folder, "tools/evil.json"), "{}");
    put(join(folder, "tools/greet.ts"), "");
    rmSync(join(folder, "tools/wave.json"));
    const { entries } = listToolEntries(folder, {}, [".ts"], join(folder, "skill.json"), view);
    expect(entries.map(({ key, state }) => [key, state])).toEqual([
      ["json:tools/greet.json", ""],
      ["json:tools/wave.json", ""],
    ]);
  });

  test("a link is not vouched for, and neither is what lies behind it, or in another folder", () => {
    const folder = tempFolder({ "tools/greet.json": "{}", ".git/config": "" });
    const elsewhere = tempFolder({ "secret.txt": "s" });
    symlinkSync(elsewhere, join(folder, "out"), "junction");
    const view = look(folder);
    expect(view.kindOf(join(folder, "tools"))).toBe("folder");
    expect(view.kindOf(join(folder, "tools/greet.json"))).toBe("file");
    for (const path of [
      join(folder, "out"),
      join(folder, "out/secret.txt"),
      join(folder, ".git/config"),
      join(elsewhere, "secret.txt"),
      folder,
    ])
      expect([path, view.kindOf(path)]).toEqual([path, undefined]);
    expect(view.entriesOf(join(folder, "out"))).toBeUndefined();
    expect(pathInSkill(folder, "out/secret.txt", folder, view)).toMatchObject({ ok: false, diagnostic: { code: "PATH_OUTSIDE" } });
    expect(pathInSkill(folder, "../secret.txt", folder, view).ok).toBe(false);
    expect(pathInSkill(folder, "tools/greet.json", folder, view)).toEqual({ ok: true, path: join(folder, "tools/greet.json") });
  });

  test("the hash of a file is that of its text, and not known where a byte order mark was hashed with it", () => {
    const folder = tempFolder({ "plain.md": "Be kind.", "marked.md": Buffer.from("\uFEFFBe kind.") });
    mkdirSync(join(folder, "empty"));
    const view = look(folder);
    expect(view.hashOf(join(folder, "plain.md"))).toBe(createHash("sha256").update("Be kind.").digest("hex"));
    expect(view.hashOf(join(folder, "marked.md"))).toBeUndefined();
    expect(view.hashOf(join(folder, "empty"))).toBeUndefined();
  });

  test("once the folder is loaded nothing is known of it any more", () => {
    const folder = tempFolder({ "plain.md": "Be kind." });
    const view = look(folder);
    view.release();
    expect([view.kindOf(join(folder, "plain.md")), view.kindOf(join(folder, "none.md")), view.hashOf(join(folder, "plain.md"))]).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
    expect(view.entriesOf(folder)).toBeUndefined();
  });
});

test("a tool that stands in a signed file and is not among the signed tools is left out", async () => {
  const { root, folder } = await signedGreeter(alice, greeterFiles());
  const { statement } = await resign(folder, alice);
  await resign(folder, alice, { tools: new Map([...statement.tools].filter(([name]) => name === "greet")) });
  const kit = await openKit([root], { watch: false, trust: requireOf(alice) });
  expect(kit.session.listTools().map(({ name }) => name)).toEqual(["greet"]);
  expect(kit.found("TRUST_TOOL_CHANGED")).toMatchObject([{ message: expect.stringContaining('"wave" did not exist') }]);
});
