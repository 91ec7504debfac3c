import { hash } from "node:crypto";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { basename, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import fc from "fast-check";
import { describe, expect, onTestFinished, test } from "vitest";
import { silentLogger } from "../../src/base/logger.ts";
import { createModuleLoader } from "../../src/io/module-loader/create-module-loader.ts";
import { createModuleRunner } from "../../src/skills/load/stage-tool.ts";
import { SkillTextCache } from "../../src/skills/load/text-cache.ts";
import type { Skill } from "../../src/skills/skill.ts";
import { SkillStore } from "../../src/skills/store/skill-store.ts";
import { loadTrustSettings } from "../../src/trust/trust-settings.ts";
import { rounds } from "../rounds.ts";
import { makeKey, requireOf, resign } from "../trust/signatures/signing-kit.ts";
import { put, skillMd, tempFolder } from "./kit.ts";

type StoreOptions = Partial<ConstructorParameters<typeof SkillStore>[0]>;

interface Opened {
  readonly store: SkillStore;
  skill(name: string): Skill | undefined;
}

/** A store over a root, with a cache in this folder; undefined: without. */
async function open(root: string, cache: string | undefined, options: StoreOptions = {}): Promise<Opened> {
  const loader = createModuleLoader({ hostModules: {} });
  const texts = cache === undefined ? undefined : new SkillTextCache(cache);
  const parts = { loader, runners: [createModuleRunner(loader)], hostVersion: "1.0.0", log: silentLogger, watch: false };
  const store = new SkillStore({ ...parts, texts, ...options });
  await store.acquire([root]).ready;
  onTestFinished(async () => {
    await store[Symbol.asyncDispose]();
    loader[Symbol.dispose]();
  });
  return { store, skill: (name) => [...store.snapshot.folders.values()].find(({ skill }) => skill?.name === name)?.skill };
}

/** Loads a root once, so that the cache is complete, and returns what the skills say. */
async function loadOnce(root: string, cache: string | undefined, options?: StoreOptions): Promise<readonly unknown[]> {
  const { store } = await open(root, cache, options);
  const dump = await dumpOf(store);
  await store[Symbol.asyncDispose]();
  return dump;
}

async function dumpOf({ snapshot }: SkillStore): Promise<readonly unknown[]> {
  const dump: unknown[] = [];
  for (const { folder, skill, diagnostics, stale } of snapshot.folders.values()) {
    if (skill === undefined) dump.push({ folder: basename(folder), diagnostics });
    else {
      const { name, description, hiddenFromModel, userInvocable, hasInstructions, promptMode, prompts, signature } = skill;
      const offered = skill.offeredPrompts.map(({ definition, revision }) => ({ definition, revision }));
      const texts = [await skill.instructions(), await skill.instructions("first second")];
      const flags = { hiddenFromModel, userInvocable, hasInstructions, promptMode, stale };
      dump.push({ folder: basename(folder), name, description, ...flags, prompts, signature, offered, texts, diagnostics });
    }
  }
  return dump;
}

const count = 40;
const nameOf = (index: number): string => `skill-${index}`;

/** Longer than the steps of the file system's clock, so that the state of a folder alone shows that it is the same. */
const clockStepMs = 30;

async function manySkills(): Promise<{ readonly root: string; readonly cache: string }> {
  const root = tempFolder();
  for (let index = 0; index < count; index++) put(join(root, nameOf(index), "SKILL.md"), skillMd(nameOf(index), `Body ${index}.`));
  await sleep(clockStepMs);
  return { root, cache: join(tempFolder(), "cache") };
}

function packIn(cache: string): string {
  const names = readdirSync(cache).filter((name) => name.endsWith(".skills"));
  expect(names).toHaveLength(1);
  return join(cache, names[0]!);
}

/** Edits the stored data and stores the right digest: what is read from the cache shows the edit. */
function forge(cache: string, edit: (content: string) => string): void {
  const file = packIn(cache);
  const content = edit(readFileSync(file, "utf8").slice(64));
  writeFileSync(file, hash("sha256", content, "hex") + content);
}

const marked = (content: string): string => content.replaceAll(", for a test.", ", from the cache.");
const descriptionOf = ({ skill }: Opened, index: number): string | undefined => skill(nameOf(index))?.description;

describe("a cache of the texts of skills", () => {
  test("saves parsing skills whose files have the same content", async () => {
    const { root, cache } = await manySkills();
    const first = await loadOnce(root, cache);
    expect(await loadOnce(root, cache)).toEqual(first);
    expect(await loadOnce(root, undefined)).toEqual(first);
    forge(cache, marked);
    const opened = await open(root, cache);
    expect(descriptionOf(opened, 7)).toBe("The skill skill-7, from the cache.");
    expect(await opened.skill(nameOf(7))?.instructions()).toBe("Body 7.");
  });

  const edits: [what: string, edit: (folder: string) => void, expected: (skill: Skill | undefined) => unknown, value: unknown][] = [
    [
      "an edit of the same length whose time was set back",
      (folder) => {
        const file = join(folder, "SKILL.md");
        const { atime, mtime } = statSync(file);
        writeFileSync(file, readFileSync(file, "utf8").replace("for a test", "for a TEST"));
        utimesSync(file, atime, mtime);
      },
      (skill) => skill?.description,
      "The skill skill-3, for a TEST.",
    ],
    [
      "an edit of the body alone",
      (folder) => put(join(folder, "SKILL.md"), skillMd("skill-3", "Another body.")),
      (skill) => skill?.instructions(),
      "Another body.",
    ],
    ["a first prompt", (folder) => put(join(folder, "prompts/ask.md"), "Ask."), (skill) => skill?.prompts.length, 1],
    [
      "a manifest",
      (folder) => put(join(folder, "skill.json"), '{ "name": "skill-3", "enabled": false }'),
      (skill) => skill?.enabled,
      false,
    ],
    [
      "a tool",
      (folder) => put(join(folder, "tools/look.json"), '{ "name": "look", "description": "Looks.", "parameters": { "type": "object" } }'),
      (skill) => skill?.tools.length,
      1,
    ],
    ["a removed SKILL.md", (folder) => rmSync(join(folder, "SKILL.md")), (skill) => skill, undefined],
    [
      "a link out of the folder in place of SKILL.md",
      (folder) => {
        const outside = tempFolder({ "SKILL.md": readFileSync(join(folder, "SKILL.md")) });
        rmSync(join(folder, "SKILL.md"));
        symlinkSync(join(outside, "SKILL.md"), join(folder, "SKILL.md"));
      },
      (skill) => skill,
      undefined,
    ],
    [
      "another folder with the same name",
      (folder) => {
        renameSync(folder, join(tempFolder(), "gone"));
        put(join(folder, "SKILL.md"), skillMd("skill-3", "From another folder."));
        put(join(folder, "prompts/ask.md"), "Ask.");
      },
      (skill) => skill?.prompts.length,
      1,
    ],
  ];
  test.each(edits)("is not used after %s", async (_what, edit, expected, value) => {
    const { root, cache } = await manySkills();
    await loadOnce(root, cache);
    forge(cache, marked);
    edit(join(root, nameOf(3)));
    const opened = await open(root, cache);
    expect(await expected(opened.skill(nameOf(3)))).toEqual(value);
    expect(descriptionOf(opened, 4)).toBe("The skill skill-4, from the cache.");
  });

  test("keeps the last working text when the first save after a start is broken", async () => {
    const { root, cache } = await manySkills();
    await loadOnce(root, cache);
    const { store, skill } = await open(root, cache);
    put(join(root, nameOf(3), "SKILL.md"), "");
    await store.reload();
    expect(store.snapshot.folders.get(join(root, nameOf(3)))?.stale).toBe(true);
    expect(await skill(nameOf(3))?.instructions()).toBe("Body 3.");
  });

  test("is not used for a folder whose code may not run", async () => {
    const { root, cache } = await manySkills();
    await loadOnce(root, cache);
    forge(cache, marked);
    const consent = { mayRun: (folder: string) => !folder.endsWith("-3"), inspect: async () => [], onWithheld: () => {} };
    const opened = await open(root, cache, { consent });
    expect(descriptionOf(opened, 3)).toBe("The skill skill-3, for a test.");
    expect(descriptionOf(opened, 4)).toBe("The skill skill-4, from the cache.");
  });

  test("is not used for a signed folder, whose files are always checked", async () => {
    const { root, cache } = await manySkills();
    await loadOnce(root, cache);
    forge(cache, marked);
    const key = makeKey();
    const request = { skill: nameOf(3), version: undefined, tools: new Map() };
    await resign(join(root, nameOf(3)), key, request as Parameters<typeof resign>[2]);
    const opened = await open(root, cache, { trust: loadTrustSettings(requireOf(key)).skills });
    expect(descriptionOf(opened, 3)).toBe("The skill skill-3, for a test.");
    expect(descriptionOf(opened, 4)).toBe(undefined);
  });

  test("is not written for a few skills, nor for skills that are more than a plain SKILL.md", async () => {
    const { root, cache } = await manySkills();
    for (let index = 5; index < count; index++) rmSync(join(root, nameOf(index)), { recursive: true });
    await loadOnce(root, cache);
    expect(existsSync(cache)).toBe(false);
    for (let index = 5; index < count; index++)
      put(join(root, nameOf(index), "SKILL.md"), skillMd(nameOf(index), "${CLAUDE_PLUGIN_ROOT}/x"));
    await loadOnce(root, cache);
    expect(JSON.parse(readFileSync(packIn(cache), "utf8").split("\n")[0]!.slice(64)).names).toHaveLength(5);
  });

  test("holds no text of a body", async () => {
    const { root, cache } = await manySkills();
    await loadOnce(root, cache);
    expect(readFileSync(packIn(cache), "utf8")).not.toMatch(/Body \d/);
  });
});

describe("a damaged cache", () => {
  const damages: [what: string, damage: (file: string, cache: string) => void][] = [
    ["empty", (file) => truncateSync(file, 0)],
    ["truncated", (file) => truncateSync(file, statSync(file).size - 10)],
    ["cut within its digest", (file) => truncateSync(file, 20)],
    [
      "with another byte",
      (file) => {
        const bytes = readFileSync(file);
        bytes[bytes.length - 40]! ^= 1;
        writeFileSync(file, bytes);
      },
    ],
    ["not ours", (file) => writeFileSync(file, "{}")],
    [
      "a folder",
      (file) => {
        rmSync(file);
        mkdirSync(file);
      },
    ],
    ["with the right digest of nonsense", (file) => writeFileSync(file, `${hash("sha256", "[]\n{}", "hex")}[]\n{}`)],
    [
      "of other skills",
      (_file, cache) =>
        forge(cache, (content) => content.replace(/"key":"(?:[^"\\]|\\.)*"/, '"key":"other"').replaceAll("for a test", "wrong")),
    ],
    ["with entries of another shape", (_file, cache) => forge(cache, (content) => content.replaceAll('"description":', '"descriptions":'))],
  ];
  test.each(damages)("that is %s counts as absent and is replaced", async (_what, damage) => {
    const { root, cache } = await manySkills();
    const plain = await loadOnce(root, cache);
    damage(packIn(cache), cache);
    expect(await loadOnce(root, cache)).toEqual(plain);
    if (!statSync(packIn(cache)).isFile()) return;
    forge(cache, marked);
    expect(descriptionOf(await open(root, cache), 0)).toBe("The skill skill-0, from the cache.");
  });

  test.skipIf(process.platform === "win32")("that others can write to, or that is a link, is not used", async () => {
    const { root, cache } = await manySkills();
    const plain = await loadOnce(root, cache);
    forge(cache, marked);
    chmodSync(cache, 0o777);
    expect(await loadOnce(root, cache)).toEqual(plain);
    chmodSync(cache, 0o700);
    const file = packIn(cache);
    renameSync(file, `${file}.real`);
    symlinkSync(`${file}.real`, file);
    expect(await loadOnce(root, cache)).toEqual(plain);
  });

  test("that cannot be created changes nothing", async () => {
    const { root, cache } = await manySkills();
    put(cache, "A file where the folder should be.");
    expect(await loadOnce(root, cache)).toEqual(await loadOnce(root, undefined));
  });

  test("that twenty stores fill at once is whole", async () => {
    const { root, cache } = await manySkills();
    const plain = await loadOnce(root, undefined);
    const dumps = await Promise.all(Array.from({ length: 20 }, () => loadOnce(root, cache)));
    for (const dump of dumps) expect(dump).toEqual(plain);
    expect(readdirSync(cache)).toHaveLength(1);
    forge(cache, marked);
    expect(descriptionOf(await open(root, cache), 0)).toBe("The skill skill-0, from the cache.");
  });
});

describe("with and without a cache", () => {
  const heads = [
    "---\nname: NAME\ndescription: Does a thing.\n---\n",
    "---\nname: NAME\ndescription: Use when: always, “quoted” – and dashed.\n---\n",
    "---\nname: NAME\n---\n",
    "---\ndescription: Has no name.\n---\n",
    "---\nname: NAME\ndescription: |\n  Two\n  lines.\narguments: [who, what]\nargument-hint: [who] [what]\n---\n",
    "---\r\nname: NAME\r\ndescription: From Windows.\r\n---\r\n",
    "\uFEFF---\nname: NAME\ndescription: With a mark.\n---\n",
    "---\nname: Other Name\ndescription: Bad name.\ndisable-model-invocation: true\nuser-invocable: no\n---\n",
    "---\nname: NAME\ndescription: Hidden \u200B\u{E0041} text.\nallowed-tools: Read, Write\n---\n",
    "",
    "name: NAME\ndescription: Not opened.\n---\n",
  ];
  const bodies = [
    "Be brief.\n",
    "Use {baseDir}/run.sh with $ARGUMENTS and $0.\n",
    "",
    "   indented\n\n\n",
    "é — ✓ 😀\u00A0\n",
    "\0nul\n",
    "hidden\u200B\u{E0041}\n",
    "${CLAUDE_PLUGIN_ROOT}/x\n",
    "first\r\nsecond\r\n",
    "x".repeat(70_000),
  ];
  const text = fc.record({ head: fc.constantFrom(...heads), body: fc.constantFrom(...bodies) });
  const skill = fc.nat(count - 1);
  const step = fc.oneof(
    { weight: 6, arbitrary: fc.record({ kind: fc.constant("write" as const), skill, text }) },
    fc.record({ kind: fc.constantFrom("touch" as const, "set back" as const, "remove" as const, "empty" as const), skill }),
    fc.record({
      kind: fc.constant("add" as const),
      skill,
      file: fc.constantFrom("prompts/ask.md", "skill.json", "references/a.md", "tools/x.py", "Skill.md"),
    }),
  );

  function apply(root: string, each: typeof step extends fc.Arbitrary<infer T> ? T : never): void {
    const folder = join(root, nameOf(each.skill));
    const file = join(folder, "SKILL.md");
    if (each.kind === "write") put(file, each.text.head.replace("NAME", nameOf(each.skill)) + each.text.body);
    else if (each.kind === "add") put(join(folder, each.file), each.file === "skill.json" ? "{}" : "Text.");
    else if (each.kind === "remove") rmSync(folder, { recursive: true, force: true });
    else if (each.kind === "empty") put(file, "");
    else if (existsSync(file)) utimesSync(file, new Date(), each.kind === "touch" ? new Date() : new Date(0));
  }

  test("the same skills and diagnostics come from the same files, whatever was edited in between", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.array(step, { minLength: 1, maxLength: 30 }), { minLength: 1, maxLength: 4 }), async (sessions) => {
        const { root, cache } = await manySkills();
        for (const steps of sessions) {
          for (const each of steps) apply(root, each);
          const plain = await loadOnce(root, undefined);
          expect(await loadOnce(root, cache)).toEqual(plain);
          expect(await loadOnce(root, cache)).toEqual(plain);
        }
      }),
      { numRuns: rounds(12, 200) },
    );
  });
});
