import type { CacheHint, Server, ServerOptions } from "@modelcontextprotocol/server";
import type { Logger } from "../../base/logger.ts";
import { callParams, createToolCaller } from "./call-tool.ts";
import type { ConversationOptions } from "./conversation.ts";
import { createErrorReport, type HostErrors } from "./diagnostic-messages.ts";
import { LeanServer } from "./lean-server.ts";
import { createPushConversations } from "./push-conversation.ts";
import type { RoundTrips } from "./round-trips.ts";
import { serveOffers } from "./serve-offers.ts";
import { serveSkills, skillsCapability } from "./serve-skills.ts";
import type { ServedSession } from "./served-session.ts";
import type { SkillShelf } from "./skill-shelf.ts";

/** What the servers of one face have in common. */
export interface ServerParts {
  readonly served: ServedSession;
  readonly identity: ServerIdentity;
  readonly conversations: ConversationOptions;
  readonly roundTrips: RoundTrips;
  readonly shelf: SkillShelf;
  /** Undefined: nobody knows of any. */
  readonly errors?: HostErrors | undefined;
  readonly log: Logger;
}

export interface ServerIdentity {
  readonly name: string;
  readonly title?: string | undefined;
  readonly version: string;
  /** What a client's model is told of the server. */
  readonly instructions: string;
}

// Lists may be others after any save. Whoever does not listen for that asks again after a second at the latest.
const listHint: CacheHint = { ttlMs: 1_000, cacheScope: "private" };
const readHint: CacheHint = { ttlMs: 0, cacheScope: "private" };

/** A server of the SDK that answers for a session: one for each connection, or for each request where those stand alone. */
export function createMcpServer(parts: ServerParts, era: "legacy" | "modern"): Server {
  const { served, identity, roundTrips, shelf, log } = parts;
  const isModern = era === "modern";
  const { instructions, title, name, version } = identity;
  const server = new LeanServer({ name, version, ...(title !== undefined && { title }) }, { ...serverOptions, instructions });
  server.onerror = (error) => log.debug("An MCP client sent something that could not be used.", { error });
  const converse = isModern ? roundTrips.converse : createPushConversations(server, parts.conversations, log);
  const callTool = createToolCaller({ served, server, converse, isModern, log });
  const reportErrors = parts.errors && createErrorReport(parts.errors, isModern);
  server.setRequestHandler("tools/list", (_request, context) => {
    reportErrors?.(context);
    return served.whenStarted(() => served.toolList as never);
  });
  server.setRequestHandler("tools/call", { params: callParams }, callTool);
  serveOffers({ served, server, converse, log, isModern, shelf });
  serveSkills(server, shelf, isModern ? listHint : undefined, log);
  return server;
}

const serverOptions: ServerOptions = {
  capabilities: {
    tools: { listChanged: true },
    prompts: { listChanged: true },
    resources: { listChanged: true, subscribe: true },
    completions: {},
    logging: {},
    extensions: skillsCapability,
  },
  cacheHints: {
    "tools/list": listHint,
    "prompts/list": listHint,
    "resources/list": listHint,
    "resources/templates/list": listHint,
    "resources/read": readHint,
    "server/discover": listHint,
  },
  // Answers are checked where they are read; the SDK would make a validator for each server.
  jsonSchemaValidator: { getValidator: () => () => ({ valid: false, data: undefined, errorMessage: "not in use" }) },
};
