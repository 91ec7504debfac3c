import { randomUUID } from "node:crypto";
import { toError } from "../../base/errors.ts";
import type { Logger } from "../../base/logger.ts";
import { isThenable } from "../../base/wait.ts";
import type { SessionEvent, SessionEventData, SessionEventType } from "./event-types.ts";

/** An event as a log holds it: of any type, its data unchecked. `SessionEvent` describes the events of this version. */
export interface RecordedEvent {
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
  readonly id: string;
  /** ISO 8601. */
  readonly timestamp: string;
  /** The event before it that is kept; null for the first. */
  readonly parentId: string | null;
  /** Present and true: it is not part of the session's history. */
  readonly ephemeral?: true;
  /** The sub-agent it belongs to. */
  readonly agentId?: string;
}

/** Keeps events. `record` never throws. */
export interface EventRecorder {
  record(event: RecordedEvent): void;
}

export type EventSink<T extends SessionEventType = SessionEventType> = (event: SessionEvent<T>) => void;

/** Ends a subscription: call it, or let `using` do so. */
export type Unsubscribe = (() => void) & Disposable;

interface AppendOptions {
  /** This one is emitted and not kept, whatever its type. */
  readonly isEphemeral?: boolean;
}

/** All events of a session: each gets its id and its place in the chain, and is passed to the sinks. */
export class SessionEvents {
  readonly #log: Logger;
  #recorder: EventRecorder | undefined;
  // Copied on every change, so that a sink that is added or removed during delivery affects only the next event.
  #sinks: readonly EventSink[] = [];
  readonly #sinksByType = new Map<string, readonly EventSink[]>();
  readonly #waiting: SessionEvent[] = [];
  #isDelivering = false;
  #parentId: string | null;
  readonly #sinkAdded: ((type: SessionEventType | undefined) => void)[] = [];

  constructor(log: Logger, lastEventId: string | null = null) {
    this.#log = log;
    this.#parentId = lastEventId;
  }

  /** Whether anything listens to this type. `append` asks this itself; ask before work that only the event needs. */
  wants(type: SessionEventType): boolean {
    return this.hasListener(type) || (this.#recorder !== undefined && !isEphemeral(type));
  }

  /** Whether there is a listener for this type other than the recorder. */
  hasListener(type: SessionEventType): boolean {
    return this.#sinks.length > 0 || this.#sinksByType.has(type);
  }

  /**
   * Passes the event to every sink, in the order they were added, before it returns. An event that a sink appends follows the one it is
   * about. If nothing listens to the type, no event is built, and the chain does not change: data that is costly to build is passed as a
   * function.
   */
  append<T extends SessionEventType>(
    type: T,
    data: SessionEventData[T] | (() => SessionEventData[T]),
    agentId?: string,
    { isEphemeral: isMomentary = false }: AppendOptions = {},
  ): void {
    if (!this.wants(type)) return;
    this.#waiting.push(this.#envelope(type, typeof data === "function" ? data() : data, agentId, isMomentary));
    if (this.#isDelivering) return;
    this.#isDelivering = true;
    try {
      for (let event = this.#waiting.shift(); event !== undefined; event = this.#waiting.shift()) {
        if (event.ephemeral !== true) this.#recorder?.record(event);
        for (const sink of this.#sinks) this.#hand(sink, event);
        for (const sink of this.#sinksByType.get(event.type) ?? []) this.#hand(sink, event);
      }
    } finally {
      this.#isDelivering = false;
    }
  }

  /** Adds a sink for one type, or for every type. */
  addSink<T extends SessionEventType>(sink: EventSink<T>, type?: T): Disposable {
    // A function of our own, so that adding one sink twice gives two subscriptions with a life each. It receives events of its type only.
    const own: EventSink = (event) => sink(event as SessionEvent<T>);
    if (type === undefined) this.#sinks = [...this.#sinks, own];
    else this.#sinksByType.set(type, [...(this.#sinksByType.get(type) ?? []), own]);
    for (const listener of this.#sinkAdded) listener(type);
    return {
      [Symbol.dispose]: () => {
        if (type === undefined) {
          this.#sinks = this.#sinks.filter((sink) => sink !== own);
          return;
        }
        const rest = (this.#sinksByType.get(type) ?? []).filter((sink) => sink !== own);
        if (rest.length > 0) this.#sinksByType.set(type, rest);
        else this.#sinksByType.delete(type);
      },
    };
  }

  /** Adds the recorder, which receives each event that is kept before any sink does. A session has at most one. */
  addRecorder(recorder: EventRecorder): Disposable {
    this.#recorder = recorder;
    return {
      [Symbol.dispose]: () => {
        if (this.#recorder === recorder) this.#recorder = undefined;
      },
    };
  }

  /** Runs when a sink for this type or for all of them was added. */
  onSinkAdded(listener: (type: SessionEventType | undefined) => void): void {
    this.#sinkAdded.push(listener);
  }

  /** The next event follows this one: those after it have been taken back. */
  rewind(lastEventId: string): void {
    this.#parentId = lastEventId;
  }

  /** Removes every sink; what is appended later goes nowhere. */
  close(): void {
    this.#recorder = undefined;
    this.#sinks = [];
    this.#sinksByType.clear();
    this.#sinkAdded.length = 0;
  }

  #envelope(type: SessionEventType, data: object, agentId: string | undefined, isMomentary: boolean): SessionEvent {
    const id = randomUUID();
    const ephemeral = isMomentary || isEphemeral(type);
    const event = Object.freeze({
      type,
      data: Object.freeze(data),
      id,
      timestamp: new Date().toISOString(),
      parentId: this.#parentId,
      ...(ephemeral ? { ephemeral: true as const } : {}),
      ...(agentId === undefined ? {} : { agentId }),
    });
    if (!ephemeral) this.#parentId = id;
    // `append` has checked that the data is of the type.
    return event as SessionEvent;
  }

  #hand(sink: EventSink, event: SessionEvent): void {
    try {
      // Typed void, but nothing keeps a listener from being async: its rejection must not end the process.
      const returned: unknown = sink(event);
      if (isThenable(returned)) returned.then(undefined, (error) => this.#report(error, event));
    } catch (error) {
      this.#report(error, event);
    }
  }

  #report(error: unknown, { type }: SessionEvent): void {
    this.#log.error(`A listener of ${type} failed; the other listeners were called.`, { type, error: toError(error) });
  }
}

/**
 * Whether events of this type are emitted but not kept. Types that are not in the table are kept: losing history is worse
 * than keeping too much of it.
 * @internal Exported for tests.
 */
export function isEphemeral(type: string): boolean {
  return ephemeralTypes.has(type);
}

// The session events that the Copilot SDK marks as ephemeral; `model.call_start`, which its runtime sends as one; and
// `roots.*`, for a question that it does not know.
const ephemeralTypes: ReadonlySet<string> = new Set([
  "assistant.idle",
  "assistant.intent",
  "assistant.message_delta",
  "assistant.message_start",
  "assistant.reasoning",
  "assistant.reasoning_delta",
  "assistant.server_tool_progress",
  "assistant.streaming_delta",
  "assistant.tool_call_delta",
  "assistant.usage",
  "auto_mode_switch.completed",
  "auto_mode_switch.requested",
  "capabilities.changed",
  "command.completed",
  "command.execute",
  "command.queued",
  "commands.changed",
  "elicitation.completed",
  "elicitation.requested",
  "exit_plan_mode.completed",
  "exit_plan_mode.requested",
  "factory.run_settled",
  "factory.run_started",
  "factory.run_updated",
  "hook.progress",
  "mcp.headers_refresh_completed",
  "mcp.headers_refresh_required",
  "mcp.oauth_completed",
  "mcp.oauth_required",
  "mcp.prompts.list_changed",
  "mcp.resources.list_changed",
  "mcp.tools.list_changed",
  "mcp_app.tool_call_complete",
  "model.call_failure",
  "model.call_start",
  "pending_messages.modified",
  "roots.completed",
  "roots.requested",
  "sampling.completed",
  "sampling.requested",
  "session.background_tasks_changed",
  "session.canvas.closed",
  "session.canvas.opened",
  "session.canvas.registry_changed",
  "session.canvas.unavailable",
  "session.custom_agents_updated",
  "session.custom_notification",
  "session.extensions.attachments_pushed",
  "session.extensions_loaded",
  "session.idle",
  "session.managed_settings_enforced",
  "session.managed_settings_resolved",
  "session.mcp_server_status_changed",
  "session.mcp_servers_loaded",
  "session.skills_loaded",
  "session.snapshot_rewind",
  "session.title_changed",
  "session.todos_changed",
  "session.tools_updated",
  "session.usage_info",
  "session_limits_exhausted.completed",
  "session_limits_exhausted.requested",
  "tool.execution_partial_result",
  "tool.execution_progress",
  "ui.ephemeral_query",
  "user_input.completed",
  "user_input.requested",
]);
