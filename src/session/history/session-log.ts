import { HostError, toError } from "../../base/errors.ts";
import { isRecord } from "../../base/json.ts";
import type { Logger } from "../../base/logger.ts";
import { type AppendLog, createMemoryLog } from "../../io/log/append-log.ts";
import type { LogRecord } from "../../io/log/read-log.ts";
import type { ResolvedSessionConfig, SessionOptions } from "../session-config.ts";
import { History } from "./conversation-history.ts";
import type { RecordedEvent } from "./events.ts";
import { type Settling, settleUnfinished } from "./unfinished-work.ts";

/** What a session left in its log, for resuming it. */
export interface ResumePoint {
  readonly eventCount: number;
  readonly lastEventId: string | null;
  /** The recorded options, not checked yet. */
  readonly options: SessionOptions;
  /** The events that end what was left open. */
  readonly unfinished: readonly Settling[];
  readonly continuesWork: boolean;
}

/** A new log for a session that begins. Without a store it lasts as long as the session. */
export function createSessionLog(log: Logger, store: AppendLog = createMemoryLog()): SessionLog {
  return new SessionLog(store, log, new History(), undefined);
}

/**
 * Opens the log of a session to resume it.
 * @throws HostError `SESSION_LOG_DAMAGED` when it does not say with which options the session was made: its filters of
 * tools must not get lost by accident. `SESSION_LOG_NEWER` when a newer version wrote it.
 */
export async function openSessionLog(sessionId: string, log: Logger, store: AppendLog, continuesWork = false): Promise<SessionLog> {
  const recorded = await readEvents(store, log);
  refuseNewer(sessionId, recorded);
  // Taking back what was said does not take back how the session was set up.
  const options = readRecordedOptions(recorded);
  const events = withoutTruncated(recorded);
  if (options === undefined) throw withoutCreation(sessionId);
  const lastEventId = events.at(-1)?.id ?? null;
  return new SessionLog(store, log, historyOf(events), {
    eventCount: events.length,
    lastEventId,
    options,
    unfinished: settleUnfinished(events),
    continuesWork,
  });
}

function historyOf(events: readonly RecordedEvent[]): History {
  const history = new History();
  for (const event of events) history.add(event);
  return history;
}

/** The version of what `session.start` says and of the events behind it. */
export const logVersion = 1;

export function refuseNewer(sessionId: string, events: readonly RecordedEvent[]): void {
  const version = events.find(({ type }) => type === "session.start")?.data["version"];
  if (typeof version !== "number" || version <= logVersion) return;
  const advice = "Resume it with that version, or update this one.";
  throw new HostError("SESSION_LOG_NEWER", `The log of session "${sessionId}" was written by a newer version of skillhost. ${advice}`);
}

/** The event in a record; undefined if it is not an event. Its type may be unknown. */
function toSessionEvent(record: LogRecord): RecordedEvent | undefined {
  const { type, id, data, timestamp } = record;
  const isEvent = typeof type === "string" && typeof id === "string" && typeof timestamp === "string";
  return isEvent && typeof data === "object" && data !== null && !Array.isArray(data) ? (record as unknown as RecordedEvent) : undefined;
}

/** What the records of a log say: the events that were not taken back, and the options that were recorded last. */
export function readRecorded(records: readonly LogRecord[]): {
  readonly events: readonly RecordedEvent[];
  readonly options: SessionOptions | undefined;
} {
  const recorded = records.flatMap((record) => toSessionEvent(record) ?? []);
  return { events: withoutTruncated(recorded), options: readRecordedOptions(recorded) };
}

export function withoutCreation(sessionId: string): HostError {
  const advice = "host.exportSession still exports the readable part.";
  return new HostError("SESSION_LOG_DAMAGED", `The log of session "${sessionId}" does not contain the session's creation. ${advice}`);
}

async function readEvents(store: AppendLog, log: Logger): Promise<readonly RecordedEvent[]> {
  const { records, diagnostics } = await store.read();
  for (const diagnostic of diagnostics) log.warning(diagnostic.message, diagnostic);
  return records.flatMap((record) => toSessionEvent(record) ?? []);
}

/** Everything that happened in a session and is kept. */
export class SessionLog {
  /** Undefined: the session begins with this log. */
  readonly resumed: ResumePoint | undefined;
  /** The session's own conversation, with everything that was recorded. */
  history: History;
  readonly #store: AppendLog;
  readonly #log: Logger;

  constructor(store: AppendLog, log: Logger, history: History, resumed: ResumePoint | undefined) {
    this.#store = store;
    this.#log = log;
    this.history = history;
    this.resumed = resumed;
  }

  /** Records an event as it is now. Never throws. */
  record(event: RecordedEvent): void {
    const { type, id } = event;
    try {
      this.history.add(event);
      this.#store.append(event);
    } catch (error) {
      this.#log.warning(`Event ${type} could not be recorded as a whole; a shortened version was recorded.`, {
        type,
        id,
        error: toError(error),
      });
      // Its envelope and the short fields of its data: enough for the chain, and to match it to what it ends.
      try {
        this.#store.append({ ...event, data: { ...shortFields(event.data), cut: true } });
      } catch (error) {
        this.#log.error("An event could not be recorded.", { type: event.type, id: event.id, error: toError(error) });
      }
    }
  }

  /** Every event that was not taken back, oldest first. */
  async read(): Promise<readonly RecordedEvent[]> {
    return withoutTruncated(await readEvents(this.#store, this.#log));
  }

  /** Makes the conversation again from these events: the others were taken back. */
  rebuild(events: readonly RecordedEvent[]): void {
    this.history = historyOf(events);
  }

  /** Settles when everything recorded so far outlives this process. @throws HostError `LOG_NOT_WRITTEN`. */
  flush(): Promise<void> {
    return this.#store.flush();
  }

  /** @throws HostError `LOG_NOT_WRITTEN` when something recorded could not be kept. */
  close(): Promise<void> {
    return this.#store.close();
  }
}

function shortFields(data: object): Readonly<Record<string, unknown>> {
  const short = Object.entries(data).filter(([, value]) =>
    typeof value === "string" ? value.length <= 1_000 : typeof value === "number" || typeof value === "boolean",
  );
  return Object.fromEntries(short);
}

/**
 * Where an option is kept, so that a resumed session has it again. `log`: with the session, for every process that resumes it.
 * `process`: it may hold a secret, so only the host that had the session remembers it. `nowhere`: functions, and who the
 * session is.
 */
const keeping: { readonly [K in keyof Required<SessionOptions>]: "log" | "process" | "nowhere" } = {
  sessionId: "nowhere",
  persist: "nowhere",
  workingDirectory: "log",
  model: "log",
  tools: "nowhere",
  availableTools: "log",
  excludedTools: "log",
  toolFilterPrecedence: "log",
  skillDirectories: "log",
  disabledSkills: "log",
  hooks: "nowhere",
  onPermissionRequest: "nowhere",
  onUserInputRequest: "nowhere",
  onElicitationRequest: "nowhere",
  onSamplingRequest: "nowhere",
  onMcpAuthorization: "nowhere",
  mcpServers: "process",
  disabledMcpServers: "log",
  envValueMode: "log",
  githubMcpToolConfig: "log",
  mcpTokenOwner: "process",
  waitForAttachments: "log",
  toolTimeout: "log",
  fileChangeTracking: "log",
  sessionDatabase: "log",
  hookTimeout: "log",
  permissions: "log",
  largeOutput: "log",
  customAgents: "process",
  agent: "log",
  excludedBuiltinAgents: "log",
  defaultAgent: "log",
  toolSearch: "log",
  modelTools: "log",
  provider: "process",
  chatModel: "process",
  modelCapabilities: "log",
  reasoningEffort: "log",
  streaming: "log",
  systemMessage: "log",
  skillListing: "log",
  maxIterations: "log",
  currentDateTime: "process",
  enableCitations: "log",
  additionalDirectories: "log",
  infiniteSessions: "log",
  agentMode: "log",
  customInstructions: "log",
  askUserVariant: "log",
  onExitPlanModeRequest: "nowhere",
  context: "process",
};

/** The events whose `options` hold all that was recorded of them at that time. */
const carriers: ReadonlySet<string> = new Set(["session.start", "session.resume", "session.options_changed"]);

/** The options as the log keeps them: plain JSON that means the same wherever it is read. */
export function toRecordedOptions(config: ResolvedSessionConfig): Readonly<Record<string, unknown>> {
  const { options, view, largeOutput } = config;
  const resolved: SessionOptions = {
    ...options,
    skillDirectories: options.skillDirectories && view.skillDirectories,
    largeOutput: options.largeOutput && { ...options.largeOutput, outputDir: largeOutput.outputDir },
  };
  const agents = options.customAgents && { customAgents: withoutServers(options.customAgents) };
  return JSON.parse(JSON.stringify({ ...optionsKept(resolved, "log"), ...agents }, withoutFunctions));
}

/** The options that only this process may remember. */
export function toRememberedOptions({ options }: ResolvedSessionConfig): SessionOptions {
  return optionsKept(options, "process");
}

/** What the log recorded, with what this process remembers of the same. */
export function withRemembered(recorded: SessionOptions, remembered: SessionOptions): SessionOptions {
  const { customAgents, ...rest } = remembered;
  // Another process may have resumed it with other agents in the meantime.
  const areSame = customAgents !== undefined && JSON.stringify(withoutServers(customAgents)) === JSON.stringify(recorded.customAgents);
  return { ...recorded, ...rest, ...(areSame && { customAgents }) };
}

/** The options that the log last recorded, not checked; undefined when it recorded none that can be read. */
function readRecordedOptions(events: readonly RecordedEvent[]): SessionOptions | undefined {
  const options = events.findLast(({ type, data }) => carriers.has(type) && isRecord(data["options"]))?.data["options"];
  return isRecord(options) ? Object.fromEntries(Object.entries(options).filter(([name]) => isInLog(name))) : undefined;
}

function optionsKept(options: SessionOptions, where: "log" | "process"): SessionOptions {
  const kept = Object.entries(options).filter(([name, value]) => value !== undefined && keeping[name as keyof SessionOptions] === where);
  return Object.fromEntries(kept);
}

/** Leaves out what consists of a function, such as the change of one section of the system message. */
function withoutFunctions(_key: string, value: unknown): unknown {
  return isRecord(value) && Object.values(value).some((field) => typeof field === "function") ? undefined : value;
}

function isInLog(name: string): boolean {
  return name === "customAgents" || (Object.hasOwn(keeping, name) && keeping[name as keyof SessionOptions] === "log");
}

/** The environment and the headers of a server may hold secrets. */
function withoutServers(agents: NonNullable<SessionOptions["customAgents"]>): NonNullable<SessionOptions["customAgents"]> {
  return agents.map(({ mcpServers: _servers, ...agent }) => agent);
}

/** Takes back events: that of its `eventId` and all that were recorded after it, up to this one. */
export const truncationType = "session.history_truncated";

/** The events of a log without those that were taken back since. A log only grows, so these are still in it. */
function withoutTruncated(events: readonly RecordedEvent[]): readonly RecordedEvent[] {
  if (!events.some(({ type }) => type === truncationType)) return events;
  const kept: RecordedEvent[] = [];
  for (const event of events) {
    if (event.type === truncationType) {
      const from = kept.findIndex(({ id }) => id === event.data["eventId"]);
      if (from > 0) kept.length = from;
    }
    kept.push(event);
  }
  return kept;
}

/** Where a history would be cut. @throws HostError `EVENT_UNKNOWN`. */
export function findCut(events: readonly RecordedEvent[], eventId: string): number {
  const index = events.findIndex(({ id }) => id === eventId);
  if (index > 0) return index;
  const why = index === 0 ? "it is the first event of the session" : "the session's history has no such event";
  throw new HostError("EVENT_UNKNOWN", `The history cannot be truncated at event ${JSON.stringify(eventId.slice(0, 100))}: ${why}.`);
}
