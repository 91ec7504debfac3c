import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { OffersChange } from "skillhost";
import { describe, expect, onTestFinished, test } from "vitest";
import { type Files, type Kit, openKit, poll, put, skillMd, tempFolder } from "./kit.ts";

const png = new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0, 0xff]);

async function openSkill(files: Files, options: Parameters<typeof openKit>[1] = {}): Promise<Kit & { folder: string }> {
  const root = tempFolder(Object.fromEntries(Object.entries(files).map(([path, text]) => [`s/${path}`, text])));
  return { ...(await openKit([root], options)), folder: join(root, "s") };
}

async function textOf({ session }: Kit, prompt: string, args?: Record<string, string>): Promise<string> {
  const { messages } = await session.getPrompt(prompt, args);
  return messages.map(({ content }) => content["text"]).join("|");
}

function names({ session }: Kit): string[] {
  return session.listPrompts().map(({ name }) => name);
}

function uris({ session }: Kit): string[] {
  return session
    .listResources()
    .map(({ uri }) => uri)
    .filter((uri) => !uri.startsWith("skill://the-marker/"));
}

const promptModule = (name: string, text: string): string =>
  `import { definePrompt } from "skillhost";\nexport default definePrompt(${JSON.stringify(name)}, { handler: () => ${JSON.stringify(text)} });\n`;
const resourceModule = (uri: string, text: string): string =>
  `import { defineResource } from "skillhost";\nexport default defineResource(${JSON.stringify(uri)}, { read: () => ${JSON.stringify(text)} });\n`;

describe("prompts from text files", () => {
  test("a skill and its prompt files are offered as prompts, eager or not", async () => {
    const kit = await openSkill({
      "skill.json": '{ "name": "notes", "promptMode": "eager" }',
      "SKILL.md": "---\nname: notes\ndescription: Keeps notes.\nargument-hint: what to note\n---\nNote in {baseDir}: $ARGUMENTS",
      "prompts/tone.md": "Be kind.",
      "prompts/ask.md":
        "---\ntitle: Ask\ndescription: Asks.\narguments:\n  - city\n  - name: days\n    description: How many.\n    required: true\n---\n$city ${city}! $1 $days $0 $other",
      "prompts/any.txt": "---\nargument-hint: a question\n---\nAnswer.",
      "prompts/own.md": "---\nname: my.own\n---\nOwn.",
      "prompts/hidden.md": "---\nuser-invocable: false\n---\nHidden.",
      "prompts/empty.md": "\n",
    });
    expect(kit.session.listPrompts().filter(({ name }) => name !== "the-marker")).toEqual([
      { name: "notes", description: "Keeps notes.", arguments: [{ name: "arguments", description: "what to note" }] },
      { name: "notes-any", arguments: [{ name: "arguments", description: "a question" }] },
      {
        name: "notes-ask",
        title: "Ask",
        description: "Asks.",
        arguments: [{ name: "city" }, { name: "days", description: "How many.", required: true }],
      },
      { name: "my.own" },
      { name: "notes-tone" },
    ]);
    expect(await textOf(kit, "notes", { arguments: "milk $0" })).toBe(`Note in ${kit.folder}: milk $0`);
    expect(await textOf(kit, "notes")).toBe(`Note in ${kit.folder}: `);
    expect(await textOf(kit, "notes-ask", { city: "$days", days: "3" })).toBe("$days $days! 3 3 $days $other");
    expect(await textOf(kit, "notes-ask", { days: "3" })).toBe(" ! 3 3 $0 $other");
    expect(await textOf(kit, "notes-any", { arguments: "why" })).toBe("Answer.\n\nARGUMENTS: why");
    await expect(kit.session.getPrompt("notes-ask", { city: "Oslo" })).rejects.toMatchObject({ code: "PROMPT_ARGUMENTS" });
    await expect(kit.session.getPrompt("notes-hidden")).rejects.toMatchObject({ code: "PROMPT_UNKNOWN" });
  });

  test("a disabled skill and one that users may not invoke offer no prompts", async () => {
    const kit = await openSkill({ "SKILL.md": "---\nname: s\ndescription: d\nuser-invocable: false\n---\nBody", "prompts/a.md": "A" });
    expect(names(kit)).toEqual(["the-marker"]);
    const off = await openSkill({ "SKILL.md": skillMd("s"), "prompts/a.md": "A" });
    expect(names(off)).toEqual(["s", "s-a", "the-marker"]);
    off.host.disableSkill("s");
    expect(names(off)).toEqual(["the-marker"]);
    expect(uris(off)).toEqual([]);
  });

  test("of two prompts with the same name, the first keeps it and the other is reported", async () => {
    const kit = await openSkill({
      "SKILL.md": skillMd("s"),
      "prompts/a.md": "First",
      "prompts/a.txt": "Second",
      "prompts/Ä b.md": "Other",
    });
    expect(names(kit)).toEqual(["s", "s-a", expect.stringMatching(/^s-A-b-[0-9a-f]{8}$/), "the-marker"]);
    expect(await textOf(kit, "s-a")).toBe("First");
    expect(kit.found("PROMPT_NAME_TWICE")).toMatchObject([{ severity: "warning", file: join(kit.folder, "prompts/a.txt") }]);
  });

  test("prompts follow the rules for skills with the same name", async () => {
    const root = tempFolder({
      "a/SKILL.md": skillMd("a"),
      "a/prompts/p.md": "---\nname: shared\n---\nOf a",
      "b/SKILL.md": skillMd("b"),
      "b/prompts/p.md": "---\nname: shared\n---\nOf b",
    });
    const kit = await openKit([root], { watch: false });
    expect(await textOf(kit, "shared")).toBe("Of b");
    expect(kit.found("PROMPT_NAME_CLASH")).toMatchObject([{ severity: "warning", source: "a" }]);
    const first = await openKit([root], { watch: false, conflicts: "error" });
    expect(await textOf(first, "shared")).toBe("Of a");
    expect(first.found("PROMPT_NAME_CLASH")).toMatchObject([{ severity: "error", source: "b" }]);
    const both = await openKit([root], { watch: false, conflicts: "rename" });
    expect([await textOf(both, "shared"), await textOf(both, "a-shared")]).toEqual(["Of b", "Of a"]);
  });
});

describe("prompts and resources of modules", () => {
  test("modules export prompts and resources beside tools in every form of export", async () => {
    const kit = await openSkill(
      {
        "skill.json": '{ "name": "s", "resources": ["resources/*.ts"] }',
        "tools/all.ts": `
          import { definePrompt, defineResource, defineTool } from "skillhost";
          export default () => ({
            tools: defineTool("t", { description: "d", handler: () => "t" }),
            prompts: [definePrompt("p", { arguments: { who: { required: true } }, handler: ({ who }) => "Hi " + who })],
            resources: [defineResource("x://one", { read: () => "one" }), defineResource("x://{many}", { read: (_uri, { many }) => many })],
          });
          export const named = definePrompt("named", { handler: () => [{ type: "image", data: new Uint8Array([1]), mimeType: "image/png" }] });`,
        "tools/list.ts": `
          import { definePrompt, defineTool } from "skillhost";
          export default [definePrompt("listed", { handler: () => "listed" }), defineTool("u", { description: "d", handler: () => "u" })];`,
        "prompts/only.ts": promptModule("only", "Only."),
        "prompts/_helper.ts": "export const x = 1;",
        "prompts/plain.md": "Plain.",
        "resources/only.ts": resourceModule("x://only", "Only."),
        "resources/data.json": "{}",
      },
      { watch: false },
    );
    expect(kit.host.diagnostics).toEqual([]);
    expect(kit.session.listTools().map(({ name }) => name)).toEqual(expect.arrayContaining(["t", "u"]));
    expect(names(kit).sort()).toEqual(["listed", "named", "only", "p", "s-plain"]);
    expect(await textOf(kit, "p", { who: "you" })).toBe("Hi you");
    expect((await kit.session.getPrompt("named")).messages).toEqual([
      { role: "user", content: { type: "image", data: "AQ==", mimeType: "image/png" } },
    ]);
    expect(await kit.session.readResource("x://one")).toEqual([{ uri: "x://one", mimeType: "text/plain", text: "one" }]);
    expect(await kit.session.readResource("x://two")).toEqual([{ uri: "x://two", mimeType: "text/plain", text: "two" }]);
    expect(await kit.session.readResource("x://only")).toMatchObject([{ text: "Only." }]);
    expect(kit.session.listResourceTemplates()).toEqual([{ uriTemplate: "x://{many}", name: "{many}" }]);
    expect(kit.session.offers.findPrompt("p")?.origin).toEqual({
      kind: "skill",
      source: "s",
      nativeName: "p",
      file: join(kit.folder, "tools/all.ts"),
    });
  });

  test("modules in resources/ that the manifest does not list are files and are not run", async () => {
    const kit = await openSkill(
      {
        "skill.json": '{ "name": "s" }',
        "resources/x.ts": 'throw new Error("It ran.");',
        "references/y.mjs": 'throw new Error("It ran.");',
      },
      { watch: false },
    );
    expect(kit.host.diagnostics).toEqual([]);
    expect(uris(kit)).toEqual(["skill://s/references/y.mjs", "skill://s/resources/x.ts", "skill://s/skill.json"]);
  });

  test.each<[what: string, files: Files, code: string]>([
    ["a module that exports neither", { "prompts/x.ts": 'import "skillhost";\nexport const x = 1;' }, "MODULE_NO_TOOLS"],
    ["something else in a bundle", { "tools/x.ts": 'import "skillhost";\nexport default { prompts: [1] };' }, "MODULE_NOT_A_TOOL"],
    ["a module that is listed and not there", { "skill.json": '{ "name": "s", "resources": ["resources/x.ts"] }' }, "TOOL_FILE_MISSING"],
    ["a prompt module that is listed and not there", { "skill.json": '{ "name": "s", "prompts": ["prompts/x.ts"] }' }, "TOOL_FILE_MISSING"],
    ["a pattern that fits nothing", { "skill.json": '{ "name": "s", "resources": ["resources/*.ts"] }' }, "TOOL_PATTERN_EMPTY"],
    ["a resource that is text", { "skill.json": '{ "name": "s", "resources": ["r.md"] }', "r.md": "x" }, "TOOL_FILE_UNKNOWN"],
    ["a path that leads out", { "skill.json": '{ "name": "s", "resources": ["../x.ts"] }' }, "PATH_OUTSIDE"],
    ["a definition that cannot be one", { "prompts/x.ts": promptModule("no name", "x") }, "MODULE_THREW"],
    ["an address twice", { "tools/a.ts": resourceModule("x://1", "a"), "tools/b.ts": resourceModule("x://1", "b") }, "RESOURCE_TWICE"],
  ])("%s is a diagnostic", async (_what, files, code) => {
    const kit = await openSkill({ "SKILL.md": skillMd("s"), "tools/good.ts": promptModule("good", "Good."), ...files }, { watch: false });
    expect(kit.host.diagnostics.map((diagnostic) => diagnostic.code)).toContain(code);
    expect(names(kit)).toContain("good");
  });

  test("a template lists resources now and whenever it reports a change", async () => {
    const kit = await openSkill({
      "SKILL.md": skillMd("s"),
      "tools/rooms.ts": `
        import { defineResource, defineTool } from "skillhost";
        const rooms = ["hall"];
        let reportChange = () => {};
        export default [
          defineResource("rooms://{name}", {
            read: (_uri, { name }) => (rooms.includes(name) ? "The " + name : undefined),
            list: ({ changed }) => { reportChange = changed; return rooms.map((name) => ({ uri: "rooms://" + name, title: name })); },
          }),
          defineTool("add_room", { description: "d", handler: ({ name }) => { rooms.push(name); reportChange(); return "ok"; } }),
        ];`,
    });
    const rooms = (): string[] => uris(kit).filter((uri) => uri.startsWith("rooms:"));
    expect(rooms()).toEqual(["rooms://hall"]);
    const changes: OffersChange[] = [];
    kit.session.onOffersChanged((change) => changes.push(change));
    await kit.call("add_room", { name: "attic" });
    await poll("the new room is listed", () => changes.length > 0);
    expect(changes).toEqual([{ prompts: false, resources: true, resourceTemplates: false }]);
    expect(rooms()).toEqual(["rooms://hall", "rooms://attic"]);
    expect(await kit.session.readResource("rooms://attic")).toMatchObject([{ text: "The attic" }]);
    await expect(kit.session.readResource("rooms://cellar")).rejects.toMatchObject({ code: "RESOURCE_UNKNOWN" });
  });

  test("a template whose listing fails is still loaded, and the failure is reported", async () => {
    const source = (body: string): string =>
      `import { defineResource } from "skillhost"; export default defineResource("x://{a}", { read: () => "x", list: () => { ${body} } });`;
    const kit = await openSkill(
      {
        "SKILL.md": skillMd("s"),
        "tools/a.ts": source('throw new Error("No.")'),
        "prompts/b.ts": source('return [{ uri: "y://1" }]').replace("{a}", "{b}"),
      },
      { watch: false },
    );
    expect(kit.found("RESOURCE_LIST").map(({ message }) => message)).toEqual([
      expect.stringContaining("is not available: No."),
      expect.stringContaining("y://1 does not match the template x://{b}"),
    ]);
    expect(kit.session.listResourceTemplates()).toHaveLength(2);
  });
});

describe("hot reload of prompts and resources", () => {
  test("added, changed and removed prompts and resources are reported, and the others stay unchanged", async () => {
    const kit = await openSkill({
      "SKILL.md": skillMd("s"),
      "prompts/text.md": "One.",
      "prompts/code.ts": promptModule("code", "One."),
      "prompts/stays.ts": promptModule("stays", "One."),
      "tools/r.ts": resourceModule("x://r", "One."),
    });
    const stays = kit.session.offers.findPrompt("stays");
    const lists = [kit.session.listPrompts(), kit.session.listResourceTemplates()];
    const changes: OffersChange[] = [];
    kit.session.onOffersChanged((change) => changes.push(change));
    const [changed] = await kit.saved(() => {
      put(join(kit.folder, "prompts/text.md"), "Two.");
      put(join(kit.folder, "prompts/code.ts"), promptModule("code", "Two."));
      put(join(kit.folder, "prompts/new.ts"), promptModule("new", "New."));
      put(join(kit.folder, "tools/r.ts"), resourceModule("x://r", "Two."));
    });
    expect(changed?.updated[0]).toMatchObject({
      prompts: { added: ["new"], updated: ["code", "s-text"], removed: [] },
      resources: { added: [], updated: ["x://r"], removed: [] },
      tools: { added: [], updated: [], removed: [] },
    });
    expect([await textOf(kit, "s-text"), await textOf(kit, "code"), await textOf(kit, "new")]).toEqual(["Two.", "Two.", "New."]);
    expect(await kit.session.readResource("x://r")).toMatchObject([{ text: "Two." }]);
    expect(kit.session.offers.findPrompt("stays")).toBe(stays);
    expect(kit.session.listPrompts()).not.toBe(lists[0]);
    expect(kit.session.listResourceTemplates()).toBe(lists[1]);
    expect(changes).toEqual([{ prompts: true, resources: false, resourceTemplates: false }]);

    const [gone] = await kit.saved(() => rmSync(join(kit.folder, "prompts/new.ts")));
    expect(gone?.updated[0]?.prompts).toEqual({ added: [], updated: [], removed: ["new"] });
    expect(names(kit)).not.toContain("new");
  });

  test("an unchanged definition with new code does not change the list", async () => {
    const kit = await openSkill({ "SKILL.md": skillMd("s"), "prompts/code.ts": promptModule("code", "One.") });
    const [list, changes] = [kit.session.listPrompts(), [] as OffersChange[]];
    kit.session.onOffersChanged((change) => changes.push(change));
    await kit.saved(() => put(join(kit.folder, "prompts/code.ts"), promptModule("code", "Two.")));
    expect(await textOf(kit, "code")).toBe("Two.");
    expect(kit.session.listPrompts()).toBe(list);
    expect(changes).toEqual([]);
  });

  test.each<[what: string, path: string, before: string, after: string]>([
    ["a prompt", "prompts/code.ts", promptModule("code", "One."), "export default definePrompt("],
    ["a resource", "tools/code.ts", resourceModule("x://r", "One."), resourceModule("no address", "Two.")],
    ["a template", "tools/code.ts", resourceModule("x://{r}", "One."), resourceModule("x://{r", "Two.")],
  ])("a fault that would remove %s leaves the last working generation active", async (_what, path, before, after) => {
    const kit = await openSkill({ "SKILL.md": skillMd("s"), [path]: before });
    const read = async (): Promise<unknown> =>
      path.startsWith("prompts") ? textOf(kit, "code") : (await kit.session.readResource("x://r"))[0]?.text;
    expect(await read()).toBe("One.");
    const [failed] = await kit.saved(() => put(join(kit.folder, path), after));
    expect(failed?.failed).toMatchObject([{ name: "s", lastGoodServes: true }]);
    expect(await read()).toBe("One.");
    await kit.saved(() => put(join(kit.folder, path), before.replace("One.", "Two.")));
    expect(await read()).toBe("Two.");
  });

  test("a running prompt finishes on its own code, which is disposed of afterwards", async () => {
    const source = (version: string): string => `
      import { definePrompt } from "skillhost";
      const gate = (globalThis.offersGate ??= {});
      export default definePrompt("slow", { handler: async () => { await gate.promise; return ${JSON.stringify(version)}; } });
      export const dispose = () => void (gate.disposed = ${JSON.stringify(version)});`;
    const gate: { promise?: Promise<void>; disposed?: string } = {};
    Object.assign(globalThis, { offersGate: gate });
    onTestFinished(() => void Reflect.deleteProperty(globalThis, "offersGate"));
    let open: () => void = () => {};
    gate.promise = new Promise((resolve) => {
      open = resolve;
    });
    const kit = await openSkill({ "SKILL.md": skillMd("s"), "prompts/slow.ts": source("old") });
    const making = textOf(kit, "slow");
    await kit.saved(() => put(join(kit.folder, "prompts/slow.ts"), source("new")));
    expect(gate.disposed).toBeUndefined();
    open();
    expect(await making).toBe("old");
    await poll("the old generation is disposed of", () => gate.disposed === "old");
    expect(await textOf(kit, "slow")).toBe("new");
  });
});

describe("the files of a skill", () => {
  test("files are listed and read, text as text and the rest as binary, SKILL.md first", async () => {
    const kit = await openSkill(
      {
        "SKILL.md": skillMd("s"),
        "assets/logo.png": png,
        "assets/odd name.bin": "text with a \0",
        "references/a b.md": "\uFEFFFacts.",
        Makefile: "all:",
        "tools/t.ts": promptModule("p", "x"),
        ".env": "SECRET=1",
        ".git/config": "x",
        "node_modules/x/index.js": "x",
      },
      { watch: false },
    );
    expect(uris(kit)).toEqual([
      "skill://s/SKILL.md",
      "skill://s/Makefile",
      "skill://s/assets/logo.png",
      "skill://s/assets/odd%20name.bin",
      "skill://s/references/a%20b.md",
      "skill://s/tools/t.ts",
    ]);
    expect(kit.session.listResources()[0]).toEqual({
      uri: "skill://s/SKILL.md",
      name: "s",
      description: "The skill s, for a test.",
      mimeType: "text/markdown",
      size: skillMd("s").length,
    });
    expect(kit.session.listResources()[1]).toEqual({ uri: "skill://s/Makefile", name: "Makefile", size: 4 });
    const read = async (uri: string): Promise<unknown> => (await kit.session.readResource(uri))[0];
    expect(await read("skill://s/Makefile")).toEqual({ uri: "skill://s/Makefile", mimeType: "text/plain", text: "all:" });
    const logo = { uri: "skill://s/assets/logo.png", mimeType: "image/png", blob: Buffer.from(png).toString("base64") };
    expect(await read("skill://s/assets/logo.png")).toEqual(logo);
    expect(await read("skill://s/assets/odd%20name.bin")).toMatchObject({ mimeType: "application/octet-stream", blob: expect.any(String) });
    expect(await read("skill://s/references/a%20b.md")).toMatchObject({ text: "\uFEFFFacts." });
    expect(await read("SKILL://s/references/a b%2Emd".replace("SKILL", "skill"))).toMatchObject({ text: "\uFEFFFacts." });
    const ofSkill = kit.session.listSkills().find(({ name }) => name === "s")?.files?.resources;
    expect(ofSkill?.map(({ definition }) => definition.uri)).toEqual(uris(kit));
  });

  test.each([
    "skill://s/../../etc/passwd",
    "skill://s/..%2f..%2fetc%2fpasswd",
    "skill://s/%2e%2e/other/SKILL.md",
    "skill://s//etc/passwd",
    "skill://s/.env",
    "skill://s/link.txt",
    "skill://s/linked/secret.txt",
    "skill://s/pipe",
    "skill://s/references",
    "skill://s/",
    "skill://s",
    "skill://other/SKILL.md",
    "skill://s/%zz",
    "skill://s/SKILL.md\0",
    "skill://s/SKILL.md?x",
    "file:///etc/passwd",
    "",
    `skill://s/${"a/".repeat(5000)}`,
  ])("%j reads nothing", async (uri) => {
    const outside = tempFolder({ "secret.txt": "secret" });
    const root = tempFolder({ "s/SKILL.md": skillMd("s"), "s/.env": "SECRET=1", "s/references/a.md": "A" });
    symlinkSync(join(outside, "secret.txt"), join(root, "s/link.txt"));
    symlinkSync(outside, join(root, "s/linked"), "dir");
    const kit = await openKit([root], { watch: false });
    await expect(kit.session.readResource(uri)).rejects.toMatchObject({ code: "RESOURCE_UNKNOWN" });
    expect(uris(kit)).toEqual(["skill://s/SKILL.md", "skill://s/references/a.md"]);
  });

  test("a file that has become a link out of the folder is not read", async () => {
    const outside = tempFolder({ "secret.txt": "secret" });
    const kit = await openSkill({ "SKILL.md": skillMd("s"), "a.txt": "A" }, { watch: false });
    expect(uris(kit)).toContain("skill://s/a.txt");
    rmSync(join(kit.folder, "a.txt"));
    symlinkSync(join(outside, "secret.txt"), join(kit.folder, "a.txt"));
    await expect(kit.session.readResource("skill://s/a.txt")).rejects.toMatchObject({ code: "PATH_OUTSIDE" });
    rmSync(join(kit.folder, "a.txt"));
    await expect(kit.session.readResource("skill://s/a.txt")).rejects.toMatchObject({ code: "RESOURCE_UNKNOWN" });
  });

  test("files are searched on first use, and added and removed files are noticed afterwards", async () => {
    const kit = await openSkill({ "SKILL.md": skillMd("s"), "a.txt": "A" });
    const changes: OffersChange[] = [];
    kit.session.onOffersChanged((change) => changes.push(change));
    await kit.unnoticed(() => put(join(kit.folder, "unseen.txt"), "x"));
    expect(changes).toEqual([]);
    const list = kit.session.listResources();
    expect(uris(kit)).toEqual(["skill://s/SKILL.md", "skill://s/a.txt", "skill://s/unseen.txt"]);
    expect(kit.session.listResources()).toBe(list);

    put(join(kit.folder, "b/c.txt"), "C");
    await poll("the new file is listed", () => uris(kit).includes("skill://s/b/c.txt"));
    expect(changes.at(-1)).toEqual({ prompts: false, resources: true, resourceTemplates: false });
    renameSync(join(kit.folder, "b"), join(kit.folder, "d"));
    await poll(
      "the folder's new name is listed",
      () => uris(kit).includes("skill://s/d/c.txt") && !uris(kit).includes("skill://s/b/c.txt"),
    );

    const countBefore = changes.length;
    put(join(kit.folder, "a.txt"), "A longer text");
    await poll("its size is another", () => kit.session.listResources().some(({ size }) => size === 13));
    expect(changes).toHaveLength(countBefore);
  });

  test("files are searched again on reload if nothing is watched", async () => {
    const kit = await openSkill({ "SKILL.md": skillMd("s") }, { watch: false });
    expect(uris(kit)).toEqual(["skill://s/SKILL.md"]);
    put(join(kit.folder, "b.txt"), "B");
    expect(uris(kit)).toEqual(["skill://s/SKILL.md"]);
    await kit.host.reload();
    expect(uris(kit)).toEqual(["skill://s/SKILL.md", "skill://s/b.txt"]);
  });

  test("each file is watched through deletion and replacement", async () => {
    const kit = await openSkill({ "SKILL.md": skillMd("s"), "a.txt": "A", "b.txt": "B" });
    let seen = 0;
    const watch = await kit.session.watchResource("skill://s/a.txt", () => seen++);
    const next = async (what: string, edit: () => void): Promise<void> => {
      const before = seen;
      edit();
      await poll(what, () => seen > before);
    };
    await next("it changes", () => put(join(kit.folder, "a.txt"), "Other"));
    await next("it goes", () => rmSync(join(kit.folder, "a.txt")));
    await next("it comes back", () => put(join(kit.folder, "a.txt"), "Again"));
    await next("its skill goes", () => rmSync(kit.folder, { recursive: true }));
    await next("its skill comes back", () => {
      put(join(kit.folder, "SKILL.md"), skillMd("s"));
      put(join(kit.folder, "a.txt"), "New");
    });
    await kit.host.idle();
    await kit.unnoticed(() => {});
    const before = seen;
    await kit.unnoticed(() => put(join(kit.folder, "b.txt"), "Other"));
    expect(seen).toBe(before);
    await watch[Symbol.asyncDispose]();
    await kit.unnoticed(() => put(join(kit.folder, "a.txt"), "Unheard"));
    expect(seen).toBe(before);
  });

  test("at most 512 files and 16 MiB are listed, and exceeding that is reported until it ends", async () => {
    const kit = await openSkill({ "SKILL.md": skillMd("s") });
    await kit.unnoticed(() => {
      mkdirSync(join(kit.folder, "many"));
      for (let index = 0; index < 600; index++) writeFileSync(join(kit.folder, `many/${index}.txt`), "");
    });
    expect(uris(kit)).toHaveLength(512);
    expect(kit.session.listResources()[0]?.uri).toBe("skill://s/SKILL.md");
    expect(kit.found("SKILL_TOO_LARGE")).toMatchObject([{ severity: "warning", file: kit.folder }]);
    await kit.unnoticed(() => rmSync(join(kit.folder, "many"), { recursive: true }));
    await poll("they are gone", () => uris(kit).length === 1);
    expect(kit.found("SKILL_TOO_LARGE")).toEqual([]);
    await kit.unnoticed(() => writeFileSync(join(kit.folder, "large.bin"), new Uint8Array(17 * 1024 * 1024)));
    expect(uris(kit)).toEqual(["skill://s/SKILL.md"]);
    expect(kit.found("SKILL_TOO_LARGE")).toHaveLength(1);
  });
});
