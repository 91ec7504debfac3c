import { resolve } from "node:path";
import { counted } from "../../base/text.ts";
import { onAbort } from "../../base/wait.ts";
import type { Host } from "../../host/host.ts";
import { isLoopback } from "../../io/net/connection-gate.ts";
import { type McpHttpServer, serveMcp } from "../../servers/mcp/serve-mcp.ts";
import type { SessionOptions } from "../../session/session-config.ts";
import { approveAll } from "../../tools/tool.ts";
import { usageError } from "../cli-error.ts";
import type { CommandContext } from "../command-context.ts";
import { type HealthPlace, openHealth } from "../open-health.ts";
import { skillDirectories, withHost } from "../open-host.ts";
import { openInspector } from "../open-inspector.ts";
import { chooseAgent } from "../project-agents.ts";

export interface McpCommandOptions {
  /** True: on the default port. */
  readonly http?: number | true;
  readonly host: string;
  /** False: no token is required. */
  readonly token?: string | false;
  readonly allowHost?: readonly string[];
  readonly allowOrigin?: readonly string[];
  readonly maxRequests?: number;
  readonly allow?: readonly string[];
  readonly deny?: readonly string[];
  readonly yes?: boolean;
  readonly agent?: string;
  readonly available?: readonly string[];
  readonly excluded?: readonly string[];
  /** The port of an inspector, or true for any. */
  readonly inspect?: number | true;
  readonly health?: HealthPlace;
}

/** Serves MCP clients until stdin closes, or, over HTTP, until it is stopped. */
export function mcp(context: CommandContext, options: McpCommandOptions): Promise<number> {
  return options.http === undefined ? overStdio(context, options) : overHttp(context, options, options.http);
}

async function overStdio(context: CommandContext, options: McpCommandOptions): Promise<number> {
  const { io, log } = context;
  const serving = servingOptions(context, options);
  if (io.takeStreams === undefined) throw usageError("Standard input and output are not available to serve MCP on. Use --http.");
  // Must run before skills are loaded, whose output must not get into the protocol.
  const streams = io.takeStreams();
  try {
    return await withHost(context, { watch: true }, async (host) => {
      const { input, output } = streams;
      const face = await serveMcp(host, { ...serving, transport: "stdio", input, output, logger: log });
      await using _inspector = await openInspector(context, host, options.inspect);
      await using _health = await openHealth(context, host, options.health);
      if (io.stdin.isTTY) explainTerminal(context, host, options);
      const stop = onAbort(io.signal, () => void face[Symbol.asyncDispose]());
      await face.closed;
      stop[Symbol.dispose]();
      return 0;
    });
  } finally {
    streams[Symbol.dispose]();
  }
}

/** For a user who typed the command: explains what it waits for, and how a client starts it. */
function explainTerminal(context: CommandContext, host: Host, { allow, yes }: McpCommandOptions): void {
  const { io, out } = context;
  const active = host.skills.filter(({ state }) => state === "active");
  const tools = new Set(active.flatMap((skill) => skill.tools)).size;
  out.note(`Serving ${counted(active.length, "skill")} with ${counted(tools, "tool")} to an MCP client on stdin and stdout. Ctrl-C ends.`);
  const roots = skillDirectories(context).map((directory) => resolve(io.cwd, directory));
  const rights = yes === true ? ["--yes"] : (allow ?? ["<rule>"]).flatMap((rule) => ["--allow", rule]);
  const args = ["-y", "skillhost", "mcp", ...roots.flatMap((root) => ["--skills", root]), ...rights];
  const snippet = { mcpServers: { skillhost: { command: "npx", args } } };
  out.note("This command is meant to be started by an MCP client. Add this to the client's configuration (such as .mcp.json):");
  out.note(JSON.stringify(snippet));
  if (yes !== true)
    out.note('Calls that no "--allow <rule>" covers ask for permission in the client. If the client cannot show a form, they are denied.');
}

function overHttp(context: CommandContext, options: McpCommandOptions, http: number | true): Promise<number> {
  const { io, log } = context;
  const serving = servingOptions(context, options);
  const token = tokenOf(context, options);
  return withHost(context, { watch: true }, async (host) => {
    const face = await serveMcp(host, {
      ...serving,
      transport: "http",
      port: http === true ? undefined : http,
      host: options.host,
      token,
      allowedHosts: options.allowHost,
      allowedOrigins: options.allowOrigin,
      maxRequests: options.maxRequests,
      logger: log,
    });
    announce(context, face, token === undefined);
    await using _inspector = await openInspector(context, host, options.inspect);
    await using _health = await openHealth(context, host, options.health);
    await new Promise<void>((resolve) => void onAbort(io.signal, resolve));
    await face[Symbol.asyncDispose]();
    return 0;
  });
}

function tokenOf({ io }: CommandContext, { token, host }: McpCommandOptions): string | false | undefined {
  const known = io.env["SKILLHOST_TOKEN"] || undefined;
  if (token !== false) return token ?? known;
  if (known !== undefined) throw usageError("--no-token and SKILLHOST_TOKEN exclude each other. Remove one of them.");
  if (!isLoopback(host))
    throw usageError(`--no-token is allowed only for loopback addresses, but ${host} can be reached from other machines. Remove it.`);
  return false;
}

function servingOptions(
  context: CommandContext,
  { allow, deny, yes, agent, available, excluded = [] }: McpCommandOptions,
): { readonly session: SessionOptions; readonly asksPermission: boolean } {
  const chosen = agent === undefined ? undefined : chooseAgent(context, agent);
  for (const diagnostic of chosen?.diagnostics ?? []) if (diagnostic.severity !== "info") context.out.complainOf(diagnostic);
  const excludedTools = [...excluded, ...(chosen?.options.excludedTools ?? [])];
  const session: SessionOptions = {
    ...chosen?.options,
    permissions: { allow, deny },
    availableTools: available,
    excludedTools: excludedTools.length > 0 ? excludedTools : undefined,
    onPermissionRequest: yes === true ? approveAll : undefined,
  };
  return { session, asksPermission: yes !== true };
}

function announce({ io, out }: CommandContext, { url, token }: McpHttpServer, isMadeUp: boolean): void {
  if (out.isJson) out.envelope({ ok: true, data: { url }, diagnostics: [] });
  else out.line(`Serving MCP at ${url}`);
  // Not on stdout, which may be a file that others read.
  if (!isMadeUp || token === undefined) return;
  const client = { mcpServers: { skillhost: { type: "http", url, headers: { Authorization: `Bearer ${token}` } } } };
  io.stderr.write(`Requests must have this header:\nAuthorization: Bearer ${token}\n`);
  io.stderr.write(`Client configuration:\n${JSON.stringify(client)}\n`);
  io.stderr.write("The token changes with each start. Set SKILLHOST_TOKEN to choose a fixed one.\n");
}
