import type { Diagnostic } from "../../base/diagnostic.ts";
import type { CheckedTree } from "../../io/read-bounded.ts";
import type { Scope } from "../../io/scope.ts";
import type { Prompt } from "../../tools/prompt.ts";
import type { Resource, ResourceTemplate } from "../../tools/resource.ts";
import type { Tool } from "../../tools/tool.ts";
import type { ResourceSet } from "../../tools/tool-source.ts";

/** Where tools are being loaded for: what their origin says, and which generation of the skill they belong to. */
export interface RunnerTarget {
  readonly skill: { readonly name: string; readonly folder: string; readonly identity?: string };
  readonly generation: number;
  /** To be called when what a `resourceLists` of it holds has become another list. */
  onResourcesChanged?(): void;
  /**
   * The files of the skill whose bytes were checked, where its signature is required. Run only what these are: a file's path may
   * lead to something else by the time that it is opened.
   */
  readonly checked?: CheckedTree | undefined;
}

/** The tools of one file, and what else it defines, every file they are made of, and advice about them. */
export interface LoadedTools {
  readonly tools: readonly Tool[];
  readonly prompts?: readonly Prompt[];
  readonly resources?: readonly Resource[];
  readonly resourceTemplates?: readonly ResourceTemplate[];
  /** Resources that come and go without the file being loaded again. */
  readonly resourceLists?: readonly ResourceSet[];
  readonly files: ReadonlySet<string>;
  readonly diagnostics: readonly Diagnostic[];
}

/** Runs the files of one language. Rejects with what the file threw, or with the scope's reason when that ends first. */
export interface ToolRunner {
  readonly extensions: readonly string[];
  /** Whether it keeps to `target.checked`. Other runners get no files of skills whose signature is required. */
  readonly runsCheckedFiles?: boolean | undefined;
  load(file: string, target: RunnerTarget, scope: Scope): Promise<LoadedTools>;
}
