import type { HeldBack, ServerInfo } from "../../session/servers/session-servers.ts";
import { CliError } from "../cli-error.ts";
import type { CommandContext } from "../command-context.ts";
import { counted } from "../describe-skill.ts";
import { didYouMean } from "../nearest-names.ts";
import { withHost } from "../open-host.ts";
import { visibleLine, visibleText } from "../visible-text.ts";

export interface ApproveOptions {
  readonly yes?: boolean;
}

/** Shows what is held back of an MCP server, all of it or one tool, and has it offered once somebody agrees. */
export function approve(context: CommandContext, name: string, tool: string | undefined, options: ApproveOptions): Promise<number> {
  return withHost(context, {}, async (host) => {
    const { io, out } = context;
    await host.connectServers({ signal: io.signal });
    const servers = host.listServers();
    const server = servers.find((each) => each.name === name) ?? unknownServer(name, servers);
    const held = server.held.filter((each) => tool === undefined || each.name === tool);
    if (held.length === 0) return reportNothing(context, server, tool);
    if (!out.isJson) for (const each of held) show(context, each);
    const approved = (await isAgreed(context, held.length, options)) ? await host.approveServer(name, tool) : 0;
    const error = { code: "NOT_APPROVED", message: "Nothing was approved." };
    if (out.isJson)
      out.envelope({ ok: approved > 0, data: { server: name, held, approved }, diagnostics: [], ...(approved === 0 && { error }) });
    else if (approved > 0) out.line(`Approved ${counted(approved, "definition")} of ${visibleLine(name)}.`);
    else out.complain(error.message);
    return approved > 0 ? 0 : 1;
  });
}

function unknownServer(name: string, servers: readonly ServerInfo[]): never {
  const names = servers.map((server) => server.name);
  const text = `There is no MCP server "${name}".${didYouMean(name, names)} "skillhost list" shows what there is.`;
  throw new CliError("MCP_SERVER_UNKNOWN", text, 1);
}

function reportNothing({ out }: CommandContext, { name, status, error }: ServerInfo, tool: string | undefined): number {
  const isKnown = status === "connected";
  const what = tool === undefined ? `of ${visibleLine(name)}` : `of ${visibleLine(name)} by the name "${visibleLine(tool)}"`;
  if (out.isJson) out.envelope({ ok: isKnown, data: { server: name, held: [], approved: 0 }, diagnostics: [] });
  else if (isKnown) out.line(`Nothing ${what} is held back.`);
  else out.complain(`What ${visibleLine(name)} offers is not known: ${visibleLine(error ?? status)}`);
  return isKnown ? 0 : 1;
}

function show({ out }: CommandContext, { kind, name, reason, diff }: HeldBack): void {
  out.line(`${out.style.bold(visibleLine(`${kind} ${name}`.trim()))}: ${visibleLine(reason)}`);
  for (const line of diff?.split("\n") ?? []) out.line(`  ${visibleText(line)}`);
}

async function isAgreed({ io, out }: CommandContext, count: number, { yes }: ApproveOptions): Promise<boolean> {
  if (yes === true) return true;
  if (io.ask === undefined || !io.stdin.isTTY || !io.stderr.isTTY || out.isJson) {
    out.note("There is nobody to ask. Look at it, and approve it with --yes.");
    return false;
  }
  const answer = await io.ask(`Approve ${counted(count, "definition")} as it stands above? [y/N] `, io.signal);
  return /^y(es)?$/i.test(answer.trim());
}
