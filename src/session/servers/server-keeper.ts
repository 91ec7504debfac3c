import type { Diagnostic } from "../../base/diagnostic.ts";
import { HostError } from "../../base/errors.ts";
import type { Logger } from "../../base/logger.ts";
import type { AskKind } from "../asks/ask-kinds.ts";
import type { SessionAsks } from "../asks/asks.ts";
import type { CatalogView } from "../catalog/catalog-view.ts";
import type { ServerInstructions } from "../instructions/instructions.ts";
import type { SessionEvents } from "../records/events.ts";
import {
  type AskForToken,
  type AskToSignIn,
  type ServerInfo,
  type ServerNews,
  type ServerPolicy,
  type SessionServers,
  sourceOf,
} from "./session-servers.ts";

export interface ServerKeeperHost {
  readonly events: SessionEvents;
  readonly log: Logger;
  readonly sessionId: string;
  readonly asks: SessionAsks;
  readonly config: { readonly view: CatalogView };
  /** Whether somebody can answer this kind of question. */
  canAsk(kind: AskKind): boolean;
}

/** What a session does with its MCP servers: it starts them when they are wanted, and tells of them. */
export class ServerKeeper implements Disposable {
  readonly #host: ServerKeeperHost;
  readonly #servers: SessionServers | undefined;
  readonly #listening: Disposable | undefined;
  readonly #toldDiagnostics = new Set<string>();
  #toldServers: string | undefined;
  #isStarted = false;

  constructor(host: ServerKeeperHost, servers: SessionServers | undefined) {
    this.#host = host;
    this.#servers = servers;
    this.#listening = servers?.subscribe((news) => this.#tellNews(news));
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
    this.#tellDiagnostics(this.#servers.diagnostics);
    this.#tellLoaded(this.#servers);
  }

  /** Others are configured now: those are started as far as the ones before were. */
  async changed(signal: AbortSignal): Promise<void> {
    if (this.#isStarted) await this.ready(signal);
  }

  /** Starts what may bring a tool that nobody has yet. Undefined: there is nothing to wait for. */
  awaitMoreTools(signal: () => AbortSignal): Promise<void> | undefined {
    return this.#servers?.isPending(this.#host.config.view) === true ? this.ready(signal()) : undefined;
  }

  [Symbol.dispose](): void {
    this.#listening?.[Symbol.dispose]();
  }

  async #askToSignIn(...[data, signal]: Parameters<AskToSignIn>): ReturnType<AskToSignIn> {
    const outcome = await this.#host.asks.open("authorization", data, { signal: () => signal, serverName: data.serverName });
    if (outcome.kind === "answered") return outcome.answer;
    throw new HostError(
      "ASK_UNANSWERED",
      `No client of session ${this.#host.sessionId} can sign in to the MCP server "${data.serverName}".`,
    );
  }

  /** Nobody being there to ask is no answer: then a person may sign in. */
  async #askForToken(...[data, signal]: Parameters<AskForToken>): ReturnType<AskForToken> {
    const { asks } = this.#host;
    if (!this.#host.canAsk("accessToken")) return undefined;
    const outcome = await asks.open("accessToken", data, { signal: () => signal, serverName: data.serverName });
    return outcome.kind === "answered" ? outcome.answer : undefined;
  }

  #tellNews(news: ServerNews): void {
    const { events } = this.#host;
    const type = news.kind === "status" ? "session.mcp_server_status_changed" : `mcp.${news.list}.list_changed`;
    if (!events.wants(type)) return;
    const { server: serverName } = news;
    if (news.kind === "list") events.append(type, { serverName });
    else events.append(type, { serverName, status: news.status, ...(news.error !== undefined && { error: news.error }) });
  }

  #tellLoaded(servers: SessionServers): void {
    const { events } = this.#host;
    const type = "session.mcp_servers_loaded";
    const list = servers.list();
    // Where there never were any, that is no news.
    if (list.length === 0 && this.#toldServers === undefined) return;
    const told = JSON.stringify(list.map(({ name, origin }) => [name, origin]));
    if (told === this.#toldServers || !events.wants(type)) return;
    this.#toldServers = told;
    events.append(type, { servers: list.map(describe) });
  }

  #tellDiagnostics(diagnostics: readonly Diagnostic[]): void {
    const { events, log, sessionId } = this.#host;
    for (const { severity, code, message } of diagnostics) {
      if (this.#toldDiagnostics.has(message)) continue;
      this.#toldDiagnostics.add(message);
      if (severity === "info") log.info(message, { sessionId, code });
      else log.warning(message, { sessionId, code });
      if (severity !== "info" && events.wants("session.info")) events.append("session.info", { infoType: "mcp_config", message });
    }
  }
}

const askFirst: ServerPolicy = Object.freeze({ elicitation: "ask", sampling: "ask" });
const none: readonly ServerInstructions[] = Object.freeze([]);

function describe({ name, status, transport, origin, error }: ServerInfo): object {
  return {
    name,
    status,
    ...(transport !== undefined && { transport }),
    source: sourceOf(origin),
    ...(origin.kind === "plugin" && { pluginName: origin.source }),
    ...(error !== undefined && { error }),
  };
}
