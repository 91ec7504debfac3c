import { isRecord } from "../../../base/json.ts";
import type { LogRecord } from "../../../io/log/read-log.ts";
import type { RecordedEvent } from "../../../session/history/events.ts";
import { readRecorded } from "../../../session/history/session-log.ts";
import { badParams, notSupported, Params } from "../connection/params.ts";
import { translateAll } from "../sessions/copilot-events.ts";
import { forkCopilotSession } from "../sessions/fork-copilot-session.ts";
import { createCopilotSession, resumeCopilotSession } from "../sessions/session-registry.ts";
import { filesAt, findStorage } from "../sessions/workspace.ts";
import { listSessions } from "./lifecycle.ts";
import type { Call, MethodFamily } from "./method.ts";

const defaultEvents = 200;
const maxEvents = 1_000;
/** A page ends before the event that would make it larger; a larger event is a page of its own. */
const maxPageBytes = 1024 * 1024;
const defaultIds = 100;

/** Methods that fork, open and read stored sessions, whether or not they are open. */
export const storedSessions: MethodFamily = {
  async "sessions.fork"({ server, client, params }) {
    const fork = await forkCopilotSession(server, client, params);
    server.notifyLifecycle("session.created", fork.sessionId);
    return fork;
  },
  async "sessions.open"(call) {
    const kind = call.params.text("kind");
    if (Object.hasOwn(openings, kind)) return openings[kind]!(call);
    if (remoteKinds.has(kind))
      throw notSupported(`sessions.open of kind "${kind}" is not supported by skillhost: sessions run only on this machine.`);
    throw badParams(call.params.method, 'kind must be "create", "resume", "resumeLast" or "attach".');
  },
  async "sessions.listNonEmptySessionIds"(call) {
    const limit = call.params.optionalNumber("limit") ?? defaultIds;
    if (!Number.isSafeInteger(limit) || limit < 0) throw badParams(call.params.method, "limit must be a number of sessions.");
    const sessionIds: string[] = [];
    for (const { sessionId, summary } of await listSessions(call)) {
      if (sessionIds.length >= limit) break;
      if (summary !== undefined || (await hasMessages(call, sessionId))) sessionIds.push(sessionId);
    }
    return { sessionIds };
  },
  async "sessions.readPersistedEvents"(call) {
    const { params } = call;
    const events = await readEvents(call, params.text("sessionId"));
    const isBackward = params.optionalText("direction") === "backward";
    const given = params.optionalText("cursor");
    const place = given === undefined ? firstPlace(events, isBackward) : readCursor(given, events);
    if (place === undefined) return { events: [], cursor: given, hasMore: false, cursorStatus: "expired" };
    const max = Math.min(maxEvents, Math.max(1, params.optionalNumber("max") ?? defaultEvents));
    const [from, to] = isBackward ? pageBefore(events, place.at, max) : pageAfter(events, place.at, Math.min(place.end, place.at + max));
    const at = isBackward ? from : to;
    return {
      events: events.slice(from, to),
      cursor: cursorOf({ at, end: place.end }, events),
      hasMore: isBackward ? at > 0 : at < place.end,
      cursorStatus: "ok",
    };
  },
};

const remoteKinds: ReadonlySet<string> = new Set(["remote", "cloud", "handoff"]);
const notFound = { status: "not_found" } as const;

const openings: Readonly<Record<string, (call: Call) => Promise<object>>> = {
  async create(call) {
    const { id } = await createCopilotSession(call.server, call.client, new Params("session.create", optionsOf(call)));
    call.server.notifyLifecycle("session.created", id);
    return { status: "created", sessionId: id, startupPrompts: [] };
  },
  async resume(call) {
    const given = call.params.text("sessionId");
    const all = (await listSessions(call)).map(({ sessionId }) => sessionId);
    const fitting = all.includes(given) ? [given] : all.filter((sessionId) => given !== "" && sessionId.startsWith(given));
    return resume(call, fitting.length === 1 ? fitting[0] : undefined);
  },
  async resumeLast(call) {
    const cwd = call.params.optionalRecord("context")?.["cwd"];
    const last = (await listSessions(call)).find(({ context }) => typeof cwd !== "string" || context?.cwd === cwd);
    return resume(call, last?.sessionId);
  },
  async attach(call) {
    const sessionId = call.params.text("sessionId");
    return resume(call, call.server.sessions.get(sessionId)?.session.isOpen === true ? sessionId : undefined);
  },
};

async function resume(call: Call, sessionId: string | undefined): Promise<object> {
  if (sessionId === undefined) return notFound;
  const disableResume = call.params.get("resume") === false && { disableResume: true };
  const params = new Params("session.resume", { ...optionsOf(call), sessionId, ...disableResume });
  const { id } = await resumeCopilotSession(call.server, call.client, params);
  return { status: "resumed", sessionId: id, startupPrompts: [] };
}

function optionsOf({ params }: Call): Readonly<Record<string, unknown>> {
  return params.optionalRecord("options") ?? {};
}

async function hasMessages(call: Call, sessionId: string): Promise<boolean> {
  try {
    return (await readEvents(call, sessionId)).some(({ type }) => type === "user.message");
  } catch {
    // It was deleted since it was listed, or it was never stored.
    return false;
  }
}

/** The recorded events of a session as clients see them. @throws HostError `SESSION_NOT_FOUND`. */
async function readEvents({ server, client }: Call, sessionId: string): Promise<readonly RecordedEvent[]> {
  const open = server.sessions.get(sessionId);
  if (open?.session.isOpen === true) return open.past();
  const files = filesAt(client, sessionId);
  if (files !== undefined) return translateAll(readRecorded((await (await findStorage(files, sessionId)).log.read()).records).events);
  const lines = await (await server.host()).exportSession(sessionId);
  const records = lines.split("\n").flatMap((line): LogRecord[] => (line === "" ? [] : [JSON.parse(line)].filter(isRecord)));
  return translateAll(readRecorded(records).events);
}

/** A place in the events that were recorded at the first read. */
interface Place {
  readonly at: number;
  /** How many events the first read found. Later ones are not part of these pages. */
  readonly end: number;
}

function firstPlace({ length }: readonly RecordedEvent[], isBackward: boolean): Place {
  return { at: isBackward ? length : 0, end: length };
}

function cursorOf({ at, end }: Place, events: readonly RecordedEvent[]): string {
  return `${at}/${end}/${events[end - 1]?.id ?? ""}`;
}

/** Undefined: the history is no longer the one of the first read, or this is not a cursor. */
function readCursor(cursor: string, events: readonly RecordedEvent[]): Place | undefined {
  const [, at, end, id] = /^(\d{1,9})\/(\d{1,9})\/(.*)$/s.exec(cursor) ?? [];
  const place = { at: Number(at), end: Number(end) };
  const isSame = place.end === 0 ? id === "" : events[place.end - 1]?.id === id;
  return isSame && place.at <= place.end ? place : undefined;
}

function pageAfter(events: readonly RecordedEvent[], from: number, end: number): readonly [number, number] {
  let to = from;
  for (let bytes = 0; to < end; to++) {
    bytes += sizeOf(events[to]!);
    if (bytes > maxPageBytes && to > from) break;
  }
  return [from, to];
}

function pageBefore(events: readonly RecordedEvent[], to: number, max: number): readonly [number, number] {
  let from = to;
  for (let bytes = 0; from > Math.max(0, to - max); from--) {
    bytes += sizeOf(events[from - 1]!);
    if (bytes > maxPageBytes && from < to) break;
  }
  return [from, to];
}

function sizeOf(event: RecordedEvent): number {
  return Buffer.byteLength(JSON.stringify(event));
}
