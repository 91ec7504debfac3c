import { resolve } from "node:path";
import { errorMessage, HostError } from "../../base/errors.ts";
import { isRecord } from "../../base/json.ts";
import { packageVersion } from "../../base/package-root.ts";
import type { Inspector } from "../../host/inspection.ts";
import { type LogRecord, readLogLines } from "../../io/log/read-log.ts";
import { BlobStore } from "./blob-store.ts";
import { toFeedRecord } from "./feed-json.ts";
import { type FeedDiagnostic, type FeedEvent, type FeedSession, type FeedSnapshot, feedVersion } from "./feed-messages.ts";
import { type FeedSource, serveFeed } from "./inspector-server.ts";
import { MessageLog } from "./message-log.ts";

/** More than the longest line of a log that a host writes. */
const maxBytes = 512 * 1024 * 1024;

interface ExportOptions {
  /** 0: any that is free. */
  readonly port?: number | undefined;
  /** Default: that of this package. */
  readonly pageFolder?: string | undefined;
}

/**
 * Serves the page of a session that was exported to a file, as JSON lines with an event each. No host is needed, and nothing can be called.
 * @throws HostError `SESSION_EXPORT` when the file cannot be read or contains no events; `HTTP_LISTEN` when the port is in use.
 */
export async function serveExport(file: string, { port = 0, pageFolder }: ExportOptions = {}): Promise<Inspector> {
  const blobs = new BlobStore();
  const { session, events, diagnostics } = await readExport(file, blobs);
  return serveFeed(
    (onAppended): FeedSource => {
      const log = new MessageLog(onAppended);
      const facts: FeedSnapshot = {
        version: feedVersion,
        feed: log.feedId,
        host: {
          version: packageVersion,
          node: process.version,
          pid: process.pid,
          workingDirectory: session.workingDirectory,
          platform: process.platform,
        },
        isReadOnly: true,
        isExport: true,
        skills: [],
        tools: [],
        diagnostics,
        sessions: [session],
        asks: [],
        servers: [],
        traffic: [],
        pins: [],
        reloads: [],
        calls: [],
        events: events.map((event) => ({ sessionId: session.id, event })),
      };
      const text = JSON.stringify(facts);
      return {
        log,
        snapshot: () => text,
        answer: () =>
          Promise.reject(new HostError("INSPECTOR_READ_ONLY", "This is the export of a session. No host is running that could do this.")),
        blob: (id) => blobs.read(id),
      };
    },
    { port, pageFolder },
  );
}

interface Exported {
  readonly session: FeedSession;
  readonly events: readonly FeedEvent[];
  /** The lines that could not be read. */
  readonly diagnostics: readonly FeedDiagnostic[];
}

async function readExport(file: string, blobs: BlobStore): Promise<Exported> {
  const path = resolve(file);
  const { records, diagnostics } = await readLogLines(path, { maxBytes }).catch((cause: unknown) => {
    throw new HostError("SESSION_EXPORT", `${path} cannot be read: ${errorMessage(cause)}`, { cause });
  });
  const events = records.flatMap((record) => toEvent(record, blobs) ?? []);
  if (events.length === 0)
    throw new HostError("SESSION_EXPORT", `${path} contains no events of a session. Export one with "skillhost sessions export <id>".`);
  return { session: describe(events), events, diagnostics };
}

/** Undefined: a record that is not an event. */
function toEvent({ id, type, timestamp, parentId, agentId, data }: LogRecord, blobs: BlobStore): FeedEvent | undefined {
  if (typeof id !== "string" || typeof type !== "string" || !isRecord(data)) return undefined;
  return {
    id,
    type,
    timestamp: typeof timestamp === "string" ? timestamp : "",
    parentId: typeof parentId === "string" ? parentId : null,
    ...(typeof agentId === "string" && { agentId }),
    data: toFeedRecord(data, blobs),
  };
}

function describe(events: readonly FeedEvent[]): FeedSession {
  const start = events.find(({ type }) => type === "session.start");
  const { sessionId, options } = start?.data ?? {};
  const folder = isRecord(options) ? options["workingDirectory"] : undefined;
  const content = events.find(({ type }) => type === "user.message")?.data["content"];
  return {
    id: typeof sessionId === "string" ? sessionId : "exported",
    client: "export",
    state: "closed",
    startTime: start?.timestamp ?? events[0]!.timestamp,
    ...(typeof content === "string" && { title: content.trim().slice(0, 80) }),
    workingDirectory: typeof folder === "string" ? folder : "",
  };
}
