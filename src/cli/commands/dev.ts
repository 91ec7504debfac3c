import type { Diagnostic } from "../../base/diagnostic.ts";
import { whenAborted } from "../../base/wait-for.ts";
import type { Host } from "../../host/host.ts";
import type { SkillsChange } from "../../skills/skill.ts";
import type { CommandContext } from "../command-context.ts";
import { createDevReport, type DevReport } from "../dev-report.ts";
import { withHost } from "../open-host.ts";

export interface DevOptions {
  readonly watch: "always" | "auto" | "never";
}

/** Loads skills, says what they are, and then what each save changes, until it is told to stop. */
export function dev(context: CommandContext, directories: readonly string[], { watch }: DevOptions): Promise<number> {
  const { io, out } = context;
  const watches = watch === "always" || (watch === "auto" && io.stdout.isTTY);
  const started = performance.now();
  return withHost(context, { directories, watch: watches, listsDiagnostics: true }, async (host) => {
    // Whoever reads "ready" may save at once and must be heard.
    await host.idle();
    const report = createDevReport(out);
    report.ready({ skills: host.skills, diagnostics: host.diagnostics, durationMs: performance.now() - started, watches });
    if (!watches) return hasErrors(host.diagnostics) ? 1 : 0;
    await follow(host, report, io.signal);
    out.note("Stopped.");
    return 0;
  });
}

function follow(host: Host, report: DevReport, signal: AbortSignal): Promise<void> {
  const news = createNews(host.diagnostics);
  host.on("skills.changed", (change: SkillsChange) => report.changed(change, host.skills, news(host.diagnostics)));
  host.on("plugins.changed", (change) => report.pluginsChanged(change, news(host.diagnostics)));
  host.on("diagnostic", (diagnostic) => {
    for (const fresh of news([...host.diagnostics, diagnostic])) report.problem(fresh);
  });
  return whenAborted(signal);
}

/** Gives of all diagnostics those that the time before did not have. */
function createNews(first: readonly Diagnostic[]): (now: readonly Diagnostic[]) => readonly Diagnostic[] {
  const keyOf = (diagnostic: Diagnostic): string => JSON.stringify(diagnostic);
  let known = new Set(first.map(keyOf));
  return (now) => {
    const fresh = new Map(now.map((diagnostic) => [keyOf(diagnostic), diagnostic]));
    const before = known;
    known = new Set(fresh.keys());
    return [...fresh].filter(([key]) => !before.has(key)).map(([, diagnostic]) => diagnostic);
  };
}

function hasErrors(diagnostics: readonly Diagnostic[]): boolean {
  return diagnostics.some(({ severity }) => severity === "error");
}
