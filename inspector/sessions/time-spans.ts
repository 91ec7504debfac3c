import type { FeedEvent } from "../../src/servers/inspector/feed-messages.ts";

/** A part of a session that took time: a turn, a call or a sub-agent. */
export interface TimeSpan {
  readonly id: string;
  readonly kind: "turn" | "call" | "agent";
  readonly name: string;
  /** How deep it lies in sub-agents and calls that make calls. */
  readonly depth: number;
  readonly start: number;
  /** Undefined: it is not over. */
  readonly end?: number;
  readonly isFailed: boolean;
}

interface OpenSpan {
  readonly span: Omit<TimeSpan, "end" | "isFailed">;
  readonly index: number;
}

/** The types of events that begin or end a span. */
export const isOfTimeLine: RegExp =
  /^(?:assistant\.turn_(?:start|end)|tool\.execution_(?:start|complete)|subagent\.(?:started|completed|failed))$/;

/** The turns, calls and sub-agents of a session as a tree on a time line, in the order in which they began. */
export function timeSpans(events: readonly FeedEvent[]): readonly TimeSpan[] {
  const spans: TimeSpan[] = [];
  const open = new Map<string, OpenSpan>();
  const depths = new Map<string, number>();
  const begin = (key: string, span: Omit<TimeSpan, "end" | "isFailed" | "id">): void => {
    const whole = { id: `${key} ${spans.length}`, ...span };
    open.set(key, { span: whole, index: spans.push({ ...whole, isFailed: false }) - 1 });
    depths.set(key, span.depth);
  };
  const finish = (key: string, end: number, isFailed: boolean): void => {
    const found = open.get(key);
    open.delete(key);
    if (found !== undefined) spans[found.index] = { ...found.span, end, isFailed };
  };
  for (const { type, data, timestamp, agentId } of events) {
    const at = Date.parse(timestamp);
    const { toolCallId, toolName, turnId, parentToolCallId, success, agentName, agentDisplayName } = data;
    const inside = depthOf(depths, parentToolCallId, agentId);
    if (type === "assistant.turn_start")
      begin(`turn ${agentId ?? ""} ${String(turnId)}`, { kind: "turn", name: `Turn ${String(turnId)}`, depth: inside, start: at });
    else if (type === "assistant.turn_end") finish(`turn ${agentId ?? ""} ${String(turnId)}`, at, false);
    else if (type === "tool.execution_start")
      begin(`call ${String(toolCallId)}`, { kind: "call", name: String(toolName), depth: inside + 1, start: at });
    else if (type === "tool.execution_complete") finish(`call ${String(toolCallId)}`, at, success !== true);
    else if (type === "subagent.started") {
      const depth = (depths.get(`call ${String(toolCallId)}`) ?? inside) + 1;
      begin(`agent ${String(toolCallId)}`, { kind: "agent", name: String(agentDisplayName ?? agentName ?? "Agent"), depth, start: at });
      // The events of a sub-agent name it by its own id, which is that of the call in most clients.
      for (const name of [agentId, data["agentId"], toolCallId]) if (typeof name === "string") depths.set(`agent ${name}`, depth);
    } else if (type === "subagent.completed" || type === "subagent.failed")
      finish(`agent ${String(toolCallId)}`, at, type === "subagent.failed");
  }
  return spans;
}

function depthOf(depths: ReadonlyMap<string, number>, parentToolCallId: unknown, agentId: string | undefined): number {
  if (typeof parentToolCallId === "string") return depths.get(`call ${parentToolCallId}`) ?? 0;
  return agentId === undefined ? 0 : (depths.get(`agent ${agentId}`) ?? 0) + 1;
}
