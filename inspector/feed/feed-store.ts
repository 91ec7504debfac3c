import { batch, computed, type ReadonlySignal, type Signal, signal } from "@preact/signals";
import type {
  FeedAsk,
  FeedCall,
  FeedDiagnostic,
  FeedMessage,
  FeedPin,
  FeedReload,
  FeedSession,
  FeedSkill,
  FeedSnapshot,
  FeedTool,
  FeedTraffic,
} from "../../src/servers/inspector/feed-messages.ts";
import type { ServerInfo } from "../../src/session/mcp/server-connections.ts";
import { BoundedList } from "./bounded-list.ts";
import { ReceivedEvent } from "./received-event.ts";

/** What the page keeps of a stream that does not end. Older entries are dropped, and counted. */
const limits = { events: 100_000, traffic: 20_000, calls: 500, reloads: 1_000 };

/** Everything that the feed has said, as it is now. Views read its signals. */
export class FeedStore {
  readonly snapshot: Signal<FeedSnapshot | undefined> = signal(undefined);
  readonly skills: Signal<ReadonlyMap<string, FeedSkill>> = signal(new Map());
  readonly tools: Signal<ReadonlyMap<string, FeedTool>> = signal(new Map());
  readonly diagnostics: Signal<readonly FeedDiagnostic[]> = signal([]);
  readonly sessions: Signal<ReadonlyMap<string, FeedSession>> = signal(new Map());
  readonly asks: Signal<ReadonlyMap<string, FeedAsk>> = signal(new Map());
  readonly servers: Signal<ReadonlyMap<string, ServerInfo>> = signal(new Map());
  readonly pins: Signal<readonly FeedPin[]> = signal([]);
  readonly pinFile: Signal<string | undefined> = signal(undefined);
  readonly pinProblem: Signal<string | undefined> = signal(undefined);
  readonly calls: Signal<ReadonlyMap<string, FeedCall>> = signal(new Map());
  readonly reloads = new BoundedList<FeedReload>(limits.reloads);
  readonly events = new BoundedList<ReceivedEvent>(limits.events);
  readonly traffic = new BoundedList<FeedTraffic>(limits.traffic);
  /** Whether the host refuses calls and changes. It is assumed until the host has said otherwise. */
  readonly isReadOnly: ReadonlySignal<boolean> = computed(() => this.snapshot.value?.isReadOnly ?? true);
  /** Messages that the host left out for this reader. */
  readonly dropped: Signal<number> = signal(0);
  #feed: string | undefined;
  #seq: number | undefined;

  /** What a reader names when it connects again. */
  get position(): { readonly feed: string; readonly since: number } | undefined {
    return this.#feed === undefined || this.#seq === undefined ? undefined : { feed: this.#feed, since: this.#seq };
  }

  /** Applies messages in their order. Those that were applied before are ignored: a stream may repeat some after a reconnection. */
  apply(messages: readonly FeedMessage[]): void {
    batch(() => {
      const pending = new Pending(this);
      for (const message of messages) {
        if (message.type === "snapshot") {
          pending.write();
          this.#replace(message);
        } else {
          if (this.#seq !== undefined && message.seq <= this.#seq) continue;
          this.#applyOne(message, pending);
        }
        this.#seq = message.seq;
      }
      pending.write();
    });
  }

  #replace(snapshot: FeedMessage & { type: "snapshot" }): void {
    // Calls belong to a run of the host: those of a former one will not end.
    if (this.#feed !== snapshot.feed) this.calls.value = new Map();
    this.#feed = snapshot.feed;
    this.snapshot.value = snapshot;
    this.skills.value = new Map(snapshot.skills.map((skill) => [skill.folder, skill]));
    this.tools.value = new Map(snapshot.tools.map((tool) => [tool.id, tool]));
    this.diagnostics.value = snapshot.diagnostics;
    this.sessions.value = new Map(snapshot.sessions.map((session) => [session.id, session]));
    this.asks.value = new Map(snapshot.asks.map((ask) => [ask.id, ask]));
    this.servers.value = new Map(snapshot.servers.map((server) => [server.name, server]));
    this.pins.value = snapshot.pins;
    this.pinFile.value = snapshot.pinFile;
    this.pinProblem.value = snapshot.pinProblem;
    this.reloads.replace(snapshot.reloads);
    this.events.replace(snapshot.events.map((received) => new ReceivedEvent(received)));
    this.traffic.replace(snapshot.traffic);
  }

  #applyOne(message: Exclude<FeedMessage, { type: "snapshot" }>, pending: Pending): void {
    switch (message.type) {
      case "catalog": {
        const [skills, tools] = [pending.of(this.skills), pending.of(this.tools)];
        for (const folder of message.removedSkills) skills.delete(folder);
        for (const id of message.removedTools) tools.delete(id);
        for (const skill of message.skills) skills.set(skill.folder, skill);
        for (const tool of message.tools) tools.set(tool.id, tool);
        return;
      }
      case "reload":
        this.reloads.add(message);
        return;
      case "diagnostics":
        this.diagnostics.value = message.diagnostics;
        return;
      case "session":
        pending.of(this.sessions).set(message.session.id, message.session);
        return;
      case "session.closed": {
        const session = pending.of(this.sessions).get(message.sessionId);
        if (session !== undefined) pending.of(this.sessions).set(session.id, { ...session, state: "closed" });
        return;
      }
      case "event":
        this.events.add(new ReceivedEvent(message));
        return;
      case "ask":
        pending.of(this.asks).set(message.ask.id, message.ask);
        return;
      case "ask.settled":
        pending.of(this.asks).delete(message.askId);
        return;
      case "call":
        keepNewest(pending.of(this.calls), message.call, limits.calls);
        return;
      case "server":
        pending.of(this.servers).set(message.server.name, message.server);
        return;
      case "server.removed":
        pending.of(this.servers).delete(message.name);
        return;
      case "traffic":
        this.traffic.add(message.traffic);
        return;
      case "pins":
        this.pins.value = message.pins;
        this.pinFile.value = message.file;
        this.pinProblem.value = message.problem;
        return;
      case "pin.run":
        this.pins.value = this.pins.value.map((pin) => (pin.id === message.pinId ? { ...pin, lastRun: message.run } : pin));
        return;
      case "dropped":
        this.dropped.value += message.count;
        return;
      case "plugins.reload":
      case "alive":
        return;
    }
  }
}

/** Copies of maps that messages of one batch change: each map is copied once, not once for each message. */
class Pending {
  readonly #store: FeedStore;
  readonly #copies = new Map<Signal<ReadonlyMap<string, never>>, Map<string, never>>();

  constructor(store: FeedStore) {
    this.#store = store;
  }

  of<Value>(target: Signal<ReadonlyMap<string, Value>>): Map<string, Value> {
    const key = target as unknown as Signal<ReadonlyMap<string, never>>;
    const copy = this.#copies.get(key) ?? new Map(key.peek());
    this.#copies.set(key, copy);
    return copy as unknown as Map<string, Value>;
  }

  write(): void {
    for (const [target, copy] of this.#copies) target.value = copy;
    this.#copies.clear();
    this.#store.events.publish();
    this.#store.traffic.publish();
    this.#store.reloads.publish();
  }
}

function keepNewest(calls: Map<string, FeedCall>, call: FeedCall, limit: number): void {
  calls.set(call.id, call);
  for (const id of calls.keys()) {
    if (calls.size <= limit) return;
    calls.delete(id);
  }
}
