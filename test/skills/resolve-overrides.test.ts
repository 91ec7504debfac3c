import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type ConflictRules, resolveOverrides } from "../../src/skills/resolve-overrides.ts";
import type { LoadedFolder, Skill, SkillsSnapshot } from "../../src/skills/skill.ts";
import { type Given, skillIn, snapshotOf } from "./snapshot-kit.ts";

function resolve(
  snapshot: SkillsSnapshot,
  options: { roots?: readonly string[]; disabled?: readonly string[]; conflicts?: ConflictRules } = {},
) {
  const { roots = [...snapshot.roots.keys()], disabled = [], conflicts = "override" } = options;
  const resolved = resolveOverrides(snapshot, { roots, disabledSkills: new Set(disabled), conflicts });
  return {
    active: resolved.skills.map((skill) => skill.folder),
    states: Object.fromEntries(resolved.standings.map((standing) => [standing.skill.folder, standing.state])),
    tools: Object.fromEntries(resolved.tools.map((tool) => [tool.definition.name, tool.execute({}, { invocation: {} } as never)])),
    shadowed: resolved.shadowed.map((lost) => `${lost.tool.origin.source}: ${lost.rule}${lost.renamedTo ? `: ${lost.renamedTo}` : ""}`),
    diagnostics: resolved.diagnostics.map((diagnostic) => `${diagnostic.severity} ${diagnostic.code}`),
  };
}

const twoSkillsOneName = snapshotOf({
  "/host": { lint: { name: "lint", tools: { check: "old" } } },
  "/session": { lint: { name: "lint", tools: { check: "new" } } },
});
const twoToolsOneName = snapshotOf({
  "/host": { a: { name: "alpha", tools: { find: "a's" } }, b: { name: "beta", tools: { find: "b's" } } },
});

describe("two skills with the same name", () => {
  test("the skill in the later root replaces the earlier one as a whole, and the loser stays visible", () => {
    expect(resolve(twoSkillsOneName)).toEqual({
      active: ["/session/lint"],
      states: { "/host/lint": "shadowed", "/session/lint": "active" },
      tools: { check: "/session/lint" },
      shadowed: [],
      diagnostics: ["warning SKILL_NAME_CLASH"],
    });
  });

  test("the order of the roots decides precedence, whatever was loaded first", () => {
    expect(resolve(twoSkillsOneName, { roots: ["/session", "/host"] }).active).toEqual(["/host/lint"]);
  });

  test.each([
    ["override", "/session/lint", ["warning SKILL_NAME_CLASH"]],
    ["rename", "/session/lint", ["warning SKILL_NAME_CLASH"]],
    ["keep-first", "/host/lint", ["warning SKILL_NAME_CLASH"]],
    ["error", "/host/lint", ["error SKILL_NAME_CLASH"]],
  ] as const)("policy %s for skills resolves to %s", (conflicts, winner, diagnostics) => {
    expect(resolve(twoSkillsOneName, { conflicts })).toMatchObject({ active: [winner], diagnostics });
  });

  test("identical copies of a skill cause no warning", () => {
    const copies = snapshotOf({ "/one": { x: { name: "x", tools: { t: "same" } } }, "/two": { x: { name: "x", tools: { t: "same" } } } });
    expect(resolve(copies)).toMatchObject({ active: ["/two/x"], diagnostics: [] });
  });

  test("a disabled skill leaves its name to the other one", () => {
    const off = snapshotOf({ "/one": { x: { name: "x" } }, "/two": { x: { name: "x", enabled: false } } });
    expect(resolve(off)).toMatchObject({ active: ["/one/x"], states: { "/two/x": "disabled" }, diagnostics: [] });
  });
});

describe("two tools of skills with the same name", () => {
  test.each([
    ["override", { find: "/host/b" }, ["alpha: the later skill's tool replaces the earlier skill's"], "warning"],
    ["keep-first", { find: "/host/a" }, ["beta: the first skill's tool keeps the name"], "warning"],
    ["error", { find: "/host/a" }, ["beta: the first skill's tool keeps the name"], "error"],
    [
      "rename",
      { find: "/host/b", "alpha-find": "/host/a" },
      ["alpha: the later skill's tool keeps the name, and the earlier one is renamed: alpha-find"],
      "warning",
    ],
  ] as const)("policy %s for tools", (conflicts, tools, shadowed, severity) => {
    expect(resolve(twoToolsOneName, { conflicts })).toMatchObject({ tools, shadowed, diagnostics: [`${severity} TOOL_NAME_CLASH`] });
  });

  test("a policy can be set for a single name", () => {
    expect(resolve(twoToolsOneName, { conflicts: { default: "override", names: { find: "keep-first" } } }).tools).toEqual({
      find: "/host/a",
    });
    expect(resolve(twoToolsOneName, { conflicts: { names: { other: "keep-first" } } }).tools).toEqual({ find: "/host/b" });
  });

  test("a renamed tool never takes a used name, and three tools with the same name are all kept", () => {
    const three = snapshotOf({
      "/r": {
        a: { name: "s", tools: { t: "1", "s-t": "taken" } },
        b: { name: "s2", tools: { t: "2" } },
        c: { name: "s3", tools: { t: "3" } },
      },
    });
    expect(resolve(three, { conflicts: "rename" }).tools).toEqual({ t: "/r/c", "s-t": "/r/a", "s-t-2": "/r/a", "s2-t": "/r/b" });
  });

  test("names of prototype members are ordinary names", () => {
    const odd = snapshotOf({ "/r": { a: { name: "constructor", tools: { __proto__x: "p", toString: "q" } } } });
    expect(resolve(odd, { conflicts: { names: {} } }).tools).toEqual({ __proto__x: "/r/a", toString: "/r/a" });
  });
});

test("disabled skills contribute nothing and are listed as disabled", () => {
  expect(resolve(twoToolsOneName, { disabled: ["beta"] })).toMatchObject({
    active: ["/host/a"],
    states: { "/host/a": "active", "/host/b": "disabled" },
    tools: { find: "/host/a" },
    diagnostics: [],
  });
});

test("a folder in two roots counts once, at its last position", () => {
  const snapshot = snapshotOf({ "/one": { x: { name: "x" } }, "/two": { y: { name: "y" } } });
  const both = new Map(snapshot.roots).set("/again", { root: "/again", folders: ["/one/x"], diagnostics: [] });
  expect(resolve({ ...snapshot, roots: both }).active).toEqual(["/two/y", "/one/x"]);
});

describe("resolving again after edits", () => {
  const folders = ["/one/a", "/one/b", "/one/c", "/two/d", "/two/e"];
  const word = fc.constantFrom("red", "green", "blue", "gold");
  const given: fc.Arbitrary<Given> = fc.record({
    name: fc.constantFrom("alpha", "beta", "gamma", "delta", "omega"),
    tools: fc.dictionary(word, fc.constantFrom("old", "new"), { maxKeys: 2 }),
    prompts: fc.uniqueArray(word, { maxLength: 2 }),
    enabled: fc.boolean(),
    version: fc.constantFrom("1.0.0", "2.0.0"),
    requires: fc.constantFrom<Readonly<Record<string, string>>>({}, {}, { alpha: "^1.0.0" }),
  });
  const diagnostic = (folder: string, message: string) => ({ severity: "warning", code: "ANY", file: folder, message }) as const;
  /** The next state of a folder: the skill with another text, another skill, or a failure without one. */
  const edit = fc.record({
    folder: fc.constantFrom(...folders),
    given: fc.oneof({ weight: 4, arbitrary: fc.constant("edited" as const) }, fc.option(given)),
    message: word,
  });
  const editedIn = ({ skill }: LoadedFolder, text: string): Given | undefined =>
    skill && {
      ...skill,
      tools: Object.fromEntries(skill.tools.map(({ definition }) => [definition.name, text])),
      prompts: skill.offeredPrompts.map(({ definition }) => definition.name),
    };
  const next = (
    before: SkillsSnapshot,
    edits: readonly { folder: string; given: Given | "edited" | null; message: string }[],
  ): SkillsSnapshot => {
    const copy = new Map(before.folders);
    for (const { folder, given, message } of edits) {
      const now = given === "edited" ? editedIn(copy.get(folder)!, message) : given;
      const skill = now ? { skill: skillIn(folder, now) } : {};
      copy.set(folder, { folder, ...skill, diagnostics: [diagnostic(folder, message)], stale: false });
    }
    return { roots: before.roots, folders: copy, changed: { before: before.folders, folders: new Set(edits.map((each) => each.folder)) } };
  };
  const summaryOf = (resolved: ReturnType<typeof resolveOverrides>) => ({
    standings: resolved.standings.map(({ skill, winner, ...standing }) => [skill, winner, standing]),
    skills: resolved.skills,
    tools: resolved.tools.map(({ definition, origin }) => [definition.name, definition.description, origin]),
    shadowed: resolved.shadowed.map(({ tool, winner, ...rest }) => [tool.origin, winner.origin, rest]),
    prompts: resolved.offers.prompts.map(({ definition, origin }) => [definition.name, origin]),
    failed: resolved.failed,
    diagnostics: resolved.diagnostics,
  });
  const start = fc.tuple(...folders.map(() => given));

  test("has the same result as resolving everything", () => {
    const conflicts = fc.constantFrom<ConflictRules>("override", "keep-first", "rename", "error");
    fc.assert(
      fc.property(start, fc.array(fc.array(edit, { maxLength: 2 }), { maxLength: 5 }), conflicts, (skills, rounds, rules) => {
        const childrenOf = (root: string) =>
          Object.fromEntries(folders.flatMap((path, index) => (path.startsWith(root) ? [[path.slice(5), skills[index]!]] : [])));
        let snapshot = snapshotOf({ "/one": childrenOf("/one"), "/two": childrenOf("/two") });
        const view = { roots: ["/one", "/two"], disabledSkills: new Set(["gamma"]), conflicts: rules };
        let resolved = resolveOverrides(snapshot, view);
        for (const edits of rounds) {
          snapshot = next(snapshot, edits);
          resolved = resolveOverrides(snapshot, view, resolved);
          expect(summaryOf(resolved)).toEqual(summaryOf(resolveOverrides(snapshot, view)));
        }
      }),
    );
  });

  test("reads only the edited skill, unless its names concern others", () => {
    const before = snapshotOf({
      "/one": {
        a: { name: "alpha", tools: { red: "old" } },
        b: { name: "beta", tools: { blue: "old" } },
        c: { name: "twin" },
        d: { name: "twin" },
      },
    });
    let reads = 0;
    const count = (target: Skill, key: string | symbol): unknown => {
      reads++;
      return Reflect.get(target, key);
    };
    const counted = new Map(
      [...before.folders].map(([path, loaded]) => [
        path,
        path === "/one/a" ? loaded : { ...loaded, skill: new Proxy(loaded.skill!, { get: count }) },
      ]),
    );
    const view = { roots: ["/one"], disabledSkills: new Set<string>(), conflicts: "override" } as const;
    const first = { ...before, folders: counted };
    const resolved = resolveOverrides(first, view);
    reads = 0;
    const edited = next(first, [{ folder: "/one/a", given: { name: "alpha", tools: { red: "new" } }, message: "edited" }]);
    const again = resolveOverrides(edited, view, resolved);
    expect(reads).toBe(0);
    expect(again.tools[0]?.definition.description).toBe("new");
    resolveOverrides(next(edited, [{ folder: "/one/a", given: { name: "beta" }, message: "renamed" }]), view, again);
    expect(reads).toBeGreaterThan(0);
  });
});
