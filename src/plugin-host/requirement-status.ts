import { explainRange } from "../base/version-range.ts";
import { bundledSpecifier } from "./bundled.ts";
import type { PluginEntry } from "./plugin-entry.ts";
import type { Requirement, RequirementStatus } from "./prepare-plugin.ts";

/** The status of the plugin with a name among some entries. */
export function statusOf(entries: readonly PluginEntry[], name: string): RequirementStatus {
  const named = entries.filter((entry) => entry.name === name);
  const active = named.find((entry) => entry.active !== undefined);
  if (active !== undefined) return { kind: "active", version: active.version };
  const failed = named.find(({ state }) => state === "failed") ?? entries.find((entry) => entry.state === "unknown" && mayBe(entry, name));
  if (failed !== undefined) {
    const error = failed.diagnostics.find(({ severity }) => severity === "error");
    return { kind: "failed", reason: error?.message ?? "it was not activated." };
  }
  const specifier = bundledSpecifier(name);
  return { kind: "absent", hint: `Add ${specifier === undefined ? "it" : `"${specifier}"`} to the plugins of the host.` };
}

/** Whether a plugin that could not be loaded may have this name, judged by its specifier. */
function mayBe({ specifier = "" }: PluginEntry, name: string): boolean {
  const last = specifier
    .split(/[\\/]/)
    .filter((part) => part !== "")
    .at(-1);
  return specifier === name || last === name || last?.replace(/\.[cm]?[jt]sx?$/, "") === name;
}

/** Why a plugin must not be replaced by one with this name and version: another active plugin requires the present one. */
export function brokenByReplacing(
  entry: PluginEntry,
  next: { readonly name: string; readonly version: string | undefined },
  others: readonly PluginEntry[],
): string | undefined {
  for (const other of others) {
    const requirement = other.active?.requires.find(({ name }) => name === entry.name);
    if (requirement === undefined) continue;
    const problem = next.name === entry.name ? explainRange(requirement.range, next.version) : `its name is "${next.name}" now`;
    if (problem === undefined) continue;
    return `Plugin "${entry.name}" was not replaced: plugin "${other.name}" requires "${entry.name}" ${requirement.range}, but ${problem}.`;
  }
  return undefined;
}

/** The cycle, when a plugin requires itself through others, as text that continues after its name. */
export function requiresItself(name: string, requires: readonly Requirement[], others: readonly PluginEntry[]): string | undefined {
  const seen = new Set<string>();
  const findCycle = (wanted: readonly Requirement[], path: readonly string[]): readonly string[] | undefined => {
    for (const { name: next } of wanted) {
      if (next === name) return [...path, name];
      if (seen.has(next)) continue;
      seen.add(next);
      const found = findCycle(others.find((entry) => entry.name === next)?.active?.requires ?? [], [...path, next]);
      if (found !== undefined) return found;
    }
    return undefined;
  };
  const cycle = findCycle(requires, [name]);
  return cycle && describeCycle(cycle);
}

/** Describes a cycle of requirements, as text that continues after a plugin's name. */
export function describeCycle(cycle: readonly string[]): string {
  return `requires itself in a cycle: ${cycle.join(" → ")}. Remove one of these requirements.`;
}
