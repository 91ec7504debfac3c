import type { Diagnostic } from "../../base/diagnostic.ts";
import type { CheckedTree } from "../read-bounded.ts";
import type { Scope } from "../scope.ts";

/** A loaded module: its exports, and every local file it consists of (entry included, absolute real paths). */
export interface LoadedModule {
  readonly exports: Readonly<Record<string, unknown>>;
  readonly files: ReadonlySet<string>;
}

/** The engine that runs a file, and the reason for the choice. */
export interface EngineChoice {
  readonly engine: "graph" | "jiti";
  readonly reason: string;
}

/** A module whose sources are captured and that has not run yet. */
export interface PreparedModule {
  /** The entry and its local static imports, absolute real paths. */
  readonly files: ReadonlySet<string>;
  /** Runs the module once; later calls return the same result. A failed run is not cached. */
  evaluate(scope: Scope): Promise<LoadedModule>;
}

/** Loads and reloads TypeScript and JavaScript modules. Replaced modules can be garbage-collected. */
export interface ModuleLoader {
  /** Parses a file without running it. Syntax errors are returned as diagnostics with file, line and column. */
  check(file: string): readonly Diagnostic[];
  /** The engine is chosen before anything runs, per package, and never as a retry. */
  engineOf(file: string): EngineChoice;
  /**
   * Evaluates a module and its imports, or returns the current evaluation. Rejects with the error that the module threw, or
   * `HostError` `MODULE_SYNTAX`, `MODULE_NOT_FOUND`. A `ModuleError` lists the files seen so far in `files`. With `tree`, only
   * checked files and the packages that they import run.
   */
  load(file: string, scope: Scope, tree?: CheckedTree): Promise<LoadedModule>;
  /**
   * Reads and transforms a module and the local files that it imports statically, without running them. Throws the
   * `ModuleError` that `load` would reject with for a syntax error or a missing file. The result can be evaluated later, from
   * the sources as read now, even after the files have changed or are gone.
   */
  prepare(file: string, tree?: CheckedTree): PreparedModule;
  /**
   * sha256 (64 hex digits) of the text of the current generation of a file, without a byte order mark; undefined if the file is
   * not loaded.
   */
  contentHash(file: string): string | undefined;
  /** Forgets these files and all their importers; returns all forgotten files. */
  invalidate(files: readonly string[]): ReadonlySet<string>;
}
