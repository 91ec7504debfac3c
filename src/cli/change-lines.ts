import type { Diagnostic } from "../base/diagnostic.ts";
import type { SkillInfo } from "../host/host.ts";
import type { FailedPluginChange, PluginChange, PluginsChange } from "../plugin-host/plugin-reloads.ts";
import type { FailedChange, SkillChange, SkillsChange } from "../skills/skill.ts";
import { named } from "./describe.ts";
import type { Output } from "./output.ts";
import { visibleLine } from "./terminal-style.ts";

/** The effects of a change that the event does not contain. */
interface ChangeOutcome {
  /** The new diagnostics. */
  readonly fresh: readonly Diagnostic[];
  /** The folders with errors before the change, and those with errors now. */
  readonly wasFaulty: ReadonlySet<string>;
  readonly isFaulty: ReadonlySet<string>;
}

/** The folders with a problem that keeps a skill, or a part of it, from being used as written. */
export function faultyFolders(skills: readonly SkillInfo[]): ReadonlySet<string> {
  const isFaulty = ({ stale, state, diagnostics }: SkillInfo): boolean => stale || state === "failed" || diagnostics.some(isError);
  return new Set(skills.filter(isFaulty).map(({ folder }) => folder));
}

/** One line per changed skill: time, kind of change, cause, duration; diagnostics follow indented. */
export function changeLines(change: SkillsChange, outcome: ChangeOutcome, out: Output, now: Date): readonly string[] {
  const { style } = out;
  const { fresh } = outcome;
  const said = new Set<string>();
  const below = (diagnostics: readonly Diagnostic[]): string[] =>
    diagnostics.flatMap((diagnostic) => {
      const key = JSON.stringify(diagnostic);
      if (said.has(key)) return [];
      said.add(key);
      return [`    ${out.diagnostic(diagnostic)}`];
    });
  const own = (skill: SkillChange): string[] => below(fresh.filter((found) => found.source === skill.name));
  const line = lineFor(change, out, now);
  const mark = (skill: SkillChange, usual: string): string => (isNewlyFaulty(skill, outcome) ? style.red(style.marks.failed) : usual);
  return [
    ...change.removed.map((skill) => line(style.yellow(style.marks.removed), skill, `removed${toolList(": ", skill.tools.removed)}`)),
    ...change.added.flatMap((skill) => {
      const what = `added${toolList(": ", skill.tools.added)}`;
      return [line(mark(skill, style.green(style.marks.added)), skill, withFaults(what, skill, outcome)), ...own(skill)];
    }),
    ...change.updated.flatMap((skill) => {
      return [line(mark(skill, style.cyan(style.marks.updated)), skill, withFaults(updates(skill), skill, outcome)), ...own(skill)];
    }),
    ...change.failed.flatMap((skill) => [line(style.red(style.marks.failed), skill, failure(skill)), ...below(skill.diagnostics)]),
    ...below(fresh),
  ];
}

function withFaults(what: string | undefined, skill: SkillChange, outcome: ChangeOutcome): string {
  if (isNewlyFaulty(skill, outcome)) return `${what ?? "loaded"}, without the parts that have errors`;
  if (!outcome.wasFaulty.has(skill.folder) || outcome.isFaulty.has(skill.folder)) return what ?? "text updated";
  return what === undefined ? "fixed" : `fixed: ${what}`;
}

function isNewlyFaulty({ name }: SkillChange, { fresh }: ChangeOutcome): boolean {
  return fresh.some((diagnostic) => diagnostic.source === name && isError(diagnostic));
}

function isError({ severity }: Diagnostic): boolean {
  return severity === "error";
}

type Line = (mark: string, skill: SkillChange | FailedChange, what: string) => string;

function lineFor(change: SkillsChange, out: Output, now: Date): Line {
  const { style } = out;
  const dot = style.dim(style.marks.dot);
  const time = style.dim(clock(now));
  return (mark, skill, what) => {
    const why = cause(change.files, skill.folder, out);
    return [`${time} ${mark} ${style.bold(visibleLine(skill.name))}  ${what}`, ...why, `${milliseconds(skill.durationMs)} ms`].join(
      ` ${dot} `,
    );
  };
}

/** The changed files of this skill; without any, the changed files elsewhere (a shared helper). */
function cause(files: readonly string[], folder: string, out: Output): readonly string[] {
  const inside = files.filter((file) => file === folder || file.startsWith(`${folder}/`) || file.startsWith(`${folder}\\`));
  const paths = (inside.length > 0 ? inside : files).map(out.path);
  // A newly added folder has no single changed file.
  return paths.length === 0 ? [out.path(folder)] : [named(paths, 2)];
}

/** Changed prompts are usually the skill's text. */
function updates({ tools, prompts, resources }: SkillChange): string | undefined {
  const parts = [
    tools.updated.length > 0 && `updated ${named(tools.updated)}`,
    tools.added.length > 0 && `added ${named(tools.added)}`,
    tools.removed.length > 0 && `removed ${named(tools.removed)}`,
    prompts.added.length > 0 && `added prompt ${named(prompts.added)}`,
    prompts.removed.length > 0 && `removed prompt ${named(prompts.removed)}`,
    resources.updated.length > 0 && `updated resource ${named(resources.updated)}`,
    resources.added.length > 0 && `added resource ${named(resources.added)}`,
    resources.removed.length > 0 && `removed resource ${named(resources.removed)}`,
  ].filter((part) => part !== false);
  return parts.length > 0 ? parts.join(", ") : undefined;
}

function toolList(before: string, names: readonly string[]): string {
  return names.length === 0 ? "" : `${before}${named(names)}`;
}

function failure({ lastGoodServes }: FailedChange): string {
  return lastGoodServes ? "reload failed; still serving the last working version" : "could not be loaded; its tools are not available";
}

/** A duration with a readable number of digits. */
function milliseconds(duration: number): string {
  return duration < 10 ? duration.toFixed(1) : String(Math.round(duration));
}

/** The time of day. */
function clock(now: Date): string {
  return [now.getHours(), now.getMinutes(), now.getSeconds()].map((part) => String(part).padStart(2, "0")).join(":");
}

/** One line per changed plugin: time, kind of change, cause, duration; diagnostics follow indented. */
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
    const what = plugin.lastGoodServes
      ? "reload failed; still serving the last working version"
      : "could not be activated; nothing that it adds is available";
    return [line(style.red(style.marks.failed), plugin, what), ...below(plugin.diagnostics)];
  });
  const seen = new Set(change.failed.flatMap(({ diagnostics }) => diagnostics.map(({ message }) => message)));
  return [
    ...change.added.map((plugin) => line(style.green(style.marks.added), plugin, `activated${toolsOf(plugin)}`)),
    ...change.updated.map((plugin) => line(style.cyan(style.marks.updated), plugin, `replaced${toolsOf(plugin)}`)),
    ...failed,
    ...below(fresh.filter(({ message }) => !seen.has(message))),
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
