import { mkdir, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { isRecord } from "../../../base/json.ts";
import { writeFileAtomic } from "../../../io/atomic-write.ts";
import { takeFileLock } from "../../../io/file-lock.ts";
import { badParams, type Params } from "../connection/params.ts";
import { findSession } from "../sessions/session-registry.ts";
import { workspacePathOf } from "../sessions/workspace.ts";
import { listSessions } from "./lifecycle.ts";
import type { Call, MethodFamily } from "./method.ts";

/** Texts by key that clients keep with a session. They are stored beside its log, and not interpreted. */
type Metadata = Readonly<Record<string, string>>;

const maxKeyBytes = 256;
const maxValueBytes = 16 * 1024;
const maxEntries = 128;
const maxFileBytes = 64 * 1024;
const maxSessions = 1_000;
const reserved = /^(?:copilot|github)\//;
const lockAttempts = 200;
const lockDelayMs = 25;
/** The version of the file. */
const version = 1;

export const clientMetadata: MethodFamily = {
  async "session.metadata.getClientMetadata"(call) {
    return readOwn(call, fileOf(call, sessionIdOf(call)));
  },
  async "session.metadata.updateClientMetadata"(call) {
    const { params } = call;
    const file = fileOf(call, sessionIdOf(call));
    const removed = new Set(keysOf(params, "remove"));
    const set = entriesOf(params);
    await mkdir(dirname(file), { recursive: true });
    return withLock(`${file}.lock`, async () => {
      const before = params.flag("clear") ? {} : await readOwn(call, file);
      const kept = Object.entries(before).filter(([key]) => !removed.has(key));
      const after = Object.fromEntries([...kept, ...set]);
      const text = JSON.stringify({ version, metadata: after });
      if (Object.keys(after).length > maxEntries) throw badParams(params.method, `a session keeps at most ${maxEntries} entries.`);
      if (Buffer.byteLength(text) > maxFileBytes) throw badParams(params.method, `all entries may have ${maxFileBytes} bytes together.`);
      await writeFileAtomic(file, text, { mode: 0o600 });
      return after;
    });
  },
  async "sessions.getClientMetadata"(call) {
    const ids = call.params.texts("sessionIds");
    if (ids.length > maxSessions) throw badParams(call.params.method, `sessionIds may name at most ${maxSessions} sessions.`);
    const keys = call.params.optionalTexts("keys") === undefined ? undefined : new Set(keysOf(call.params, "keys"));
    const existing = new Set((await listSessions(call)).map(({ sessionId }) => sessionId));
    for (const sessionId of call.server.sessions.keys()) existing.add(sessionId);
    return Promise.all(ids.map((sessionId) => describe(call, sessionId, existing.has(sessionId), keys)));
  },
};

async function describe(call: Call, sessionId: string, exists: boolean, keys: ReadonlySet<string> | undefined): Promise<object> {
  if (!exists) return { sessionId, status: "notFound" };
  const outcome = await read(fileOf(call, sessionId));
  if (outcome.status !== "ok") return { sessionId, status: outcome.status };
  const chosen = Object.entries(outcome.metadata).filter(([key]) => keys?.has(key) ?? true);
  return { sessionId, status: "ok", metadata: Object.fromEntries(chosen) };
}

/** @throws Error if the file cannot be used: a change would lose what it holds. */
async function readOwn({ params }: Call, file: string): Promise<Metadata> {
  const outcome = await read(file);
  if (outcome.status === "ok") return outcome.metadata;
  throw new Error(
    outcome.status === "corrupt"
      ? `${params.method}: ${file} is not valid. Correct or delete it.`
      : `${params.method}: ${file} was written by a newer version. Update skillhost.`,
  );
}

/** Several processes may write for the same session. */
async function withLock<T>(path: string, run: () => Promise<T>): Promise<T> {
  for (let attempt = 0; attempt < lockAttempts; attempt++) {
    const taken = await takeFileLock(path);
    if (taken.kind === "taken") {
      await delay(lockDelayMs);
      continue;
    }
    try {
      return await run();
    } finally {
      taken.lock.release();
    }
  }
  throw new Error(`Another process holds ${path}. Try again, or delete it if no other process uses this session.`);
}

type ReadOutcome = { readonly status: "ok"; readonly metadata: Metadata } | { readonly status: "corrupt" | "unsupportedVersion" };

async function read(file: string): Promise<ReadOutcome> {
  let value: unknown;
  try {
    value = JSON.parse(await readFile(file, "utf8"));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return { status: "ok", metadata: {} };
    if (error instanceof SyntaxError) return { status: "corrupt" };
    throw error;
  }
  if (!isRecord(value)) return { status: "corrupt" };
  if (value["version"] !== version) return { status: typeof value["version"] === "number" ? "unsupportedVersion" : "corrupt" };
  const { metadata } = value;
  const isValid = isRecord(metadata) && Object.values(metadata).every((text) => typeof text === "string");
  return isValid ? { status: "ok", metadata: metadata as Metadata } : { status: "corrupt" };
}

function sessionIdOf({ server, params }: Call): string {
  const session = findSession(server, params);
  if (session.files !== undefined)
    throw badParams(params.method, "the files of this session are at its client, which can keep its own data there.");
  return session.id;
}

function fileOf({ server }: Call, sessionId: string): string {
  return join(workspacePathOf(server, sessionId), "client-metadata.json");
}

function entriesOf(params: Params): readonly (readonly [string, string])[] {
  const entries = Object.entries(params.optionalRecord("set") ?? {});
  for (const [key, value] of entries) {
    checkKey(params, key);
    if (typeof value !== "string") throw badParams(params.method, `set[${JSON.stringify(key)}] must be a string.`);
    if (Buffer.byteLength(value) > maxValueBytes)
      throw badParams(params.method, `set[${JSON.stringify(key)}] is longer than ${maxValueBytes} bytes.`);
  }
  return entries as readonly (readonly [string, string])[];
}

function keysOf(params: Params, name: string): readonly string[] {
  const keys = params.texts(name);
  if (keys.length > maxEntries) throw badParams(params.method, `${name} may have at most ${maxEntries} keys.`);
  for (const key of keys) checkKey(params, key);
  return keys;
}

function checkKey(params: Params, key: string): void {
  const problem =
    key === ""
      ? "is empty"
      : Buffer.byteLength(key) > maxKeyBytes
        ? `is longer than ${maxKeyBytes} bytes`
        : reserved.test(key)
          ? "is in a reserved namespace (copilot/ or github/)"
          : undefined;
  if (problem !== undefined) throw badParams(params.method, `the key ${JSON.stringify(key.slice(0, 300))} ${problem}.`);
}
