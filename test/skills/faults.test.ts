import { execFileSync } from "node:child_process";
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { TestHostOptions } from "skillhost/testing";
import { describe, expect, test } from "vitest";
import { rounds } from "../rounds.ts";
import { patience } from "../slowness.ts";
import { defects, other, tool } from "./defects.ts";
import { type Files, type Kit, openKit, poll, put, putAll, short, skillMd, tempFolder, toolSource } from "./kit.ts";

const good: Files = { "good/SKILL.md": skillMd("good"), "good/tools/good.ts": toolSource("good", '"good"') };

/** Loads a bad skill beside a good one, whose tool must always work. */
async function openBeside(
  files: Files,
  prepare?: (folder: string, root: string) => void,
  options: TestHostOptions = {},
): Promise<{ kit: Kit; folder: string; root: string }> {
  const root = tempFolder(good);
  const folder = join(root, "bad");
  mkdirSync(folder);
  putAll(folder, files);
  prepare?.(folder, root);
  const kit = await openKit([root], { watch: false, ...options });
  expect(await kit.says("good")).toBe("good");
  return { kit, folder, root };
}

describe("a skill with a defect is reported with its place and does not affect the others:", () => {
  test.each(Object.entries(defects))("%s", async (_title, defect) => {
    const { kit, folder } = await openBeside(defect.files, defect.prepare, defect.options);
    const found = kit.found(defect.code);
    expect(found, JSON.stringify(kit.host.diagnostics)).not.toEqual([]);
    const [diagnostic] = found;
    expect(diagnostic).toMatchObject({ severity: defect.severity ?? "error", file: join(folder, defect.at), source: expect.any(String) });
    if (defect.line !== undefined) expect(diagnostic?.range?.start.line).toBe(defect.line);
    if (defect.column !== undefined) expect(diagnostic?.range?.start.column).toBe(defect.column);
    if (defect.says) expect(diagnostic?.message).toMatch(defect.says);
    expect(kit.skill("bad").state).toBe(defect.state ?? "active");
    for (const name of defect.tools ?? []) expect(await kit.says(name)).toBe(name);
    expect(kit.host.diagnostics.filter(({ file }) => file?.includes("/good/"))).toEqual([]);
  });
});

describe("unusual input that is not a mistake of the author", () => {
  test("a byte order mark and Windows line endings are accepted in every kind of file", async () => {
    const windows = (text: string): string => `\uFEFF${text.replaceAll("\n", "\r\n")}`;
    const { kit } = await openBeside({
      "SKILL.md": windows(skillMd("bad", "First.\nSecond.")),
      "skill.json": windows('{\n"name": "bad"\n}'),
      "prompts/rules.md": windows("One.\nTwo.\n"),
      "tools/x.json": windows(tool("x", { handler: { module: "./_x.ts" } })),
      "tools/_x.ts": windows('export default () => "x";\n'),
      "tools/y.ts": windows(toolSource("y", '"y"')),
    });
    expect(kit.host.diagnostics).toEqual([]);
    expect([await kit.says("x"), await kit.says("y")]).toEqual(["x", "y"]);
    expect(kit.skill("bad").prompts[0]?.text).toBe("One.\nTwo.\n");
  });

  test("a SKILL.md of 300 kB and thousands of files in the skill and its directory are accepted", {
    timeout: patience(60_000),
  }, async () => {
    const { kit, root } = await openBeside(
      { "SKILL.md": skillMd("bad", "word ".repeat(60_000)), "tools/works.ts": toolSource("works", '"works"') },
      (folder, place) => {
        mkdirSync(join(folder, "assets"));
        for (let n = 0; n < rounds(1_000, 5_000); n++) writeFileSync(join(folder, "assets", `${n}.txt`), "");
        for (let n = 0; n < rounds(1_000, 5_000); n++) writeFileSync(join(place, `${n}.txt`), "");
      },
      { watch: true },
    );
    expect(kit.host.diagnostics).toEqual([]);
    const changes = await kit.saved(() => put(join(root, "bad/tools/works.ts"), toolSource("works", '"still"')));
    expect(changes.map(short)).toEqual(["~bad: ~works"]);
    expect(await kit.says("works")).toBe("still");
  });

  test("circular links, links to the parent folder and links to a listed skill are accepted", async () => {
    const { kit } = await openBeside(
      other,
      (folder, root) => {
        symlinkSync(root, join(folder, "up"), "dir");
        symlinkSync(join(folder, "round"), join(folder, "round"));
        symlinkSync(root, join(root, "itself"), "dir");
        symlinkSync(folder, join(root, "a-second-name"), "dir");
        symlinkSync(join(root, "nowhere"), join(root, "broken"));
      },
      { watch: true },
    );
    expect(kit.host.skills.map(({ name }) => name).sort()).toEqual(["bad", "good", "the-marker"]);
    expect(kit.host.diagnostics.map(({ code }) => code)).toEqual(["SKILL_LINK_BROKEN"]);
    expect(await kit.says("works")).toBe("works");
  });

  test("a folder with tools and no manifest is reported until it has one", async () => {
    const { kit, root } = await openBeside(other, undefined, { watch: true });
    const says = (...expected: string[]): Promise<void> =>
      poll(`the diagnostics are ${expected.join(" ")}`, () => kit.host.diagnostics.map(({ code }) => code).join() === expected.join());
    put(join(root, "late/tools/late.ts"), toolSource("late", '"late"'));
    await says("SKILL_NO_MANIFEST");
    put(join(root, "late/SKILL.md"), skillMd("late"));
    await says();
    expect(await kit.says("late")).toBe("late");
    rmSync(join(root, "late/SKILL.md"));
    await says("SKILL_NO_MANIFEST");
    rmSync(join(root, "late/tools/late.ts"));
    await says();
  });

  test("a listed folder or pattern loads possible tools, skips links and does not report the rest", async () => {
    const { kit } = await openBeside(
      { ...other, "more/README.md": "No tool.", "skill.json": '{ "name": "bad", "tools": ["tools", "more/*"] }' },
      (folder, root) => symlinkSync(join(root, "good/tools/good.ts"), join(folder, "more/link.ts")),
    );
    expect(kit.skill("bad").tools).toEqual(["works"]);
    expect(kit.host.diagnostics.map(({ code }) => code)).toEqual(["TOOL_PATTERN_EMPTY"]);
  });

  test.skipIf(process.platform === "win32")("a SKILL.md that is a named pipe does not block loading", async () => {
    const makePipe = "mkfifo";
    const { kit, folder } = await openBeside({}, (at) => execFileSync(makePipe, [join(at, "SKILL.md")]));
    expect(kit.found("FILE_NOT_REGULAR")).toMatchObject([{ file: join(folder, "SKILL.md") }]);
    expect(kit.skill("bad").state).toBe("failed");
  });

  test.skipIf(process.platform !== "linux")("a file without read permission is reported", async () => {
    // Root can read files regardless of their mode; this file cannot be read by root either.
    const { kit, folder } = await openBeside({ "SKILL.md": skillMd("bad") }, (at) => symlinkSync("/proc/self/mem", join(at, "skill.json")));
    expect(kit.host.diagnostics).toMatchObject([{ severity: "error", file: join(folder, "skill.json"), source: "bad" }]);
  });

  test("tools may have the names of Object.prototype's members", async () => {
    const words = ["__proto__", "constructor", "toString", "hasOwnProperty"];
    const { kit } = await openBeside({
      "SKILL.md": skillMd("bad"),
      ...Object.fromEntries(words.map((word, at) => [`tools/${at}.ts`, toolSource(word, JSON.stringify(`I am ${word}`))])),
    });
    for (const word of words) expect(await kit.says(word)).toBe(`I am ${word}`);
    expect(kit.skill("bad").tools).toEqual(words);
  });

  test("keys with the names of Object.prototype's members change no prototype in any kind of file", async () => {
    const hostile = '"__proto__": { "polluted": true }, "constructor": { "prototype": { "polluted": true } }';
    const { kit } = await openBeside({
      "SKILL.md":
        "---\nname: bad\ndescription: Bad.\n__proto__:\n  polluted: true\nmetadata:\n  __proto__:\n    polluted: true\n---\nBody.\n",
      "skill.json": `{ "name": "bad", ${hostile} }`,
      "tools/x.json": `{ "name": "x", "description": "X.", ${hostile}, "parameters": { "type": "object", "properties": { "__proto__": { "type": "string" } } } }`,
      "tools/x.ts": "export default () => 'x';",
    });
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
    expect(await kit.says("x")).toBe("x");
  });

  test("a module that adds to a prototype is reported once", async () => {
    const root = tempFolder({ ...good, "bad/SKILL.md": skillMd("bad") });
    put(join(root, "bad/tools/x.ts"), toolSource("x", "1", "(Array.prototype as any).polluted = true;"));
    try {
      const kit = await openKit([root], { watch: false });
      expect(kit.found("MODULE_CHANGES_PROTOTYPE")).toMatchObject([
        { severity: "warning", file: join(root, "bad/tools/x.ts"), message: expect.stringContaining("Array.prototype.polluted") },
      ]);
    } finally {
      delete (Array.prototype as { polluted?: unknown }).polluted;
    }
  });
});

describe("faults while the host runs", () => {
  test("a module that hangs while it loads is replaced by the save that fixes it", async () => {
    const root = tempFolder({ ...good, "bad/SKILL.md": skillMd("bad"), "bad/tools/x.ts": toolSource("x", '"first"') });
    const kit = await openKit([root], { importTimeout: 60_000 });
    await kit.unnoticed(() => {});
    put(join(root, "bad/tools/x.ts"), "await new Promise(() => {});");
    // No event says that a module hangs, so this one announces itself.
    await kit.change(() => put(join(root, "good/tools/good.ts"), toolSource("good", '"better"')), {
      until: (change) => short(change).includes("~good"),
    });
    expect(await kit.says("x")).toBe("first");
    const changes = await kit.saved(
      () => put(join(root, "bad/tools/x.ts"), toolSource("x", '"second"')),
      (seen) => seen.some((change) => short(change) === "~bad: ~x"),
    );
    expect(changes.flatMap(({ failed }) => failed)).toEqual([]);
    expect(await kit.says("x")).toBe("second");
  });

  test("a module that hangs at the start delays neither the other skills nor the save that fixes it", async () => {
    const root = tempFolder({
      ...good,
      "bad/SKILL.md": skillMd("bad"),
      "bad/skill.json": '{ "name": "bad" }',
      "bad/tools/x.ts": "globalThis.testHangs = true;\nawait new Promise(() => {});",
    });
    const opening = openKit([root], { importTimeout: 60_000 });
    await poll("the module hangs", () => "testHangs" in globalThis);
    delete (globalThis as { testHangs?: unknown }).testHangs;
    put(join(root, "bad/tools/x.ts"), toolSource("x", '"fixed"'));
    const kit = await opening;
    expect([await kit.says("x"), await kit.says("good")]).toEqual(["fixed", "good"]);
  });

  test("a module that hangs because of a helper is fixed by saving the helper", async () => {
    const root = tempFolder({
      "s/SKILL.md": skillMd("s"),
      "s/tools/x.ts": toolSource("x", "word", 'import { word } from "../lib/word.mts";'),
      "s/lib/word.mts": "await new Promise(() => {});",
    });
    const kit = await openKit([root], { importTimeout: 100 });
    expect(kit.found("MODULE_TIMEOUT")).toHaveLength(1);
    await kit.saved(() => put(join(root, "s/lib/word.mts"), 'export const word = "fixed";'));
    expect(await kit.says("x")).toBe("fixed");
  });

  test("a handler module that hangs on its first call ends that call, and a save fixes it", async () => {
    const root = tempFolder({
      "s/SKILL.md": skillMd("s"),
      "s/tools/x.json": tool("x"),
      "s/tools/x.ts": "await new Promise(() => {});\nexport default () => 1;",
    });
    const kit = await openKit([root], { importTimeout: 100 });
    expect(await kit.says("x")).toBe("(failure)");
    await kit.saved(() => put(join(root, "s/tools/x.ts"), 'export default () => "fixed";'));
    expect(await kit.says("x")).toBe("fixed");
  });

  test("saving every five milliseconds ends with the last text", async () => {
    const root = tempFolder({ ...good, "bad/SKILL.md": skillMd("bad"), "bad/tools/x.ts": toolSource("x", "0") });
    const kit = await openKit([root]);
    const saves = 300;
    const changes = await kit.saved(
      () => {
        let n = 0;
        const timer = setInterval(() => {
          put(join(root, "bad/tools/x.ts"), n % 7 === 3 ? "export default ((" : toolSource("x", String(n)));
          if (++n > saves) clearInterval(timer);
        }, 5);
      },
      () => (kit.session.catalog.executables.get("x")?.execute({}, { invocation: {} } as never) as number) === saves,
    );
    expect(changes.length).toBeLessThan(saves / 2);
    expect(kit.skill("bad").stale).toBe(false);
    expect([await kit.says("x"), await kit.says("good")]).toEqual([String(saves), "good"]);
  });

  test("a skill that is deleted while it loads is removed and can be added again", async () => {
    const root = tempFolder(good);
    const kit = await openKit([root]);
    put(join(root, "bad/SKILL.md"), skillMd("bad"));
    const slow = "globalThis.testLoads = true;\nawait new Promise((resolve) => setTimeout(resolve, 100));\n";
    put(join(root, "bad/tools/x.ts"), slow + toolSource("x", '"x"'));
    await poll("the module is being loaded", () => "testLoads" in globalThis);
    rmSync(join(root, "bad"), { recursive: true });
    delete (globalThis as { testLoads?: unknown }).testLoads;
    await kit.unnoticed(() => {});
    expect(kit.host.skills.map(({ name }) => name)).not.toContain("bad");
    expect(kit.session.tools.map(({ name }) => name)).toEqual(["good"]);
    await kit.saved(
      () => putAll(join(root, "bad"), { "SKILL.md": skillMd("bad"), "tools/x.ts": toolSource("x", '"again"') }),
      (seen) => seen.some((change) => short(change) === "+bad: +x"),
    );
    expect(await kit.says("x")).toBe("again");
  });

  test("a model sees neither the path nor the error of a faulty file", async () => {
    const root = tempFolder({
      "s/SKILL.md": skillMd("s"),
      "s/tools/a.ts": toolSource("a", '(() => { throw new Error("secret at /root/.ssh"); })()'),
      "s/tools/b.json": tool("b"),
      "s/tools/b.ts": 'throw new Error("secret at /root/.ssh");',
      "s/tools/c.json": tool("c", { handler: { command: "./no-such-program" } }),
    });
    const kit = await openKit([root], { watch: false });
    for (const name of ["a", "b", "c"]) {
      const result = await kit.call(name);
      expect(result.resultType).toBe("failure");
      expect(result.textResultForLlm).not.toMatch(/secret|\.ssh|skillhost-skills|no-such-program|ENOENT/);
    }
  });
});
