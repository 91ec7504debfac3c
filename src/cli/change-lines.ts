import type { Diagnostic } from "../base/diagnostic.ts";
import type { SkillInfo } from "../host/host.ts";
import type { FailedChange, SkillChange, SkillsChange } from "../skills/skill.ts";
import { named } from "./describe-skill.ts";
import type { Output } from "./output.ts";
import { visibleLine } from "./visible-text.ts";

/** What a change came to, beside what it says itself. */
export interface ChangeOutcome {
  /** The diagnostics that were not there before. */
  readonly fresh: readonly Diagnostic[];
  /** The folders that held a fault before, and those that hold one now. */
  readonly wasFaulty: ReadonlySet<string>;
  readonly isFaulty: ReadonlySet<string>;
}

/** The folders in which something is wrong that keeps the skill, or a part of it, from being what its files say. */
export function faultyFolders(skills: readonly SkillInfo[]): ReadonlySet<string> {
  const isFaulty = ({ stale, state, diagnostics }: SkillInfo): boolean => stale || state === "failed" || diagnostics.some(isError);
  return new Set(skills.filter(isFaulty).map(({ folder }) => folder));
}

/** One line per skill that a load changed: when, what, why, how long; what is wrong stands indented below. */
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
    ...change.removed.map((skill) => line(style.yellow(style.marks.removed), skill, `gone${toolList(": ", skill.tools.removed)}`)),
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
  if (isNewlyFaulty(skill, outcome)) return `${what ?? "loaded"}, without what is faulty`;
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

/** The changed files of this skill; those elsewhere (a shared helper) when there are none. */
function cause(files: readonly string[], folder: string, out: Output): readonly string[] {
  const inside = files.filter((file) => file === folder || file.startsWith(`${folder}/`) || file.startsWith(`${folder}\\`));
  const paths = (inside.length > 0 ? inside : files).map(out.path);
  // A folder that came as a whole has no file of its own to blame.
  return paths.length === 0 ? [out.path(folder)] : [named(paths, 2)];
}

/** Prompts that became others are the skill's text, as a rule. */
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
  return lastGoodServes ? "not taken, the last good generation serves on" : "cannot be loaded, nothing of it is offered";
}

/** Of a duration, as many digits as anybody reads. */
export function milliseconds(duration: number): string {
  return duration < 10 ? duration.toFixed(1) : String(Math.round(duration));
}

/** The time of day. */
export function clock(now: Date): string {
  return [now.getHours(), now.getMinutes(), now.getSeconds()].map((part) => String(part).padStart(2, "0")).join(":");
}
