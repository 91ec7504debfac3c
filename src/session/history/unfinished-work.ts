import { isRecord } from "../../base/json.ts";
import { modelText } from "../prompt/model-text.ts";
import type { SessionEventData, SessionEventType } from "./event-types.ts";
import type { RecordedEvent } from "./events.ts";

/** An event that settles something whose process ended before it did. */
export interface Settling {
  readonly type: SessionEventType;
  readonly data: SessionEventData[SessionEventType];
  readonly agentId: string | undefined;
}

type Data = Readonly<Record<string, unknown>>;

/** What begins with one type of event and ends with another that carries the same id. */
interface Work {
  readonly begins: SessionEventType;
  readonly ends: readonly SessionEventType[];
  readonly id: string;
  /** The data of the first of `ends`... */
  settle(begun: Data): SessionEventData[SessionEventType];
  /** ...unless it is ended by another. */
  readonly settledBy?: SessionEventType;
}

const interrupted = "The process that ran this session ended before this was finished.";

const kinds: readonly Work[] = [
  {
    begins: "permission.requested",
    ends: ["permission.completed"],
    id: "requestId",
    settle: ({ requestId, permissionRequest }) => ({
      requestId,
      result: { kind: "cancelled", reason: "interrupted" },
      ...only({ toolCallId: isRecord(permissionRequest) ? permissionRequest["toolCallId"] : undefined }),
    }),
  },
  {
    begins: "external_tool.requested",
    ends: ["external_tool.completed"],
    id: "requestId",
    settle: ({ requestId }) => ({ requestId }),
  },
  {
    begins: "tool.execution_start",
    ends: ["tool.execution_complete"],
    id: "toolCallId",
    settle: settleCall,
  },
  {
    begins: "hook.start",
    ends: ["hook.end"],
    id: "hookInvocationId",
    settle: ({ hookInvocationId, hookType }) => ({ hookInvocationId, hookType, success: false, error: { message: interrupted } }),
  },
  {
    begins: "subagent.started",
    ends: ["subagent.completed", "subagent.failed"],
    id: "toolCallId",
    settle: ({ toolCallId, agentName, agentDisplayName }) => ({ toolCallId, agentName, agentDisplayName, error: interrupted }),
    settledBy: "subagent.failed",
  },
  {
    begins: "assistant.turn_start",
    ends: ["assistant.turn_end"],
    id: "turnId",
    settle: ({ turnId }) => ({ turnId }),
  },
];

const begins: ReadonlyMap<string, Work> = new Map(kinds.map((work) => [work.begins, work]));
const ends: ReadonlyMap<string, Work> = new Map(kinds.flatMap((work) => work.ends.map((type) => [type, work] as const)));

/**
 * Finds what was begun and never ended: questions that can no longer be answered, calls, hooks, sub-agents, turns. Returns the
 * events that end them as failures, what was begun last first.
 */
export function settleUnfinished(events: Iterable<RecordedEvent>): readonly Settling[] {
  const open = new Map<string, { readonly work: Work; readonly event: RecordedEvent }>();
  for (const event of events) {
    const begun = begins.get(event.type);
    const ended = ends.get(event.type);
    if (begun !== undefined) open.set(keyOf(begun, event), { work: begun, event });
    else if (ended !== undefined) open.delete(keyOf(ended, event));
  }
  return [...open.values()].reverse().map(({ work, event }) => ({
    type: work.settledBy ?? work.ends[0]!,
    data: work.settle(event.data),
    agentId: event.agentId,
  }));
}

/** Turns of two agents may have the same number. */
function keyOf({ begins: type, id }: Work, { data, agentId }: RecordedEvent): string {
  return JSON.stringify([type, id === "turnId" ? agentId : undefined, data[id]]);
}

function settleCall({ toolCallId, toolName, turnId, parentToolCallId }: Data): object {
  const content = modelText("interrupted", { tool: String(toolName) });
  return {
    toolCallId,
    success: false,
    result: { content, detailedContent: content },
    error: { message: content, code: "failure" },
    toolTelemetry: {},
    ...only({ parentToolCallId, turnId }),
  };
}

function only(fields: Data): Data {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}
