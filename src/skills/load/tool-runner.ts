import type { Diagnostic } from "../../base/diagnostic.ts";
import type { SkillPermissions } from "../../formats/skills/skill-permissions.ts";
import type { ProcessLimits } from "../../io/process/confine-process.ts";
import type { CheckedTree } from "../../io/read-bounded.ts";
import type { Scope } from "../../io/scope.ts";
import type { ToolHandler } from "../../tools/define/define-tool.ts";
import type { Prompt } from "../../tools/prompt.ts";
import type { Resource, ResourceTemplate } from "../../tools/resource.ts";
import type { Tool } from "../../tools/tool.ts";
import type { ResourceSet } from "../../tools/tool-source.ts";
import type { SkillScope } from "../../trust/trust-policy.ts";

/** The target of a load: the origin of the tools, and the generation of the skill. */
export interface RunnerTarget {
  readonly skill: { readonly name: string; readonly folder: string; readonly identity?: string };
  readonly generation: number;
  /** The origin of the skill's folder. Absent: a skill of skillhost itself, or an origin that is not known. */
  readonly scope?: SkillScope | undefined;
  /** What the skill declares in `permissions` of its manifest. */
  readonly permissions?: SkillPermissions | undefined;
  /** Must be called when one of the `resourceLists` changes. */
  onResourcesChanged?(): void;
  /**
   * The checked files of the skill, if its signature is required. Run only these bytes: the path of a file may lead elsewhere by the time
   * it is opened.
   */
  readonly checked?: CheckedTree | undefined;
}

/** The definitions of one file, all files that they depend on, and advice about them. */
export interface LoadedTools {
  readonly tools: readonly Tool[];
  readonly prompts?: readonly Prompt[];
  readonly resources?: readonly Resource[];
  readonly resourceTemplates?: readonly ResourceTemplate[];
  /** Resources that change without a reload of the file. */
  readonly resourceLists?: readonly ResourceSet[];
  readonly files: ReadonlySet<string>;
  readonly diagnostics: readonly Diagnostic[];
}

/** Runs the files of one language. Rejects with errors of the file, or with the scope's reason if that ends first. */
export interface ToolRunner {
  readonly extensions: readonly string[];
  /** Whether it runs only `target.checked`. Other runners get no files of skills whose signature is required. */
  readonly runsCheckedFiles?: boolean | undefined;
  load(file: string, target: RunnerTarget, scope: Scope): Promise<LoadedTools>;
  /** The handler of a tool JSON in one of these files. Absent or undefined: the host runs such a module itself. @internal */
  handler?(file: string, pick: HandlerPick, target: RunnerTarget, scope: Scope): ToolHandler<unknown> | undefined;
  /** How programs of tool JSON are kept to what the skill declares. Absent or undefined: not at all. @internal */
  programs?(target: RunnerTarget): EnclosedPrograms | undefined;
}

/** @internal */
export interface EnclosedPrograms {
  readonly enclose: EncloseProgram;
  /** Reports in how far this machine encloses the programs of a tool JSON. */
  report(file: string): Promise<readonly Diagnostic[]>;
}

/**
 * Changes how a program is started. `folder` is the skill's folder, or a copy of it. Rejects with a `HostError` if it may not run.
 * @internal
 */
export type EncloseProgram = (program: StartedProgram & { readonly folder: string; readonly cwd: string }) => Promise<StartedProgram>;

interface StartedProgram {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** What the rules of the session keep it from. The result has these where the enclosure does not include them. */
  readonly limits?: ProcessLimits | undefined;
}

/** Which export of a module handles a tool that JSON defines. */
export interface HandlerPick {
  readonly tool: string;
  readonly export?: string;
}
