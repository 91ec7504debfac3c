import type { Stats } from "node:fs";
import { basename } from "node:path";
import type { Diagnostic } from "../../base/diagnostic.ts";
import { errorMessage, isOutOfFiles } from "../../base/errors.ts";
import type { ModuleLoader } from "../../io/module-loader/module-loader.ts";
import type { Pins } from "../../trust/pins/pins.ts";
import type { SkillTrust } from "../../trust/skill-trust.ts";
import { diffSkill, type Generation, isSameSkill } from "../load/judge-reload.ts";
import { loadSkill, type Staged, type TrustFindings } from "../load/load-skill.ts";
import type { UnitRetirement } from "../load/stage-tool.ts";
import type { SkillTextCache, SkillTexts } from "../load/text-cache.ts";
import type { ToolRunner } from "../load/tool-runner.ts";
import type { FailedChange, LoadedFolder, SkillChange, SkillsChange } from "../skill.ts";
import { type FileHashes, ReadStates } from "./file-hashes.ts";
import { FolderListing } from "./folder-listing.ts";

/** The parts that the folders of one store share. */
export interface FolderParts {
  readonly loader: ModuleLoader;
  readonly runners: readonly ToolRunner[];
  readonly hostVersion: string;
  readonly importTimeout: number;
  readonly hashes: FileHashes;
  readonly retirement: UnitRetirement;
  readonly trust?: SkillTrust | undefined;
  readonly consent?: RunConsent | undefined;
  /** Absent: every file is parsed. */
  readonly texts?: SkillTextCache | undefined;
  pinsOf?(folder: string): Pins | undefined;
  onEdited?(files: readonly string[]): void;
  /** Receives problems of a folder that are not load diagnostics. */
  onProblem?(problem: Diagnostic): void;
  /** Called when the resources of a skill may have changed within one generation. */
  onResourcesChanged?(): void;
}

export interface LoadAttempt {
  /** In `performance.now()` time. */
  readonly started: number;
  readonly signal: AbortSignal;
  /** What a cache knows of skills, during a first load. */
  readonly texts?: SkillTexts | undefined;
  /** Further changes may follow at once, so that a failure means little. */
  readonly isEarly?: boolean;
}

/**
 * One skill folder: its active generation, and the outcome of the latest attempt to load another. The caller must not overlap attempts.
 */
export class SkillFolder {
  readonly path: string;
  /** Settles when the first load has finished, successful or not, or the folder has ended. */
  readonly settled: Promise<void>;
  readonly listing: FolderListing;
  readonly #parts: FolderParts;
  /** The files changed since the active generation was created. */
  #changed: ReadonlySet<string> = none;
  /** The files changed since listeners were last notified. */
  #unreported: ReadonlySet<string> = none;
  #settle: () => void = () => {};
  #generation: Generation | undefined;
  #lastGeneration = 0;
  #diagnostics: readonly Diagnostic[] = [];
  #isStale = false;
  #isUnconfirmed = false;
  #findings: Pick<LoadedFolder, "trust" | "held"> = {};
  #isLoaded = false;
  #current: LoadedFolder | undefined;
  /** The states of all that the active generation depends on, if nothing else can change it. */
  #states: ReadStates | undefined;
  /** The files of the latest attempt if it failed: fixing one of these may fix the skill. */
  #attempted: ReadonlySet<string> = none;

  constructor(path: string, parts: FolderParts) {
    this.path = path;
    this.#parts = parts;
    this.listing = createListing(path, parts);
    this.settled = new Promise((resolve) => {
      this.#settle = resolve;
    });
  }

  /** Undefined until the first attempt has finished. The same object until the next attempt. */
  get current(): LoadedFolder | undefined {
    if (!this.#isLoaded) return undefined;
    const skill = this.#generation === undefined ? {} : { skill: this.#generation.skill };
    this.#current ??= { folder: this.path, ...skill, diagnostics: this.#diagnostics, stale: this.#isStale, ...this.#findings };
    return this.#current;
  }

  /** All files of the active generation and of the latest attempt. */
  get files(): Set<string> {
    const { files = [], units = [] } = this.#generation ?? {};
    return new Set([...files, ...units.flatMap((unit) => [...unit.files]), ...this.#attempted]);
  }

  /**
   * Whether the folder was refused for a new reason, or for one outside of itself. The attempt may have seen a half-finished change that
   * was undone before the watcher could report it.
   */
  get isUnconfirmed(): boolean {
    return this.#isUnconfirmed;
  }

  /** Whether loading the folder again would certainly have the same outcome. */
  get isUnchanged(): boolean {
    if (this.#changed.size > 0 || !this.#isLoaded || this.#isStale || !this.#states?.areSame) return false;
    return (this.#parts.consent?.mayRun(this.path) ?? true) && this.#generation?.skill.mayRun === true;
  }

  /** When the trust of the active generation expires, in milliseconds since 1970. */
  get expires(): number | undefined {
    const { trust } = this.#findings;
    const isNeeded = this.#generation?.tree !== undefined && trust?.expires !== undefined;
    return isNeeded ? Date.parse(trust.expires) : undefined;
  }

  /** Records changed files for the next load. */
  note(files: Iterable<string>): void {
    const all = [...files];
    if (all.length === 0) return;
    this.#changed = new Set([...this.#changed, ...all]);
    this.#unreported = new Set([...this.#unreported, ...all]);
  }

  /** Whether files changed since the last completed attempt. */
  get isPending(): boolean {
    return this.#unreported.size > 0;
  }

  /** Loads the current files. Undefined: nothing changed, the signal ended it, or an early attempt failed. */
  async load({ started, signal, texts, isEarly = false }: LoadAttempt): Promise<FolderChanges | undefined> {
    const changed = this.#changed;
    this.#changed = none;
    const staged = await this.#stage(changed, signal, texts);
    this.#current = undefined;
    if (staged.kind === "rejected") this.#changed = changed.size === 0 ? this.#changed : new Set([...this.#changed, ...changed]);
    if (staged.kind === "rejected" && (signal.aborted || isEarly)) return undefined;
    if (staged.kind === "absent") return this.remove(started);
    const files = [...this.#unreported];
    this.#unreported = none;
    const before = JSON.stringify(this.#findings);
    this.#findings = findingsOf(staged);
    const changes = staged.kind === "ready" ? this.#take(staged, files, started) : this.#reject(staged, files, started);
    return changes === undefined && before !== JSON.stringify(this.#findings) ? { kind: "silent", files } : changes;
  }

  /** Deactivates the folder: it no longer exists or is no longer needed. */
  remove(started: number): FolderChanges {
    const generation = this.#generation;
    for (const file of this.files) this.#parts.hashes.forget(file);
    this.end();
    this.#parts.trust?.forget(this.path);
    const files = [...this.#unreported];
    if (generation === undefined) return { kind: "silent", files };
    this.#parts.loader.invalidate(generation.units.flatMap((unit) => [...unit.files]));
    return { kind: "removed", files, change: diffSkill(generation.skill, undefined, performance.now() - started) };
  }

  /** Ends the active generation. */
  end(): void {
    this.#parts.retirement.retire(this.#generation?.units ?? []);
    this.#generation = undefined;
    this.#current = undefined;
    this.#isLoaded = false;
    this.#settle();
  }

  async #stage(changed: ReadonlySet<string>, signal: AbortSignal, texts: SkillTexts | undefined): Promise<Staged> {
    const { loader, runners, hostVersion, importTimeout, hashes, trust, consent } = this.#parts;
    const start = Date.now();
    const seen = new Set<string>();
    const states = new ReadStates(start);
    const onRead = (file: string, bytes: Uint8Array, stats?: Stats, hash?: string): string => {
      seen.add(file);
      states.record(file, stats);
      return hashes.record(file, bytes, hash);
    };
    this.#states = undefined;
    try {
      const { listing } = this;
      const onResourcesChanged = (): void => this.#parts.onResourcesChanged?.();
      const pinsOf = (folder: string): Pins | undefined => this.#parts.pinsOf?.(folder);
      const mayRun = consent?.mayRun(this.path) ?? true;
      if (!mayRun) consent?.onWithheld(this.path);
      const options = {
        loader,
        mayRun,
        runners: mayRun ? runners : ((await consent?.inspect()) ?? []),
        texts,
        hostVersion,
        importTimeout,
        signal,
        trust,
        pinsOf,
        listing,
        lastGeneration: this.#lastGeneration,
        onResourcesChanged,
        seen: onRead,
      };
      const staged = await loadSkill(this.path, this.#generation, changed, options);
      if (staged.kind !== "ready") return staged;
      this.#recordCode(staged, seen, start);
      for (const [path, stats] of staged.listed ?? []) states.record(path, stats);
      this.#states = staged.listed && states;
      staged.view?.release();
      return staged;
    } catch (error) {
      return { kind: "rejected", diagnostics: [loadFailed(this.path, error)], files: new Set(), isPassing: isOutOfFiles(error) };
    }
  }

  /** Records the hashes of modules, which their loader has read. */
  #recordCode({ generation: { units }, view }: Extract<Staged, { kind: "ready" }>, seen: ReadonlySet<string>, start: number): void {
    const { hashes, loader } = this.#parts;
    for (const unit of units) {
      if (this.#generation?.units.includes(unit)) continue;
      for (const file of unit.files) if (!seen.has(file)) hashes.recordRead(file, view?.hashOf(file) ?? loader.contentHash(file), start);
    }
  }

  /** Activates a new generation and ends the units it replaces. */
  #take(
    { generation, replaced }: Extract<Staged, { kind: "ready" }>,
    files: readonly string[],
    started: number,
  ): FolderChanges | undefined {
    const before = this.#generation?.skill;
    const isSame = before !== undefined && this.#generation?.tree === generation.tree && isSameSkill(before, generation.skill);
    const isReportable = !isSame || this.#isStale || !areEqual(this.#diagnostics, generation.diagnostics);
    this.#generation = isSame ? { ...generation, skill: before } : generation;
    this.#lastGeneration = this.#generation.skill.generation;
    this.#parts.retirement.retire(replaced);
    this.#attempted = none;
    this.#isUnconfirmed = false;
    this.#isStale = false;
    this.#conclude(generation.diagnostics);
    if (!isReportable) return undefined;
    const change = diffSkill(before, this.#generation.skill, performance.now() - started);
    return { kind: before === undefined ? "added" : "updated", files, change };
  }

  /**
   * Keeps the active generation unless its trust has ended. An unchanged error is reported again only if one of the skill's own files
   * changed.
   */
  #reject(staged: Extract<Staged, { kind: "rejected" }>, files: readonly string[], started: number): FolderChanges | undefined {
    const { diagnostics } = staged;
    const known = this.files;
    const name = this.#generation?.skill.name ?? basename(this.path);
    const isWithdrawn = staged.isUntrusted === true && this.#generation !== undefined;
    if (isWithdrawn) {
      // The active generation was signed, but the folder no longer is: it ends with its last call.
      const units = this.#generation?.units ?? [];
      this.#parts.retirement.retire(units);
      this.#parts.loader.invalidate(units.flatMap((unit) => [...unit.files]));
      this.#generation = undefined;
    }
    const hasGood = this.#generation !== undefined;
    const isReportable =
      isWithdrawn ||
      !this.#isLoaded ||
      this.#isStale !== hasGood ||
      !areEqual(this.#diagnostics, diagnostics) ||
      files.some((file) => known.has(file));
    this.#attempted = staged.files;
    // The content of the files is unknown, so every change counts.
    if (staged.isUntrusted === true) for (const file of staged.files) this.#parts.hashes.forget(file);
    this.#isUnconfirmed = staged.isPassing === true || (staged.isUntrusted === true && !areEqual(this.#diagnostics, diagnostics));
    this.#isStale = hasGood;
    this.#conclude(diagnostics);
    if (!isReportable) return undefined;
    const durationMs = performance.now() - started;
    return { kind: "failed", files, change: { name, folder: this.path, diagnostics, lastGoodServes: hasGood, durationMs } };
  }

  #conclude(diagnostics: readonly Diagnostic[]): void {
    this.#diagnostics = diagnostics;
    this.#isLoaded = true;
    this.#settle();
  }
}

const none: ReadonlySet<string> = new Set();

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

/** The reportable outcome of an attempt to load a folder, and the changed files that caused it. */
export type FolderChanges = { readonly files: readonly string[] } & (
  | { readonly kind: "added" | "updated" | "removed"; readonly change: SkillChange }
  | { readonly kind: "failed"; readonly change: FailedChange }
  /** The snapshot changed without anything to report. */
  | { readonly kind: "silent" }
);

/** Combines the outcomes of several folders into one change; undefined when there is nothing to report. */
export function toSkillsChange(outcomes: readonly FolderChanges[]): SkillsChange | undefined {
  if (outcomes.every(({ kind }) => kind === "silent")) return undefined;
  const changes = (wanted: "added" | "updated" | "removed"): SkillChange[] =>
    outcomes.flatMap((item) => (item.kind === wanted ? [item.change] : []));
  return {
    added: changes("added"),
    updated: changes("updated"),
    removed: changes("removed"),
    failed: outcomes.flatMap((item) => (item.kind === "failed" ? [item.change] : [])),
    files: [...new Set(outcomes.flatMap(({ files }) => files))],
  };
}

export interface RunConsent {
  mayRun(folder: string): boolean;
  /** Replaces the runners for a folder whose code may not run: finds tools in the text of modules. */
  inspect(): Promise<readonly ToolRunner[]>;
  /** Called when a folder was listed without running its code. */
  onWithheld(folder: string): void;
}
