import { explainRange } from "../base/version-range.ts";
import { bundledPrefix } from "./bundled.ts";
import type { PluginEntry } from "./plugin-entry.ts";
import type { Requirement, RequirementStatus } from "./prepare-plugin.ts";

/** Plugins that come with this package, which need only be named. */
const comesWithHost: ReadonlySet<string> = new Set(["workspace-tools", "library-docs", "language-server", "python-tools"]);

/** How the plugin of a name stands among some slots. */
export function standingIn(slots: readonly PluginEntry[], name: string): RequirementStatus {
  const named = slots.filter((slot) => slot.name === name);
  const active = named.find((slot) => slot.active !== undefined);
  if (active !== undefined) return { kind: "active", version: active.version };
  const failed = named.find(({ state }) => state === "failed") ?? slots.find((slot) => slot.state === "unknown" && mayBe(slot, name));
  if (failed !== undefined) return { kind: "failed", reason: reasonOf(failed) };
  const own = comesWithHost.has(name) ? `"${bundledPrefix}${name}"` : "it";
  return { kind: "absent", hint: `Add ${own} to the plugins of the host.` };
}

/** Whether what could not be loaded may have been the plugin of that name, by what it was named by. */
function mayBe({ specifier = "" }: PluginEntry, name: string): boolean {
  const last = specifier
    .split(/[\\/]/)
    .filter((part) => part !== "")
    .at(-1);
  return specifier === name || last === name || last?.replace(/\.[cm]?[jt]sx?$/, "") === name;
}

function reasonOf({ diagnostics }: PluginEntry): string {
  return diagnostics.find(({ severity }) => severity === "error")?.message ?? "it was not activated.";
}

/** Why a slot's plugin may not be replaced by another of that name and version: an active one requires it as it is. */
export function brokenByReplacing(
  slot: PluginEntry,
  next: { readonly name: string; readonly version: string | undefined },
  others: readonly PluginEntry[],
): string | undefined {
  for (const other of others) {
    const requirement = other.active?.requires.find(({ name }) => name === slot.name);
    if (requirement === undefined) continue;
    const problem = next.name === slot.name ? explainRange(requirement.range, next.version) : `its name is "${next.name}" now`;
    if (problem === undefined) continue;
    return `Plugin "${slot.name}" was not replaced: plugin "${other.name}" requires "${slot.name}" ${requirement.range}, but ${problem}.`;
  }
  return undefined;
}

/** The way around, when what a plugin requires requires the plugin in the end, in words that go on from its name. */
export function requiresItself(name: string, requires: readonly Requirement[], others: readonly PluginEntry[]): string | undefined {
  const seen = new Set<string>();
  const wayBack = (wanted: readonly Requirement[], way: readonly string[]): readonly string[] | undefined => {
    for (const { name: next } of wanted) {
      if (next === name) return [...way, name];
      if (seen.has(next)) continue;
      seen.add(next);
      const found = wayBack(others.find((slot) => slot.name === next)?.active?.requires ?? [], [...way, next]);
      if (found !== undefined) return found;
    }
    return undefined;
  };
  const way = wayBack(requires, [name]);
  return way && inCircle(way);
}

/** Says that plugins require each other, in words that go on from the name of one. */
export function inCircle(way: readonly string[]): string {
  return `requires itself in a cycle: ${way.join(" → ")}. Remove one of these requirements.`;
}
