import { createHash } from "node:crypto";
import { readFileSync, realpathSync, statSync } from "node:fs";
import { lstat, readFile } from "node:fs/promises";
import { toError } from "../../base/errors.ts";
import { isRecord } from "../../base/json.ts";
import type { Logger } from "../../base/logger.ts";
import type { FileChange } from "../calls/tool-call.ts";
import type { WorkspaceFiles } from "../workspace/workspace-files.ts";

/** Larger files are not captured. */
const maxCapturedBytes = 5 * 1024 * 1024;

/** What is known of a change of a file by a tool. */
export interface CapturedChange {
  /** The place of the change among all of the session, and the name of its record. */
  readonly number: number;
  readonly path: string;
  readonly toolCallId: string;
  /** Identifies the content before the change; null: there was no file. Undefined: it was not captured. */
  readonly before: string | null | undefined;
  /** Identifies the content after the change. Undefined: it was not captured. */
  readonly after: string | undefined;
  readonly linesAdded: number;
  readonly linesRemoved: number;
}

/**
 * Keeps what files contained before tools changed them. Each change is a file of its own in the session's folder, so that another
 * process that resumes the session has them, too. A change that was not stored completely counts as not captured.
 */
export class FileChanges {
  readonly #files: WorkspaceFiles;
  readonly #log: Logger;
  #loaded: Promise<CapturedChange[]> | undefined;
  #last: Promise<unknown> = Promise.resolve();

  constructor(files: WorkspaceFiles, log: Logger) {
    this.#files = files;
    this.#log = log;
  }

  /** Captures a change that a tool has just made. Never throws. */
  capture(change: FileChange): void {
    // At once: the next change may follow immediately.
    const written = writtenFile(change);
    const captured = this.#last.then(() => this.#store(change, written));
    this.#last = captured.catch((error: unknown) => {
      this.#log.warning("A change of a file could not be captured, so a rewind will leave this file as it is.", {
        path: change.path,
        error: toError(error),
      });
    });
  }

  /** Settles when everything captured so far is stored. */
  async settled(): Promise<void> {
    await this.#last;
  }

  /** All changes, the oldest first. */
  async all(): Promise<readonly CapturedChange[]> {
    await this.#last;
    return this.#changes();
  }

  /** The content before a change; null: there was no file. Undefined: it was not captured. */
  async contentBefore({ number, before }: CapturedChange): Promise<Buffer | null | undefined> {
    if (before === null || before === undefined) return before;
    const record = readRecord(await this.#files.read(fileOf(number)), number);
    const content = record?.content === undefined ? undefined : Buffer.from(record.content, "base64");
    return content !== undefined && contentId(content) === before ? content : undefined;
  }

  /** Forgets changes that were taken back. */
  async forget(changes: readonly CapturedChange[]): Promise<void> {
    const forgotten = new Set(changes.map(({ number }) => number));
    for (const number of forgotten) await this.#files.remove(fileOf(number));
    const known = await this.#changes();
    known.splice(0, known.length, ...known.filter(({ number }) => !forgotten.has(number)));
  }

  async #store({ content, before: given, toolCallId }: FileChange, { path, after }: WrittenFile): Promise<void> {
    const known = await this.#changes();
    const number = (known.at(-1)?.number ?? 0) + 1;
    const before = typeof given === "string" ? Buffer.from(given) : given && Buffer.from(given);
    const isCaptured = before !== undefined && (before === null || before.length <= maxCapturedBytes);
    const { linesAdded, linesRemoved } = countLines(before === undefined || before === null ? "" : before.toString("utf8"), content);
    const change: CapturedChange = {
      number,
      path,
      toolCallId,
      before: isCaptured ? (before === null ? null : contentId(before)) : undefined,
      after,
      linesAdded,
      linesRemoved,
    };
    known.push(change);
    const stored = { ...change, ...(isCaptured && before !== null && { content: before.toString("base64") }) };
    await this.#files.write(fileOf(number), JSON.stringify(stored));
  }

  #changes(): Promise<CapturedChange[]> {
    this.#loaded ??= this.#load();
    this.#loaded.catch(() => {
      this.#loaded = undefined;
    });
    return this.#loaded;
  }

  async #load(): Promise<CapturedChange[]> {
    const changes: CapturedChange[] = [];
    for (const name of await this.#files.list()) {
      const number = Number(/^(\d{6,9})\.json$/.exec(name)?.[1]);
      const record = Number.isNaN(number) ? undefined : readRecord(await this.#files.read(name), number);
      if (record === undefined) continue;
      const { content: _content, ...change } = record;
      changes.push(change);
    }
    return changes.sort((a, b) => a.number - b.number);
  }
}

function fileOf(number: number): string {
  return `${String(number).padStart(6, "0")}.json`;
}

interface StoredChange extends CapturedChange {
  readonly content?: string | undefined;
}

function readRecord(text: string | undefined, number: number): StoredChange | undefined {
  try {
    const value: unknown = JSON.parse(text ?? "");
    if (!isRecord(value) || typeof value["path"] !== "string" || typeof value["toolCallId"] !== "string") return undefined;
    const { path, toolCallId, before, after, linesAdded, linesRemoved, content } = value;
    return {
      number,
      path,
      toolCallId,
      before: before === null || typeof before === "string" ? before : undefined,
      after: typeof after === "string" ? after : undefined,
      linesAdded: countOf(linesAdded),
      linesRemoved: countOf(linesRemoved),
      ...(typeof content === "string" && { content }),
    };
  } catch {
    // It was not written completely.
    return undefined;
  }
}

function countOf(value: unknown): number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : 0;
}

/** Identifies a content. */
export function contentId(content: Buffer): string {
  return createHash("sha256").update(content).digest("hex");
}

/** The content of a regular file; null: there is nothing. Undefined: it is a link, a folder, or cannot be read. */
export async function readRegularFile(path: string): Promise<Buffer | null | undefined> {
  try {
    return (await lstat(path)).isFile() ? await readFile(path) : undefined;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ENOENT" ? null : undefined;
  }
}

interface WrittenFile {
  /** Without links, so that one that is made later does not lead elsewhere. */
  readonly path: string;
  readonly after: string | undefined;
}

/** What is in the file now, if that is what the tool says it wrote: another program may have changed it since. */
function writtenFile({ path: named, content }: FileChange): WrittenFile {
  try {
    const path = realpathSync.native(named);
    const { size } = statSync(path);
    const bytes = size > maxCapturedBytes ? undefined : readFileSync(path);
    const isAsSaid = bytes !== undefined && plain(bytes.toString("utf8")) === plain(content);
    return { path, after: isAsSaid ? contentId(bytes) : undefined };
  } catch {
    // It was deleted at once, or it cannot be read.
    return { path: named, after: undefined };
  }
}

/** A text without its byte order mark, with line feeds as line breaks: tools report it so. */
function plain(text: string): string {
  return text.replace(/^\uFEFF/, "").replaceAll("\r\n", "\n");
}

/** The lines from the first to the last one that differs. */
function countLines(before: string, after: string): { readonly linesAdded: number; readonly linesRemoved: number } {
  const [old, now] = [linesOf(before), linesOf(after)];
  let start = 0;
  while (start < old.length && start < now.length && old[start] === now[start]) start++;
  let end = 0;
  while (end < old.length - start && end < now.length - start && old.at(-1 - end) === now.at(-1 - end)) end++;
  return { linesAdded: now.length - start - end, linesRemoved: old.length - start - end };
}

function linesOf(text: string): readonly string[] {
  const lines = plain(text).split("\n");
  return lines.at(-1) === "" ? lines.slice(0, -1) : lines;
}
