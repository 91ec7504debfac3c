import type { Diagnostic } from "../../base/diagnostic.ts";
import { counted } from "../../base/text.ts";
import { whenAborted } from "../../base/wait.ts";
import type { Host, SkillInfo } from "../../host/host.ts";
import type { PluginsChange } from "../../plugin-host/plugin-reloads.ts";
import type { SkillsChange } from "../../skills/skill.ts";
import { changeLines, faultyFolders, pluginLines } from "../change-lines.ts";
import type { CommandContext } from "../command-context.ts";
import { named, skillHeading } from "../describe.ts";
import { followKeys, keyHints } from "../dev-keys.ts";
import { withHost } from "../open-host.ts";
import { openInspector } from "../open-inspector.ts";
import type { Output } from "../output.ts";
import type { ShownStatus } from "../process-io.ts";

export interface DevOptions {
  readonly watch: "always" | "auto" | "never";
  /** The port of the inspector, or true for any. Absent: in a terminal. */
  readonly inspect?: number | boolean;
}

/**
 * Loads skills, lists them, and reports the effect of each save until it is stopped. On a terminal a line at the bottom shows the number of
 * errors, and keys reload, call and list.
 */
export async function dev(context: CommandContext, directories: readonly string[], { watch, inspect }: DevOptions): Promise<number> {
  const { io, out } = context;
  const watches = watch === "always" || (watch === "auto" && io.stdout.isTTY);
  const started = performance.now();
  using status = isInteractive(context) ? io.openStatus?.() : undefined;
  status?.show("Loading skills…");
  return await withHost(context, { directories, watch: watches, listsDiagnostics: true }, async (host) => {
    // A user who reads "ready" may save immediately, so watching must already work.
    await host.idle();
    const report: DevReport = out.isJson ? jsonReport(out) : textReport(out);
    status?.show("");
    report.ready({ skills: host.skills, diagnostics: host.diagnostics, durationMs: performance.now() - started, watches });
    if (!watches) return hasErrors(host.diagnostics) ? 1 : 0;
    follow(host, report);
    await using _inspector = await openInspector(context, host, inspect ?? isInteractive(context));
    await waitForEnd(context, host, status);
    out.note("Stopped.");
    return 0;
  });
}

/** Whether a status line may be drawn. Logs of CI services and terminals that cannot move the cursor keep each drawing. */
function isInteractive({ io, out, options }: CommandContext): boolean {
  const { CI: ci = "", TERM: term } = io.env;
  return io.stdout.isTTY && io.stderr.isTTY && !out.isJson && options.quiet !== true && (ci === "" || ci === "false") && term !== "dumb";
}

async function waitForEnd(context: CommandContext, host: Host, status: ShownStatus | undefined): Promise<void> {
  const { io, out } = context;
  if (status === undefined) return whenAborted(io.signal);
  const showStatus = (): void => status.show(statusText(host, io.stdin.isTTY));
  host.on("skills.changed", showStatus);
  host.on("plugins.changed", showStatus);
  host.on("diagnostic", showStatus);
  showStatus();
  if (!io.stdin.isTTY) await whenAborted(io.signal);
  else await followKeys(context, host, { showStatus, hideStatus: () => status.show(""), list: () => printSkills(host, out) });
  status.show("");
}

/** Without colours, whose invisible characters would count as columns. */
function statusText({ skills, diagnostics }: Host, hasKeys: boolean): string {
  const errors = diagnostics.filter(isError).length;
  const parts = [counted(errors, "error"), counted(skills.length, "skill"), counted(countTools(skills), "tool")];
  return `${parts.join(", ")} - ${hasKeys ? keyHints : "Ctrl-C stops"}`;
}

function follow(host: Host, report: DevReport): void {
  // Returns the diagnostics that the previous call did not have.
  const keyOf = (diagnostic: Diagnostic): string => JSON.stringify(diagnostic);
  let known = new Set(host.diagnostics.map(keyOf));
  const findNew: (now: readonly Diagnostic[]) => readonly Diagnostic[] = (now) => {
    const fresh = new Map(now.map((diagnostic) => [keyOf(diagnostic), diagnostic]));
    const before = known;
    known = new Set(fresh.keys());
    return [...fresh].filter(([key]) => !before.has(key)).map(([, diagnostic]) => diagnostic);
  };
  host.on("skills.changed", (change: SkillsChange) => report.changed(change, host.skills, findNew(host.diagnostics)));
  host.on("plugins.changed", (change) => report.pluginsChanged(change, findNew(host.diagnostics)));
  host.on("diagnostic", (diagnostic) => {
    for (const fresh of findNew([...host.diagnostics, diagnostic])) report.problem(fresh);
  });
}

function isError({ severity }: Diagnostic): boolean {
  return severity === "error";
}

function hasErrors(diagnostics: readonly Diagnostic[]): boolean {
  return diagnostics.some(isError);
}

interface ReadyState {
  readonly skills: readonly SkillInfo[];
  readonly diagnostics: readonly Diagnostic[];
  readonly durationMs: number;
  readonly watches: boolean;
}

/** Reports what a host loads: readable lines, or one JSON object per line. */
interface DevReport {
  ready(state: ReadyState): void;
  /** `skills` is the current list, `fresh` the new diagnostics. */
  changed(change: SkillsChange, skills: readonly SkillInfo[], fresh: readonly Diagnostic[]): void;
  /** Reports a change of plugins. */
  pluginsChanged(change: PluginsChange, fresh: readonly Diagnostic[]): void;
  problem(diagnostic: Diagnostic): void;
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

function printSkills({ skills, diagnostics }: Pick<ReadyState, "skills" | "diagnostics">, out: Output): void {
  for (const skill of skills) {
    const tools = skill.tools.length === 0 ? out.style.dim("no tools") : named(skill.tools, 20);
    out.line(`${skillHeading(skill, out)}\n  ${tools}`);
  }
  for (const diagnostic of diagnostics) out.line(out.diagnostic(diagnostic));
}

function printReady({ skills, diagnostics, durationMs, watches }: ReadyState, out: Output): void {
  printSkills({ skills, diagnostics }, out);
  out.line(`${counted(skills.length, "skill")}, ${counted(countTools(skills), "tool")}, loaded in ${Math.round(durationMs)} ms.`);
  if (skills.length === 0) out.note('No skills yet. Create one with "skillhost new skill <name>"; it loads at once.');
  if (watches) out.note("Watching for changes. Save a file to reload it; press Ctrl-C to stop.");
}

/** Counts the tools that sessions can call. */
function countTools(skills: readonly SkillInfo[]): number {
  return new Set(skills.filter(({ state }) => state === "active").flatMap(({ tools }) => tools)).size;
}
