import { describe, expect, test } from "vitest";
import { createHostModules, features, type ReloadCase, reloadCases, runFeature, runReload } from "../../scripts/module-matrix.mjs";
import { createModuleLoader, type OwnedModuleLoader } from "../../src/io/module-loader/create-module-loader.ts";
import type { EngineChoice } from "../../src/io/module-loader/module-loader.ts";
import { createScope } from "../../src/io/scope.ts";
import { rounds } from "../rounds.ts";

const createLoader = (engine?: EngineChoice["engine"]): OwnedModuleLoader =>
  createModuleLoader({ hostModules: createHostModules(), ...(engine ? { engine } : {}) });

const nameOf = ({ entry, helper, packageType, place }: ReloadCase): string =>
  `${entry} with ${helper} in a ${packageType} package ${place} a project`;

async function failingFeatures(engine: EngineChoice["engine"]): Promise<string[]> {
  const failing: string[] = [];
  for (const feature of features) if (await runFeature(feature, createLoader(engine), createScope())) failing.push(feature.name);
  return failing;
}

describe("what a module may be written with", () => {
  test.each(features.map((feature) => [feature.name, feature] as const))("%s", async (_name, feature) => {
    expect(await runFeature(feature, createLoader(), createScope())).toBeUndefined();
  });

  test("the graph alone runs all but decorator metadata across an import cycle", async () => {
    expect(await failingFeatures("graph")).toEqual(["legacy decorators: metadata across an import cycle"]);
  });

  test("jiti alone runs all but standard decorators", async () => {
    expect(await failingFeatures("jiti")).toEqual(["TC39 decorators"]);
  });
});

describe("every kind of edit takes effect", () => {
  const groups = groupBy(sampled(reloadCases(), 23));

  test.each([...groups])("%s, with the kinds of helpers", async (_name, cases) => {
    for (const [index, reload] of cases.entries()) {
      const faults = await runReload(reload, createLoader(), createScope(), { sampleFreed: index % 4 === 0 });
      expect(faults, nameOf(reload)).toEqual({});
    }
  });

  test("with jiti alone too, unless a top-level await makes it asynchronous", async () => {
    const sample = sampled(
      reloadCases().filter(({ entry, place }) => place === "outside" && (entry === ".ts" || entry === ".cjs")),
      5,
    );
    for (const reload of sample) {
      const { "top-level await": stale, ...faults } = await runReload(reload, createLoader("jiti"), createScope());
      expect(faults, nameOf(reload)).toEqual({});
      const isStale = reload.entry === ".ts" && [".js", ".mjs", ".cjs"].includes(reload.helper);
      expect(stale, nameOf(reload)).toBe(isStale ? "gives 4:3 and not 4:4" : undefined);
    }
  });
});

/** All of them in `npm run test:soak`; else every n-th, which meets every kind of entry and of helper. */
function sampled(cases: readonly ReloadCase[], every: number): readonly ReloadCase[] {
  return cases.filter((_case, index) => index % rounds(every, 1) === 0);
}

function groupOf({ entry, packageType, place }: ReloadCase): string {
  return `${entry} entries in ${packageType} packages ${place} a project`;
}

// Map.groupBy is not in Node.js 20.
function groupBy(cases: readonly ReloadCase[]): Map<string, ReloadCase[]> {
  const groups = new Map<string, ReloadCase[]>();
  for (const each of cases) groups.set(groupOf(each), [...(groups.get(groupOf(each)) ?? []), each]);
  return groups;
}
