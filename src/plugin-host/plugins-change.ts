import type { Diagnostic } from "../base/diagnostic.ts";
import type { NamesChange } from "../skills/skill.ts";
import type { ActivePlugin, PluginSlot } from "./plugin-slot.ts";

/** What one load of plugins changed. Durations are milliseconds. */
export interface PluginsChange {
  /** Activated for the first time. */
  readonly added: readonly PluginChange[];
  /** Another generation serves. */
  readonly updated: readonly PluginChange[];
  /** Attempts that were not taken: the last good generation serves on, where there was one. */
  readonly failed: readonly FailedPluginChange[];
  /** The files whose change caused this. */
  readonly files: readonly string[];
}

export interface PluginChange {
  readonly name: string;
  readonly specifier?: string;
  readonly version?: string;
  readonly tools: NamesChange;
  readonly durationMs: number;
}

export interface FailedPluginChange {
  readonly name: string;
  readonly specifier?: string;
  readonly diagnostics: readonly Diagnostic[];
  readonly lastGoodServes: boolean;
  readonly durationMs: number;
}

/** What it is that a slot has become another generation. `started`: by `performance.now()`. */
export function toTaken(slot: PluginSlot, before: ActivePlugin | undefined, files: readonly string[], started: number): PluginsChange {
  const { name, specifier, version, active } = slot;
  const change: PluginChange = {
    name,
    ...(specifier !== undefined && { specifier }),
    ...(version !== undefined && { version }),
    tools: diffTools(before, active),
    durationMs: performance.now() - started,
  };
  return before === undefined ? { added: [change], updated: [], failed: [], files } : { added: [], updated: [change], failed: [], files };
}

export function toFailed(slot: PluginSlot, files: readonly string[], started: number): PluginsChange {
  const { name, specifier, diagnostics, active } = slot;
  const failed: FailedPluginChange = {
    name,
    ...(specifier !== undefined && { specifier }),
    diagnostics: [...diagnostics],
    lastGoodServes: active !== undefined,
    durationMs: performance.now() - started,
  };
  return { added: [], updated: [], failed: [failed], files };
}

function diffTools(before: ActivePlugin | undefined, after: ActivePlugin | undefined): NamesChange {
  const [old, now] = [revisionsOf(before), revisionsOf(after)];
  return {
    added: [...now.keys()].filter((name) => !old.has(name)),
    updated: [...now].flatMap(([name, revision]) => (old.has(name) && old.get(name) !== revision ? [name] : [])),
    removed: [...old.keys()].filter((name) => !now.has(name)),
  };
}

function revisionsOf(plugin: ActivePlugin | undefined): ReadonlyMap<string, string> {
  if (plugin === undefined) return new Map();
  const all = [...plugin.contributions.tools, ...plugin.published.flatMap(({ snapshot }) => snapshot.tools)];
  return new Map(all.map(({ definition, revision }) => [definition.name, revision]));
}
