import type { Progress, ToolResult } from "../../tools/tool.ts";
import type { DiscoveredTools, ToolCatalog } from "../catalog/tool-catalog.ts";
import type { AskHandlers } from "../clients/client-requests.ts";
import type { SettledCode } from "../prompt/model-text.ts";
import type { Telemetry } from "../telemetry.ts";

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
  readonly disclosure?: DiscoveredTools;
  /** Asked first what these calls, and those that they make, want to know; what is left goes to those who are attached. */
  readonly answers?: AskHandlers;
  /** Hears of the progress of these calls, and of those that they make, at once and in order. */
  readonly onProgress?: ProgressListener;
}

/** Receives the progress of a call. */
export type ProgressListener = (update: Progress, call: { readonly toolCallId: string; readonly toolName: string }) => void;

/**
 * A call that its gates have seen: it will run, it is settled without running, or it waits for a permission that is
 * being asked for, and then does one or the other. `run` takes each once.
 */
export interface PreparedCall {
  readonly kind: "run" | "settled" | "waiting";
  readonly call: ToolCall;
  /** While it waits: settles when `kind` says which of the two it came to. Never rejects. */
  readonly decided?: Promise<void> | undefined;
}

/** The tool's own kind of result, or why there is none of its own. */
export type OutcomeCode = "success" | "failure" | "rejected" | "denied" | SettledCode;

/** How a call ended. */
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

/**
 * Options of one call of a tool.
 *
 * @example
 * ```ts
 * const options: CallOptions = { signal: AbortSignal.timeout(10_000), onProgress: ({ message }) => console.log(message) };
 * ```
 */
export interface CallOptions {
  /** Default: a new UUID. */
  readonly toolCallId?: string;
  /** Cancels the call. */
  readonly signal?: AbortSignal;
  /** Hears of the progress and the log lines of the call, and of calls that it makes; never after it has settled. */
  readonly onProgress?: ProgressListener;
  /**
   * Asked first what this call, and those that it makes, want to know: a permission that no rule and no earlier approval
   * decides, or what a tool or a server asks. What it leaves with `noResult` goes to those who are attached.
   */
  readonly answers?: AskHandlers;
}

/** What is particular to one call, until it has settled. Undefined: nothing is. */
export function listenTo({ signal, onProgress, answers }: CallOptions): ListenedCall | undefined {
  if (signal === undefined && onProgress === undefined && answers === undefined) return undefined;
  return new ListenedCall(signal, onProgress, answers);
}

class ListenedCall implements ScopeOptions {
  declare readonly signal?: AbortSignal;
  declare readonly answers?: AskHandlers;
  declare readonly onProgress?: ProgressListener;
  #isOver = false;

  constructor(signal: AbortSignal | undefined, onProgress: ProgressListener | undefined, answers: AskHandlers | undefined) {
    if (signal !== undefined) this.signal = signal;
    if (answers !== undefined) this.answers = answers;
    if (onProgress === undefined) return;
    this.onProgress = (update, call) => {
      if (!this.#isOver) onProgress(update, call);
    };
  }

  end(): void {
    this.#isOver = true;
  }
}

/** What is particular to some calls of a session's own conversation. */
export type ScopeOptions = Pick<AgentScope, "turnId" | "signal" | "answers" | "onProgress">;

/**
 * The way of a call: tool.execution_start, preToolUse hooks, look-up, arguments, permission; then the handler within
 * its deadline, the result, postToolUse hooks, tool.execution_complete. Promises appear only where something is
 * asynchronous; nothing here rejects for what a tool, a hook or a client does.
 */
export interface Pipeline {
  /** Undefined while tracing is off. */
  readonly telemetry?: Telemetry | undefined;
  /** Takes the calls of one message through their gates, in order. Permissions are asked for all of them at once. */
  prepare(calls: readonly ToolCall[], agent: AgentScope): readonly PreparedCall[] | Promise<readonly PreparedCall[]>;
  /** @throws HostError `CALL_TAKEN` when it was run before. */
  run(prepared: PreparedCall): CallOutcome | Promise<CallOutcome>;
  /** One call, prepared and run with the tools of a catalog of the agent. */
  call(call: ToolCall, agent: AgentScope, catalog: ToolCatalog): CallOutcome | Promise<CallOutcome>;
  /** Whether a call is in progress. */
  readonly isBusy: boolean;
  /** Ends the calls that wait for something, and waits until each has its outcome. */
  close(): Promise<void>;
}

/** A file that a tool wrote, with its new content. */
export interface FileChange {
  readonly path: string;
  readonly content: string;
  readonly toolCallId: string;
  /** What editors call its language by, where the tool said so. */
  readonly languageId?: string;
  /** What the file contained before, where the tool said so; null: it did not exist. */
  readonly before?: string | Uint8Array | null | undefined;
}
