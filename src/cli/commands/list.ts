import type { Diagnostic } from "../../base/diagnostic.ts";
import { counted } from "../../base/text.ts";
import type { Host, SkillInfo } from "../../host/host.ts";
import { resolveHostOptions } from "../../host/host-options.ts";
import type { LockedSource } from "../../packages/lock-file.ts";
import { approveAll } from "../../tools/tool.ts";
import type { CommandContext } from "../command-context.ts";
import { readConfiguredServers } from "../configured-servers.ts";
import { readCopies, sourceWords } from "../copied-skills.ts";
import { deeperSkillsIn, type ListedServer, permissionLines, printPlugin, serverHeading, skillHeading, withFiles } from "../describe.ts";
import { toHostOptions, withHost } from "../open-host.ts";
import type { Output } from "../output.ts";
import { visibleLine } from "../terminal-style.ts";

/** Lists skills with their tools and prompts, MCP servers without starting them, and each diagnostic beside its subject. */
export function list(context: CommandContext): Promise<number> {
  const { out } = context;
  return withHost(context, { listsDiagnostics: true }, async (host) => {
    const configured = readConfiguredServers(context);
    const servers = withFiles(host.listServers(), configured);
    const session = await host.createSession({ onPermissionRequest: approveAll, persist: false });
    const tools = session.listTools();
    // Lists the files of the skills, so that a folder with too many is reported.
    session.listResources();
    const copies = readCopies(context.io.cwd);
    const skills = host.skills.map((skill) => ({ ...skill, ...sourceOf(skill, copies.sources) }));
    const { plugins } = host;
    // The host reads the configured servers again and may report the same diagnostics.
    const diagnostics: readonly Diagnostic[] = [
      ...new Map(
        [...configured.diagnostics, ...host.diagnostics, ...copies.diagnostics].map((diagnostic) => [
          JSON.stringify(diagnostic),
          diagnostic,
        ]),
      ).values(),
    ];
    if (out.isJson) {
      out.envelope({ ok: true, data: { skills, tools, servers, plugins }, diagnostics });
      return 0;
    }
    for (const skill of skills) {
      const { style } = out;
      out.line(skillHeading(skill, out));
      if (skill.description !== "") out.line(`  ${visibleLine(shortened(skill.description))}`);
      if (skill.source !== undefined) out.line(`  ${style.dim("from")}     ${sourceWords(skill.source)}`);
      if (skill.state !== "active") out.line(`  ${style.dim("because")} ${visibleLine(skill.rule)}`);
      if (skill.tools.length > 0) out.line(`  ${style.dim("tools")}    ${skill.tools.map(visibleLine).join(", ")}`);
      for (const line of permissionLines(skill.permissions)) out.line(`  ${style.yellow(line)}`);
      const prompts = skill.prompts.map((prompt) => visibleLine(prompt.path)).join(", ");
      if (prompts !== "") out.line(`  ${style.dim("prompts")}  ${prompts} (${skill.promptMode})`);
      for (const diagnostic of skill.diagnostics) out.line(`  ${out.diagnostic(diagnostic)}`);
      out.line();
    }
    if (plugins.length > 0) out.line(out.style.bold("plugins"));
    for (const plugin of plugins) printPlugin(plugin, out);
    if (plugins.length > 0) out.line();
    printServers(servers, diagnostics, out);
    printRest({ skills, servers, plugins }, diagnostics, out);
    out.line(totals(skills, tools.length, servers));
    if (skills.length === 0) {
      const { roots } = resolveHostOptions(toHostOptions(context, [], false));
      const deeper = deeperSkillsIn(roots, context.out);
      for (const { message } of deeper) context.out.note(message);
      if (deeper.length === 0) context.out.note('Create one with "skillhost new skill <name>", or choose a directory with --skills.');
    }
    return 0;
  });
}

/** Where a copied skill came from. */
function sourceOf({ folder }: SkillInfo, sources: ReadonlyMap<string, LockedSource>): { readonly source?: LockedSource } {
  const source = sources.get(folder);
  return source === undefined ? {} : { source };
}

function printServers(servers: readonly ListedServer[], diagnostics: readonly Diagnostic[], out: Output): void {
  if (servers.length > 0) out.line(out.style.bold("MCP servers"));
  for (const server of servers) {
    out.line(`  ${serverHeading(server, out)}`);
    const own = diagnostics.filter((diagnostic) => isOf(diagnostic, server));
    // Each problem is shown once, with its place if it has one.
    const isShown = server.error !== undefined && server.status !== "disabled";
    if (isShown && !own.some(({ severity }) => severity === "error")) out.line(`    ${visibleLine(server.error)}`);
    for (const diagnostic of own) out.line(`    ${out.diagnostic(diagnostic)}`);
  }
  if (servers.length > 0) out.line();
}

function isOf({ code, source }: Diagnostic, { name }: ListedServer): boolean {
  return source === name && code.startsWith("MCP_");
}

interface Printed {
  readonly skills: readonly SkillInfo[];
  readonly servers: readonly ListedServer[];
  readonly plugins: Host["plugins"];
}

/** Prints diagnostics of no single skill, plugin or server: name clashes, unreadable directories. */
function printRest({ skills, servers, plugins }: Printed, diagnostics: readonly Diagnostic[], out: Output): void {
  const printed = new Set([...skills, ...plugins].flatMap((one) => one.diagnostics).map((diagnostic) => JSON.stringify(diagnostic)));
  const rest = diagnostics.filter(
    (diagnostic) => !printed.has(JSON.stringify(diagnostic)) && !servers.some((server) => isOf(diagnostic, server)),
  );
  for (const diagnostic of rest) out.line(out.diagnostic(diagnostic));
  if (rest.length > 0) out.line();
}

function totals(skills: readonly SkillInfo[], tools: number, servers: readonly ListedServer[]): string {
  const ofServers = servers.length > 0 ? `, ${counted(servers.length, "MCP server")}` : "";
  return `${counted(skills.length, "skill")}, ${counted(tools, "tool")}${ofServers}.`;
}

function shortened(text: string): string {
  return text.length > 160 ? `${text.slice(0, 159).trimEnd()}…` : text;
}
