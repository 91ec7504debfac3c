import { basename } from "node:path";
import type { Diagnostic } from "../../base/diagnostic.ts";
import { errorMessage, isOutOfFiles } from "../../base/errors.ts";
import type { ModuleLoader } from "../../io/module-loader/module-loader.ts";
import { requireFileHandle } from "../../io/require-file-handle.ts";
import type { Pins } from "../../trust/pins/pins.ts";
import type { SkillTrust } from "../../trust/skill-trust.ts";
import { diffSkill, type Generation, isSameSkill } from "../load/judge-reload.ts";
import { loadSkill, type Staged, type TrustFindings } from "../load/load-skill.ts";
import type { ToolRunner } from "../load/tool-runner.ts";
import type { FailedChange, LoadedFolder, SkillChange, SkillsChange } from "../skill.ts";
import type { Retirement } from "./disposal.ts";
import type { FileHashes } from "./file-hashes.ts";
import { FolderListing } from "./folder-listing.ts";

/** What the folders of one store share. */
export interface FolderParts {
  readonly loader: ModuleLoader;
  readonly runners: readonly ToolRunner[];
  readonly hostVersion: string;
  readonly importTimeout: number;
  readonly hashes: FileHashes;
  readonly retirement: Retirement;
  readonly trust?: SkillTrust | undefined;
  readonly consent?: RunConsent | undefined;
  pinsOf?(folder: string): Pins | undefined;
  onEdited?(files: readonly string[]): void;
  /** Told of trouble with a folder that loading it does not show. */
  onProblem?(problem: Diagnostic): void;
  /** What a skill lists as resources may be something else now, though its generation is the same. */
  onResourcesChanged?(): void;
}

/**
 * One skill folder: the generation of it that serves, and what became of the latest attempt to load another. Attempts
 * must not overlap; that is up to the caller.
 */
export class SkillFolder {
  readonly path: string;
  /** Settles when the folder has been loaded once, whatever came of it, or has ended. */
  readonly settled: Promise<void>;
  readonly listing: FolderListing;
  readonly #parts: FolderParts;
  /** What changed since the generation that serves was made. */
  readonly #changed = new Set<string>();
  /** What changed since listeners were last told of this folder. */
  readonly #untold = new Set<string>();
  #settle: () => void = () => {};
  #generation: Generation | undefined;
  #lastGeneration = 0;
  #diagnostics: readonly Diagnostic[] = [];
  #isStale = false;
  #isUnconfirmed = false;
  #findings: Pick<LoadedFolder, "trust" | "held"> = {};
  #isLoaded = false;
  /** What the latest attempt was made of, if it was not taken: to mend one of these may mend the skill. */
  #attempted: ReadonlySet<string> = new Set();

  constructor(path: string, parts: FolderParts) {
    this.path = path;
    this.#parts = parts;
    this.listing = createListing(path, parts);
    this.settled = new Promise((resolve) => {
      this.#settle = resolve;
    });
  }

  /** Undefined before the first attempt has ended. */
  get current(): LoadedFolder | undefined {
    if (!this.#isLoaded) return undefined;
    const skill = this.#generation === undefined ? {} : { skill: this.#generation.skill };
    return { folder: this.path, ...skill, diagnostics: this.#diagnostics, stale: this.#isStale, ...this.#findings };
  }

  /** Everything that the skill is made of, and that the latest attempt was. */
  get files(): Set<string> {
    const { files = [], units = [] } = this.#generation ?? {};
    return new Set([...files, ...units.flatMap((unit) => [...unit.files]), ...this.#attempted]);
  }

  /**
   * Whether the folder was refused for another reason than before, or for one that is not its own. It may have been looked at halfway
   * through a change that was undone before anybody could report it.
   */
  get isUnconfirmed(): boolean {
    return this.#isUnconfirmed;
  }

  /** When the trust ends that the generation in service needs, in milliseconds since 1970. */
  get expires(): number | undefined {
    const { trust } = this.#findings;
    const isNeeded = this.#generation?.tree !== undefined && trust?.expires !== undefined;
    return isNeeded ? Date.parse(trust.expires) : undefined;
  }

  /** Notes what changed, for the next load. */
  note(files: Iterable<string>): void {
    for (const file of files) {
      this.#changed.add(file);
      this.#untold.add(file);
    }
  }

  /** Brings the folder to what its files say. Undefined: that changed nothing, or the signal ended it. `started`: by `performance.now()`. */
  async load(started: number, signal: AbortSignal): Promise<FolderNews | undefined> {
    const changed = new Set(this.#changed);
    this.#changed.clear();
    const staged = await this.#stage(changed, signal);
    if (staged.kind === "rejected") for (const file of changed) this.#changed.add(file);
    if (staged.kind === "rejected" && signal.aborted) return undefined;
    if (staged.kind === "absent") return this.remove(started);
    const files = [...this.#untold];
    this.#untold.clear();
    const before = JSON.stringify(this.#findings);
    this.#findings = findingsOf(staged);
    const news = staged.kind === "ready" ? this.#take(staged, files, started) : this.#reject(staged, files, started);
    return news === undefined && before !== JSON.stringify(this.#findings) ? { kind: "unspoken", files } : news;
  }

  /** Takes the folder out of service: it is not there any more, or nobody wants it. */
  remove(started: number): FolderNews {
    const generation = this.#generation;
    for (const file of this.files) this.#parts.hashes.forget(file);
    this.end();
    this.#parts.trust?.forget(this.path);
    const files = [...this.#untold];
    if (generation === undefined) return { kind: "unspoken", files };
    this.#parts.loader.invalidate(generation.units.flatMap((unit) => [...unit.files]));
    return { kind: "removed", files, change: diffSkill(generation.skill, undefined, performance.now() - started) };
  }

  /** Ends what serves. */
  end(): void {
    this.#parts.retirement.retire(this.#generation?.units ?? []);
    this.#generation = undefined;
    this.#isLoaded = false;
    this.#settle();
  }

  async #stage(changed: ReadonlySet<string>, signal: AbortSignal): Promise<Staged> {
    const { loader, runners, hostVersion, importTimeout, hashes, trust, consent } = this.#parts;
    const start = Date.now();
    const seen = new Set<string>();
    const onRead = (file: string, bytes: Uint8Array, hash?: string): void => {
      seen.add(file);
      hashes.record(file, bytes, hash);
    };
    try {
      requireFileHandle(this.path);
      const { listing } = this;
      const onResourcesChanged = (): void => this.#parts.onResourcesChanged?.();
      const pinsOf = (folder: string): Pins | undefined => this.#parts.pinsOf?.(folder);
      const lastGeneration = this.#lastGeneration;
      const mayRun = consent?.mayRun(this.path) ?? true;
      if (!mayRun) consent?.onWithheld(this.path);
      const code = { mayRun, runners: mayRun ? runners : ((await consent?.inspect()) ?? []) };
      const ofFolder = { listing, lastGeneration, onResourcesChanged, seen: onRead };
      const options = { loader, ...code, hostVersion, importTimeout, signal, trust, pinsOf, ...ofFolder };
      const staged = await loadSkill(this.path, this.#generation, changed, options);
      if (staged.kind !== "ready") return staged;
      this.#recordCode(staged, seen, start);
      staged.view?.release();
      return staged;
    } catch (error) {
      return { kind: "rejected", diagnostics: [loadFailed(this.path, error)], files: new Set(), isPassing: isOutOfFiles(error) };
    }
  }

  /** Modules are read by their loader. */
  #recordCode({ generation: { units }, view }: Extract<Staged, { kind: "ready" }>, seen: ReadonlySet<string>, start: number): void {
    const { hashes, loader } = this.#parts;
    for (const unit of units) {
      if (this.#generation?.units.includes(unit)) continue;
      for (const file of unit.files) if (!seen.has(file)) hashes.recordRead(file, view?.hashOf(file) ?? loader.contentHash(file), start);
    }
  }

  /** Swaps in a new generation and ends what it replaces. */
  #take({ generation, replaced }: Extract<Staged, { kind: "ready" }>, files: readonly string[], started: number): FolderNews | undefined {
    const before = this.#generation?.skill;
    const isSame = before !== undefined && this.#generation?.tree === generation.tree && isSameSkill(before, generation.skill);
    const isNews = !isSame || this.#isStale || !areEqual(this.#diagnostics, generation.diagnostics);
    this.#generation = isSame ? { ...generation, skill: before } : generation;
    this.#lastGeneration = this.#generation.skill.generation;
    this.#parts.retirement.retire(replaced);
    this.#attempted = new Set();
    this.#isUnconfirmed = false;
    this.#isStale = false;
    this.#conclude(generation.diagnostics);
    if (!isNews) return undefined;
    const change = diffSkill(before, this.#generation.skill, performance.now() - started);
    return { kind: before === undefined ? "added" : "updated", files, change };
  }

  /** Leaves what serves as it is, unless its trust has ended. The same fault is told again only to who changed one of the skill's own files. */
  #reject(staged: Extract<Staged, { kind: "rejected" }>, files: readonly string[], started: number): FolderNews | undefined {
    const { diagnostics } = staged;
    const known = this.files;
    const name = this.#generation?.skill.name ?? basename(this.path);
    const isWithdrawn = staged.isUntrusted === true && this.#generation !== undefined;
    if (isWithdrawn) {
      // What serves was signed, and its folder is not any more: it ends with its last call.
      const units = this.#generation?.units ?? [];
      this.#parts.retirement.retire(units);
      this.#parts.loader.invalidate(units.flatMap((unit) => [...unit.files]));
      this.#generation = undefined;
    }
    const hasGood = this.#generation !== undefined;
    const isNews =
      isWithdrawn ||
      !this.#isLoaded ||
      this.#isStale !== hasGood ||
      !areEqual(this.#diagnostics, diagnostics) ||
      files.some((file) => known.has(file));
    this.#attempted = staged.files;
    // What the files held is not known: each change of one counts.
    if (staged.isUntrusted === true) for (const file of staged.files) this.#parts.hashes.forget(file);
    this.#isUnconfirmed = staged.isPassing === true || (staged.isUntrusted === true && !areEqual(this.#diagnostics, diagnostics));
    this.#isStale = hasGood;
    this.#conclude(diagnostics);
    if (!isNews) return undefined;
    const durationMs = performance.now() - started;
    return { kind: "failed", files, change: { name, folder: this.path, diagnostics, lastGoodServes: hasGood, durationMs } };
  }

  #conclude(diagnostics: readonly Diagnostic[]): void {
    this.#diagnostics = diagnostics;
    this.#isLoaded = true;
    this.#settle();
  }
}

function createListing(folder: string, parts: FolderParts): FolderListing {
  let isTold = false;
  return new FolderListing(folder, {
    onLimit(problem) {
      if (problem !== undefined) parts.onProblem?.(problem);
      else if (isTold) parts.onEdited?.([folder]);
      isTold = problem !== undefined;
    },
  });
}

function findingsOf({ trust, held }: TrustFindings): Pick<LoadedFolder, "trust" | "held"> {
  return { ...(trust && { trust }), ...(held !== undefined && held.length > 0 && { held }) };
}

function areEqual(before: readonly Diagnostic[], after: readonly Diagnostic[]): boolean {
  return JSON.stringify(before) === JSON.stringify(after);
}

function loadFailed(folder: string, error: unknown): Diagnostic {
  const message = `This skill could not be loaded: ${errorMessage(error)}. Save one of its files to try again.`;
  return { severity: "error", code: "SKILL_LOAD_FAILED", file: folder, message };
}

/** What an attempt to load a folder came to, for those who listen, and the files whose change was the reason for it. */
export type FolderNews = { readonly files: readonly string[] } & (
  | { readonly kind: "added" | "updated" | "removed"; readonly change: SkillChange }
  | { readonly kind: "failed"; readonly change: FailedChange }
  /** The snapshot is another one, and there is nothing to tell. */
  | { readonly kind: "unspoken" }
);

/** One change of all that happened to some folders, in their order; undefined: there is nothing to tell. */
export function toSkillsChange(news: readonly FolderNews[]): SkillsChange | undefined {
  if (news.every(({ kind }) => kind === "unspoken")) return undefined;
  const changes = (wanted: "added" | "updated" | "removed"): SkillChange[] =>
    news.flatMap((item) => (item.kind === wanted ? [item.change] : []));
  return {
    added: changes("added"),
    updated: changes("updated"),
    removed: changes("removed"),
    failed: news.flatMap((item) => (item.kind === "failed" ? [item.change] : [])),
    files: [...new Set(news.flatMap(({ files }) => files))],
  };
}

export interface RunConsent {
  mayRun(folder: string): boolean;
  /** Takes the place of the runners for a folder of which nothing may run: finds the tools in the texts of modules. */
  inspect(): Promise<readonly ToolRunner[]>;
  /** A folder was listed, and nothing of it was run. */
  onWithheld(folder: string): void;
}
