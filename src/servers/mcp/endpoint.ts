import type { Logger } from "../../base/logger.ts";
import type { Host } from "../../host/host.ts";
import type { Session } from "../../session/session.ts";
import type { SessionOptions } from "../../session/session-config.ts";
import { type ConnectionEra, createConnectedServer, type ServerIdentity, type ServerParts } from "./create-mcp-server.ts";
import { SkillResources } from "./handlers/skills-extension.ts";
import { InputRequiredCalls } from "./input-required-calls.ts";
import type { ServedConnection } from "./legacy-sessions.ts";
import { describeServed, errorsOf, type HostErrors, ServedSession } from "./served-session.ts";
import { ServerResourceSubscriptions } from "./server-resource-subscriptions.ts";

export interface EndpointOptions {
  /** Options of the sessions that are made for clients. */
  readonly session?: SessionOptions | undefined;
  /** False: clients are not asked for permission; the session's own options decide. Default: true. */
  readonly asksPermission?: boolean | undefined;
  readonly identity: Pick<ServerIdentity, "name" | "title" | "version">;
  /** Default: which skills are served. */
  readonly instructions?: string | undefined;
}

/** What is served to whoever connects: each client gets a session of the host, or all of them the one that was given. */
export interface McpEndpoint {
  /** `isShared`: several clients are going to use it. */
  open(use: { readonly isShared: boolean }): Promise<OpenEndpoint>;
  /** For one client up to revision 2025-11-25. */
  connect(): Promise<ServedConnection>;
}

/** A session that is served, with what hangs on it. */
export interface OpenEndpoint extends AsyncDisposable {
  readonly served: ServedSession;
  readonly watches: ServerResourceSubscriptions;
  readonly parts: ServerParts;
  /** A server for a connection of its own. */
  createServer(era: ConnectionEra): ServedConnection["server"];
}

export function createEndpoint(source: Host | Session, options: EndpointOptions, log: Logger): McpEndpoint {
  const open: McpEndpoint["open"] = async ({ isShared }) => {
    if (!isHost(source)) return openFace(new ServedSession(source, log, false), { ...options, isShared: true }, log);
    const session = await source.createSession({ ...forServing, ...options.session });
    return openFace(new ServedSession(session, log, true), { ...options, isShared, errors: errorsOf(source) }, log);
  };
  return {
    open,
    async connect() {
      const opened = await open({ isShared: false });
      return { server: opened.createServer("legacy"), end: async () => opened[Symbol.asyncDispose]() };
    },
  };
}

// Nobody goes on with such a session, and what a client shows to its model is the client's to decide.
const forServing: SessionOptions = { persist: false, largeOutput: { enabled: false }, toolSearch: { enabled: false } };

function isHost(source: Host | Session): source is Host {
  return "createSession" in source;
}

interface OpenOptions extends EndpointOptions {
  readonly isShared: boolean;
  readonly errors?: HostErrors;
}

function openFace(served: ServedSession, options: OpenOptions, log: Logger): OpenEndpoint {
  const { isShared, errors, asksPermission = true, identity, instructions } = options;
  const conversations = { isShared, asksPermission };
  const roundTrips = new InputRequiredCalls(conversations);
  const watches = new ServerResourceSubscriptions(served.session, log);
  const parts: ServerParts = {
    served,
    identity: {
      ...identity,
      get instructions() {
        return instructions ?? describeServed(served.session);
      },
    },
    conversations,
    roundTrips,
    shelf: new SkillResources(served.session, log),
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
