import type { Progress, ToolResult } from "../../tools/tool.ts";
import type { AskHandlers } from "../asks/asks.ts";
import type { Disclosure } from "../catalog/deferral.ts";
import type { ToolCatalog } from "../catalog/tool-catalog.ts";
import type { SettledCode } from "../instructions/model-text.ts";

/** A call as a model made it. */
export interface ToolCall {
  /** Unique in the session; the events carry it as `toolCallId`. */
  readonly id: string;
  readonly name: string;
  readonly arguments: unknown;
  /** Why the arguments cannot be used, in a sentence for the model: the call fails, unless a hook gives it others. */
  readonly argumentsError?: string;
}

/**
 * On whose behalf a call is made: a conversation with its own tools. A sub-agent is a second conversation of the same
 * session, so it goes through the same hooks and asks the same people.
 */
export interface AgentScope {
  /** The tools of the conversation, as they are when a message's calls are prepared. */
  readonly catalog: ToolCatalog;
  /** Whether a name belonged to a tool of this conversation that is gone. */
  readonly hasVanished?: (name: string) => boolean;
  /** The sub-agent; absent for the session's own conversation. */
  readonly agentId?: string;
  /** The turn, for the events. */
  readonly turnId?: string;
  /** Cancels the calls that are running when it fires. */
  readonly signal?: AbortSignal;
  /** What the conversation's model has been shown of the tools that are deferred. Absent: a search shows nothing. */
  readonly disclosure?: Disclosure;
  /** Asked first what these calls, and those that they make, want to know; what is left goes to those who are attached. */
  readonly answers?: AskHandlers;
  /** Hears of the progress of these calls, and of those that they make, at once and in order. */
  readonly onProgress?: ProgressListener;
}

export type ProgressListener = (update: Progress, call: { readonly toolCallId: string; readonly toolName: string }) => void;

/**
 * A call that its gates have seen: it will run, it is settled without running, or it waits for a permission that is
 * being asked for, and then does one or the other. `run` takes each once.
 */
export interface Prepared {
  readonly kind: "run" | "settled" | "waiting";
  readonly call: ToolCall;
  /** While it waits: settles when `kind` says which of the two it came to. Never rejects. */
  readonly decided?: Promise<void> | undefined;
}

/** The tool's own kind of result, or why there is none of its own. */
export type OutcomeCode = "success" | "failure" | "rejected" | "denied" | SettledCode;

export interface CallOutcome {
  readonly toolCallId: string;
  readonly toolName: string;
  readonly code: OutcomeCode;
  readonly result: ToolResult;
  /** As the model gave them, the same object, or as a hook rewrote them. Defaults are not in them. */
  readonly arguments: unknown;
  /** What hooks want the model to read after the result, in order. */
  readonly messages: readonly string[];
  /** The model is not asked again after this message's results. */
  readonly endsTurn: boolean;
}
