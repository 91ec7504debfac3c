import { randomUUID } from "node:crypto";
import { setImmediate as nextTurn } from "node:timers/promises";
import { onAbort } from "../../../base/wait.ts";
import type { RecordedEvent } from "../../../session/history/events.ts";
import { EventTranslator } from "../sessions/copilot-events.ts";
import type { CopilotSession } from "../sessions/copilot-session.ts";
import { findSession } from "../sessions/session-registry.ts";
import type { Call, MethodFamily } from "./method.ts";

const maxEvents = 1_000;
const maxWaitMs = 30_000;
const defaultEvents = 200;

/** The events of a session in pages, interests in types of events, and usage metrics. */
export const eventLog: MethodFamily = {
  async "session.eventLog.read"(call) {
    const { params } = call;
    const session = findSession(call.server, params);
    const backward = params.optionalText("direction") === "backward";
    const waitMs = backward ? 0 : Math.min(maxWaitMs, params.optionalNumber("waitMs") ?? 0);
    // From before the look at the history, so that nothing falls between the two.
    using arriving = waitMs > 0 ? new ArrivingEvents(session, (event) => isWanted(event, call)) : undefined;
    const events = await session.past();
    const cursor = params.optionalText("cursor");
    const max = Math.min(maxEvents, Math.max(1, params.optionalNumber("max") ?? defaultEvents));
    const at = cursor === undefined ? (backward ? events.length : 0) : positionOf(cursor, events);
    if (at === undefined) return { events: [], cursor: "start", hasMore: events.length > 0, cursorStatus: "expired" };
    if (arriving !== undefined && at === events.length) {
      const arrived = await arriving.next({ known: new Set(events.map(({ id }) => id)), max, waitMs }, call.signal());
      return { events: arrived.events, cursor: arrived.cursor ?? cursorAt(at, events), hasMore: false, cursorStatus: "ok" };
    }
    const from = backward ? Math.max(0, at - max) : at;
    const to = backward ? at : Math.min(events.length, at + max);
    return {
      events: events.slice(from, to).filter((event) => isWanted(event, call)),
      cursor: cursorAt(backward ? from : to, events),
      hasMore: backward ? from > 0 : to < events.length,
      cursorStatus: "ok",
    };
  },
  async "session.eventLog.tail"(call) {
    const events = await findSession(call.server, call.params).past();
    return { cursor: cursorAt(events.length, events) };
  },
  async "session.eventLog.registerInterest"({ server, client, params }) {
    const handle = randomUUID();
    const session = findSession(server, params);
    const eventType = params.text("eventType");
    session.addInterest(client, handle, eventType);
    // Tokens from a client are for this session only: connections of other sessions must not use them.
    if (eventType === "mcp.oauth_required") await session.session.update({ mcpTokenOwner: session.id });
    return { handle };
  },
  "session.eventLog.releaseInterest": ({ server, client, params }) => ({
    success: findSession(server, params).removeInterest(client, params.text("handle")),
  }),
  async "session.usage.getMetrics"({ server, params }) {
    const { session } = findSession(server, params);
    const { model } = session.config.view;
    return { ...session.usage.metrics, ...(model !== undefined && { currentModel: model }) };
  },
};

interface Wait {
  /** The ids of events that the client has, or can read. */
  readonly known: ReadonlySet<string>;
  readonly max: number;
  readonly waitMs: number;
}

/** Events that come while a client waits for them, those that are not kept too. */
class ArrivingEvents implements Disposable {
  readonly #sinks: readonly Disposable[];
  readonly #isWanted: (event: RecordedEvent) => boolean;
  readonly #heard: RecordedEvent[] = [];
  #arrived = (): void => {};

  constructor(session: CopilotSession, isWanted: (event: RecordedEvent) => boolean) {
    const translator = new EventTranslator(undefined, () => session.isAtGivenProvider);
    this.#isWanted = isWanted;
    this.#sinks = [
      session.session.events.addSink((event) => {
        const shown = translator.translate(event);
        if (shown === undefined) return;
        this.#heard.push(shown);
        this.#arrived();
      }),
    ];
  }

  /** What has come that is not known: at once if there is something, else when it comes. Nothing after `waitMs`. */
  async next(
    { known, max, waitMs }: Wait,
    signal: AbortSignal,
  ): Promise<{ readonly events: readonly RecordedEvent[]; readonly cursor: string | undefined }> {
    const fresh = (): readonly RecordedEvent[] => this.#heard.filter(({ id }) => !known.has(id));
    const hasWanted = (): boolean => fresh().some(this.#isWanted);
    if (!hasWanted()) {
      let resolve = (): void => {};
      const waiting = new Promise<void>((settle) => {
        resolve = settle;
      });
      this.#arrived = () => {
        if (hasWanted() || this.#heard.at(-1)?.type === "session.shutdown") resolve();
      };
      const timer = setTimeout(resolve, waitMs);
      using _ = onAbort(signal, resolve);
      await waiting;
      clearTimeout(timer);
      // What comes with it is part of the same batch.
      await nextTurn();
    }
    // What is left and kept comes with the next read.
    const all = fresh().slice(0, max);
    const last = all.findLast(({ ephemeral }) => ephemeral !== true);
    return { events: all.filter(this.#isWanted), cursor: last && `after:${last.id}` };
  }

  [Symbol.dispose](): void {
    for (const sink of this.#sinks) sink[Symbol.dispose]();
  }
}

/** A cursor names the event before it, so that it stays valid when events are appended. */
function cursorAt(position: number, events: readonly RecordedEvent[]): string {
  return position === 0 ? "start" : `after:${events[position - 1]!.id}`;
}

/** The position of a cursor. Undefined: its event no longer exists. */
function positionOf(cursor: string, events: readonly RecordedEvent[]): number | undefined {
  if (cursor === "start") return 0;
  const index = events.findIndex(({ id }) => cursor === `after:${id}`);
  return index === -1 ? undefined : index + 1;
}

function isWanted({ type, agentId }: RecordedEvent, { params }: Call): boolean {
  const types = params.get("types");
  if (Array.isArray(types) && !types.includes(type)) return false;
  const agents = params.optionalTexts("agentIds");
  if (agents !== undefined) return agentId !== undefined && agents.includes(agentId);
  return params.optionalText("agentScope") !== "primary" || agentId === undefined || type.startsWith("subagent.");
}
