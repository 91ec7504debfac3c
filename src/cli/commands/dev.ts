import type { Diagnostic } from "../../base/diagnostic.ts";
import { counted } from "../../base/text.ts";
import { whenAborted } from "../../base/wait.ts";
import type { Host, SkillInfo } from "../../host/host.ts";
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
    status?.show("");
    using _feed = out.isJson ? await openFeed(host, out) : undefined;
    if (!out.isJson) report(out, host, { durationMs: performance.now() - started, watches });
    if (!watches) return hasErrors(host.diagnostics) ? 1 : 0;
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

async function openFeed(host: Host, out: Output): Promise<Disposable> {
  const { writeFeed } = await import("../../servers/inspector/write-feed.ts");
  return writeFeed(host, out.jsonText);
}

/** Prints what is loaded, then each change as readable lines. */
function report(out: Output, host: Host, ready: Pick<ReadyState, "durationMs" | "watches">): void {
  const { skills, diagnostics } = host;
  printReady({ skills, diagnostics, ...ready }, out);
  const findNew = newDiagnostics(host);
  let faulty = faultyFolders(skills);
  host.on("skills.changed", (change) => {
    const wasFaulty = faulty;
    faulty = faultyFolders(host.skills);
    const facts = { fresh: findNew(host.diagnostics), wasFaulty, isFaulty: faulty };
    for (const line of changeLines(change, facts, out, new Date())) out.line(line);
  });
  host.on("plugins.changed", (change) => {
    for (const line of pluginLines(change, findNew(host.diagnostics), out, new Date())) out.line(line);
  });
  host.on("diagnostic", (diagnostic) => {
    for (const fresh of findNew([...host.diagnostics, diagnostic])) out.line(out.diagnostic(fresh));
  });
}

/** Returns the diagnostics that the previous call did not have. */
function newDiagnostics(host: Host): (now: readonly Diagnostic[]) => readonly Diagnostic[] {
  const keyOf = (diagnostic: Diagnostic): string => JSON.stringify(diagnostic);
  let known = new Set(host.diagnostics.map(keyOf));
  return (now) => {
    const fresh = new Map(now.map((diagnostic) => [keyOf(diagnostic), diagnostic]));
    const before = known;
    known = new Set(fresh.keys());
    return [...fresh].filter(([key]) => !before.has(key)).map(([, diagnostic]) => diagnostic);
  };
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
