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

describe("syntax and module kinds", () => {
  test.each(features.map((feature) => [feature.name, feature] as const))("%s", async (_name, feature) => {
    expect(await runFeature(feature, createLoader(), createScope())).toBeUndefined();
  });

  test("the graph engine alone runs everything except decorator metadata across an import cycle", async () => {
    expect(await failingFeatures("graph")).toEqual(["legacy decorators: metadata across an import cycle"]);
  });

  test("the jiti engine alone runs everything except standard decorators", async () => {
    expect(await failingFeatures("jiti")).toEqual(["TC39 decorators"]);
  });
});

describe("edits of every kind take effect", () => {
  const groups = groupBy(sampled(reloadCases(), 23));

  test.each([...groups])("%s, with every kind of helper", async (_name, cases) => {
    for (const [index, reload] of cases.entries()) {
      const faults = await runReload(reload, createLoader(), createScope(), { sampleFreed: index % 4 === 0 });
      expect(faults, nameOf(reload)).toEqual({});
    }
  });

  test("edits take effect with the jiti engine alone, except with a top-level await", async () => {
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

/** All cases in `npm run test:soak`, otherwise every n-th, which covers every kind of entry and helper. */
function sampled(cases: readonly ReloadCase[], every: number): readonly ReloadCase[] {
  return cases.filter((_case, index) => index % rounds(every, 1) === 0);
}

function groupOf({ entry, packageType, place }: ReloadCase): string {
  return `${entry} entries in ${packageType} packages ${place} a project`;
}

// Node.js 20 lacks Map.groupBy.
function groupBy(cases: readonly ReloadCase[]): Map<string, ReloadCase[]> {
  const groups = new Map<string, ReloadCase[]>();
  for (const each of cases) groups.set(groupOf(each), [...(groups.get(groupOf(each)) ?? []), each]);
  return groups;
}
