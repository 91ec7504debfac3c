import type { Diagnostic } from "../base/diagnostic.ts";
import { Emitter } from "../base/emitter.ts";
import { HostError } from "../base/errors.ts";
import type { Logger } from "../base/logger.ts";
import { waitFor } from "../base/wait.ts";
import type { ServerProbe } from "../mcp/oauth/probe-server.ts";
import type { ServerLists, SupervisedServer } from "../mcp/supervisor/server-lease.ts";
import type { ServerState } from "../mcp/supervisor/server-state.ts";
import type { HeldDefinition } from "../mcp/views/held-definition.ts";
import type { ServerFeatures } from "../mcp/views/server-features.ts";
import type { ServerView, ServerViewSnapshot } from "../mcp/views/server-view.ts";
import type { CatalogSource } from "../session/catalog/tool-catalog.ts";
import type {
  AskForToken,
  AskToSignIn,
  HeldBack,
  ServerEvents,
  ServerInfo,
  ServerOrigin,
  ServerPolicy,
  ServerStatus,
  SessionServers,
} from "../session/mcp/server-connections.ts";
import { isStartable } from "../session/mcp/session-server-options.ts";
import type { ServerInstructions } from "../session/prompt/system-prompt.ts";
import type { ResolvedSkills } from "../skills/resolve-overrides.ts";
import { type ConfiguredServers, HeldServers, type ServerUser, type WhoseView } from "./declared-servers.ts";
import type { ServerSet, ServerSets } from "./session-server-sets.ts";

export interface SignInOptions {
  /** Lets the user sign in at a URL. The signal fires when this is no longer needed. */
  readonly authorize: AskToSignIn;
  readonly signal?: AbortSignal | undefined;
  /** Signs in even if there are tokens, such as for another account. */
  readonly again?: boolean | undefined;
}

export interface HostedServersParts {
  readonly sets: ServerSets;
  readonly configured: ConfiguredServers;
  readonly policy: ServerPolicy;
  /** Milliseconds that a conversation waits for servers to start. */
  readonly startupWait: number;
  readonly log: Logger;
}

type Snapshot = ServerView["snapshot"];

/** The servers of one session. They come from sets that it shares with other sessions. */
export class HostedServers implements SessionServers, Disposable {
  readonly policy: ServerPolicy;
  readonly #parts: HostedServersParts;
  readonly #held: HeldServers;
  /** Sets that a conversation has waited for. It waits only once for a server that does not start. */
  readonly #waitedFor = new WeakSet<ServerSet>();
  readonly #events: Emitter<{ changed: undefined; server: ServerEvents }>;
  readonly #notifier: ServerChangeNotifier;
  #asker: Disposable | undefined;
  #giver: Disposable | undefined;
  #askForToken: AskForToken | undefined;

  constructor(parts: HostedServersParts, skills: () => ResolvedSkills) {
    this.policy = parts.policy;
    this.#parts = parts;
    this.#events = new Emitter((error) => parts.log.error("An MCP server listener failed.", { error }));
    this.#notifier = new ServerChangeNotifier((event) => this.#events.emit("server", event));
    const { sets, configured } = parts;
    this.#held = new HeldServers({
      sets,
      configured,
      skills,
      onChanged: () => this.#events.emit("changed", undefined),
      onServerChanged: ({ server, kind }) => {
        if (kind === "lists") this.#notifier.notifyLists(server);
        else this.#notifier.notifyStatus(server, this.#held.stopped);
      },
    });
  }

  /** Applies a session's configuration of servers. Unchanged servers stay connected. */
  adopt(user: ServerUser): void {
    this.#held.adopt(user);
    this.#followOwner();
    this.#follow();
  }

  /** Reads the configuration again, since skills may have changed. */
  refresh(): void {
    this.#held.refresh();
    this.#follow();
  }

  /** The tools of the servers for catalogs. The same arrays until something in them changes. */
  sources(view: WhoseView): readonly CatalogSource[] {
    return toCatalogSources(this.snapshot(view));
  }

  /** Undefined: there are no servers. */
  snapshot(view: WhoseView): Snapshot | undefined {
    return this.#held.of(view)?.set?.view.snapshot;
  }

  get diagnostics(): readonly Diagnostic[] {
    return this.#held.user?.servers.diagnostics ?? [];
  }

  list(): readonly ServerInfo[] {
    const { set, owned } = this.#held.own ?? {};
    if (set === undefined || owned === undefined) return [];
    const features = new Map(set.view.snapshot.servers.map((each) => [each.name, each]));
    return set.lease.servers.map((server, index) =>
      describeServer(server, features.get(server.name), owned[index]!.origin, this.#held.stopped),
    );
  }

  instructions(view: WhoseView): readonly ServerInstructions[] {
    return this.snapshot(view)?.instructions ?? none;
  }

  transportOf(name: string): ServerInfo["transport"] {
    return this.#held.own?.set?.lease.servers.find((server) => server.name === name)?.status.type;
  }

  isPending(view: WhoseView): boolean {
    const set = this.#held.of(view)?.set;
    if (set === undefined || this.#waitedFor.has(set)) return false;
    return set.lease.servers.some(({ state }) => state === "idle" || state === "starting");
  }

  start(view: WhoseView): void {
    this.#held.start(view);
  }

  async ready(view: WhoseView, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const set = this.#held.start(view);
    if (set === undefined) return;
    if (!this.#waitedFor.has(set)) await set.lease.ready(signal, { waitMs: Math.min(this.#parts.startupWait, maxWaitMs) });
    this.#waitedFor.add(set);
    await set.view.ready(signal);
  }

  /** Starts the session's own servers, and waits until each has answered or failed. Rejects with the signal's reason. */
  async connect(signal: AbortSignal): Promise<void> {
    const set = this.#held.own?.set;
    await set?.lease.ready(signal, { waitMs: maxWaitMs, fresh: true });
    await set?.view.ready(signal);
  }

  /** Like `connect`, for at most `timeout` milliseconds: servers can be listed after that too. Rejects when the signal fires. */
  async connectInTime({
    signal,
    timeout,
  }: {
    readonly signal?: AbortSignal | undefined;
    readonly timeout?: number | undefined;
  }): Promise<void> {
    const waits = [...(signal === undefined ? [] : [signal]), ...(timeout === undefined ? [] : [AbortSignal.timeout(timeout)])];
    try {
      await this.connect(AbortSignal.any(waits));
    } catch (error) {
      if (signal?.aborted === true) throw error;
    }
  }

  startServer(name: string): void {
    this.#find(name);
    this.#held.unstop(name);
    this.#follow();
    this.#parts.sets.start(this.#find(name));
  }

  stopServer(name: string): void {
    this.#find(name);
    this.#held.stop(name);
    this.#follow();
  }

  async restartServer(name: string): Promise<void> {
    this.#find(name);
    this.#held.unstop(name);
    this.#follow();
    await this.#find(name).restart();
  }

  /** Lets the user sign in to a server if it requires that, and connects to it. */
  async signIn(name: string, { authorize, signal, again = false }: SignInOptions): Promise<ServerInfo> {
    const server = this.#find(name);
    const oauth = await this.#parts.sets.oauthOf(server);
    const asker = this.#parts.sets.addAsker({ ask: authorize, uses: (url) => "url" in server.spec && server.spec.url === url });
    try {
      if (again) await oauth.signIn({ signal });
      await waitFor(server.restart(), { signal });
      await this.#held.own?.set?.view.ready(signal ?? new AbortController().signal);
    } finally {
      asker[Symbol.dispose]();
    }
    return this.list().find((info) => info.name === name)!;
  }

  async probe(name: string, signal: AbortSignal): Promise<ServerProbe> {
    const oauth = await this.#parts.sets.oauthOf(this.#find(name));
    return oauth.probe(signal);
  }

  /** Revokes and deletes the credentials for a server, and ends the connection. */
  async signOut(name: string, signal: AbortSignal | undefined): Promise<void> {
    const server = this.#find(name);
    const oauth = await this.#parts.sets.oauthOf(server);
    await oauth.signOut({ signal });
    await server.stop();
  }

  enableServer(name: string): void {
    this.#find(name);
    this.#held.unstop(name, true);
    this.#follow();
  }

  subscribe(listener: (event: ServerEvents) => void): Disposable {
    return this.#events.on("server", listener);
  }

  /** Calls `listener` when the features of the servers have changed. */
  onChanged(listener: () => void): Disposable {
    return this.#events.on("changed", listener);
  }

  onSignIn(ask: AskToSignIn): void {
    this.#asker?.[Symbol.dispose]();
    this.#asker = this.#parts.sets.addAsker({ ask, uses: (url) => this.#uses(url) });
  }

  onTokenWanted(ask: AskForToken): void {
    this.#askForToken = ask;
    this.#followOwner();
  }

  /** Registers a session that provides its own tokens. */
  #followOwner(): void {
    const owner = this.#held.user?.servers.owner;
    this.#giver?.[Symbol.dispose]();
    this.#giver =
      owner === undefined || this.#askForToken === undefined ? undefined : this.#parts.sets.addTokenGiver(owner, this.#askForToken);
  }

  [Symbol.dispose](): void {
    this.#asker?.[Symbol.dispose]();
    this.#giver?.[Symbol.dispose]();
    this.#events.clear();
    this.#held[Symbol.dispose]();
  }

  #find(name: string): SupervisedServer {
    const found = this.#held.own?.set?.lease.servers.find((server) => server.name === name);
    if (found === undefined) throw new HostError("MCP_SERVER_UNKNOWN", `MCP server ${JSON.stringify(name)} does not exist.`);
    return found;
  }

  #uses(url: string): boolean {
    const servers = this.#held.all.flatMap(({ owned }) => owned);
    return servers.some(({ server }) => isStartable(server) && server.type !== "stdio" && server.url === url);
  }

  #follow(): void {
    this.#notifier.follow(this.#held.own?.set?.lease.servers ?? [], this.#held.stopped);
  }
}

// The longest delay of a timer.
const maxWaitMs = 2 ** 31 - 1;

const none: readonly ServerInstructions[] = Object.freeze([]);

type NamedList = Extract<ServerEvents, { readonly kind: "list" }>["list"];

const partsOf: Readonly<Record<NamedList, readonly (keyof ServerLists)[]>> = {
  tools: ["tools"],
  prompts: ["prompts"],
  resources: ["resources", "resourceTemplates"],
};

/** Compares a session's servers with their last known state, and emits the differences. The first state of a server is not emitted. */
class ServerChangeNotifier {
  readonly #emit: (event: ServerEvents) => void;
  readonly #statuses = new Map<string, ServerStatus>();
  readonly #lists = new Map<string, ServerLists>();

  constructor(emit: (event: ServerEvents) => void) {
    this.#emit = emit;
  }

  /** Replaces the servers. */
  follow(servers: readonly SupervisedServer[], stopped: ReadonlySet<string>): void {
    const names = new Set(servers.map(({ name }) => name));
    for (const name of [...this.#statuses.keys()].filter((known) => !names.has(known))) {
      this.#statuses.delete(name);
      this.#lists.delete(name);
    }
    for (const server of servers) this.notifyStatus(server, stopped);
  }

  notifyStatus(server: SupervisedServer, stopped: ReadonlySet<string>): void {
    const { name } = server;
    const status = statusOf(server, stopped);
    const before = this.#statuses.get(name);
    this.#statuses.set(name, status);
    if (before === undefined || before === status) return;
    this.#emit({ kind: "status", server: name, status, error: server.status.error?.message });
  }

  notifyLists({ name, lists }: SupervisedServer): void {
    const before = this.#lists.get(name);
    if (lists === undefined) return;
    this.#lists.set(name, lists);
    if (before === undefined) return;
    for (const list of Object.keys(partsOf) as NamedList[]) {
      if (partsOf[list].some((part) => lists[part] !== before[part])) this.#emit({ kind: "list", server: name, list });
    }
  }
}

const statuses: Readonly<Record<ServerState, ServerStatus>> = {
  idle: "pending",
  starting: "pending",
  ready: "connected",
  failed: "failed",
  "needs-auth": "needs-auth",
  "needs-configuration": "not_configured",
  disabled: "disabled",
  stopped: "stopped",
};

/** The status of a server in the terms of the Copilot SDK. */
function statusOf({ name, state }: SupervisedServer, stopped: ReadonlySet<string>): ServerStatus {
  return state === "disabled" && stopped.has(name) ? "stopped" : statuses[state];
}

function describeServer(
  server: SupervisedServer,
  features: ServerFeatures | undefined,
  origin: ServerOrigin,
  stopped: ReadonlySet<string>,
): ServerInfo {
  const { type, error, stderrTail, pid, protocolVersion, serverInfo } = server.status;
  const isStopped = stopped.has(server.name);
  return Object.freeze({
    name: server.name,
    origin,
    ...(type !== undefined && { transport: type }),
    status: statusOf(server, stopped),
    ...(error !== undefined && !isStopped && { error: error.message }),
    ...(stderrTail !== "" && { stderrTail }),
    ...(pid !== undefined && { pid }),
    ...(protocolVersion !== undefined && { protocolVersion }),
    ...(serverInfo !== undefined && { implementation: serverInfo }),
    ...(server.lists !== undefined && { capabilities: server.lists.capabilities }),
    ...(features?.instructions !== undefined && { instructions: features.instructions }),
    tools: (features?.tools ?? []).map(({ definition: { name, description }, origin: { nativeName } }) => ({
      name,
      nativeName,
      ...(description !== undefined && { description }),
    })),
    held: (features?.held ?? []).map(toHeldBack),
    diagnostics: features?.diagnostics ?? [],
  });
}

function toHeldBack({ kind, name, reason, diff }: HeldDefinition): HeldBack {
  return { kind, name, reason, ...(diff.length > 0 && { diff: diff.join("\n") }) };
}

const noSources: readonly CatalogSource[] = Object.freeze([]);
const known = new WeakMap<ServerViewSnapshot, readonly CatalogSource[]>();

/** Creates one source for each server. The same snapshot always gives the same array. */
function toCatalogSources(snapshot: ServerViewSnapshot | undefined): readonly CatalogSource[] {
  if (snapshot === undefined) return noSources;
  const sources =
    known.get(snapshot) ??
    snapshot.servers.map(({ name, tools, diagnostics }): CatalogSource => ({ kind: "mcp", id: name, tools, diagnostics }));
  known.set(snapshot, sources);
  return sources;
}
