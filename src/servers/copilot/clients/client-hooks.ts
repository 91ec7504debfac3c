import { isPlainRecord } from "../../../base/read-fields.ts";
import { type Hook, type HookKind, hookOptions, type SessionHooks } from "../../../session/hooks/hook-kinds.ts";
import type { Client } from "./client.ts";

/**
 * The hooks of a session that clients have: each is a request to every such client, one after the other. A client that
 * has gone decides nothing any more; one that fails or answers something else is the session's to judge.
 */
export function toClientHooks(sessionId: string, clients: readonly Client[]): SessionHooks | undefined {
  if (clients.length === 0) return undefined;
  const kinds = Object.keys(hookOptions) as HookKind[];
  return Object.fromEntries(kinds.map((kind) => [hookOptions[kind], clients.map((client) => createHook(kind, sessionId, client))]));
}

function createHook<K extends HookKind>(hookType: K, sessionId: string, { wire }: Client): Hook<K> {
  return async (input) => {
    const answer = await wire.request("hooks.invoke", { sessionId, hookType, input: toWireInput(hookType, input) });
    const output = isPlainRecord(answer) ? answer["output"] : undefined;
    return hookType === "preMcpToolCall" ? output : withoutNulls(output);
  };
}

/** The runtime of the Copilot SDK sends the arguments that are to be decided about as text. */
function toWireInput(kind: HookKind, input: object): object {
  return kind === "preToolUse" && "toolArgs" in input ? { ...input, toolArgs: JSON.stringify(input.toolArgs) ?? "" } : input;
}

function withoutNulls(output: unknown): unknown {
  if (!isPlainRecord(output)) return output;
  return Object.fromEntries(Object.entries(output).filter(([, value]) => value !== null));
}
