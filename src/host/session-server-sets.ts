import { canonicalJson, sha256 } from "../base/canonical-json.ts";
import { errorMessage, HostError, toError } from "../base/errors.ts";
import type { Json } from "../base/json.ts";
import type { Logger } from "../base/logger.ts";
import type { McpServerSpec, RemoteServerSpec } from "../formats/mcp/mcp-server-spec.ts";
import type { ConnectOptions } from "../mcp/connection/connection.ts";
import type { CredentialStore } from "../mcp/oauth/credentials.ts";
import type { ServerOAuth } from "../mcp/oauth/server-oauth.ts";
import type { ServerConnector } from "../mcp/supervisor/server-connector.ts";
import type { ServerLease, SupervisedServer } from "../mcp/supervisor/server-lease.ts";
import { McpSupervisor } from "../mcp/supervisor/supervisor.ts";
import { ServerView } from "../mcp/views/server-view.ts";
import type { AskForToken, AskToSignIn, ServerPolicy } from "../session/mcp/server-connections.ts";
import { isStartable, type SessionServer } from "../session/mcp/session-server-options.ts";
import type { ApprovalStore } from "../trust/approvals.ts";
import type { ResolvedHostOptions } from "./host-options.ts";

/** A set of servers and its features, which all users of equal servers share. */
export interface ServerSet {
  readonly key: string;
  readonly servers: readonly SessionServer[];
  readonly lease: ServerLease;
  readonly view: ServerView;
}

/** A session whose user can sign in to the servers that it uses. */
interface SignInAsker {
  uses(url: string): boolean;
  readonly ask: AskToSignIn;
}

interface SharedSet extends ServerSet {
  users: number;
}

/** A message between a host and one of its MCP servers, or what a local server wrote to stderr. */
export interface ServerTraffic {
  readonly server: string;
  readonly direction: "sent" | "received" | "stderr";
  /** A message of JSON-RPC, as it was. For stderr: `{ text }`, with credentials redacted. */
  readonly message: Json;
}

/** Receives what goes to and comes from MCP servers. */
export interface TrafficListener {
  /** Asked before each message: false costs nothing. */
  isWanted(): boolean;
  receive(traffic: ServerTraffic): void;
}

/** The MCP servers of a host. Sessions with equal servers share one set, so that many sessions share one catalog. */
export class ServerSets implements AsyncDisposable {
  readonly #options: ResolvedHostOptions;
  readonly #approvals: ApprovalStore;
  readonly #connector: OwnedConnector;
  readonly #supervisor: McpSupervisor;
  readonly #sets = new Map<string, SharedSet>();
  readonly #askers = new Set<SignInAsker>();
  readonly #tokenGivers = new Map<string, AskForToken>();
  readonly #ending = new Set<Promise<void>>();

  constructor(options: ResolvedHostOptions, approvals: ApprovalStore, traffic?: TrafficListener) {
    const { log, workingDirectory, mcp } = options;
    this.#options = options;
    this.#approvals = approvals;
    this.#connector = createConnector({
      log,
      traffic,
      policy: mcp,
      credentialsDirectory: mcp.credentialsDirectory,
      isAttended: (url) => [...this.#askers].some((asker) => asker.uses(url)),
      askForToken: (owner) => async (data, signal) => this.#tokenGivers.get(owner)?.(data, signal),
      askToSignIn: (url) => (data, signal) => this.#askToSignIn(url, data, signal),
    });
    this.#supervisor = new McpSupervisor({
      connect: this.#connector.connect,
      workingDirectory,
      log,
      cacheDirectory: mcp.cacheDirectory,
      readyWait: mcp.startupWait,
    });
  }

  /** Acquires a set without starting its servers. The caller must `release` it. */
  hold(servers: readonly SessionServer[]): ServerSet {
    const key = sha256(canonicalJson(servers));
    const set = this.#sets.get(key) ?? this.#create(key, servers);
    set.users++;
    this.#sets.set(key, set);
    return set;
  }

  release({ key }: ServerSet): void {
    const set = this.#sets.get(key);
    if (set === undefined || --set.users > 0) return;
    this.#sets.delete(key);
    this.#end(set);
  }

  /** Starts a server. If it requires a sign-in, the user is asked first. */
  start(server: SupervisedServer): void {
    const { spec } = server;
    if (server.state !== "needs-auth" || !isStartable(spec)) server.start();
    else void this.#connector.signIn(spec).then(() => server.start());
  }

  /** The OAuth session of a server. @throws HostError `MCP_NO_SIGN_IN` when it does not use OAuth. */
  async oauthOf(server: SupervisedServer): Promise<ServerOAuth> {
    const { spec, name } = server;
    const oauth = isStartable(spec) ? await this.#connector.oauthOf(spec) : undefined;
    if (oauth !== undefined) return oauth;
    const why = "It runs on this machine, has a token in its configuration, or has no URL.";
    throw new HostError("MCP_NO_SIGN_IN", `MCP server ${JSON.stringify(name)} does not use OAuth sign-in. ${why}`);
  }

  /** Approves all held-back definitions of a server, or one tool. Returns their number. */
  async approve(server: string, tool: string | undefined): Promise<number> {
    const holding = [...this.#sets.values()].filter(({ servers }) => servers.some(({ name }) => name === server));
    if (holding.length === 0) {
      const known = [...new Set([...this.#sets.values()].flatMap(({ servers }) => servers.map(({ name }) => name)))];
      const advice = known.length === 0 ? "There are no MCP servers." : `The servers are: ${known.join(", ")}.`;
      throw new HostError("MCP_SERVER_UNKNOWN", `MCP server ${JSON.stringify(server)} does not exist. ${advice}`);
    }
    // One after the other: the later views find what the first one has approved.
    let approved = 0;
    for (const { view } of holding) approved += await view.approve(server, tool);
    return approved;
  }

  /** Adds a session whose user can sign in, until the result is disposed of. */
  addAsker(asker: SignInAsker): Disposable {
    this.#askers.add(asker);
    return { [Symbol.dispose]: () => void this.#askers.delete(asker) };
  }

  /** Requests the tokens of this owner with `ask`, until the result is disposed of. */
  addTokenGiver(owner: string, ask: AskForToken): Disposable {
    this.#tokenGivers.set(owner, ask);
    return {
      [Symbol.dispose]: () => {
        if (this.#tokenGivers.get(owner) === ask) this.#tokenGivers.delete(owner);
      },
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const set of this.#sets.values()) this.#end(set);
    this.#sets.clear();
    await Promise.allSettled(this.#ending);
    await this.#supervisor[Symbol.asyncDispose]();
    this.#connector[Symbol.dispose]();
  }

  /** Waits until a view has stored the definitions it has seen. Otherwise the next program would treat a changed one as new. */
  #end({ view, lease }: SharedSet): void {
    const close = async (): Promise<void> => {
      try {
        await view[Symbol.asyncDispose]();
      } catch (error) {
        this.#options.log.error("The cached lists of an MCP server could not be stored.", { error: toError(error) });
      }
    };
    const ending = close().finally(() => this.#ending.delete(ending));
    this.#ending.add(ending);
    lease[Symbol.dispose]();
  }

  #create(key: string, servers: readonly SessionServer[]): SharedSet {
    const { log, mcp } = this.#options;
    const lease = this.#supervisor.acquire(servers);
    const view = new ServerView(lease, {
      approvals: this.#approvals,
      pins: mcp.pins,
      howToApprove: ({ server, name, kind }) => {
        const names = kind === "tool" ? [server, name] : [server];
        const call = `host.approveServer(${names.map((each) => JSON.stringify(each)).join(", ")})`;
        return `Review the change. If you accept it, approve it with "skillhost approve ${names.join(" ")}" or ${call}.`;
      },
      onError: (error) => log.error("The approved definitions of an MCP server could not be stored.", { error: toError(error) }),
    });
    return { key, servers, lease, view, users: 0 };
  }

  /** Asks the users of the server one after the other, until one signs in. */
  async #askToSignIn(url: string, ...[data, signal]: Parameters<AskToSignIn>): ReturnType<AskToSignIn> {
    for (const asker of [...this.#askers].filter((each) => each.uses(url))) {
      try {
        return await asker.ask({ ...data, serverUrl: url }, signal);
      } catch (error) {
        if (signal.aborted) throw error;
      }
    }
    const advice = 'Set onMcpAuthorization on a session that uses it, or sign in with "skillhost login".';
    throw new HostError("ASK_UNANSWERED", `No user is available to sign in to the MCP server "${data.serverName}". ${advice}`);
  }
}

interface ConnectorOptions {
  readonly log: Logger;
  readonly policy: ServerPolicy;
  /** The folder of OAuth credentials, which belongs to the user. */
  readonly credentialsDirectory: string;
  /** Lets a user sign in to the server at a URL. */
  readonly askToSignIn: (url: string) => AskToSignIn;
  /** Absent: nothing observes the messages. */
  readonly traffic?: TrafficListener | undefined;
  /** Requests the tokens of a session that provides its own. Absent: there are no such sessions. */
  readonly askForToken?: (owner: string) => AskForToken;
  /** Whether a user can be asked to sign in to the server at a URL. */
  readonly isAttended: (url: string) => boolean;
}

/** Connects a host's MCP servers, and lets users sign in to those that require it. */
export interface OwnedConnector extends Disposable {
  readonly connect: ServerConnector;
  /** Lets a user sign in again. Settles when this has succeeded or failed. */
  signIn(spec: McpServerSpec): Promise<void>;
  /** The OAuth session of a server. Undefined: the server does not use OAuth. */
  oauthOf(spec: McpServerSpec): Promise<ServerOAuth> | undefined;
}

/** Imports the MCP client with the first server, since most programs need none and it is the largest module. */
export function createConnector(options: ConnectorOptions): OwnedConnector {
  const { log, policy, traffic } = options;
  const sessions = new Map<string, Promise<ServerOAuth>>();
  const oauthOf = (spec: McpServerSpec): Promise<ServerOAuth> | undefined => {
    if (spec.type === "stdio" || hasAuthorization(spec)) return undefined;
    const { name, url, headers, oauth } = spec;
    const key = sha256(canonicalJson([name, url, headers, oauth ?? null]));
    const known = sessions.get(key) ?? openOAuth(spec, options);
    sessions.set(key, known);
    return known;
  };
  return {
    async connect(spec, request) {
      const [{ connectServer }, auth] = await Promise.all([import("../mcp/connection/connect-server.ts"), oauthOf(spec)]);
      return connectServer(spec, { ...request, ...(traffic && observe(spec.name, request, traffic)), log, requests: policy, auth });
    },
    async signIn(spec) {
      try {
        await (await oauthOf(spec))?.signIn();
      } catch (error) {
        log.warning(`No user signed in to the MCP server "${spec.name}".`, { error: errorMessage(error) });
      }
    },
    oauthOf,
    [Symbol.dispose]() {
      for (const opening of sessions.values()) void opening.then((oauth) => oauth[Symbol.dispose]());
      sessions.clear();
    },
  };
}

/** Passes on what a connection sends and receives while it is wanted. */
function observe(
  server: string,
  { onStderr }: Parameters<ServerConnector>[1],
  { isWanted, receive }: TrafficListener,
): Required<Pick<ConnectOptions, "onMessage" | "onStderr">> {
  return {
    onMessage(direction, message) {
      if (isWanted()) receive({ server, direction: direction === "in" ? "received" : "sent", message: message as unknown as Json });
    },
    onStderr(text) {
      onStderr?.(text);
      if (isWanted()) receive({ server, direction: "stderr", message: { text } });
    },
  };
}

/** A token in the configuration takes precedence over OAuth. */
function hasAuthorization({ headers }: RemoteServerSpec): boolean {
  return Object.keys(headers).some((name) => name.toLowerCase() === "authorization");
}

async function openOAuth({ name, url, headers, oauth }: RemoteServerSpec, options: ConnectorOptions): Promise<ServerOAuth> {
  const { log, askToSignIn, isAttended } = options;
  const owner = oauth?.owner;
  const [oauthModule, store] = await Promise.all([import("../mcp/oauth/server-oauth.ts"), openCredentials(owner, options)]);
  if (owner !== undefined) {
    const acquire = options.askForToken?.(owner);
    const people = { authorize: askToSignIn(url), acquire, isAttended: () => acquire !== undefined || isAttended(url) };
    return new oauthModule.ServerOAuth({ serverName: name, serverUrl: url, spec: oauth, headers, store, ...people, log });
  }
  const people = { authorize: askToSignIn(url), isAttended: () => isAttended(url) };
  return new oauthModule.ServerOAuth({ serverName: name, serverUrl: url, spec: oauth, headers, store, ...people, log });
}

/** The credentials of a single session are kept in memory. */
async function openCredentials(owner: string | undefined, { credentialsDirectory, log }: ConnectorOptions): Promise<CredentialStore> {
  if (owner !== undefined) return (await import("../mcp/oauth/file-credentials.ts")).createMemoryCredentials();
  return (await import("../mcp/oauth/file-credentials.ts")).createFileCredentials({ directory: credentialsDirectory, log });
}
