import type { Diagnostic } from "../base/diagnostic.ts";
import type { SkillInfo } from "../host/host.ts";
import type { PluginsChange } from "../plugin-host/plugins-change.ts";
import type { SkillsChange } from "../skills/skill.ts";
import { changeLines, faultyFolders } from "./change-lines.ts";
import { counted, named, skillHeading } from "./describe-skill.ts";
import type { Output } from "./output.ts";
import { pluginLines } from "./plugin-lines.ts";

interface ReadyState {
  readonly skills: readonly SkillInfo[];
  readonly diagnostics: readonly Diagnostic[];
  readonly durationMs: number;
  readonly watches: boolean;
}

/** Tells of what a host loads: to people in lines, to programs as one JSON object a line. */
export interface DevReport {
  ready(state: ReadyState): void;
  /** `skills` are as they are now, `fresh` the diagnostics that were not there before. */
  changed(change: SkillsChange, skills: readonly SkillInfo[], fresh: readonly Diagnostic[]): void;
  /** The same for plugins. */
  pluginsChanged(change: PluginsChange, fresh: readonly Diagnostic[]): void;
  problem(diagnostic: Diagnostic): void;
}

export function createDevReport(out: Output): DevReport {
  return out.isJson ? jsonReport(out) : textReport(out);
}

function jsonReport(out: Output): DevReport {
  const problem = (diagnostic: Diagnostic): void => out.json({ type: "diagnostic", ...diagnostic });
  return {
    ready({ skills, diagnostics, durationMs }) {
      out.json({ type: "ready", skills, tools: countTools(skills), durationMs, diagnostics });
    },
    changed(change, _skills, fresh) {
      out.json({ type: "skills.changed", ...change });
      for (const diagnostic of fresh) problem(diagnostic);
    },
    pluginsChanged(change, fresh) {
      out.json({ type: "plugins.changed", ...change });
      for (const diagnostic of fresh) problem(diagnostic);
    },
    problem,
  };
}

function textReport(out: Output): DevReport {
  let faulty: ReadonlySet<string> = new Set();
  return {
    ready(state) {
      faulty = faultyFolders(state.skills);
      printReady(state, out);
    },
    changed(change, skills, fresh) {
      const wasFaulty = faulty;
      faulty = faultyFolders(skills);
      for (const line of changeLines(change, { fresh, wasFaulty, isFaulty: faulty }, out, new Date())) out.line(line);
    },
    pluginsChanged(change, fresh) {
      for (const line of pluginLines(change, fresh, out, new Date())) out.line(line);
    },
    problem: (diagnostic) => out.line(out.diagnostic(diagnostic)),
  };
}

function printReady({ skills, diagnostics, durationMs, watches }: ReadyState, out: Output): void {
  for (const skill of skills) {
    const tools = skill.tools.length === 0 ? out.style.dim("no tools") : named(skill.tools, 20);
    out.line(`${skillHeading(skill, out)}\n  ${tools}`);
  }
  for (const diagnostic of diagnostics) out.line(out.diagnostic(diagnostic));
  out.line(`${counted(skills.length, "skill")}, ${counted(countTools(skills), "tool")}, loaded in ${Math.round(durationMs)} ms.`);
  if (skills.length === 0) out.note('There is no skill yet. Make one with "skillhost new skill <name>"; it is loaded at once.');
  if (watches) out.note("Watching. Save a file and it is loaded; Ctrl-C ends.");
}

/** Those that sessions can call. */
function countTools(skills: readonly SkillInfo[]): number {
  return new Set(skills.filter(({ state }) => state === "active").flatMap(({ tools }) => tools)).size;
}
