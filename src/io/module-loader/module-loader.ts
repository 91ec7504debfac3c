import type { Diagnostic } from "../../base/diagnostic.ts";
import type { CheckedTree } from "../read-bounded.ts";
import type { Scope } from "../scope.ts";

/** What a module came to: its exports, and every local file that it was made of (entry included, absolute real paths). */
export interface LoadedModule {
  readonly exports: Readonly<Record<string, unknown>>;
  readonly files: ReadonlySet<string>;
}

/** Which engine runs a file, and why it was chosen. */
export interface EngineChoice {
  readonly engine: "graph" | "jiti";
  readonly reason: string;
}

/** A module whose sources are captured and which has not run yet. */
export interface PreparedModule {
  /** The entry and its local static imports, absolute real paths. */
  readonly files: ReadonlySet<string>;
  /** Runs it, once; later calls give the same. A failed run is not kept. */
  evaluate(scope: Scope): Promise<LoadedModule>;
}

/** Loads TypeScript and JavaScript modules, again and again, without keeping what was replaced. */
export interface ModuleLoader {
  /** Parses a file without running it; what does not parse comes back as error diagnostics with file, line and column. */
  check(file: string): readonly Diagnostic[];
  /** The engine is decided before anything runs, per package, and never as a retry after it. */
  engineOf(file: string): EngineChoice;
  /**
   * Evaluates a module and what it imports, or returns what is already evaluated and still valid. Rejects with what
   * the module threw, or `HostError` `MODULE_SYNTAX`, `MODULE_NOT_FOUND`. On failure the files seen so far are in the
   * error's `files` property if it is a `ModuleError`. With `tree`, only checked files run, and packages that these import.
   */
  load(file: string, scope: Scope, tree?: CheckedTree): Promise<LoadedModule>;
  /**
   * Reads and transforms a module and what it statically imports from local files, and runs none of it. Throws the
   * `ModuleError` that `load` would reject with for what does not parse or is not there. What it returns can be evaluated
   * later, from the sources as they are now, even if the files have changed or gone by then.
   */
  prepare(file: string, tree?: CheckedTree): PreparedModule;
  /** sha256 (64 hex digits) of the text that the current generation of a file was made from, without a byte order mark; undefined if it is not loaded. */
  contentHash(file: string): string | undefined;
  /** Forgets these files and everything that imports them; returns all files that were forgotten. */
  invalidate(files: readonly string[]): ReadonlySet<string>;
}
