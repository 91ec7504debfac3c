import { join } from "node:path";
import { createHost, HostError } from "skillhost";
import { afterEach, describe, expect, test, vi } from "vitest";
import { silentLogger } from "../../src/base/logger.ts";
import { rounds } from "../rounds.ts";
import { type Files, openKit, put, short, skillMd, tempFolder, toolSource } from "../skills/kit.ts";

/** A skill with one tool, which returns its origin. */
const saying = (folder: string, name: string, tool: string, words = folder): Files => ({
  [`${folder}/SKILL.md`]: skillMd(name),
  [`${folder}/tools/${tool}.ts`]: toolSource(tool, JSON.stringify(words)),
});

afterEach(() => void vi.unstubAllEnvs());

describe("skills and tools with the same name", () => {
  test("the later directory takes precedence, children of one directory are ordered by name, and the loser stays visible with the rule", async () => {
    const root = tempFolder({
      ...saying("low/a", "same", "say"),
      ...saying("low/b", "b", "word"),
      ...saying("high/a", "same", "say"),
      ...saying("high/c", "c", "word"),
    });
    const kit = await openKit([join(root, "low"), join(root, "high")], { watch: false });
    expect([await kit.says("say"), await kit.says("word")]).toEqual(["high/a", "high/c"]);
    const explained = kit.host.explain("same");
    expect(explained.skills).toMatchObject([
      { folder: join(root, "low/a"), state: "shadowed", winner: join(root, "high/a"), rule: expect.stringContaining("later") },
      { folder: join(root, "high/a"), state: "active" },
    ]);
    expect(kit.host.explain("word").tools).toMatchObject([
      { state: "wins", source: "c", file: join(root, "high/c/tools/word.ts"), engine: { engine: "graph" } },
      { state: "lost", source: "b", rule: expect.stringContaining("later") },
    ]);
    expect(kit.host.explain("say").tools).toMatchObject([{ state: "wins" }, { state: "lost", rule: expect.stringContaining("shadowed") }]);
    expect(kit.host.skills.map(({ folder, state }) => [folder, state])).toEqual([
      [join(root, "low/a"), "shadowed"],
      [join(root, "low/b"), "active"],
      [join(root, "high/a"), "active"],
      [join(root, "high/c"), "active"],
    ]);
    expect(kit.host.explain("nothing")).toMatchObject({ skills: [], tools: [] });
  });

  test.each([
    ["override", { say: "two", "one-say": undefined }, "warning"],
    ["keep-first", { say: "one" }, "warning"],
    ["rename", { say: "two", "one-say": "one" }, "warning"],
    ["error", { say: "one" }, "error"],
  ] as const)("the policy %s decides", async (conflicts, answers, severity) => {
    const root = tempFolder({
      "one/SKILL.md": skillMd("one"),
      "one/tools/say.ts": `import { defineTool } from "skillhost";\nexport default defineTool("say", { description: "Another contract.", handler: () => "one" });\n`,
      ...saying("two", "two", "say"),
    });
    const kit = await openKit([root], { watch: false, conflicts });
    for (const [name, answer] of Object.entries(answers)) {
      if (answer === undefined) expect(kit.session.catalog.executables.has(name)).toBe(false);
      else expect(await kit.says(name)).toBe(answer);
    }
    expect(kit.found("TOOL_NAME_CLASH")).toMatchObject([{ severity }]);
  });

  test("identical copies cause no warning", async () => {
    const root = tempFolder({ ...saying("one/s", "s", "say", "same"), ...saying("two/s", "s", "say", "same") });
    const kit = await openKit([join(root, "one"), join(root, "two")], { watch: false });
    expect(kit.host.diagnostics).toEqual([]);
    expect(kit.host.explain("s").skills.map(({ state }) => state)).toEqual(["shadowed", "active"]);
  });

  test("the loser takes the name when the winner is removed", async () => {
    const root = tempFolder({ ...saying("low/s", "s", "say"), ...saying("high/s", "s", "say") });
    const kit = await openKit([join(root, "low"), join(root, "high")]);
    await kit.saved(() => put(join(root, "high/s/skill.json"), '{ "name": "s", "enabled": false }'));
    expect(await kit.says("say")).toBe("low/s");
  });
});

describe("skill directories", () => {
  test("a directory is a skill's folder, a parent of skills, a pattern, or below the home folder", async () => {
    const root = tempFolder({
      ...saying("alone", "alone", "a"),
      ...saying("many/one", "one", "b"),
      ...saying("teams/x/skills/two", "two", "c"),
    });
    const home = tempFolder(saying("mine/three", "three", "d"));
    vi.stubEnv("HOME", home);
    vi.stubEnv("USERPROFILE", home);
    const kit = await openKit(["alone", "./many", "teams/*/skills", "~/mine"], { watch: false, workingDirectory: root });
    expect(kit.host.skills.map(({ name }) => name)).toEqual(["alone", "one", "two", "three"]);
  });

  test("the default is ./skills, relative to the working directory", async () => {
    const root = tempFolder(saying("skills/s", "s", "say"));
    await using host = await createHost({ workingDirectory: root, watch: false, logger: silentLogger, trust: { folders: [root] } });
    expect(host.skills).toMatchObject([{ name: "s", folder: join(root, "skills/s"), state: "active" }]);
  });

  test("an invalid option is refused by name", async () => {
    await expect(createHost({ skillDirectory: ["x"] } as never)).rejects.toThrow(
      expect.objectContaining({ code: "HOST_OPTIONS", message: expect.stringContaining("skillDirectory") }),
    );
    await expect(createHost({ conflicts: "fight" as never })).rejects.toThrow(HostError);
  });

  test("a session's directories come after the host's, for that session only, and are released with it", async () => {
    const root = tempFolder({ ...saying("host/s", "s", "say"), ...saying("own/s", "s", "say"), ...saying("own/more", "more", "extra") });
    const kit = await openKit([join(root, "host")]);
    const session = await kit.host.createSession({
      skillDirectories: [join(root, "own")],
      onPermissionRequest: () => ({ kind: "approve-once" }),
    });
    const says = async (tool: string): Promise<string> => (await session.callTool(tool, {})).textResultForLlm;
    expect([await says("say"), await says("extra")]).toEqual(["own/s", "own/more"]);
    expect(await kit.says("say")).toBe("host/s");
    expect(kit.session.tools.map(({ name }) => name)).toEqual(["say"]);
    const edited = await kit.saved(() => put(join(root, "own/s/tools/say.ts"), toolSource("say", '"edited"')));
    expect(edited.map(short)).toEqual(["~s: ~say"]);
    expect(await says("say")).toBe("edited");
    const ended = await kit.saved(
      () => void session.disconnect(),
      (seen) => seen.flatMap(({ removed }) => removed).length === 2,
    );
    expect(ended.map(short).sort()).toEqual(["-more: -extra", "-s: -say"]);
    expect(await kit.unnoticed(() => put(join(root, "own/s/tools/say.ts"), toolSource("say", '"unused"')))).toEqual([]);
    expect(await kit.says("say")).toBe("host/s");
  });

  test("two sessions share a directory until the last of them closes", async () => {
    const root = tempFolder({ ...saying("host/s", "s", "say"), ...saying("own/more", "more", "extra") });
    const kit = await openKit([join(root, "host")]);
    const loads: string[] = [];
    kit.host.on("skills.changed", (change) => {
      if (!short(change).includes("the-marker")) loads.push(short(change));
    });
    const options = { skillDirectories: [join(root, "own")] };
    const [one, two] = [await kit.host.createSession(options), await kit.host.createSession(options)];
    expect(loads).toEqual(["+more: +extra"]);
    expect(one.catalog).toBe(two.catalog);
    await one.disconnect();
    await kit.host.idle();
    expect(two.tools.map(({ name }) => name)).toEqual(["extra", "say"]);
    expect(loads).toEqual(["+more: +extra"]);
    await kit.saved(() => void two.disconnect());
    expect(loads.at(-1)).toBe("-more: -extra");
  });
});

describe("disabled skills", () => {
  test("disabled skills contribute nothing, report it, and can be enabled while the host runs", async () => {
    const root = tempFolder({ ...saying("a", "a", "say-a"), ...saying("b", "b", "say-b") });
    const kit = await openKit([root], { watch: false, disabledSkills: ["a"] });
    expect(kit.session.tools.map(({ name }) => name)).toEqual(["say-b"]);
    expect(kit.skill("a")).toMatchObject({ state: "disabled", rule: expect.stringContaining("disabledSkills") });
    expect(kit.host.explain("say-a").tools).toMatchObject([{ state: "disabled", source: "a" }]);
    kit.host.enableSkill("a");
    expect(await kit.says("say-a")).toBe("a");
    kit.host.disableSkill("b");
    expect(await kit.says("say-b")).toBe("(failure)");
    expect(kit.session.tools.map(({ name }) => name)).toEqual(["say-a"]);
  });

  test("a session's list of disabled skills concerns that session only", async () => {
    const root = tempFolder({ ...saying("a", "a", "say-a"), ...saying("b", "b", "say-b") });
    const kit = await openKit([root], { watch: false });
    const session = await kit.host.createSession({ disabledSkills: ["a"] });
    expect(session.tools.map(({ name }) => name)).toEqual(["say-b"]);
    expect(kit.session.tools.map(({ name }) => name)).toEqual(["say-a", "say-b"]);
    await session.update({ disabledSkills: ["b"] });
    expect(session.tools.map(({ name }) => name)).toEqual(["say-a"]);
  });

  test("an unknown skill name is reported once as info", async () => {
    const root = tempFolder(saying("a", "a", "say"));
    const kit = await openKit([root], { watch: false, disabledSkills: ["missing"] });
    kit.host.disableSkill("missing");
    expect(kit.host.diagnostics).toMatchObject([
      { severity: "info", code: "SKILL_UNKNOWN", message: expect.stringContaining('"missing"') },
    ]);
    kit.host.enableSkill("missing");
    expect(kit.host.diagnostics).toEqual([]);
  });

  test("a running call continues when its skill is disabled", async () => {
    const root = tempFolder({
      "a/SKILL.md": skillMd("a"),
      "a/tools/wait.ts": toolSource("wait", "new Promise((resolve) => { globalThis.testRelease = resolve; })"),
    });
    const kit = await openKit([root], { watch: false });
    const answer = kit.says("wait");
    const release = (): ((value: string) => void) | undefined => (globalThis as { testRelease?: (value: string) => void }).testRelease;
    await expect.poll(release).toBeTypeOf("function");
    kit.host.disableSkill("a");
    release()?.("done");
    expect(await answer).toBe("done");
  });
});

describe("many sessions", () => {
  test("sessions with equal views share one catalog, and a reload gives all of them the next one", async () => {
    const root = tempFolder({ ...saying("a", "a", "say"), ...saying("b", "b", "other") });
    const kit = await openKit([root]);
    const sessions = await Promise.all(Array.from({ length: rounds(250, 1_000) }, () => kit.host.createSession()));
    expect(new Set(sessions.map((session) => session.catalog)).size).toBe(1);
    const narrow = await kit.host.createSession({ excludedTools: ["other"] });
    expect(narrow.catalog).not.toBe(sessions[0]?.catalog);
    const before = sessions[0]?.catalog;
    await kit.saved(() => put(join(root, "a/tools/say.ts"), toolSource("say", '"new"')));
    expect(new Set(sessions.map((session) => session.catalog)).size).toBe(1);
    expect(sessions.at(-1)?.catalog).not.toBe(before);
    expect(sessions.at(-1)?.catalog.executables.get("other")).toBe(before?.executables.get("other"));
    expect(await kit.says("say")).toBe("new");
  });

  test("a listener receives a changed contract once, and is not notified of a changed handler", async () => {
    const root = tempFolder(saying("a", "a", "say"));
    const kit = await openKit([root]);
    const versions: unknown[] = [];
    kit.session.on("session.tools_updated", (event) => versions.push((event.data as { version: number }).version));
    await expect.poll(() => versions.length).toBe(1);
    await kit.saved(() => put(join(root, "a/tools/say.ts"), toolSource("say", '"another handler"')));
    expect(await kit.says("say")).toBe("another handler");
    expect(versions).toHaveLength(1);
    await kit.saved(() => put(join(root, "a/tools/more.ts"), toolSource("more", '"more"')));
    await expect.poll(() => versions.length).toBe(2);
  });
});

describe("a file that belongs to no skill", () => {
  test("a problem of such a file is listed once, and removed when the file is fixed", async () => {
    const root = tempFolder({ ...saying("a", "a", "say"), "a/tsconfig.json": '{ "extends": "./gone.json" }' });
    const kit = await openKit([root]);
    const about = (): (string | undefined)[] =>
      kit.host.diagnostics.filter(({ file }) => file === join(root, "a/tsconfig.json")).map(({ severity }) => severity);
    expect(about()).toEqual(["warning"]);
    await kit.saved(() => put(join(root, "a/tools/say.ts"), toolSource("say", '"still"')));
    expect(about()).toEqual(["warning"]);
    await kit.saved(() => put(join(root, "a/tsconfig.json"), "{}"));
    expect(about()).toEqual([]);
  });
});

describe("closing a host", () => {
  test("a closed host refuses new sessions, and its sessions can be disconnected after it", async () => {
    const root = tempFolder(saying("a", "a", "say"));
    const kit = await openKit([root]);
    const session = await kit.host.createSession({ skillDirectories: [tempFolder()] });
    await kit.close();
    await session.disconnect();
    await expect(kit.host.createSession()).rejects.toThrow(expect.objectContaining({ code: "HOST_CLOSED" }));
    await kit.host.close();
  });

  test("a closing host does not wait for a module that hangs", async () => {
    const root = tempFolder({ "a/SKILL.md": skillMd("a"), "a/tools/say.ts": toolSource("say", '"a"') });
    const kit = await openKit([root], { importTimeout: 60_000 });
    put(join(root, "a/tools/say.ts"), "globalThis.testHangsAtClose = true;\nawait new Promise(() => {});");
    await expect.poll(() => "testHangsAtClose" in globalThis).toBe(true);
    await kit.close();
  });
});
