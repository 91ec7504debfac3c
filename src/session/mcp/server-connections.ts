import type { Diagnostic } from "../../base/diagnostic.ts";
import { HostError } from "../../base/errors.ts";
import type { Json } from "../../base/json.ts";
import type { ServerProbe } from "../../mcp/oauth/probe-server.ts";
import type { Asks } from "../../tools/tool.ts";
import type { CatalogView } from "../catalog/catalog-view.ts";
import type { ClientRequests } from "../clients/client-requests.ts";
import type { SessionClients } from "../clients/session-client.ts";
import type { ServerFacts } from "../history/event-types.ts";
import type { ServerInstructions } from "../prompt/system-prompt.ts";
import type { SessionContext } from "../session-context.ts";

/** What a session does with its MCP servers: it starts them when they are needed, and emits their events. */
export class SessionServerConnections implements Disposable {
  readonly #host: SessionContext;
  readonly #clients: SessionClients;
  readonly #asks: ClientRequests;
  readonly #servers: SessionServers | undefined;
  readonly #listening: Disposable | undefined;
  readonly #announcedDiagnostics = new Set<string>();
  #announcedServers: string | undefined;
  #isStarted = false;

  constructor(host: SessionContext, clients: SessionClients, asks: ClientRequests, servers: SessionServers | undefined) {
    this.#host = host;
    this.#clients = clients;
    this.#asks = asks;
    this.#servers = servers;
    this.#listening = servers?.subscribe((news) => {
      const { events } = this.#host;
      const { server: serverName } = news;
      if (news.kind === "list") events.append(`mcp.${news.list}.list_changed`, { serverName });
      else {
        const { status, error } = news;
        events.append("session.mcp_server_status_changed", { serverName, status, ...(error !== undefined && { error }) });
      }
    });
    servers?.onSignIn((data, signal) => this.#askToSignIn(data, signal));
    servers?.onTokenWanted((data, signal) => this.#askForToken(data, signal));
  }

  get policy(): ServerPolicy {
    return this.#servers?.policy ?? askFirst;
  }

  instructions(view: CatalogView = this.#host.config.view): readonly ServerInstructions[] {
    return this.#servers?.instructions(view) ?? none;
  }

  transportOf(name: string): ServerInfo["transport"] {
    return this.#servers?.transportOf(name);
  }

  /** Starts them in the background. */
  start(): void {
    this.#isStarted = true;
    this.#servers?.start(this.#host.config.view);
  }

  /** Starts them, and waits a while until each was tried. Rejects with the signal's reason only. */
  async ready(signal: AbortSignal, view: CatalogView = this.#host.config.view): Promise<void> {
    this.#isStarted = true;
    if (this.#servers === undefined) return;
    await this.#servers.ready(view, signal);
    this.#reportDiagnostics(this.#servers.diagnostics);
    const { events } = this.#host;
    const type = "session.mcp_servers_loaded";
    const list = this.#servers.list();
    // Do not announce an empty list first.
    if (list.length === 0 && this.#announcedServers === undefined) return;
    const loaded = JSON.stringify(list.map(({ name, origin }) => [name, origin]));
    if (loaded === this.#announcedServers || !events.wants(type)) return;
    this.#announcedServers = loaded;
    events.append(type, { servers: list.map(describe) });
  }

  /** Others are configured now: those are started as far as the ones before were. */
  async changed(signal: AbortSignal): Promise<void> {
    if (this.#isStarted) await this.ready(signal);
  }

  /** Starts servers that may provide a missing tool. Undefined: there is nothing to wait for. */
  awaitMoreTools(signal: () => AbortSignal): Promise<void> | undefined {
    return this.#servers?.isPending(this.#host.config.view) === true ? this.ready(signal()) : undefined;
  }

  [Symbol.dispose](): void {
    this.#listening?.[Symbol.dispose]();
  }

  async #askToSignIn(...[data, signal]: Parameters<AskToSignIn>): ReturnType<AskToSignIn> {
    const outcome = await this.#asks.open("authorization", data, { signal: () => signal, serverName: data.serverName });
    if (outcome.kind === "answered") return outcome.answer;
    throw new HostError(
      "ASK_UNANSWERED",
      `No client of session ${this.#host.sessionId} can sign in to the MCP server "${data.serverName}".`,
    );
  }

  /** "No client to ask" is not a refusal; interactive sign-in may follow. */
  async #askForToken(...[data, signal]: Parameters<AskForToken>): ReturnType<AskForToken> {
    if (!this.#clients.canAsk("accessToken")) return undefined;
    const outcome = await this.#asks.open("accessToken", data, { signal: () => signal, serverName: data.serverName });
    return outcome.kind === "answered" ? outcome.answer : undefined;
  }

  #reportDiagnostics(diagnostics: readonly Diagnostic[]): void {
    const { events, log, sessionId } = this.#host;
    for (const { severity, code, message } of diagnostics) {
      if (this.#announcedDiagnostics.has(message)) continue;
      this.#announcedDiagnostics.add(message);
      if (severity === "info") log.info(message, { sessionId, code });
      else log.warning(message, { sessionId, code });
      if (severity !== "info") events.append("session.info", { infoType: "mcp_config", message });
    }
  }
}

const askFirst: ServerPolicy = Object.freeze({ elicitation: "ask", sampling: "ask" });
const none: readonly ServerInstructions[] = Object.freeze([]);

function describe({ name, status, transport, origin, error }: ServerInfo): ServerFacts {
  return {
    name,
    status,
    ...(transport !== undefined && { transport }),
    source: sourceOf(origin),
    ...(origin.kind === "plugin" && { pluginName: origin.source }),
    ...(error !== undefined && { error }),
  };
}

/** What MCP servers may ask for while they work. */
export interface ServerPolicy {
  /** `ask`: the attached clients. `deny`: no client. */
  readonly elicitation: "ask" | "deny";
  /** `allow`: if no client answers, the session's own model does, at the owner's cost. */
  readonly sampling: "ask" | "deny" | "allow";
}

/** Where the configuration of a server comes from. */
export interface ServerOrigin {
  readonly kind: "host" | "skill" | "plugin" | "agent" | "session";
  /** Which skill, plugin or agent. */
  readonly source?: string;
}

/** Where a server's configuration comes from, in the Copilot SDK's words. */
export function sourceOf({ kind }: ServerOrigin): "user" | "workspace" | "plugin" {
  if (kind === "skill" || kind === "plugin") return "plugin";
  return kind === "host" ? "workspace" : "user";
}

/** How a server stands, in the Copilot SDK's words. `pending`: not started yet, or being connected to. */
export type ServerStatus = "connected" | "failed" | "needs-auth" | "pending" | "disabled" | "stopped" | "not_configured";

/** A tool of a server, whether or not a session may call it. */
export interface ServerTool {
  /** What models call it. */
  readonly name: string;
  /** What the server calls it. */
  readonly nativeName: string;
  readonly description?: string;
}

/** A part of a server that is not available until it is approved. */
export interface HeldBack {
  readonly kind: string;
  readonly name: string;
  /** Why, and how it differs from what was approved. */
  readonly reason: string;
  readonly diff?: string;
}

/** An MCP server as it stands now. */
export interface ServerInfo {
  readonly name: string;
  readonly origin: ServerOrigin;
  readonly transport?: "stdio" | "http" | "sse";
  readonly status: ServerStatus;
  /** What went wrong, or what its configuration lacks. */
  readonly error?: string;
  /** The end of what it wrote to stderr. */
  readonly stderrTail?: string;
  readonly pid?: number;
  readonly protocolVersion?: string;
  /** The program that serves, by its own account: `serverInfo` of MCP. */
  readonly implementation?: { readonly name: string; readonly version: string; readonly title?: string };
  /** What the server says it can do, as in MCP. */
  readonly capabilities?: Json;
  /** What the server says about its use. */
  readonly instructions?: string;
  readonly tools: readonly ServerTool[];
  readonly held: readonly HeldBack[];
  readonly diagnostics: readonly Diagnostic[];
}

/** What became of a server. */
export type ServerEvents =
  | { readonly kind: "status"; readonly server: string; readonly status: ServerStatus; readonly error: string | undefined }
  | { readonly kind: "list"; readonly server: string; readonly list: "tools" | "prompts" | "resources" };

/** Asks the clients of a session to sign in. Rejects when none can. */
export type AskToSignIn = (data: Asks["authorization"]["data"], signal: AbortSignal) => Promise<Asks["authorization"]["answer"]>;

/** Asks the clients of a session for a token. Undefined: none provides one. */
export type AskForToken = (data: Asks["accessToken"]["data"], signal: AbortSignal) => Promise<Asks["accessToken"]["answer"] | undefined>;

/** The MCP servers of one session, as its host provides them. */
export interface SessionServers {
  readonly policy: ServerPolicy;
  /** What was wrong with configurations that the session itself brought; each message once. */
  readonly diagnostics: readonly Diagnostic[];
  /** The servers of the session's own conversation, in order of precedence. */
  list(): readonly ServerInfo[];
  /** Those of one view's conversation. The same array until it changes. */
  instructions(view: CatalogView): readonly ServerInstructions[];
  /** How a server is reached, of the session's own conversation; undefined: there is none of this name. */
  transportOf(name: string): ServerInfo["transport"];
  /** False: waiting would not change anything. */
  isPending(view: CatalogView): boolean;
  /** Starts those of a view in the background. */
  start(view: CatalogView): void;
  /** Starts those of a view, and waits until each was tried once, though not for ever. Rejects with the signal's reason only. */
  ready(view: CatalogView, signal: AbortSignal): Promise<void>;
  /** Starts one that was stopped or has failed, of this session. @throws HostError `MCP_SERVER_UNKNOWN`. */
  startServer(name: string): void;
  /** Goes without one from now on; it ends when no other session uses it. @throws HostError `MCP_SERVER_UNKNOWN`. */
  stopServer(name: string): void;
  /** Ends one and starts it again, for all who use it. @throws HostError `MCP_SERVER_UNKNOWN`. */
  restartServer(name: string): Promise<void>;
  /** Overrules what its configuration says. @throws HostError `MCP_SERVER_UNKNOWN`. */
  enableServer(name: string): void;
  subscribe(listener: (news: ServerEvents) => void): Disposable;
  /** How a server that requires signing in may ask. */
  onSignIn(ask: AskToSignIn): void;
  /** Whom a server of the session's own is asked a token for, where sessions have tokens of their own. */
  onTokenWanted(ask: AskForToken): void;
  /** Signs in to a server and connects to it; `again`: also when there are tokens. @throws HostError `MCP_SERVER_UNKNOWN`, `MCP_NO_SIGN_IN`. */
  signIn(name: string, options: { readonly authorize: AskToSignIn; readonly again?: boolean | undefined }): Promise<ServerInfo>;
  /** Finds out whether a server requires a sign-in, and asks no user. @throws HostError `MCP_SERVER_UNKNOWN`, `MCP_NO_SIGN_IN`. */
  probe(name: string, signal: AbortSignal): Promise<ServerProbe>;
}
