import { mkdir, readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { isRecord, type Json } from "../../base/json.ts";
import { KeyedQueue } from "../../base/keyed-queue.ts";
import type { Logger } from "../../base/logger.ts";
import type { Clock } from "../../base/wait.ts";
import { writeFileAtomic } from "../../io/atomic-write.ts";
import { readTextFile } from "../../io/read-bounded.ts";
import type { DatedProtocol } from "./server-connector.ts";
import { listNames, type ServerLists } from "./server-lease.ts";

/** For one server; longer lists are not cached. */
const maxBytes = 4 * 1024 * 1024;
const maxFiles = 200;
const maxAge = 30 * 24 * 60 * 60 * 1000;

/**
 * What servers offered last, in a private file each in the user's own folder, so that the next start can offer it before
 * any server runs. It is a cache: a damaged file counts as absent.
 */
export class ListCache implements AsyncDisposable {
  readonly #directory: string;
  readonly #log: Logger;
  readonly #clock: Clock;
  readonly #writes: KeyedQueue;
  /** The known contents of the files, so that unchanged lists are not written again. */
  readonly #kept = new Map<string, CachedServer>();
  #isPruned = false;

  constructor(directory: string, log: Logger, clock: Clock) {
    this.#directory = directory;
    this.#log = log;
    this.#clock = clock;
    this.#writes = new KeyedQueue((error, id) => {
      log.warning("The lists of an MCP server could not be cached for the next start.", { id, directory, error });
    });
  }

  read(id: string): CachedServer | undefined {
    const file = readTextFile(this.#fileOf(id), maxBytes);
    if (!file.ok) return undefined;
    const cached = parseCachedServer(file.text);
    const age = this.#clock.now() - (cached?.savedAt ?? 0);
    if (cached === undefined || age > maxAge) {
      this.#log.debug("A cached list of an MCP server is not used: it is damaged, old or from another version.", { id });
      return undefined;
    }
    this.#kept.set(id, cached);
    return cached;
  }

  /** In the background; the latest version wins. */
  write(id: string, server: CachedServer): void {
    const kept = this.#kept.get(id);
    if (kept !== undefined && isSame(kept, server)) return;
    this.#kept.set(id, server);
    this.#writes.add(id, () => this.#save(id, server));
  }

  /** Waits for pending writes. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#writes.idle();
    await this.#writes.close();
  }

  async #save(id: string, server: CachedServer): Promise<void> {
    const text = JSON.stringify(server);
    if (Buffer.byteLength(text) > maxBytes) {
      await rm(this.#fileOf(id), { force: true });
      return;
    }
    await mkdir(this.#directory, { recursive: true, mode: 0o700 });
    await writeFileAtomic(this.#fileOf(id), text, { mode: 0o600 });
    if (!this.#isPruned) await this.#prune();
  }

  /** Once per run is enough: a run adds few files. */
  async #prune(): Promise<void> {
    this.#isPruned = true;
    const names = (await readdir(this.#directory)).filter((name) => /^[0-9a-f]{64}\.json$/.test(name));
    const files = await Promise.all(names.map((name) => this.#ageOf(join(this.#directory, name))));
    const youngest = files.sort((a, b) => a.age - b.age);
    const surplus = youngest.filter(({ age }, index) => index >= maxFiles || age > maxAge);
    for (const { file } of surplus) await rm(file, { force: true });
  }

  async #ageOf(file: string): Promise<{ file: string; age: number }> {
    // Another program may have removed it in the meantime.
    const modified = await stat(file).then(
      ({ mtimeMs }) => mtimeMs,
      () => 0,
    );
    return { file, age: this.#clock.now() - modified };
  }

  #fileOf(id: string): string {
    return join(this.#directory, `${id}.json`);
  }
}

/** Unchanged lists are mostly the same arrays, so this is quick. */
function isSame({ savedAt: _, ...kept }: CachedServer, { savedAt: __, ...server }: CachedServer): boolean {
  return isDeepStrictEqual(kept, server);
}

const version = 1;

/** What is kept of a server between runs: its own data, and nothing about how it is reached. */
interface CachedServer {
  readonly version: typeof version;
  /** Milliseconds since the epoch. */
  readonly savedAt: number;
  readonly verdict: DatedProtocol;
  readonly lists: Omit<ServerLists, "from" | "diagnostics">;
}

export function toCachedServer(lists: ServerLists, verdict: DatedProtocol, savedAt: number): CachedServer {
  const { from: _from, diagnostics: _diagnostics, ...kept } = lists;
  return { version, savedAt, verdict, lists: kept };
}

/** Undefined: damaged, or of another version. A program that can write the file gains no more than a server could offer. */
function parseCachedServer(text: string): CachedServer | undefined {
  const data = parseObject(text);
  if (data?.["version"] !== version || typeof data["savedAt"] !== "number") return undefined;
  const verdict = readVerdict(data["verdict"]);
  const lists = readLists(data["lists"]);
  return verdict && lists && { version, savedAt: data["savedAt"], verdict, lists };
}

function parseObject(text: string): Json | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : undefined;
  } catch {
    // Not JSON: counts as absent.
    return undefined;
  }
}

function readVerdict(value: unknown): DatedProtocol | undefined {
  if (!isRecord(value)) return undefined;
  const { era, protocolVersion, foundAt } = value;
  if ((era !== "modern" && era !== "legacy") || typeof protocolVersion !== "string" || typeof foundAt !== "number") return undefined;
  return { era, protocolVersion, foundAt };
}

function readLists(value: unknown): CachedServer["lists"] | undefined {
  if (!isRecord(value) || !isRecord(value["capabilities"])) return undefined;
  const { instructions, capabilities } = value;
  if (instructions !== undefined && typeof instructions !== "string") return undefined;
  const lists = listNames.map((name) => value[name]);
  if (!lists.every((list): list is Json[] => Array.isArray(list) && list.every(isRecord))) return undefined;
  const [tools, prompts, resources, resourceTemplates, skills] = lists.map((list) => Object.freeze(list)) as readonly (readonly Json[])[];
  if (!tools || !prompts || !resources || !resourceTemplates || !skills) return undefined;
  const serverInfo = readServerInfo(value["serverInfo"]);
  return { capabilities, serverInfo, instructions, tools, prompts, resources, resourceTemplates, skills };
}

function readServerInfo(value: unknown): ServerLists["serverInfo"] {
  if (!isRecord(value)) return undefined;
  const { name, version, title } = value;
  if (typeof name !== "string" || typeof version !== "string") return undefined;
  return { name, version, ...(typeof title === "string" && { title }) };
}
