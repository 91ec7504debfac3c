import { HostError } from "../../base/errors.ts";
import type { McpServerSpec } from "../../formats/mcp/mcp-server-spec.ts";
import type { McpConnection } from "../connection/connection.ts";
import type { Clock } from "./clock.ts";
import type { IdentityMemory } from "./identity-memory.ts";
import type { ConnectRequest, EraVerdict, ServerConnector } from "./server-connector.ts";
import type { StartSlots } from "./start-slots.ts";

export interface OpenParts extends Pick<ConnectRequest, "workingDirectory" | "timeout" | "onStderr"> {
  readonly connect: ServerConnector;
  readonly slots: StartSlots;
  readonly memory: IdentityMemory;
  readonly clock: Clock;
}

/**
 * Connects when there is a place for another start, with what is remembered of the server's protocol. Should that be
 * outdated, it is forgotten and found out anew within the same try. Rejects as the connector does, or with the signal's reason.
 */
export async function openConnection(spec: McpServerSpec, parts: OpenParts, signal: AbortSignal): Promise<McpConnection> {
  const slot = await parts.slots.take(signal);
  try {
    const prior = parts.memory.verdict;
    const connection = await connectKnowing(prior, spec, parts, signal);
    const { era, protocolVersion } = connection;
    // What was only confirmed keeps its date: else it would never be found out anew.
    if (prior?.era !== era || parts.memory.verdict === undefined) parts.memory.learn({ era, protocolVersion, foundAt: parts.clock.now() });
    return connection;
  } finally {
    slot[Symbol.dispose]();
  }
}

async function connectKnowing(
  prior: EraVerdict | undefined,
  spec: McpServerSpec,
  parts: OpenParts,
  signal: AbortSignal,
): Promise<McpConnection> {
  const { connect, memory, workingDirectory, timeout, onStderr } = parts;
  const known = prior && { era: prior.era, protocolVersion: prior.protocolVersion };
  try {
    return await connect(spec, { workingDirectory, signal, timeout, prior: known, onStderr });
  } catch (error) {
    if (known === undefined || signal.aborted || isNoMatterOfProtocol(error)) throw error;
    memory.forgetVerdict();
    // One that did not answer for so long is not asked again at once.
    if (codeOf(error) === "MCP_TIMEOUT") throw error;
    return await connect(spec, { workingDirectory, signal, timeout, prior: undefined, onStderr });
  }
}

function isNoMatterOfProtocol(error: unknown): boolean {
  return ["MCP_UNAUTHORIZED", "MCP_NOT_STARTED"].includes(codeOf(error));
}

function codeOf(error: unknown): string {
  return error instanceof HostError ? error.code : "";
}
