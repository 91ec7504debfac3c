import type { HeldSkillTool, Host } from "../../host/host.ts";
import type { HeldBack, ServerInfo } from "../../session/servers/session-servers.ts";
import { visibleJson } from "../../trust/pins/definition-diff.ts";
import { CliError } from "../cli-error.ts";
import type { CommandContext } from "../command-context.ts";
import { counted } from "../describe-skill.ts";
import { didYouMean } from "../nearest-names.ts";
import { withHost } from "../open-host.ts";
import { visibleLine, visibleText } from "../visible-text.ts";

export interface ApproveOptions {
  readonly yes?: boolean;
}

/** Shows what is held back of an MCP server or a skill, all of it or one tool, and has it offered once somebody agrees. */
export function approve(context: CommandContext, name: string, tool: string | undefined, options: ApproveOptions): Promise<number> {
  return withHost(context, {}, async (host) => {
    await host.connectServers({ signal: context.io.signal });
    const server = host.listServers().find((each) => each.name === name);
    if (server === undefined && name === "external") return approvePushed(context, host, tool, options);
    if (server === undefined) return approveSkill(context, host, name, tool, options);
    const held = server.held.filter((each) => tool === undefined || each.name === tool);
    if (held.length === 0) return reportNothing(context, server, tool);
    return settle(context, options, { about: { server: name }, held, approve: () => host.approveServer(name, tool) });
  });
}

/** What is held back, of whom, and how it is approved. */
interface Held {
  readonly about: Readonly<Record<string, string>>;
  readonly held: readonly Pick<HeldBack, "kind" | "name" | "reason" | "diff">[];
  approve(): Promise<number>;
}

async function settle(context: CommandContext, options: ApproveOptions, { about, held, approve }: Held): Promise<number> {
  const { out } = context;
  const of = visibleLine(Object.values(about)[0] ?? "");
  if (held.length === 0) {
    if (out.isJson) out.envelope({ ok: true, data: { ...about, held, approved: 0 }, diagnostics: [] });
    else out.line(`Nothing of ${of} is held back.`);
    return 0;
  }
  if (!out.isJson) for (const each of held) show(context, each);
  const approved = (await isAgreed(context, held.length, options)) ? await approve() : 0;
  const error = { code: "NOT_APPROVED", message: "Nothing was approved." };
  if (out.isJson) out.envelope({ ok: approved > 0, data: { ...about, held, approved }, diagnostics: [], ...(approved === 0 && { error }) });
  else if (approved > 0) out.line(`Approved ${counted(approved, "definition")} of ${of}.`);
  else out.complain(error.message);
  return approved > 0 ? 0 : 1;
}

function approveSkill(
  context: CommandContext,
  host: Host,
  name: string,
  tool: string | undefined,
  options: ApproveOptions,
): Promise<number> {
  const skill = host.skills.find((each) => each.name === name && each.state !== "failed") ?? unknown(name, host);
  const held = (skill.held ?? []).filter((each) => tool === undefined || each.name === tool).map(toHeld);
  return settle(context, options, { about: { skill: name }, held, approve: () => host.approveSkill(name, tool) });
}

/** What programs and clients pushed into sessions, here or elsewhere. */
async function approvePushed(context: CommandContext, host: Host, tool: string | undefined, options: ApproveOptions): Promise<number> {
  const held = (await host.heldTools()).filter((each) => tool === undefined || each.name === tool);
  // Of a new one there is nothing to compare with: it is shown whole.
  const shown = held.map(({ definition, diff, ...each }) => toHeld({ ...each, diff: diff.length > 0 ? diff : [visibleJson(definition)] }));
  return settle(context, options, { about: { pushed: "external" }, held: shown, approve: () => host.approveTools(tool) });
}

function toHeld({ name, reason, diff }: Pick<HeldSkillTool, "name" | "reason" | "diff">): Held["held"][number] {
  return { kind: "tool", name, reason, diff: diff.join("\n") };
}

function unknown(name: string, host: Host): never {
  const names = [...host.listServers().map((server) => server.name), ...host.skills.map((skill) => skill.name)];
  const text = `There is no MCP server and no skill "${name}".${didYouMean(name, names)} "skillhost list" shows what there is.`;
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

function show({ out }: CommandContext, { kind, name, reason, diff }: Pick<HeldBack, "kind" | "name" | "reason" | "diff">): void {
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
