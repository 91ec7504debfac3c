import { renameSync, rmSync, symlinkSync, truncateSync, unlinkSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { type Files, type Kit, openKit, put, putAll, short, skillMd, tempFolder, toolSource } from "./kit.ts";

const backends = ["directory", "chokidar"] as const;

const greeter = (answer: string): Files => ({
  "SKILL.md": skillMd("greeter"),
  "tools/greet.ts": toolSource("greet", JSON.stringify(answer)),
});

function open(root: string, watchBackend: (typeof backends)[number] = "directory"): Promise<Kit> {
  return openKit([root], { watchBackend });
}

describe.each(backends)("with the %s backend, one save causes one reload:", (backend) => {
  test("a tool module", async () => {
    const root = tempFolder();
    putAll(join(root, "greeter"), greeter("hello"));
    const kit = await open(root, backend);
    const changes = await kit.saved(() => put(join(root, "greeter/tools/greet.ts"), toolSource("greet", '"bye"')));
    expect(changes.map(short)).toEqual(["~greeter: ~greet"]);
    expect(changes[0]?.files).toEqual([join(root, "greeter/tools/greet.ts")]);
    expect(await kit.says("greet")).toBe("bye");
  });

  test("a skill.json, a prompt, a SKILL.md and a tool JSON", async () => {
    const root = tempFolder({
      "all/skill.json": JSON.stringify({ name: "all", version: "1.0.0" }),
      "all/SKILL.md": skillMd("all", "Old."),
      "all/prompts/rules.md": "Old rules.",
      "all/tools/ask.json": JSON.stringify({ name: "ask", description: "Old." }),
    });
    const kit = await open(root, backend);
    const edits: [file: string, text: string][] = [
      ["skill.json", JSON.stringify({ name: "all", version: "2.0.0" })],
      ["SKILL.md", skillMd("all", "New.")],
      ["prompts/rules.md", "New rules."],
      ["tools/ask.json", JSON.stringify({ name: "ask", description: "New." })],
    ];
    const seen: string[] = [];
    for (const [file, text] of edits) seen.push(...(await kit.saved(() => put(join(root, "all", file), text))).map(short));
    expect(seen).toEqual(["~all", "~all", "~all", "~all: ~ask"]);
    expect(kit.skill("all")).toMatchObject({
      version: "2.0.0",
      generation: 5,
      prompts: [{ path: "prompts/rules.md", text: "New rules." }],
    });
    expect(kit.session.tools.find((tool) => tool.name === "ask")?.description).toBe("New.");
  });

  test("an editor's save by rename, and one that truncates before it writes", async () => {
    const root = tempFolder();
    putAll(join(root, "greeter"), greeter("hello"));
    const kit = await open(root, backend);
    const file = join(root, "greeter/tools/greet.ts");
    const renamed = await kit.saved(() => {
      writeFileSync(join(root, "greeter/tools/.greet.ts.swp"), toolSource("greet", '"by rename"'));
      renameSync(join(root, "greeter/tools/.greet.ts.swp"), file);
    });
    expect(renamed.map(short)).toEqual(["~greeter: ~greet"]);
    expect(await kit.says("greet")).toBe("by rename");
    const truncated = await kit.saved(() => {
      truncateSync(file);
      writeFileSync(file, toolSource("greet", '"by truncate"'));
    });
    expect(truncated.map(short)).toEqual(["~greeter: ~greet"]);
    expect(await kit.says("greet")).toBe("by truncate");
  });

  test("a folder that is added, renamed, deleted and created again", async () => {
    const root = tempFolder({ "other/SKILL.md": skillMd("other") });
    const kit = await open(root, backend);
    const added = await kit.saved(() => putAll(join(root, "greeter"), greeter("hello")));
    expect(added.map(short)).toEqual(["+greeter: +greet"]);
    expect(await kit.says("greet")).toBe("hello");
    const renamed = await kit.saved(
      () => renameSync(join(root, "greeter"), join(root, "moved")),
      (changes) => changes.some((change) => change.added.length > 0) && changes.some((change) => change.removed.length > 0),
    );
    expect(renamed.map(short).sort()).toEqual(["+greeter: +greet", "-greeter: -greet"]);
    expect(kit.skill("greeter").folder).toBe(join(root, "moved"));
    expect(await kit.says("greet")).toBe("hello");
    const deleted = await kit.saved(
      () => rmSync(join(root, "moved"), { recursive: true }),
      (changes) => changes.some((change) => change.removed.length > 0),
    );
    expect(short(deleted.at(-1))).toMatch(/^-greeter/);
    expect(kit.session.tools).toEqual([]);
    const again = await kit.saved(() => putAll(join(root, "moved"), greeter("again")));
    expect(again.map(short)).toEqual(["+greeter: +greet"]);
    expect(await kit.says("greet")).toBe("again");
  });

  test("a linked folder that is edited in its target, and a link that is changed", async () => {
    const root = tempFolder({ "other/SKILL.md": skillMd("other") });
    const [first, second] = [tempFolder(greeter("first")), tempFolder(greeter("second"))];
    putAll(first, { "tools/said.json": JSON.stringify({ name: "said", description: "First." }) });
    putAll(second, { "tools/said.json": JSON.stringify({ name: "said", description: "Second." }) });
    symlinkSync(first, join(root, "greeter"), "dir");
    const kit = await open(root, backend);
    expect(await kit.says("greet")).toBe("first");
    const edited = await kit.saved(() => put(join(first, "tools/greet.ts"), toolSource("greet", '"edited"')));
    expect(edited.map(short)).toEqual(["~greeter: ~greet"]);
    expect(await kit.says("greet")).toBe("edited");
    await kit.saved(() => {
      symlinkSync(second, join(root, ".turned"), "dir");
      renameSync(join(root, ".turned"), join(root, "greeter"));
    });
    expect(await kit.says("greet")).toBe("second");
    expect(kit.session.tools.find((tool) => tool.name === "said")?.description).toBe("Second.");
  });

  test("a root that does not exist yet, nor does its parent folder", async () => {
    const place = tempFolder();
    const root = join(place, "later/still/skills");
    const kit = await open(root, backend);
    expect(kit.host.skills.map(({ name }) => name)).toEqual(["the-marker"]);
    const changes = await kit.saved(() => putAll(join(root, "greeter"), greeter("hello")));
    expect(changes.map(short)).toEqual(["+greeter: +greet"]);
    expect(await kit.says("greet")).toBe("hello");
    const gone = await kit.saved(
      () => rmSync(join(place, "later"), { recursive: true }),
      (seen) => seen.some((change) => change.removed.length > 0),
    );
    expect(short(gone.at(-1))).toMatch(/^-greeter/);
    const back = await kit.saved(() => putAll(join(root, "greeter"), greeter("back")));
    expect(back.map(short)).toEqual(["+greeter: +greet"]);
    expect(await kit.says("greet")).toBe("back");
  });

  test("a helper in an external folder that two skills share", async () => {
    const place = tempFolder({ "shared/words.ts": 'export const word = "old";\n' });
    const root = join(place, "skills");
    for (const name of ["one", "two"])
      putAll(join(root, name), {
        "SKILL.md": skillMd(name),
        "tools/say.ts": toolSource(`say-${name}`, "word", 'import { word } from "../../../shared/words.ts";'),
      });
    const kit = await open(root, backend);
    const changes = await kit.saved(
      () => put(join(place, "shared/words.ts"), 'export const word = "new";\n'),
      (seen) => seen.length === 2,
    );
    expect(changes.map(short).sort()).toEqual(["~one: ~say-one", "~two: ~say-two"]);
    expect([await kit.says("say-one"), await kit.says("say-two")]).toEqual(["new", "new"]);
  });

  test("a branch switch that touches 500 files", async () => {
    const files = (word: string): Files => {
      const entries: [string, string][] = [];
      for (let n = 0; n < 10; n++) {
        entries.push([`s${n}/SKILL.md`, skillMd(`s${n}`, word)]);
        entries.push([`s${n}/tools/say.ts`, toolSource(`say-${n}`, "word", 'import { word } from "../lib/part-0.ts";')]);
        for (let part = 0; part < 48; part++) entries.push([`s${n}/lib/part-${part}.ts`, `export const word = ${JSON.stringify(word)};\n`]);
      }
      return Object.fromEntries(entries);
    };
    const root = tempFolder(files("main"));
    const kit = await open(root, backend);
    await kit.saved(
      () => putAll(root, files("branch")),
      (changes) => new Set(changes.flatMap((change) => change.updated.map(({ name }) => name))).size === 10,
    );
    await kit.unnoticed(() => {});
    for (let n = 0; n < 10; n++) expect(await kit.says(`say-${n}`)).toBe("branch");
    expect(kit.changes.flatMap(({ failed }) => failed)).toEqual([]);
    for (const skill of kit.host.skills.filter(({ name }) => /^s\d$/.test(name))) expect(skill.stale).toBe(false);
  });

  test("touching files, a README and a log in the folder cause no reload", async () => {
    const root = tempFolder({ "noisy/README.md": "1", "noisy/assets/run.log": "1" });
    putAll(join(root, "noisy"), {
      ...greeter("hello"),
      "tools/_words.ts": "export const word = 1;\n",
      "tools/said.json": JSON.stringify({ name: "said", description: "Said.", handler: { module: "./_words.ts" } }),
    });
    const kit = await open(root, backend);
    await kit.saved(() => put(join(root, "noisy/tools/greet.ts"), toolSource("greet", "word", 'import { word } from "./_words.ts";')));
    const { generation } = kit.skill("greeter");
    const later = new Date(Date.now() + 5_000);
    const changes = await kit.unnoticed(() => {
      for (const file of ["SKILL.md", "tools/greet.ts", "tools/said.json", "tools/_words.ts"])
        utimesSync(join(root, "noisy", file), later, later);
      put(join(root, "noisy/README.md"), "2");
      put(join(root, "noisy/assets/run.log"), "1\n2");
      put(join(root, "noisy/NOTES.md"), "new");
      unlinkSync(join(root, "noisy/NOTES.md"));
      put(join(root, "README.md"), "of all skills");
    });
    expect(changes).toEqual([]);
    expect(kit.skill("greeter").generation).toBe(generation);
  });
});
