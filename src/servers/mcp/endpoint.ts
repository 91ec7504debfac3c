import type { Logger } from "../../base/logger.ts";
import type { Host } from "../../host/host.ts";
import type { McpPeer, McpSeat } from "../../plugin-host/mcp-peers.ts";
import type { Session } from "../../session/session.ts";
import type { SessionOptions } from "../../session/session-config.ts";
import { type ConnectionEra, createConnectedServer, type ServerIdentity, type ServerParts } from "./create-mcp-server.ts";
import { SkillResources } from "./handlers/skills-extension.ts";
import { InputRequiredCalls } from "./input-required-calls.ts";
import type { ServedConnection } from "./legacy-sessions.ts";
import { describeServed, errorsOf, type HostErrors, ServedSession } from "./served-session.ts";
import { ServerResourceSubscriptions } from "./server-resource-subscriptions.ts";

export interface EndpointOptions {
  /** The options of sessions that are created for clients. */
  readonly session?: SessionOptions | undefined;
  /** False: clients are not asked for permission; the session's own options decide. Default: true. */
  readonly asksPermission?: boolean | undefined;
  readonly identity: Pick<ServerIdentity, "name" | "title" | "version">;
  /** Default: a text that names the skills. */
  readonly instructions?: string | undefined;
}

interface OpenUse {
  readonly isShared: boolean;
  /** The id of the server among its peers. */
  readonly place?: string | undefined;
}

/** Opens sessions for clients: each client gets a session of the host, or all clients share the given session. */
export interface McpEndpoint {
  /** `isShared`: several clients will use it. */
  open(use: OpenUse): Promise<OpenEndpoint>;
  /** Undefined: no other server answers for this one. */
  readonly peers: { join(server: McpPeer): McpSeat } | undefined;
  /** Opens a connection for one client of revisions up to 2025-11-25. */
  connect(): Promise<ServedConnection>;
}

/** A session that is served, with its subscriptions. */
export interface OpenEndpoint extends AsyncDisposable {
  readonly served: ServedSession;
  readonly watches: ServerResourceSubscriptions;
  readonly parts: ServerParts;
  /** Creates a server for one connection. */
  createServer(era: ConnectionEra): ServedConnection["server"];
}

export function createEndpoint(source: Host | Session, options: EndpointOptions, log: Logger): McpEndpoint {
  const open: McpEndpoint["open"] = async ({ isShared, place }) => {
    if (!isHost(source)) return openEndpoint(new ServedSession(source, log, false), { ...options, isShared: true }, log);
    const session = await source.createSession({ ...forServing, ...options.session }, { client: "mcp" });
    return openEndpoint(new ServedSession(session, log, true), { ...options, isShared, place, errors: errorsOf(source) }, log);
  };
  // A session that a program opened is not one that another server could open.
  const peers = isHost(source) ? source.mcpPeers : undefined;
  return {
    open,
    peers: peers && { join: (server) => peers.join(options.identity.name, server) },
    async connect() {
      const opened = await open({ isShared: false });
      return { server: opened.createServer("legacy"), end: async () => opened[Symbol.asyncDispose]() };
    },
  };
}

// Such a session is never resumed, and the client itself decides what it shows to its model.
const forServing: SessionOptions = { persist: false, largeOutput: { enabled: false }, toolSearch: { enabled: false } };

function isHost(source: Host | Session): source is Host {
  return "createSession" in source;
}

interface OpenOptions extends EndpointOptions, OpenUse {
  readonly errors?: HostErrors;
}

function openEndpoint(served: ServedSession, options: OpenOptions, log: Logger): OpenEndpoint {
  const { isShared, place, errors, asksPermission = true, identity, instructions } = options;
  const channelOptions = { isShared, asksPermission };
  const roundTrips = new InputRequiredCalls(channelOptions, { place });
  const watches = new ServerResourceSubscriptions(served.session, log);
  const parts: ServerParts = {
    served,
    identity: {
      ...identity,
      get instructions() {
        return instructions ?? describeServed(served.session);
      },
    },
    channelOptions,
    roundTrips,
    skills: new SkillResources(served.session, log),
    errors,
    log,
  };
  return {
    served,
    watches,
    parts,
    createServer: (era) => createConnectedServer({ parts, watches }, era),
    async [Symbol.asyncDispose]() {
      roundTrips[Symbol.dispose]();
      await watches[Symbol.asyncDispose]();
      await served[Symbol.asyncDispose]();
    },
  };
}
