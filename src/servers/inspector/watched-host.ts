import type { Diagnostic } from "../../base/diagnostic.ts";
import { packageVersion } from "../../base/package-root.ts";
import type { Host } from "../../host/host.ts";
import type { OpenSession } from "../../host/host-sessions.ts";
import type { ServerTraffic } from "../../host/session-server-sets.ts";
import type { ServerInfo } from "../../session/mcp/server-connections.ts";
import type { Session } from "../../session/session.ts";
import type { SkillsChange } from "../../skills/skill.ts";
import { BlobStore } from "./blob-store.ts";
import { withCodeFrame } from "./code-frame.ts";
import { toFeedJson, toFeedRecord } from "./feed-json.ts";
import {
  type FeedCall,
  type FeedDiagnostic,
  type FeedPin,
  type FeedPinRun,
  type FeedReload,
  type FeedSnapshot,
  feedVersion,
} from "./feed-messages.ts";
import { type LoggedMessage, MessageLog } from "./message-log.ts";
import { WatchedCatalog } from "./watched-catalog.ts";
import { WatchedSession } from "./watched-session.ts";

const maxReloads = 200;
const maxClosed = 100;
const maxSnapshotEvents = 5_000;
const maxTraffic = 300;
/** In UTF-16 units. */
const maxSnapshotTraffic = 2 * 1024 * 1024;
const maxFrames = 200;

interface WatchedHostOptions {
  readonly isReadOnly: boolean;
  onAppended(): void;
}

/** Follows a host, and describes what happens in it as the messages of a feed. */
export class WatchedHost implements Disposable {
  readonly log: MessageLog;
  readonly blobs: BlobStore = new BlobStore();
  readonly catalog: WatchedCatalog;
  readonly #host: Host;
  readonly #options: WatchedHostOptions;
  readonly #sessions = new Map<string, WatchedSession>();
  readonly #listening: readonly Disposable[];
  readonly #calls = new Map<string, FeedCall>();
  #pins: Pick<FeedSnapshot, "pins" | "pinFile" | "pinProblem"> = { pins: [] };
  #reloads: readonly FeedReload[] = [];
  #reloadCount = 0;
  /** Loads that are not announced yet. */
  #loads: SkillsChange[] = [];
  #onReload: ((change: SkillsChange) => void) | undefined;
  #traffic: LoggedMessage[] = [];
  #trafficCount = 0;
  #servers = new Map<string, string>();
  #diagnostics: string | undefined;

  constructor(host: Host, options: WatchedHostOptions) {
    this.#host = host;
    this.#options = options;
    this.log = new MessageLog(options.onAppended);
    this.catalog = new WatchedCatalog(host, this.log, this.blobs);
    for (const open of host.openSessions) this.#open(open);
    this.#listening = [
      host.on("changed", () => this.#refresh()),
      // What it changed is announced first, once for all changes of a turn of the event loop: `changed` follows.
      host.on("skills.changed", (change) => void this.#loads.push(change)),
      host.on("plugins.changed", (change) => {
        this.log.append("plugins.reload", () => toFeedRecord(change, this.blobs));
      }),
      host.on("diagnostic", () => this.#compareDiagnostics()),
      host.on("session.opened", (opened) => {
        this.#open(opened).announce();
      }),
      host.on("session.closed", ({ sessionId }) => this.#close(sessionId)),
      host.on("server.message", (traffic) => this.#exchanged(traffic)),
    ];
    this.#servers = this.#readServers();
    this.#diagnostics = this.#readDiagnostics();
  }

  /** The members of a `snapshot` message, as the text of a JSON object. */
  snapshot(): string {
    const host = this.#host;
    const sessions = [...this.#sessions.values()];
    const facts: Omit<FeedSnapshot, "events" | "traffic"> = {
      version: feedVersion,
      feed: this.log.feedId,
      host: {
        version: packageVersion,
        node: process.version,
        pid: process.pid,
        workingDirectory: host.workingDirectory,
        platform: process.platform,
      },
      isReadOnly: this.#options.isReadOnly,
      isExport: false,
      skills: this.catalog.skills,
      tools: this.catalog.tools,
      diagnostics: this.#describeDiagnostics(),
      sessions: sessions.map(({ info }) => info),
      asks: sessions.flatMap(({ asks }) => asks),
      servers: host.listServers().map((server) => toFeedRecord(server, this.blobs) as unknown as ServerInfo),
      ...this.#pins,
      reloads: this.#reloads,
      calls: [...this.#calls.values()],
    };
    const [events, traffic] = [this.#lastEvents(sessions), this.#lastTraffic()];
    return `${JSON.stringify(facts).slice(0, -1)},"events":[${events.join(",")}],"traffic":[${traffic.join(",")}]}`;
  }

  session(sessionId: string): WatchedSession | undefined {
    return this.#sessions.get(sessionId);
  }

  /** Announces the state of a call, and keeps it for readers that come later. */
  showCall(call: FeedCall): void {
    this.#calls.delete(call.id);
    this.#calls.set(call.id, call);
    for (const [id, { state }] of this.#calls) {
      if (this.#calls.size <= maxReloads) break;
      if (state !== "running") this.#calls.delete(id);
    }
    this.log.append("call", () => ({ call }));
  }

  /** Announces the stored calls. `isFirst`: a snapshot that has them is about to be made for the first reader. */
  showPins(pins: readonly FeedPin[], problem: string | undefined, isFirst: boolean): void {
    const files = new Set(pins.map(({ file }) => file));
    const file = files.size === 1 ? pins[0]?.file : undefined;
    this.#pins = { pins, ...(file !== undefined && { pinFile: file }), ...(problem !== undefined && { pinProblem: problem }) };
    if (!isFirst) this.log.append("pins", () => ({ pins, ...(file !== undefined && { file }), ...(problem !== undefined && { problem }) }));
  }

  /** Announces that a stored call was made. */
  showPinRun(pinId: string, run: FeedPinRun): void {
    this.#pins = { ...this.#pins, pins: this.#pins.pins.map((pin) => (pin.id === pinId ? { ...pin, lastRun: run } : pin)) };
    this.log.append("pin.run", () => ({ pinId, run }));
  }

  /** The number of the last load that was announced; undefined before the first one. */
  get lastReload(): number | undefined {
    return this.#reloadCount === 0 ? undefined : this.#reloadCount;
  }

  /** Called with each load after it was announced. One listener at most. */
  onReload(listener: (change: SkillsChange) => void): void {
    this.#onReload = listener;
  }

  [Symbol.dispose](): void {
    for (const listener of this.#listening) listener[Symbol.dispose]();
    for (const session of this.#sessions.values()) session[Symbol.dispose]();
  }

  #open(opened: OpenSession): WatchedSession {
    const { id } = opened.session;
    this.#sessions.get(id)?.[Symbol.dispose]();
    const parts = {
      log: this.log,
      blobs: this.blobs,
      isReadOnly: this.#options.isReadOnly,
      onCallStarted: (toolCallId: string, toolName: string, session: Session) => this.catalog.callStarted(toolCallId, toolName, session),
      onCallEnded: (toolCallId: string) => this.catalog.callEnded(toolCallId),
    };
    this.#sessions.delete(id);
    const watched = new WatchedSession(opened, parts);
    this.#sessions.set(id, watched);
    return watched;
  }

  #close(sessionId: string): void {
    this.#sessions.get(sessionId)?.close();
    const closed = [...this.#sessions].filter(([, { info }]) => info.state === "closed");
    for (const [id] of closed.slice(0, -maxClosed)) this.#sessions.delete(id);
  }

  #reloaded(change: SkillsChange): void {
    const id = ++this.#reloadCount;
    const parts = [...change.added, ...change.updated, ...change.failed];
    const durationMs = Math.max(0, ...parts.map((part) => part.durationMs));
    const reload = { ...(toFeedRecord(change, this.blobs) as unknown as SkillsChange), id, durationMs };
    this.#reloads = [...this.#reloads, reload].slice(-maxReloads);
    this.log.append("reload", () => reload);
    this.#onReload?.(change);
  }

  #exchanged({ server, direction, message }: ServerTraffic): void {
    const id = ++this.#trafficCount;
    const at = Date.now();
    const entry = this.log.append("traffic", () => ({
      traffic: { id, at, server, direction, ...partsOf(message), message: toFeedJson(message, this.blobs) },
    }));
    this.#traffic.push(entry);
    if (this.#traffic.length > 2 * maxTraffic) this.#traffic = this.#traffic.slice(-maxTraffic);
  }

  #refresh(): void {
    this.catalog.refresh();
    this.#compareDiagnostics();
    const servers = this.#readServers();
    for (const [name, text] of servers)
      if (this.#servers.get(name) !== text) this.log.append("server", () => ({ server: JSON.parse(text) }));
    for (const name of this.#servers.keys()) if (!servers.has(name)) this.log.append("server.removed", () => ({ name }));
    this.#servers = servers;
    // A reader that sees a load has the tools of it.
    for (const change of this.#loads.splice(0)) this.#reloaded(change);
  }

  #readServers(): Map<string, string> {
    return new Map(this.#host.listServers().map((server) => [server.name, JSON.stringify(toFeedRecord(server, this.blobs))]));
  }

  #compareDiagnostics(): void {
    const now = this.#readDiagnostics();
    if (now === this.#diagnostics) return;
    this.#diagnostics = now;
    this.log.append("diagnostics", () => ({ diagnostics: this.#describeDiagnostics() }));
  }

  #readDiagnostics(): string {
    return JSON.stringify(this.#host.diagnostics);
  }

  #describeDiagnostics(): readonly FeedDiagnostic[] {
    return this.#host.diagnostics.map((diagnostic: Diagnostic, index) => (index < maxFrames ? withCodeFrame(diagnostic) : diagnostic));
  }

  #lastEvents(sessions: readonly WatchedSession[]): readonly string[] {
    const messages: LoggedMessage[] = sessions.flatMap(({ events }) => [...events]);
    messages.sort((one, other) => one.seq - other.seq);
    return messages.slice(-maxSnapshotEvents).map(({ body }) => body);
  }

  /** The last messages of all servers, as texts of JSON objects. */
  #lastTraffic(): readonly string[] {
    const texts: string[] = [];
    let left = maxSnapshotTraffic;
    for (const { body } of this.#traffic.slice(-maxTraffic).reverse()) {
      left -= body.length;
      if (left < 0) break;
      texts.unshift(body.slice('{"traffic":'.length, -1));
    }
    return texts;
  }
}

/** What pairs a message with its answer, and names it. */
function partsOf(message: Readonly<Record<string, unknown>>): { readonly rpcId?: string | number; readonly method?: string } {
  const { id, method } = message;
  return {
    ...((typeof id === "string" || typeof id === "number") && { rpcId: id }),
    ...(typeof method === "string" && { method }),
  };
}
