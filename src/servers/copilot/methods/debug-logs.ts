import { randomBytes } from "node:crypto";
import { cp, link, mkdir, mkdtemp, readdir, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, extname, join, posix, resolve } from "node:path";
import { errorMessage } from "../../../base/errors.ts";
import { redactMembers, redactText } from "../../../base/logger.ts";
import { readTextFile } from "../../../io/read-bounded.ts";
import { badParams, Params } from "../connection/params.ts";
import { findSession } from "../sessions/session-registry.ts";
import type { MethodFamily } from "./method.ts";

/** What programs send with a report of a problem. */
export const debugLogs: MethodFamily = {
  async "session.debug.collectLogs"({ server, params }) {
    const session = findSession(server, params);
    const { method } = params;
    const workingDirectory = session.session.config.workingDirectory;
    const destination = readDestination(new Params(method, params.record("destination")), workingDirectory);
    const include = new Params(method, params.optionalRecord("include") ?? {});
    const given = params.records("additionalEntries").map((entry) => readEntry(new Params(method, entry), workingDirectory));
    const place = await mkdtemp(join(tmpdir(), "skillhost-logs-"));
    try {
      const collection = new LogCollection(place, server.secrets);
      if (include.optionalFlag("events") !== false) {
        const lines = (await session.past()).map((event) => `${JSON.stringify(event)}\n`);
        await collection.add(Buffer.from(lines.join("")), { bundlePath: "events.jsonl", source: "events", isRedacted: true });
      }
      if (include.optionalFlag("processLogs") !== false) {
        const path = include.optionalText("currentProcessLogPath");
        const entry = { bundlePath: "process.log", source: "process-log", isRedacted: true, isRequired: false } as const;
        if (path !== undefined) await collection.addFile(resolve(workingDirectory, path), entry);
        else
          collection.skip(entry.bundlePath, "The runtime writes its log to its standard error, which the program that started it reads.");
      }
      for (const entry of given) await collection.addEntry(entry);
      const path = await (destination.kind === "archive" ? archive(place, destination) : copyTo(place, destination.path));
      return { kind: destination.kind, path, entries: collection.entries, skippedEntries: collection.skipped };
    } finally {
      await rm(place, { recursive: true, force: true });
    }
  },
};

type Destination =
  | { readonly kind: "archive"; readonly path: string; readonly overwrites: boolean }
  | { readonly kind: "directory"; readonly path: string };

function readDestination(given: Params, workingDirectory: string): Destination {
  const kind = given.text("kind");
  if (kind === "directory") return { kind, path: resolve(workingDirectory, given.text("outputDirectory")) };
  if (kind !== "archive") throw badParams(given.method, 'destination.kind must be "archive" or "directory".');
  return { kind, path: resolve(workingDirectory, given.text("outputPath")), overwrites: !given.flag("noOverwrite") };
}

interface BundledFile {
  /** Relative, with slashes, inside the bundle. */
  readonly bundlePath: string;
  readonly source: "events" | "process-log" | "additional";
  /** Likely credentials are replaced. */
  readonly isRedacted: boolean;
}

interface GivenEntry extends BundledFile {
  readonly isDirectory: boolean;
  readonly path: string;
  /** Nothing is collected if it cannot be read. */
  readonly isRequired: boolean;
}

const redactions = ["plain-text", "events-jsonl", "none"];

function readEntry(given: Params, workingDirectory: string): GivenEntry {
  const kind = given.text("kind");
  const redaction = given.optionalText("redaction") ?? "plain-text";
  const bundlePath = posix.normalize(given.text("bundlePath").replaceAll("\\", "/"));
  if (kind !== "file" && kind !== "directory") throw badParams(given.method, 'kind of an additional entry must be "file" or "directory".');
  if (!redactions.includes(redaction)) throw badParams(given.method, `redaction must be one of ${redactions.join(", ")}.`);
  if (/^(?:\.\.?\/?$|\.\.\/|\/|[a-z]:)/i.test(bundlePath))
    throw badParams(given.method, "bundlePath must be a relative path inside the bundle.");
  return {
    isDirectory: kind === "directory",
    path: resolve(workingDirectory, given.text("path")),
    bundlePath,
    source: "additional",
    isRedacted: redaction !== "none",
    isRequired: given.flag("required"),
  };
}

const maxFileBytes = 64 * 1024 * 1024;
const maxFiles = 1_000;

/** The files of a bundle, in a folder of their own. */
class LogCollection {
  readonly entries: { readonly bundlePath: string; readonly source: BundledFile["source"]; readonly sizeBytes: number }[] = [];
  readonly skipped: { readonly bundlePath: string; readonly path?: string; readonly reason: string }[] = [];
  readonly #place: string;
  readonly #secrets: ReadonlySet<string>;

  constructor(place: string, secrets: ReadonlySet<string>) {
    this.#place = place;
    this.#secrets = secrets;
  }

  async add(bytes: Uint8Array, { bundlePath, source, isRedacted }: BundledFile): Promise<void> {
    const content = isRedacted ? this.#redact(Buffer.from(bytes).toString("utf8")) : bytes;
    const file = join(this.#place, bundlePath);
    await mkdir(dirname(file), { recursive: true });
    // Of two entries with the same name, the first stays.
    await writeFile(file, content, { flag: "wx" });
    this.entries.push({ bundlePath, source, sizeBytes: Buffer.byteLength(content) });
  }

  async addEntry(entry: GivenEntry): Promise<void> {
    if (!entry.isDirectory) return this.addFile(entry.path, entry);
    try {
      const found = await readdir(entry.path, { recursive: true, withFileTypes: true });
      for (const each of found.filter((one) => one.isFile())) {
        const path = join(each.parentPath, each.name);
        const below = path
          .slice(entry.path.length + 1)
          .split(/[\\/]/)
          .join("/");
        await this.addFile(path, { ...entry, bundlePath: posix.join(entry.bundlePath, below) });
      }
    } catch (error) {
      this.#miss(entry.path, entry, errorMessage(error));
    }
  }

  async addFile(path: string, entry: BundledFile & { readonly isRequired: boolean }): Promise<void> {
    if (this.entries.length >= maxFiles) return this.#miss(path, entry, `A bundle has at most ${maxFiles} files.`);
    const read = readTextFile(path, maxFileBytes);
    if (!read.ok) return this.#miss(path, entry, read.diagnostic.message);
    if (entry.isRedacted && !read.isUtf8)
      return this.#miss(path, entry, 'It is not text, so nothing in it can be redacted. Use redaction "none".');
    try {
      await this.add(read.bytes, entry);
    } catch (error) {
      const isTaken = (error as NodeJS.ErrnoException).code === "EEXIST";
      this.#miss(path, entry, isTaken ? "Another entry has this path in the bundle." : errorMessage(error));
    }
  }

  skip(bundlePath: string, reason: string, path?: string): void {
    this.skipped.push({ bundlePath, reason, ...(path !== undefined && { path }) });
  }

  /** @throws Error for an entry that is required. */
  #miss(path: string, { bundlePath, isRequired }: { readonly bundlePath: string; readonly isRequired: boolean }, reason: string): void {
    if (isRequired) throw new Error(`${path} is required and cannot be collected: ${reason}`);
    this.skip(bundlePath, reason, path);
  }

  #redact(text: string): string {
    let redacted = redactText(redactMembers(text));
    for (const secret of this.#secrets) if (secret !== "") redacted = redacted.replaceAll(secret, "[redacted]");
    return redacted;
  }
}

async function copyTo(place: string, folder: string): Promise<string> {
  await mkdir(folder, { recursive: true });
  await cp(place, folder, { recursive: true });
  return folder;
}

/** Appears as a whole or not at all. */
async function archive(place: string, { path, overwrites }: { readonly path: string; readonly overwrites: boolean }): Promise<string> {
  const { create } = await import("tar");
  await mkdir(dirname(path), { recursive: true });
  const temporary = join(dirname(path), `.${basename(path)}.${randomBytes(6).toString("hex")}.tmp`);
  try {
    await create({ gzip: true, portable: true, cwd: place, file: temporary, mode: 0o600 }, ["."]);
    if (overwrites) {
      await rename(temporary, path);
      return path;
    }
    return await linkFree(temporary, path);
  } finally {
    await rm(temporary, { force: true });
  }
}

/** Gives a file a name that no other file has: `logs (2).tgz` when `logs.tgz` and `logs (1).tgz` exist. */
async function linkFree(file: string, wanted: string): Promise<string> {
  const extension = extname(wanted);
  const stem = wanted.slice(0, wanted.length - extension.length);
  for (let count = 0; ; count++) {
    const path = count === 0 ? wanted : `${stem} (${count})${extension}`;
    try {
      await link(file, path);
      return path;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    }
  }
}
