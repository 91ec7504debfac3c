import { statSync } from "node:fs";
import { resolve } from "node:path";
import { HostError, toError } from "../../base/errors.ts";
import type { Host } from "../../host/host.ts";
import { importBundled } from "../../plugin-host/bundled.ts";
import type { RecordedEvent } from "../../session/history/events.ts";
import type { Session } from "../../session/session.ts";
import type { SessionOptions } from "../../session/session-config.ts";
import { approveAll } from "../../tools/tool.ts";
import { CliError, usageError } from "../cli-error.ts";
import type { CommandContext, ConfiguredOptions } from "../command-context.ts";
import { loadConfig } from "../config.ts";
import { withFoundSkills, withoutFoundSkills } from "../found-skills.ts";
import { withHost } from "../open-host.ts";
import type { CliIo } from "../process-io.ts";
import { readConsent, requireConsent } from "../project-consent.ts";
import { visibleLine } from "../terminal-style.ts";
import { createTurnReport, type TurnReport } from "../turn-report.ts";

export interface AgentCommandOptions {
  readonly workspace?: string;
  readonly server?: string;
  readonly model?: string;
  readonly allow?: readonly string[];
  readonly deny?: readonly string[];
  readonly yes?: boolean;
  readonly available?: readonly string[];
  readonly excluded?: readonly string[];
}

/** The part of the language-server plugin that this command uses. */
interface LanguageServerModule {
  readonly languageServer: {
    connect(session: Session, options: object): Promise<AgentServer>;
  };
}

interface AgentServer {
  readonly diagnostics: readonly { readonly severity: string; readonly message: string }[];
  send(prompt: string, options: object): Promise<AgentTurn>;
  close(): Promise<void>;
}

interface AgentTurn {
  readonly outcome: "completed" | "failed" | "cancelled";
  readonly text: string;
  readonly calls: readonly { readonly id: string; readonly name: string; readonly type: string; readonly status: string }[];
  readonly error?: { readonly message: string; readonly code?: number | string };
  readonly conversationId: string;
  readonly model?: string;
}

const serverPlugin = "skillhost/plugins/language-server";
const editorPlugin = { use: "skillhost/plugins/workspace-tools", config: { presentation: "editor" } };

/** Lets GitHub's Copilot language server work on one prompt with the tools of the skills and of an editor, without asking the user. */
export async function agent(context: CommandContext, given: string, options: AgentCommandOptions): Promise<number> {
  const { io, out } = context;
  const prompt = given === "-" ? await io.stdin.read(io.signal) : given;
  if (prompt.trim() === "") throw usageError("The prompt is empty. Describe the task.");
  const consented = await requireConsent(inWorkspace(context, options.workspace), { always: true });
  const turn = await withHost(consented, { watch: true }, async (host) => {
    const session = await host.createSession(toSessionOptions(options));
    const report = createTurnReport(io, out);
    session.on((event) => {
      if (out.isJson) out.json(event);
      report.onEvent(event);
    });
    return converse(context, { host, session, report, prompt, options });
  });
  const { text, model, calls, conversationId, error } = turn;
  const ok = turn.outcome === "completed";
  const message = error?.message ?? "The turn was stopped.";
  if (!ok && !out.isJson) out.complain(visibleLine(message));
  const failure = { code: `TURN_${turn.outcome.toUpperCase()}`, message };
  out.envelope({ ok, data: { content: text, model, calls, conversationId }, diagnostics: [], ...(!ok && { error: failure }) });
  return ok ? 0 : 1;
}

interface Work {
  readonly host: Host;
  readonly session: Session;
  readonly report: TurnReport;
  readonly prompt: string;
  readonly options: AgentCommandOptions;
}

async function converse(context: CommandContext, { host, session, report, prompt, options }: Work): Promise<AgentTurn> {
  const { io, out } = context;
  const server = await connect(context, host, session, options);
  try {
    for (const { severity, message } of server.diagnostics) if (severity === "error") out.note(visibleLine(message));
    const show = (type: string, data: RecordedEvent["data"]): void => {
      if (out.isJson) out.json({ type, data });
      report.onEvent({ type, data } as RecordedEvent);
    };
    const turn = await server.send(prompt, {
      model: options.model,
      signal: io.signal,
      onText: (text: string) => show("assistant.message_delta", { deltaContent: text }),
      onNotice: (message: string) => out.note(visibleLine(message)),
    });
    show("assistant.message", { content: turn.text });
    adviseOnDenied(context, turn, report);
    if (io.signal.aborted) throw new CliError("STOPPED", toError(io.signal.reason).message, 1);
    return turn;
  } finally {
    await server.close();
  }
}

async function connect({ io }: CommandContext, host: Host, session: Session, { server }: AgentCommandOptions): Promise<AgentServer> {
  const { languageServer } = (await importBundled(serverPlugin)) as unknown as LanguageServerModule;
  const failed = host.plugins.find(({ name, state }) => name === "language-server" && state !== "active");
  const why = host.diagnostics.find(({ source }) => source === "language-server")?.message;
  if (failed !== undefined) throw new HostError("PLUGIN_ACTIVATION", why ?? "The language-server plugin could not be activated.");
  // A path is relative to the folder in which it was typed.
  const path = server === undefined ? {} : { server: resolve(io.cwd, server) };
  return languageServer.connect(session, { ...path, hostEnvironment: io.env });
}

/** Runs the command as if it had been started in the workspace; typed paths stay relative to the original folder. */
function inWorkspace(found: CommandContext, given: string | undefined): CommandContext {
  const context = withoutFoundSkills(found);
  const { io, options } = context;
  const workspace = resolve(io.cwd, given ?? ".");
  if (statSync(workspace, { throwIfNoEntry: false })?.isDirectory() !== true) {
    throw usageError(`Working directory ${visibleLine(workspace)} does not exist. Choose another one with -w.`);
  }
  const absolute = (path: string): string => (path.startsWith("~") ? path : resolve(io.cwd, path));
  const config = given === undefined || options.config !== undefined ? context.config : loadConfig(undefined, workspace);
  const inside = Object.create(io, { cwd: { value: workspace, enumerable: true } }) as CliIo;
  return withFoundSkills({
    ...context,
    io: inside,
    consent: readConsent(inside, options),
    options: {
      ...options,
      ...(options.skills && { skills: context === found ? options.skills.map(absolute) : options.skills }),
      ...(options.mcpConfig && { mcpConfig: options.mcpConfig.map(absolute) }),
    },
    config: { ...config, workingDirectory: workspace, plugins: withServer(config.plugins ?? []) },
  });
}

function withServer(configured: NonNullable<ConfiguredOptions["plugins"]>): NonNullable<ConfiguredOptions["plugins"]> {
  const named = new Set(configured.map((plugin) => (typeof plugin === "string" ? plugin : plugin.use)));
  const own = [editorPlugin, serverPlugin].filter((plugin) => !named.has(typeof plugin === "string" ? plugin : plugin.use));
  return [...own, ...configured];
}

function toSessionOptions({ available, excluded, allow, deny, yes }: AgentCommandOptions): SessionOptions {
  return {
    // The server stores the conversation.
    persist: false,
    toolSearch: { enabled: false },
    availableTools: available,
    excludedTools: excluded,
    permissions: { allow, deny },
    onPermissionRequest: yes === true ? approveAll : undefined,
  };
}

function adviseOnDenied({ out }: CommandContext, { calls }: AgentTurn, { unallowed }: TurnReport): void {
  const ofServer = calls.filter(({ type, status }) => type !== "client" && status === "cancelled").map(({ name }) => name);
  for (const name of new Set([...unallowed, ...ofServer])) {
    const shown = visibleLine(name);
    out.note(`"${shown}" was denied: it is not allowed. Allow it with --allow ${shown}, or everything with --yes.`);
  }
}
