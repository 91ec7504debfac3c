import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import type { Host, Logger, PluginApi } from "skillhost";
import type { FleetConnectionOptions } from "./fleet-connection.ts";
import { isObject } from "./frames.ts";
import { unpackSkill } from "./skill-archive.ts";
import { type CatalogEntry, type HeardEntry, type HostedSkill, openSkillCatalog, type SkillCatalog, versionFor } from "./skill-catalog.ts";

/**
 * Options of a host that follows the catalog of a fleet.
 *
 * @example
 * ```ts
 * const options: FollowOptions = { servers: "nats://127.0.0.1:4222", folder: "/var/lib/skillhost/skills" };
 * ```
 */
export interface FollowOptions extends FleetConnectionOptions {
  /** An absolute path, which must be one of the host's `skillDirectories`. Nothing else may write there. */
  readonly folder: string;
  /** The host's name in reports, by which its share of canaries is decided. Default: the name of the machine. */
  readonly name?: string | undefined;
  readonly logger?: Pick<Logger, "info" | "warning"> | undefined;
}

/** A host that follows a catalog. Disposing ends that; the skills stay. */
export interface FollowedSkills extends AsyncDisposable {
  /** What runs, by skill. */
  readonly skills: Readonly<Record<string, HostedSkill>>;
}

const reportEveryMs = 20_000;
const stateFile = ".fleet.json";

/**
 * Runs the versions of the catalog in a host, those of now and each that is pushed. Settles when those of now are loaded. A version that cannot be
 * fetched or loaded is reported, and the one before it is put back.
 * @throws HostError as `openSkillCatalog`.
 */
export function followSkills(host: Host, options: FollowOptions): Promise<FollowedSkills> {
  const reloadSkills = async (): Promise<void> => {
    await host.reload();
    await host.idle();
  };
  return follow({ reloadSkills, skillIn: (place) => host.skills.find(({ folder }) => folder === place) }, options);
}

interface OwnFollowOptions extends FollowOptions {
  /** Called with all versions that do not run. */
  readonly onProblems?: (problems: readonly { readonly code: string; readonly message: string }[]) => void;
}

/** As `followSkills`, for what can load skills. */
export async function follow(host: Pick<PluginApi, "skillIn" | "reloadSkills">, options: OwnFollowOptions): Promise<FollowedSkills> {
  mkdirSync(options.folder, { recursive: true });
  const catalog = await openSkillCatalog(options);
  const follower = new Follower(host, catalog, options);
  try {
    for (const entry of await catalog.list()) await follower.apply(entry);
    follower.begin();
    return follower;
  } catch (error) {
    await catalog[Symbol.asyncDispose]();
    throw error;
  }
}

class Follower implements FollowedSkills {
  readonly #host: Pick<PluginApi, "skillIn" | "reloadSkills">;
  readonly #catalog: SkillCatalog;
  readonly #options: OwnFollowOptions;
  readonly #name: string;
  readonly #id: string = randomBytes(12).toString("hex");
  readonly #skills: Record<string, HostedSkill>;
  /** The entries whose version does not run, to be tried again. */
  readonly #open = new Map<string, CatalogEntry>();
  #queue: Promise<void> = Promise.resolve();
  #removing: Promise<unknown> = Promise.resolve();
  #timer: NodeJS.Timeout | undefined;
  /** Why the servers do not take reports of this host. */
  #unreported: string | undefined;

  constructor(host: Pick<PluginApi, "skillIn" | "reloadSkills">, catalog: SkillCatalog, options: OwnFollowOptions) {
    this.#host = host;
    this.#catalog = catalog;
    this.#options = options;
    this.#name = options.name ?? hostname();
    this.#skills = readState(join(options.folder, stateFile));
  }

  get skills(): Readonly<Record<string, HostedSkill>> {
    return { ...this.#skills };
  }

  begin(): void {
    void this.#watch();
    void this.#followConnection();
    this.#timer = setInterval(() => {
      for (const entry of this.#open.values()) void this.apply(entry);
      this.#report();
    }, reportEveryMs);
    this.#report();
  }

  /** One after another: each is a reload of its own. */
  apply(entry: CatalogEntry, inline?: HeardEntry["inline"]): Promise<void> {
    this.#queue = this.#queue.then(() => this.#apply(entry, inline));
    return this.#queue;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer);
    await this.#queue;
    await this.#removing;
    await this.#catalog[Symbol.asyncDispose]();
  }

  async #watch(): Promise<void> {
    try {
      for await (const { entry, inline } of this.#catalog.watch()) await this.apply(entry, inline);
    } catch (error) {
      this.#options.logger?.warning("The catalog is not followed any more.", { error: String(error) });
    }
  }

  /** Servers that are back may have lost the reports. */
  async #followConnection(): Promise<void> {
    for await (const { type } of this.#catalog.connection.status()) if (type === "reconnect") this.#report();
  }

  async #apply(entry: CatalogEntry, inline: HeardEntry["inline"]): Promise<void> {
    const { skill } = entry;
    const digest = versionFor(entry, this.#name);
    const known = this.#skills[skill];
    const before = known?.digest;
    const isThere = before === digest && existsSync(join(this.#options.folder, skill));
    // After each reconnection all entries come again.
    if (isThere && known?.problem === undefined) return;
    const problem = isThere ? undefined : await this.#replace(skill, digest, inline);
    this.#skills[skill] = problem === undefined ? { digest } : { ...(before !== undefined && { digest: before }), problem };
    if (problem === undefined) this.#open.delete(skill);
    else this.#open.set(skill, entry);
    const { logger, folder } = this.#options;
    if (problem !== undefined) logger?.warning(`The skill "${skill}" was not updated.`, { digest, problem });
    else if (before !== digest) logger?.info(`The skill "${skill}" was updated.`, { digest });
    this.#options.onProblems?.(this.#problems());
    writeFileSync(join(folder, stateFile), JSON.stringify(this.#skills));
    this.#report();
  }

  /** Returns why the version does not run. */
  async #replace(skill: string, digest: string, inline: HeardEntry["inline"]): Promise<string | undefined> {
    const { folder } = this.#options;
    const staging = `${folder}.${randomBytes(6).toString("hex")}`;
    const [place, next, last] = [join(folder, skill), join(staging, "next"), join(staging, "last")];
    try {
      const bytes = inline?.digest === digest ? inline.bytes : await this.#catalog.fetch(digest);
      unpackSkill(bytes, digest, next);
      const hadOne = existsSync(place);
      if (hadOne) renameSync(place, last);
      renameSync(next, place);
      const problem = await this.#load(skill);
      if (problem === undefined) return undefined;
      renameSync(place, next);
      if (hadOne) renameSync(last, place);
      await this.#load(skill);
      return problem;
    } catch (error) {
      return messageOf(error);
    } finally {
      // Sessions that hear of new tools do not wait for the disk.
      this.#removing = Promise.all([this.#removing, this.#remove(staging)]);
    }
  }

  async #remove(staging: string): Promise<void> {
    await rm(staging, { recursive: true, force: true }).catch((error: unknown) => {
      this.#options.logger?.warning("A folder of the former version could not be removed.", { folder: staging, error: String(error) });
    });
  }

  async #load(skill: string): Promise<string | undefined> {
    await this.#host.reloadSkills();
    const loaded = this.#host.skillIn(join(this.#options.folder, skill));
    if (loaded === undefined) return "the host did not find it";
    const fault = loaded.diagnostics.find(({ severity }) => severity === "error");
    if (loaded.stale || fault !== undefined) return fault?.message ?? "it could not be loaded";
    return loaded.state === "failed" || loaded.state === "refused" || loaded.state === "untrusted"
      ? `it is ${loaded.state}: ${loaded.rule}`
      : undefined;
  }

  #problems(): { readonly code: string; readonly message: string }[] {
    const ofServers =
      this.#unreported === undefined
        ? []
        : [{ code: "FLEET_STORE", message: `${this.#unreported} The skills that this host has run on, and new versions do not arrive.` }];
    const ofSkills = Object.entries(this.#skills).flatMap(([skill, { digest, problem }]) => {
      if (problem === undefined) return [];
      const runs = digest === undefined ? "No version of it runs" : `${digest.slice(0, 12)} runs on`;
      return [{ code: "FLEET_SKILL", message: `The newest version of the skill "${skill}" does not run: ${problem}. ${runs}.` }];
    });
    return [...ofServers, ...ofSkills];
  }

  #report(): void {
    const report = { host: this.#name, skills: this.#skills };
    this.#catalog.report(this.#id, report).then(
      () => this.#reported(undefined),
      (error: unknown) => {
        this.#options.logger?.warning("The state of the skills was not reported.", { error: String(error) });
        this.#reported(`The servers do not take reports for the catalog of skills: ${messageOf(error)}.`);
      },
    );
  }

  #reported(problem: string | undefined): void {
    if (problem === this.#unreported) return;
    this.#unreported = problem;
    this.#options.onProblems?.(this.#problems());
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function readState(file: string): Record<string, HostedSkill> {
  try {
    const state: unknown = JSON.parse(readFileSync(file, "utf8"));
    return isObject(state) ? ({ ...state } as Record<string, HostedSkill>) : {};
  } catch {
    // The first start; or the file is damaged, and all is fetched again.
    return {};
  }
}
