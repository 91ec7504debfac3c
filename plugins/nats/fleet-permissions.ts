import { HostError } from "skillhost";
import { fleetSubjects } from "./fleet-connection.ts";

/** What a program does in a fleet: serve tools, call them, or decide which versions of skills run. */
export type FleetRole = "worker" | "host" | "publisher";

/** Options of `fleetPermissions`. */
export interface FleetPermissionOptions {
  /** The first part of every subject. Default: `skillhost`. */
  readonly prefix?: string | undefined;
  /** Whether hosts keep their sessions in the fleet. Each can read the conversations of all of them then. Default: false. */
  readonly sessions?: boolean | undefined;
  /** Whether MCP servers of hosts answer for each other. Each can read what clients of the others send then. Default: false. */
  readonly mcp?: boolean | undefined;
}

/** The subjects that a role may use, as the permissions of a user of nats-server name them. */
export interface SubjectPermissions {
  readonly publish: readonly string[];
  readonly subscribe: readonly string[];
}

/**
 * What a role needs on the servers, and no more. Workers and hosts read the catalog of skills and report what they run; only a publisher
 * changes it, and makes its buckets.
 * @throws HostError `FLEET_OPTIONS` for a prefix that is not one token.
 */
export function fleetPermissions(role: FleetRole, options: FleetPermissionOptions = {}): SubjectPermissions {
  const { prefix = "skillhost", sessions = false, mcp = false } = options;
  const subjects = fleetSubjects(prefix);
  const replies = "_INBOX.>";
  const [anyTool, anyHost] = [subjects.tool("*", "*"), subjects.host("*", "*")];
  const worker = (what: string): string => subjects.worker("*", what);
  switch (role) {
    case "worker":
      return {
        publish: [subjects.presence, anyHost, worker("gone.*"), replies, ...catalogReading(prefix)],
        subscribe: [anyTool, worker("control"), worker("tools"), worker("gone.*"), subjects.rollCall, "$SRV.>", replies],
      };
    case "host":
      return {
        publish: [
          anyTool,
          worker("control"),
          worker("tools"),
          subjects.rollCall,
          ...catalogReading(prefix),
          ...(sessions ? sessionKeeping(prefix) : []),
          ...(mcp ? [subjects.mcp("*", ">"), ...mcpKeeping(prefix)] : []),
        ],
        subscribe: [anyHost, subjects.presence, ...(mcp ? [subjects.mcp("*", ">")] : []), replies],
      };
    case "publisher":
      return { publish: catalogChanging(prefix), subscribe: [replies] };
  }
}

/** JetStream's own subjects for reading a stream. A bucket of keys is the stream KV_<name>, one of objects OBJ_<name>. */
function reading(stream: string): readonly string[] {
  const requests = ["STREAM.INFO", "STREAM.MSG.GET", "DIRECT.GET", "DIRECT.GET", "CONSUMER.CREATE", "CONSUMER.INFO", "CONSUMER.DELETE"];
  const own = requests.map((request, at) => `$JS.API.${request}.${stream}${at < 3 ? "" : ".>"}`);
  return [...own, `$JS.API.CONSUMER.MSG.NEXT.${stream}.>`, `$JS.FC.${stream}.>`];
}

function catalogReading(prefix: string): readonly string[] {
  const streams = [`KV_${prefix}-catalog`, `OBJ_${prefix}-skills`].flatMap(reading);
  return ["$JS.API.INFO", ...streams, `$JS.API.STREAM.INFO.KV_${prefix}-hosts`, `$KV.${prefix}-hosts.>`];
}

function catalogChanging(prefix: string): readonly string[] {
  const streams = [`KV_${prefix}-catalog`, `KV_${prefix}-hosts`, `OBJ_${prefix}-skills`];
  return [
    "$JS.API.INFO",
    ...streams.flatMap((stream) => [`$JS.API.STREAM.CREATE.${stream}`, ...reading(stream)]),
    `$KV.${prefix}-catalog.>`,
    `$O.${prefix}-skills.>`,
  ];
}

function sessionKeeping(prefix: string): readonly string[] {
  const streams = [`${prefix}-sessions`, `KV_${prefix}-owners`];
  return [
    ...streams.flatMap((stream) => [`$JS.API.STREAM.CREATE.${stream}`, ...reading(stream)]),
    `$JS.API.STREAM.PURGE.${prefix}-sessions`,
    `${prefix}.sessions.>`,
    `$KV.${prefix}-owners.>`,
  ];
}

function mcpKeeping(prefix: string): readonly string[] {
  const stream = `KV_${prefix}-mcp`;
  return [`$JS.API.STREAM.CREATE.${stream}`, ...reading(stream), `$KV.${prefix}-mcp.>`];
}

/** What the servers refused, from an error of the library or one that it caused. Undefined: it is about something else. */
export function refusedSubject(error: unknown): { readonly message: string } | undefined {
  for (let at: unknown = error, depth = 0; at instanceof Error && depth < 5; at = at.cause, depth++) {
    if (at.name !== "PermissionViolationError") continue;
    const { operation, subject } = at as Error & { readonly operation?: string; readonly subject?: string };
    const what = operation === "subscription" ? "subscribe" : "publish";
    const message = `The NATS servers do not let this user ${what} to "${subject}". "skillhost fleet permissions" prints what each role needs`;
    return { message };
  }
  return undefined;
}

/** The error for work that the servers refused; other errors stay what they are. */
export function explainRefusal(error: unknown): unknown {
  const refused = error instanceof HostError ? undefined : refusedSubject(error);
  return refused === undefined ? error : new HostError("FLEET_FORBIDDEN", `${refused.message}.`, { cause: error });
}
