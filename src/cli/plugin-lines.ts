import type { Diagnostic } from "../base/diagnostic.ts";
import type { FailedPluginChange, PluginChange, PluginsChange } from "../plugin-host/plugins-change.ts";
import { clock, milliseconds } from "./change-lines.ts";
import { named } from "./describe-skill.ts";
import type { Output } from "./output.ts";
import { visibleLine } from "./visible-text.ts";

/** One line per plugin that a load changed: when, what, why, how long; what is wrong stands indented below. */
export function pluginLines(change: PluginsChange, fresh: readonly Diagnostic[], out: Output, now: Date): readonly string[] {
  const { style } = out;
  const files = change.files.length === 0 ? [] : [named(change.files.map(out.path), 2)];
  const line = (mark: string, { name, durationMs }: PluginChange | FailedPluginChange, what: string): string => {
    const parts = [
      `${style.dim(clock(now))} ${mark} plugin ${style.bold(visibleLine(name))}  ${what}`,
      ...files,
      `${milliseconds(durationMs)} ms`,
    ];
    return parts.join(` ${style.dim(style.marks.dot)} `);
  };
  const below = (diagnostics: readonly Diagnostic[]): string[] => diagnostics.map((diagnostic) => `    ${out.diagnostic(diagnostic)}`);
  const failed = change.failed.flatMap((plugin) => {
    const what = plugin.lastGoodServes ? "not taken, the last good generation serves on" : "not activated, nothing of it is offered";
    return [line(style.red(style.marks.failed), plugin, what), ...below(plugin.diagnostics)];
  });
  const told = new Set(change.failed.flatMap(({ diagnostics }) => diagnostics.map(({ message }) => message)));
  return [
    ...change.added.map((plugin) => line(style.green(style.marks.added), plugin, `activated${toolsOf(plugin)}`)),
    ...change.updated.map((plugin) => line(style.cyan(style.marks.updated), plugin, `replaced${toolsOf(plugin)}`)),
    ...failed,
    ...below(fresh.filter(({ message }) => !told.has(message))),
  ];
}

function toolsOf({ tools: { added, updated, removed } }: PluginChange): string {
  const parts = [
    updated.length > 0 && `updated ${named(updated)}`,
    added.length > 0 && `added ${named(added)}`,
    removed.length > 0 && `removed ${named(removed)}`,
  ].filter((part) => part !== false);
  return parts.length === 0 ? "" : `: ${parts.join(", ")}`;
}
