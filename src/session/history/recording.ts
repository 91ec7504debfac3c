import { toError } from "../../base/errors.ts";
import { packageVersion } from "../../base/package-root.ts";
import type { ResolvedSessionConfig } from "../session-config.ts";
import type { SessionContext } from "../session-context.ts";
import type { History } from "./conversation-history.ts";
import type { SessionEventData, SessionFacts } from "./event-types.ts";
import type { RecordedEvent } from "./events.ts";
import {
  createSessionLog,
  findCut,
  logVersion,
  type ResumePoint,
  type SessionLog,
  toRecordedOptions,
  truncationType,
} from "./session-log.ts";

/** What a session writes down of itself. */
/**
 * Records a session in a log, as the first to hear of every event: `session.start` for one that begins, else
 * `session.resume` and the ends of what its last process left open.
 */
export class Recording {
  readonly #host: SessionContext;
  #log: SessionLog | undefined;
  #recorder: Disposable | undefined;

  constructor(host: SessionContext, log: SessionLog | undefined) {
    this.#host = host;
    if (log !== undefined) this.#begin(log);
  }

  /** The conversation so far. A session without a log keeps one in memory from the moment that this is first read. */
  get history(): History {
    return (this.#log ?? this.#begin(createSessionLog(this.#host.log))).history;
  }

  /** Every event that was recorded; none without a log. */
  async read(): Promise<readonly RecordedEvent[]> {
    return (await this.#log?.read()) ?? [];
  }

  /** What was recorded before this session was resumed; undefined for a session that has just begun. */
  past(): Promise<readonly RecordedEvent[]> | undefined {
    return this.#log?.resumed === undefined ? undefined : this.read();
  }

  /**
   * Takes back an event and all after it, unless `mayCut` says that it is too late for that.
   * @returns how many. @throws HostError `EVENT_UNKNOWN`, and what `mayCut` throws; nothing is changed then.
   */
  async truncate(eventId: string, mayCut: () => void): Promise<number> {
    const all = await this.read();
    const cut = findCut(all, eventId);
    // Nothing is awaited from here on.
    mayCut();
    const kept = all.slice(0, cut);
    const eventsRemoved = all.length - cut;
    const { events } = this.#host;
    this.#log?.rebuild(kept);
    events.rewind(kept.at(-1)!.id);
    events.append(truncationType, { eventId, eventsRemoved });
    events.append("session.snapshot_rewind", { upToEventId: eventId, eventsRemoved });
    return eventsRemoved;
  }

  /** Settles when everything so far outlives this process, if there is a log that does. @throws HostError `LOG_NOT_WRITTEN`. */
  async flush(): Promise<void> {
    await this.#log?.flush();
  }

  /** Emits that a session that is still open was resumed. */
  async joined(continuesWork = false): Promise<void> {
    const { events, config } = this.#host;
    if (!events.wants("session.resume")) return;
    const { length } = await this.read();
    events.append("session.resume", resumeOf(config, { eventCount: length, continuesWork }, true));
  }

  /** Records the options if they are others than those before. */
  optionsChanged(before: ResolvedSessionConfig): void {
    const options = toRecordedOptions(this.#host.config);
    if (this.#log === undefined || JSON.stringify(options) === JSON.stringify(toRecordedOptions(before))) return;
    this.#host.events.append("session.options_changed", { options });
  }

  /** Ends the log; what cannot be written any more is said to the program's log. */
  async close(): Promise<void> {
    this.#recorder?.[Symbol.dispose]();
    try {
      await this.#log?.close();
    } catch (error) {
      const { log, config } = this.#host;
      log.error("The end of a session's log could not be written.", { sessionId: config.sessionId, error: toError(error) });
    }
  }

  #begin(log: SessionLog): SessionLog {
    const { events, config } = this.#host;
    const { resumed } = log;
    this.#log = log;
    this.#recorder = events.addRecorder(log);
    if (resumed === undefined) events.append("session.start", startOf(config));
    else events.append("session.resume", resumeOf(config, resumed, false));
    for (const { type, data, agentId } of resumed?.unfinished ?? []) events.append(type, data, agentId);
    return log;
  }
}

/** The data of `session.start`, with the field names of the Copilot SDK. */
function startOf(config: ResolvedSessionConfig): SessionEventData["session.start"] {
  return {
    sessionId: config.sessionId,
    version: logVersion,
    producer: "skillhost",
    copilotVersion: packageVersion,
    startTime: now(),
    ...facts(config),
  };
}

function resumeOf(
  config: ResolvedSessionConfig,
  { eventCount, continuesWork }: Pick<ResumePoint, "eventCount" | "continuesWork">,
  sessionWasActive: boolean,
): SessionEventData["session.resume"] {
  return { resumeTime: now(), eventCount, sessionWasActive, continuePendingWork: continuesWork, ...facts(config) };
}

function facts(config: ResolvedSessionConfig): SessionFacts {
  const { model } = config.view;
  const { reasoningEffort } = config.turn;
  return {
    ...(model !== undefined && { selectedModel: model }),
    ...(reasoningEffort !== undefined && { reasoningEffort }),
    context: { cwd: config.workingDirectory },
    options: toRecordedOptions(config),
  };
}

function now(): string {
  return new Date().toISOString();
}
