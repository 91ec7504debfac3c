import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { resolveOverrides } from "../../src/skills/resolve-overrides.ts";
import { openKit, put, skillMd, tempFolder, toolSource } from "./kit.ts";
import { type Given, snapshotOf } from "./snapshot-kit.ts";

type Roots = Parameters<typeof snapshotOf>[0];

function resolve(roots: Roots, disabled: readonly string[] = []) {
  const snapshot = snapshotOf(roots);
  const resolved = resolveOverrides(snapshot, {
    roots: Object.keys(roots),
    disabledSkills: new Set(disabled),
    conflicts: "override",
  });
  const reported = (code: string) => resolved.diagnostics.filter((diagnostic) => diagnostic.code === code);
  return {
    ...resolved,
    reported,
    states: Object.fromEntries(resolved.standings.map(({ skill, state }) => [skill.folder.slice(1), state])),
    ruleOf: (folder: string) => resolved.standings.find(({ skill }) => skill.folder === folder)?.rule,
  };
}

const given = (name: string, version?: string, requires: Record<string, string> = {}): Given => ({
  name,
  ...(version !== undefined && { version }),
  requires,
  tools: { [`${name}_tool`]: name },
});

describe("a skill that requires others", () => {
  test("a skill is active if its requirements exist in suitable versions in any root", () => {
    const { states, tools, diagnostics, standings } = resolve({
      "/a": { top: given("top", "1.0.0", { base: "^1.2.0", any: "*" }), any: given("any") },
      "/b": { base: given("base", "1.4.0") },
    });
    expect(states).toEqual({ "a/top": "active", "a/any": "active", "b/base": "active" });
    expect([tools.length, diagnostics]).toEqual([3, []]);
    expect(standings[0]!.requires).toEqual([
      { name: "base", range: "^1.2.0", isMet: true, version: "1.4.0", folder: "/b/base" },
      { name: "any", range: "*", isMet: true, folder: "/a/any" },
    ]);
  });

  test.each([
    ["missing", {}, [], 'it requires "base" ^2.0.0, but no skill has that name'],
    [
      "of another version",
      { "/b": { base: given("base", "1.4.0") } },
      [],
      'it requires "base" ^2.0.0, but version 1.4.0 is installed, in /b/base',
    ],
    ["without a version", { "/b": { base: given("base") } }, [], "it does not declare a version"],
    ["switched off", { "/b": { base: given("base", "2.1.0") } }, ["base"], "that skill is disabled: its name is in disabledSkills"],
  ] as const)(
    "a skill contributes nothing when a requirement is %s, and the reason names range and version",
    (_how, others, disabled, words) => {
      const { states, tools, ruleOf, reported } = resolve(
        { "/a": { top: given("top", "1.0.0", { base: "^2.0.0" }) }, ...others },
        disabled,
      );
      expect(states["a/top"]).toBe("refused");
      expect(ruleOf("/a/top")).toContain(words);
      expect(tools.map(({ definition }) => definition.name)).not.toContain("top_tool");
      expect(reported("SKILL_REQUIRES")).toEqual([
        {
          severity: disabled.length > 0 ? "warning" : "error",
          code: "SKILL_REQUIRES",
          source: "top",
          file: join("/a/top", "skill.json"),
          message: expect.stringContaining(words),
        },
      ]);
    },
  );

  test("only the version that owns the name counts, and a suitable one that lost it is reported", () => {
    const roots = {
      "/a": { base: given("base", "2.0.0"), top: given("top", "1.0.0", { base: "^2.0.0" }) },
      "/b": { base: given("base", "1.0.0") },
    };
    const { states, ruleOf } = resolve(roots);
    expect(states).toEqual({ "a/base": "shadowed", "a/top": "refused", "b/base": "active" });
    expect(ruleOf("/a/top")).toContain("version 2.0.0 in /a/base would match, but is not used because of two skills");
    expect(resolve({ "/b": roots["/b"], "/a": roots["/a"] }).states["a/top"]).toBe("active");
  });

  test("a skill is refused for missing indirect requirements, with the whole chain as the reason", () => {
    const chain = {
      "/a": { a: given("a", "1.0.0", { b: "*" }), b: given("b", "1.1.0", { c: "*" }), c: given("c", "1.2.0", { d: "^1.0.0" }) },
    };
    const { states, ruleOf, standings } = resolve(chain);
    expect(Object.values(states)).toEqual(["refused", "refused", "refused"]);
    expect(ruleOf("/a/a")).toBe(
      'it requires "b" *, but version 1.1.0 of it is rejected: "c" requires "d" ^1.0.0, but no skill has that name',
    );
    expect(standings[0]!.requires).toMatchObject([{ name: "b", isMet: false }]);
  });

  test("skills that require each other are active, the circle is reported once, and a missing requirement disables all", () => {
    const circle = { a: given("a", "1.0.0", { b: "*" }), b: given("b", "1.0.0", { c: "*" }), c: given("c", "1.0.0", { a: "*" }) };
    const { states, reported } = resolve({ "/r": circle });
    expect(Object.values(states)).toEqual(["active", "active", "active"]);
    expect(reported("SKILL_REQUIRES_CYCLE").map(({ severity, message }) => `${severity} ${message}`)).toEqual([
      expect.stringContaining("warning Skills require each other in a cycle: a → b → c → a."),
    ]);
    const broken = resolve({ "/r": { ...circle, c: given("c", "1.0.0", { a: "*", gone: "*" }) } });
    expect(Object.values(broken.states)).toEqual(["refused", "refused", "refused"]);
    expect(broken.reported("SKILL_REQUIRES_CYCLE")).toEqual([]);
  });
});

test("the outcome and its reasons do not depend on the order of the folders", () => {
  const names = ["a", "b", "c", "d", "e", "f"];
  const skill = fc.record({
    version: fc.constantFrom(undefined, "1.0.0", "2.0.0"),
    requires: fc.dictionary(fc.constantFrom(...names, "gone"), fc.constantFrom("*", "^1.0.0", "^2.0.0"), { maxKeys: 3 }),
  });
  const world = fc.tuple(fc.uniqueArray(fc.constantFrom(...names), { minLength: 1 }), fc.array(skill, { minLength: 6, maxLength: 6 }));
  fc.assert(
    fc.property(world, fc.func(fc.nat()), ([present, skills], orderOf) => {
      const all = present.map((name, index) => [name, given(name, skills[index]!.version, skills[index]!.requires)] as const);
      const outcome = (entries: typeof all) => {
        const { standings } = resolve({ "/r": Object.fromEntries(entries) });
        return standings.map(({ skill: { name }, state, rule }) => `${name} ${state} ${rule}`).sort();
      };
      const shuffled = [...all].sort((a, b) => orderOf(a[0]) - orderOf(b[0]));
      expect(outcome(shuffled)).toEqual(outcome(all));
      // Every active skill has only active requirements.
      const { skills: serving } = resolve({ "/r": Object.fromEntries(all) });
      for (const { requires } of serving)
        for (const name of Object.keys(requires)) expect(serving.map((other) => other.name)).toContain(name);
    }),
    { numRuns: 200 },
  );
});

test("a chain of a thousand skills is resolved and reported briefly", () => {
  const chain = Object.fromEntries(
    Array.from({ length: 1_000 }, (_, n) => [`s${n}`, given(`s${n}`, "1.0.0", { [`s${n + 1}`]: "^1.0.0" })]),
  );
  const { standings, diagnostics } = resolve({ "/r": chain });
  expect(standings.every(({ state }) => state === "refused")).toBe(true);
  expect(Math.max(...diagnostics.map(({ message }) => message.length))).toBeLessThan(300);
});

describe("requirements in a host", () => {
  const manifest = (name: string, version: string, more: object = {}) => JSON.stringify({ name, version, ...more });

  test("a skill becomes active with its requirement and inactive without it, and explain gives the reason", async () => {
    const root = tempFolder({
      "top/skill.json": manifest("top", "1.0.0", { requires: { base: "^2.0.0" } }),
      "top/tools/hi.ts": toolSource("hi", '"hi"'),
    });
    const kit = await openKit([root]);
    expect([kit.skill("top").state, kit.session.listTools().some(({ name }) => name === "hi")]).toEqual(["refused", false]);
    expect(kit.host.explain("top").skills).toMatchObject([
      { state: "refused", rule: expect.stringContaining("no skill has that name"), requires: [{ name: "base", isMet: false }] },
    ]);
    expect(kit.host.explain("hi").tools).toMatchObject([{ state: "lost", rule: expect.stringContaining("its skill is refused") }]);
    await kit.saved(() => put(join(root, "base/skill.json"), manifest("base", "1.0.0")));
    expect(kit.skill("top").rule).toContain("version 1.0.0 is installed");
    await kit.saved(() => put(join(root, "base/skill.json"), manifest("base", "2.3.0")));
    expect([kit.skill("top").state, await kit.says("hi")]).toEqual(["active", "hi"]);
    expect(kit.host.explain("top").skills[0]!.requires).toMatchObject([{ name: "base", range: "^2.0.0", isMet: true, version: "2.3.0" }]);
    kit.host.disableSkill("base");
    expect(kit.skill("top").rule).toContain("that skill is disabled");
    // Another view of the same skills.
    const other = await kit.host.createSession({ persist: false, disabledSkills: ["top"] });
    expect(other.describeSkills().find(({ name }) => name === "top")).toMatchObject({ isActive: false });
  });

  test("explain shows which range of skillhost versions a skill needs and which version runs", async () => {
    const root = tempFolder({
      "new/skill.json": manifest("brand-new", "1.0.0", { engines: { skillhost: ">=99" } }),
      "user/SKILL.md": skillMd("user"),
    });
    put(join(root, "user/skill.json"), manifest("user", "1.0.0", { requires: { "brand-new": "*" } }));
    const kit = await openKit([root], { watch: false });
    expect(kit.host.explain("brand-new").skills).toMatchObject([
      { state: "failed", rule: expect.stringContaining(`requires skillhost >=99, but this is ${kit.host.version}`) },
    ]);
    expect(kit.skill("user").rule).toContain("that skill could not be loaded");
  });
});
