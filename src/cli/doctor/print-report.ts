import type { Diagnostic } from "../../base/diagnostic.ts";
import type { FolderStanding } from "../../trust/folder-trust.ts";
import { counted } from "../describe.ts";
import type { Output } from "../output.ts";
import { visibleLine } from "../terminal-style.ts";
import type { MachineFacts } from "./check-machine.ts";
import type { CheckedServer, GatheredServer, Step } from "./check-server.ts";

const words: Readonly<Record<CheckedServer["status"], string>> = {
  ok: "works",
  failed: "failed",
  "needs-auth": "requires sign-in",
  not_configured: "needs configuration",
  disabled: "disabled",
  not_started: "not checked",
};

/** The report for people: what was looked at, then what was found. */
export function printReport({ machine, project, skills, servers, findings }: DoctorReport, out: Output): void {
  const { style } = out;
  const isTrusted = project.standing !== "untrusted" && project.standing !== "changed";
  const limit = machine.watchLimit === undefined ? "" : `, ${machine.watchLimit} watches`;
  out.line(`${style.bold("machine")}  Node ${machine.nodeVersion}, ${counted(machine.folders, "folder")} to watch${limit}`);
  out.line(`${style.bold("shell")}    rules about paths and addresses are ${machine.confinement} for programs`);
  out.line(`${style.bold("project")}  ${visibleLine(project.folder)}, ${isTrusted ? style.green("trusted") : style.yellow("not trusted")}`);
  out.line(`${style.bold("skills")}   ${counted(skills.loaded, "skill")}, ${counted(skills.tools, "tool")}`);
  for (const server of servers) printServer(server, out);
  if (findings.length > 0) out.line();
  for (const finding of findings) out.line(out.diagnostic(finding));
  out.line();
  out.line(verdict(findings.map(({ severity }) => severity)));
}

function printServer({ name, status, steps, stderrTail, server }: DoctorReport["servers"][number], out: Output): void {
  const { style, path } = out;
  const color = status === "ok" ? style.green : status === "failed" || status === "needs-auth" ? style.red : style.yellow;
  const { transport, file, origin } = server.info;
  const from = file === undefined ? [origin.kind, origin.source].filter((part) => part !== undefined).join(" ") : path(file);
  out.line(
    `${style.bold("server")}   ${[visibleLine(name), transport, color(words[status]), style.dim(visibleLine(from))].filter(Boolean).join("  ")}`,
  );
  for (const step of steps) printStep(step, out);
  if (status !== "failed" || stderrTail === undefined) return;
  for (const line of stderrTail.split("\n").slice(-5)) out.line(`         ${style.dim("|")} ${visibleLine(line)}`);
}

function printStep({ step, state, detail }: Step, { line, style }: Output): void {
  const color = { ok: style.green, failed: style.red, warning: style.yellow, skipped: style.dim }[state];
  line(`         ${step.padEnd(7)}${color(state.padEnd(8))}${visibleLine(detail)}`);
}

function verdict(severities: readonly string[]): string {
  const of = (severity: string): number => severities.filter((one) => one === severity).length;
  const parts = [
    of("error") > 0 && counted(of("error"), "error"),
    of("warning") > 0 && counted(of("warning"), "warning"),
    of("info") > 0 && counted(of("info"), "hint"),
  ].filter((part) => part !== false);
  return parts.length === 0 ? "No problems found." : `Found ${parts.join(", ")}.`;
}

/** Everything that was looked at. */
export interface DoctorReport {
  readonly machine: MachineFacts;
  /** The project, and whether its code may run. */
  readonly project: { readonly folder: string; readonly standing: FolderStanding };
  readonly skills: { readonly loaded: number; readonly tools: number; readonly errors: number; readonly warnings: number };
  readonly servers: readonly (CheckedServer & { readonly server: GatheredServer })[];
  readonly findings: readonly Diagnostic[];
}
