import { createHash } from "node:crypto";
import type { KV } from "@nats-io/kv";
import type { ObjectStore } from "@nats-io/obj";
import { HostError } from "skillhost";
import { connectFleet, type FleetConnection, type FleetConnectionOptions, fleetSubjects } from "./fleet-connection.ts";
import { explainRefusal } from "./fleet-permissions.ts";
import { isObject } from "./frames.ts";
import { packSkill } from "./skill-archive.ts";

/** Which version of a skill a fleet runs. */
export interface CatalogEntry {
  readonly skill: string;
  /** The digest of the version that all hosts run. */
  readonly stable: string;
  /** Another version, which a share of the hosts runs, in percent. */
  readonly canary?: { readonly digest: string; readonly share: number };
  /** Former stable versions, the latest first. */
  readonly history: readonly string[];
}

/** What one host says that it runs. */
export interface HostReport {
  readonly host: string;
  readonly skills: Readonly<Record<string, HostedSkill>>;
}

export interface HostedSkill {
  /** The version that runs. Absent: none. */
  readonly digest?: string;
  /** Why the version of the catalog does not run. Absent: it does. */
  readonly problem?: string;
}

/**
 * A skill to push.
 *
 * @example
 * ```ts
 * const push: SkillPush = { name: "weather", folder: "./skills/weather", files: ["SKILL.md", "tools/get_weather.ts"] };
 * ```
 */
export interface SkillPush {
  readonly name: string;
  readonly folder: string;
  /** Paths in the folder, with forward slashes. */
  readonly files: Iterable<string>;
  /** The share of the hosts that get it, in percent; the others keep the stable version. Default: all. */
  readonly canary?: number | undefined;
}

/** An entry as it is stored: with the files of the version that was pushed last, if these are small. */
interface StoredEntry extends CatalogEntry {
  readonly inline?: { readonly digest: string; readonly archive: string };
}

/** An entry that a host has heard of. */
export interface HeardEntry {
  readonly entry: CatalogEntry;
  /** The version with this digest, if it came with the entry. */
  readonly inline?: { readonly digest: string; readonly bytes: Uint8Array } | undefined;
}

type EntryWatch = Awaited<ReturnType<KV["watch"]>>;

const skillName = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/;
const digestPattern = /^[0-9a-f]{64}$/;
const maxHistory = 10;
/** Bytes of a version that travels with its entry. Each entry is one message of the servers to each host. */
const maxInline = 16 * 1_024;
const attempts = 5;
/** As the size of an unpacked skill, which is larger. */
const maxObject = 128 * 1_024 * 1_024;
const partTimeoutMs = 5_000;
/** A host that has not reported for this long is not listed. */
const reportTtlMs = 60_000;
const watchAgainMs = 1_000;

/** The catalog of a fleet: which skills it has, in which versions, and who runs them. */
export class SkillCatalog implements AsyncDisposable {
  readonly connection: FleetConnection["connection"];
  readonly #entries: KV;
  readonly #reports: KV;
  readonly #objects: ObjectStore;

  constructor(connection: FleetConnection["connection"], entries: KV, reports: KV, objects: ObjectStore) {
    this.connection = connection;
    this.#entries = entries;
    this.#reports = reports;
    this.#objects = objects;
  }

  /** Stores a version and points the catalog to it. @throws HostError `FLEET_SKILL`, `FLEET_CONFLICT`. */
  async push({ name, folder, files, canary }: SkillPush): Promise<CatalogEntry> {
    if (!skillName.test(name)) throw new HostError("FLEET_SKILL", `${JSON.stringify(name)} cannot be the name of a pushed skill.`);
    const { bytes, digest } = packSkill(folder, files);
    // The object first: an entry never points to what is not there yet.
    try {
      if ((await this.#objects.info(digest)) === null) await this.#objects.putBlob({ name: digest }, bytes);
    } catch (error) {
      throw explainRefusal(error);
    }
    const inline = bytes.length <= maxInline ? { digest, archive: Buffer.from(bytes).toString("base64") } : undefined;
    const change = (before: CatalogEntry | undefined): CatalogEntry => {
      if (canary !== undefined) {
        if (before === undefined)
          throw new HostError("FLEET_SKILL", `"${name}" has no stable version yet. Push it without a canary first.`);
        return { ...before, canary: { digest, share: canary } };
      }
      return { skill: name, stable: digest, history: before === undefined ? [] : historyOf(before, digest) };
    };
    return this.#change(name, change, inline);
  }

  /** Takes back a canary, else the latest stable version. @throws HostError `FLEET_SKILL` when there is none before it; `FLEET_CONFLICT`. */
  rollback(name: string): Promise<CatalogEntry> {
    return this.#change(name, (before) => {
      if (before === undefined) throw new HostError("FLEET_SKILL", `No skill "${name}" was pushed.`);
      const { canary, ...rest } = before;
      if (canary !== undefined) return rest;
      const [stable, ...history] = before.history;
      if (stable === undefined) throw new HostError("FLEET_SKILL", `"${name}" has no version before ${before.stable.slice(0, 12)}.`);
      return { ...rest, stable, history };
    });
  }

  async list(): Promise<readonly CatalogEntry[]> {
    const entries: CatalogEntry[] = [];
    for (const key of await this.#keys(this.#entries)) {
      const entry = readEntry(key, await this.#entries.get(key));
      if (entry !== undefined) entries.push(entry);
    }
    return entries;
  }

  /** What the hosts of the last minute say. */
  async reports(): Promise<readonly HostReport[]> {
    const reports: HostReport[] = [];
    for (const key of await this.#keys(this.#reports)) {
      const report: unknown = parsed(await this.#reports.get(key));
      if (isObject(report) && typeof report["host"] === "string" && isObject(report["skills"]))
        reports.push(report as unknown as HostReport);
    }
    return reports;
  }

  async report(id: string, report: HostReport): Promise<void> {
    await this.#reports.put(id, JSON.stringify(report));
  }

  /**
   * The entries of now, then each that changes. After a reconnection all over again, since servers may have lost what they had: their new buckets count
   * from one, so that a watch that continued would miss what comes. Ends with the connection.
   */
  async *watch(): AsyncIterable<HeardEntry> {
    const { connection } = this;
    let watched: EntryWatch | undefined;
    void (async () => {
      for await (const { type } of connection.status()) if (type === "reconnect") watched?.stop();
    })();
    try {
      while (!connection.isClosed()) {
        watched = await this.#watchEntries();
        for await (const found of watched ?? []) {
          const entry = found.operation === "PUT" ? readEntry(found.key, found) : undefined;
          if (entry !== undefined) yield { entry, inline: readInline(found) };
        }
      }
    } finally {
      watched?.stop();
    }
  }

  /** Undefined: the servers are away, or do not have the bucket until the next push. */
  async #watchEntries(): Promise<EntryWatch | undefined> {
    try {
      return await this.#entries.watch();
    } catch {
      // A host that follows notices it, too, since it cannot report what it runs.
      await new Promise((resolve) => setTimeout(resolve, watchAgainMs).unref());
      return undefined;
    }
  }

  /** @throws HostError `FLEET_SKILL` when the store does not have it. */
  async fetch(digest: string): Promise<Uint8Array> {
    const bytes = (await this.#fetchParts(digest)) ?? (await this.#objects.getBlob(digest));
    if (bytes === null) throw new HostError("FLEET_SKILL", `The version ${digest.slice(0, 12)} is not in the store. Push it again.`);
    return bytes;
  }

  /**
   * The library makes a consumer for each object and computes its digest in JavaScript, which takes most of the time of an update. `unpackSkill` compares
   * the digest of the bytes. Undefined: this server does not have all of them, or cannot be asked this way.
   */
  async #fetchParts(digest: string): Promise<Uint8Array | undefined> {
    const info = await this.#objects.info(digest);
    if (info === null || info.deleted || info.options?.link !== undefined || info.size > maxObject) return undefined;
    const [subject, ask] = [`$O.${info.bucket}.C.${info.nuid}`, `$JS.API.DIRECT.GET.OBJ_${info.bucket}`];
    const parts: Uint8Array[] = [];
    try {
      for (let [part, sequence, size] = [0, 1, 0]; part < info.chunks; part++) {
        const question = JSON.stringify({ seq: sequence, next_by_subj: subject });
        const { data, headers } = await this.connection.request(ask, question, { timeout: partTimeoutMs });
        size += data.length;
        if (headers === undefined || headers.code > 0 || size > maxObject) return undefined;
        parts.push(data);
        sequence = Number(headers.get("Nats-Sequence")) + 1;
      }
    } catch {
      // The library asks the leader, and says what is wrong.
      return undefined;
    }
    return Buffer.concat(parts);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.connection.close();
  }

  async #keys(bucket: KV): Promise<readonly string[]> {
    const keys: string[] = [];
    for await (const key of await bucket.keys()) keys.push(key);
    return keys.sort();
  }

  /** Two publishers at the same time: the second one sees what the first one did. */
  async #change(
    name: string,
    change: (before: CatalogEntry | undefined) => CatalogEntry,
    inline?: StoredEntry["inline"],
  ): Promise<CatalogEntry> {
    for (let attempt = 1; ; attempt++) {
      const found = await this.#entries.get(name);
      const after = change(found === null ? undefined : readEntry(name, found));
      try {
        const data = JSON.stringify({ ...after, inline } satisfies { [K in keyof StoredEntry]: StoredEntry[K] | undefined });
        if (found === null) await this.#entries.create(name, data);
        else await this.#entries.update(name, data, found.revision);
        return after;
      } catch (cause) {
        // The code of a wrong last sequence.
        if ((cause as { readonly code?: unknown }).code !== 10_071) throw explainRefusal(cause);
        if (attempt >= attempts) throw new HostError("FLEET_CONFLICT", `"${name}" is being changed by others. Try again.`, { cause });
      }
    }
  }
}

/**
 * Opens the catalog of a fleet, and makes its buckets if there are none yet.
 * @throws HostError as `connectFleet`; `FLEET_STORE` when the servers have no JetStream, or do not allow its use.
 */
export async function openSkillCatalog(options: FleetConnectionOptions, replicas: number = 1): Promise<SkillCatalog> {
  fleetSubjects(options.prefix);
  const { prefix = "skillhost" } = options;
  const { connection } = await connectFleet(options, "skillhost-catalog");
  try {
    const [{ Kvm }, { Objm }] = await importStores();
    const buckets = new Kvm(connection);
    const entries = await buckets.create(`${prefix}-catalog`, { replicas });
    const reports = await buckets.create(`${prefix}-hosts`, { replicas, ttl: reportTtlMs });
    const objects = await new Objm(connection).create(`${prefix}-skills`, { replicas });
    return new SkillCatalog(connection, entries, reports, objects);
  } catch (cause) {
    await connection.close();
    const explained = explainRefusal(cause);
    if (explained instanceof HostError) throw explained;
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new HostError("FLEET_STORE", `The catalog cannot be opened: ${why}. The servers need JetStream (nats-server -js).`, { cause });
  }
}

export async function importStores(): Promise<[typeof import("@nats-io/kv"), typeof import("@nats-io/obj")]> {
  try {
    return [await import("@nats-io/kv"), await import("@nats-io/obj")];
  } catch (cause) {
    if ((cause as { readonly code?: unknown } | null)?.code !== "ERR_MODULE_NOT_FOUND") throw cause;
    const install = "npm install @nats-io/transport-node @nats-io/kv @nats-io/obj";
    throw new HostError("FLEET_PACKAGES", `The packages of NATS are not installed. Install them beside skillhost: ${install}`, { cause });
  }
}

/** Which version a host is to run. The share is by host and skill, so that a host stays on one side. */
export function versionFor({ skill, stable, canary }: CatalogEntry, host: string): string {
  if (canary === undefined) return stable;
  const place = createHash("sha256").update(`${skill}\n${host}`).digest().readUInt32BE(0) / 2 ** 32;
  return place * 100 < canary.share ? canary.digest : stable;
}

function historyOf({ stable, history }: CatalogEntry, next: string): readonly string[] {
  return stable === next ? history : [stable, ...history.filter((digest) => digest !== stable)].slice(0, maxHistory);
}

function parsed(entry: { readonly value: Uint8Array } | null): unknown {
  try {
    return entry === null ? undefined : (JSON.parse(Buffer.from(entry.value).toString("utf8")) as unknown);
  } catch {
    // Another program wrote it.
    return undefined;
  }
}

function readEntry(key: string, found: { readonly value: Uint8Array } | null): CatalogEntry | undefined {
  const value = parsed(found);
  if (!isObject(value) || !skillName.test(key) || !isDigest(value["stable"])) return undefined;
  const { canary, history } = value;
  const isCanary = isObject(canary) && isDigest(canary["digest"]) && typeof canary["share"] === "number";
  return {
    skill: key,
    stable: value["stable"],
    ...(isCanary && { canary: { digest: canary["digest"] as string, share: canary["share"] as number } }),
    history: Array.isArray(history) ? history.filter(isDigest) : [],
  };
}

function readInline(found: { readonly value: Uint8Array }): HeardEntry["inline"] {
  const value = parsed(found);
  const inline = isObject(value) ? value["inline"] : undefined;
  if (!isObject(inline) || !isDigest(inline["digest"]) || typeof inline["archive"] !== "string") return undefined;
  return { digest: inline["digest"], bytes: Buffer.from(inline["archive"], "base64") };
}

function isDigest(value: unknown): value is string {
  return typeof value === "string" && digestPattern.test(value);
}
