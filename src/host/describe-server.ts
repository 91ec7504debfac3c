import type { SupervisedServer } from "../mcp/supervisor/server-lease.ts";
import type { ServerState } from "../mcp/supervisor/server-state.ts";
import type { HeldDefinition } from "../mcp/views/held-definition.ts";
import type { ServerFeatures } from "../mcp/views/server-features.ts";
import type { ServerViewSnapshot } from "../mcp/views/server-snapshot.ts";
import type { CatalogSource } from "../session/catalog/tool-catalog.ts";
import type { HeldBack, ServerInfo, ServerOrigin, ServerStatus } from "../session/servers/session-servers.ts";

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

/** A state in the Copilot SDK's words. */
export function statusOf({ name, state }: SupervisedServer, stopped: ReadonlySet<string>): ServerStatus {
  return state === "disabled" && stopped.has(name) ? "stopped" : statuses[state];
}

/** A server as people and programs are told of it. */
export function describeServer(
  server: SupervisedServer,
  offer: ServerFeatures | undefined,
  origin: ServerOrigin,
  stopped: ReadonlySet<string>,
): ServerInfo {
  const { type, error, stderrTail, pid, protocolVersion } = server.status;
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
    ...(offer?.instructions !== undefined && { instructions: offer.instructions }),
    tools: (offer?.tools ?? []).map(({ definition: { name, description }, origin: { nativeName } }) => ({
      name,
      nativeName,
      ...(description !== undefined && { description }),
    })),
    held: (offer?.held ?? []).map(toHeldBack),
    diagnostics: offer?.diagnostics ?? [],
  });
}

function toHeldBack({ kind, name, reason, diff }: HeldDefinition): HeldBack {
  return { kind, name, reason, ...(diff.length > 0 && { diff: diff.join("\n") }) };
}

const noSources: readonly CatalogSource[] = Object.freeze([]);
const known = new WeakMap<ServerViewSnapshot, readonly CatalogSource[]>();

/** One source for each server. Equal snapshots give one array. */
export function toCatalogSources(snapshot: ServerViewSnapshot | undefined): readonly CatalogSource[] {
  if (snapshot === undefined) return noSources;
  const sources =
    known.get(snapshot) ??
    snapshot.servers.map(({ name, tools, diagnostics }): CatalogSource => ({ kind: "mcp", id: name, tools, diagnostics }));
  known.set(snapshot, sources);
  return sources;
}
