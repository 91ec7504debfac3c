import { errorMessage, HostError } from "../../../base/errors.ts";
import { isRecord } from "../../../base/json.ts";
import { type AppendLog, logClosed, toLine } from "../../../io/log/append-log.ts";
import { defaultMaxLineBytes, type LogRecord, toRecord } from "../../../io/log/read-log.ts";
import type { WorkspaceFileStat } from "../../../session/workspace/workspace-files.ts";
import type { Client, ClientFileSystem } from "./client.ts";

/** The error code of a client for a missing file. */
const missingCode = "ENOENT";

/** The files of one session at its client, which may be replaced by another after a reconnection. */
export class ClientFiles {
  readonly statePath: string;
  readonly hasDatabases: boolean;
  readonly #sessionId: string;
  client: Client;

  constructor(client: Client, sessionId: string, { statePath, hasDatabases }: Pick<ClientFileSystem, "statePath" | "hasDatabases">) {
    this.client = client;
    this.#sessionId = sessionId;
    this.statePath = statePath;
    this.hasDatabases = hasDatabases;
  }

  /** The files of another session at the same client. */
  sibling(sessionId: string): ClientFiles {
    return new ClientFiles(this.client, sessionId, this);
  }

  /** A path inside the session's state, with the client's own separator. */
  path(...parts: readonly string[]): string {
    const separator = this.statePath.includes("\\") && !this.statePath.includes("/") ? "\\" : "/";
    return [this.statePath.replace(/[\\/]+$/, ""), ...parts].join(separator);
  }

  /** Undefined: there is no such file. @throws HostError `SESSION_FS`. */
  async read(path: string): Promise<string | undefined> {
    const answer = await this.#ask("readFile", { path });
    if (codeOf(answer["error"]) === missingCode) return undefined;
    this.#refuse(answer["error"], path);
    return typeof answer["content"] === "string" ? answer["content"] : "";
  }

  async write(path: string, content: string): Promise<void> {
    this.#refuse(await this.#ask("writeFile", { path, content }), path);
  }

  async append(path: string, content: string): Promise<void> {
    this.#refuse(await this.#ask("appendFile", { path, content }), path);
  }

  async makeFolder(path: string): Promise<void> {
    this.#refuse(await this.#ask("mkdir", { path, recursive: true }), path);
  }

  async remove(path: string): Promise<void> {
    this.#refuse(await this.#ask("rm", { path, recursive: true, force: true }), path);
  }

  async rename(from: string, to: string): Promise<void> {
    this.#refuse(await this.#ask("rename", { src: from, dest: to }), from);
  }

  /** Undefined: there is nothing. @throws HostError `SESSION_FS`. */
  async stat(path: string): Promise<WorkspaceFileStat | undefined> {
    const answer = await this.#ask("stat", { path });
    if (codeOf(answer["error"]) === missingCode) return undefined;
    this.#refuse(answer["error"], path);
    const { isFile, isDirectory, size, mtime, birthtime } = answer;
    return {
      isFile: isFile === true,
      isDirectory: isDirectory === true,
      size: typeof size === "number" ? size : 0,
      mtimeMs: timeOf(mtime),
      birthtimeMs: timeOf(birthtime),
    };
  }

  async exists(path: string): Promise<boolean> {
    return (await this.#ask("exists", { path }))["exists"] === true;
  }

  /** The entries of a folder. Empty when it does not exist. */
  async entries(path: string): Promise<readonly { readonly name: string; readonly isFolder: boolean }[]> {
    const answer = await this.#ask("readdirWithTypes", { path });
    if (codeOf(answer["error"]) === missingCode) return [];
    this.#refuse(answer["error"], path);
    const entries = Array.isArray(answer["entries"]) ? answer["entries"].filter(isRecord) : [];
    return entries.flatMap(({ name, type }) => (typeof name === "string" ? [{ name, isFolder: type === "directory" }] : []));
  }

  /** Runs a statement on the session's database. @throws HostError `SESSION_FS`, with the client's message. */
  async query(query: string, queryType: "exec" | "query" | "run"): Promise<Readonly<Record<string, unknown>>> {
    const answer = await this.#ask("sqliteQuery", { query, queryType });
    const { error } = answer;
    if (error === undefined || error === null) return answer;
    const message = isRecord(error) && typeof error["message"] === "string" ? error["message"] : "the client gave no reason";
    throw new HostError("SESSION_FS", message);
  }

  /** Whether the session's database was made. */
  async hasDatabase(): Promise<boolean> {
    return (await this.#ask("sqliteExists", {}))["exists"] === true;
  }

  async #ask(method: string, params: object): Promise<Readonly<Record<string, unknown>>> {
    const answer = await this.client.wire.request(`sessionFs.${method}`, { sessionId: this.#sessionId, ...params });
    return isRecord(answer) ? answer : {};
  }

  /** Throws the error in a client's answer, if it has one. */
  #refuse(error: unknown, path: string): void {
    const code = codeOf(error);
    if (code === undefined) return;
    const message = isRecord(error) && typeof error["message"] === "string" ? error["message"] : code;
    throw new HostError("SESSION_FS", `The client's file system rejected ${path}: ${message}`);
  }
}

/** Milliseconds since 1970; 0 when the client gave no time. */
function timeOf(value: unknown): number {
  const time = typeof value === "string" ? Date.parse(value) : Number.NaN;
  return Number.isNaN(time) ? 0 : time;
}

function codeOf(error: unknown): string | undefined {
  const code = isRecord(error) ? error["code"] : undefined;
  return typeof code === "string" ? code : undefined;
}

/** The log of a session in a file at its client. Records that the client could not write are kept and written again later. */
export class ClientLog implements AppendLog {
  readonly #files: ClientFiles;
  readonly #path: string;
  #waiting = "";
  #writing: Promise<void> | undefined;
  #hasFolder = false;
  #isClosed = false;

  constructor(files: ClientFiles) {
    this.#files = files;
    this.#path = files.path("events.jsonl");
  }

  append(record: object): void {
    if (this.#isClosed) throw logClosed();
    this.#waiting += toLine(record, defaultMaxLineBytes);
    // The next flush reports a failure.
    queueMicrotask(() => void this.flush().catch(() => {}));
  }

  async read(): Promise<{ readonly records: readonly LogRecord[]; readonly diagnostics: readonly [] }> {
    await this.#writing?.catch(() => {});
    const text = `${(await this.#files.read(this.#path)) ?? ""}${this.#waiting}`;
    const lines = text.split("\n").filter((line) => line !== "");
    const records = lines.map((line) => toRecord(Buffer.from(line)));
    return { records: records.filter((record) => record !== undefined), diagnostics: [] };
  }

  async flush(): Promise<void> {
    while (this.#writing !== undefined || this.#waiting !== "") {
      this.#writing ??= this.#write().finally(() => {
        this.#writing = undefined;
      });
      await this.#writing;
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.flush();
  }

  async #write(): Promise<void> {
    const text = this.#waiting;
    this.#waiting = "";
    try {
      if (!this.#hasFolder) await this.#files.makeFolder(this.#files.statePath);
      this.#hasFolder = true;
      await this.#files.append(this.#path, text);
    } catch (cause) {
      this.#waiting = text + this.#waiting;
      throw new HostError("LOG_NOT_WRITTEN", `The client could not store the session's log: ${errorMessage(cause)}`, { cause });
    }
  }
}
