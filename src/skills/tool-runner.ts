import type { Diagnostic } from "../base/diagnostic.ts";
import type { Scope } from "../io/scope.ts";
import type { Tool } from "../tools/tool.ts";

/** Where tools are being loaded for: what their origin says, and which generation of the skill they belong to. */
export interface RunnerTarget {
  readonly skill: { readonly name: string; readonly folder: string };
  readonly generation: number;
}

/** The tools of one file, every file they are made of, and advice about them. */
export interface LoadedTools {
  readonly tools: readonly Tool[];
  readonly files: ReadonlySet<string>;
  readonly diagnostics: readonly Diagnostic[];
}

/** Runs the files of one language. Rejects with what the file threw, or with the scope's reason when that ends first. */
export interface ToolRunner {
  readonly extensions: readonly string[];
  load(file: string, target: RunnerTarget, scope: Scope): Promise<LoadedTools>;
}
