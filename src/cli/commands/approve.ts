import { counted } from "../../base/text.ts";
import { approvalText, exactJson } from "../../base/untrusted-text.ts";
import type { HeldSkillTool, Host } from "../../host/host.ts";
import type { HeldBack, ServerInfo } from "../../session/mcp/server-connections.ts";
import { CliError } from "../cli-error.ts";
import type { CommandContext } from "../command-context.ts";
import { confirm } from "../confirm.ts";

import { didYouMean } from "../did-you-mean.ts";
import { withHost } from "../open-host.ts";
import { visibleLine } from "../terminal-style.ts";

export interface ApproveOptions {
  readonly yes?: boolean;
}

/** Shows held-back tools of an MCP server or a skill, all or one, and offers them again after approval. */
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

/** The held-back tools, their owner, and how to approve them. */
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
    else out.line(`No definition of ${of} is waiting for approval.`);
    return 0;
  }
  const isWhole = out.isJson || held.map((each) => show(context, each)).every(Boolean);
  const isAgreed =
    options.yes === true ||
    (await confirm(context, {
      question: `Approve ${counted(held.length, "definition")} as shown above?`,
      otherwise: "Review the changes, then run again with --yes to approve them.",
      whole: isWhole
        ? undefined
        : () => held.flatMap(({ name, diff = "" }) => [exactJson(name), approvalText(diff, { isCut: false }).text]),
    }));
  const approved = isAgreed ? await approve() : 0;
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
  const held = (skill.held ?? [])
    .filter((each) => tool === undefined || each.name === tool)
    .map((each) => toHeld({ ...each, diff: [...each.diff, ...(skill.uses?.[each.name] ?? [])] }));
  return settle(context, options, { about: { skill: name }, held, approve: () => host.approveSkill(name, tool) });
}

/** Tools that programs and clients pushed into sessions, here or elsewhere. */
async function approvePushed(context: CommandContext, host: Host, tool: string | undefined, options: ApproveOptions): Promise<number> {
  const held = (await host.heldTools()).filter((each) => tool === undefined || each.name === tool);
  return settle(context, options, { about: { pushed: "external" }, held: held.map(toHeld), approve: () => host.approveTools(tool) });
}

function toHeld({ name, reason, diff }: Pick<HeldSkillTool, "name" | "reason" | "diff">): Held["held"][number] {
  return { kind: "tool", name, reason, diff: diff.join("\n") };
}

function unknown(name: string, host: Host): never {
  const names = [...host.listServers().map((server) => server.name), ...host.skills.map((skill) => skill.name)];
  const text = `No MCP server or skill is named "${name}".${didYouMean(name, names)} Run "skillhost list" to see all.`;
  throw new CliError("MCP_SERVER_UNKNOWN", text, 1);
}

function reportNothing({ out }: CommandContext, { name, status, error }: ServerInfo, tool: string | undefined): number {
  const isKnown = status === "connected";
  const what = tool === undefined ? `of ${visibleLine(name)}` : `of ${visibleLine(name)} named "${visibleLine(tool)}"`;
  if (out.isJson) out.envelope({ ok: isKnown, data: { server: name, held: [], approved: 0 }, diagnostics: [] });
  else if (isKnown) out.line(`No definition ${what} is waiting for approval.`);
  else out.complain(`The definitions of ${visibleLine(name)} are not available: ${visibleLine(error ?? status)}`);
  return isKnown ? 0 : 1;
}

/** Returns whether everything was shown. */
function show({ out }: CommandContext, { kind, name, reason, diff }: Pick<HeldBack, "kind" | "name" | "reason" | "diff">): boolean {
  out.line(`${out.style.bold(visibleLine(`${kind} ${name}`.trim()))}: ${visibleLine(reason)}`);
  if (diff === undefined) return true;
  const { text, isWhole } = approvalText(diff);
  out.line(text);
  return isWhole;
}
