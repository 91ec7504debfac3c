import type { Diagnostic } from "../base/diagnostic.ts";
import type { Prompt } from "./prompt.ts";
import type { Resource, ResourceTemplate } from "./resource.ts";
import type { Tool, ToolContext } from "./tool.ts";

/** Resources that may change while their provider stays the same. */
export interface ResourceSet {
  /** Computed on first read. The same array until a resource changes. */
  readonly resources: readonly Resource[];
}

/** What a session needs of a skill, wherever the skill lives. */
export interface SkillEntry {
  readonly name: string;
  readonly description: string;
  /** The skill's folder, if it has one. */
  readonly folder?: string;
  /** `eager`: its prompts are part of the context of every turn. Default: `on-demand`, they are added when the skill is used. */
  readonly promptMode?: "eager" | "on-demand";
  readonly prompts?: readonly { readonly path: string; readonly text: string }[];
  /** Its files as resources `skill://<skill>/<path>`. Absent: they are not offered. */
  readonly files?: ResourceSet;
  /** The model does not see the skill; a user may still invoke it. */
  readonly hiddenFromModel?: boolean;
  /** False: the skill has no instructions, for example because it only provides tools. */
  readonly hasInstructions?: boolean;
  /** False: users cannot invoke it by `/name`; only a model may use it. */
  readonly userInvocable?: boolean;
  /**
   * The instructions for a model when the skill is used. `argumentsText` is what a user wrote after the skill's name: it replaces
   * `$ARGUMENTS` and the positional and named arguments, or follows the body.
   */
  instructions(argumentsText?: string): Promise<string>;
  /** Reads a file of the skill by its relative path. Rejects with `PATH_OUTSIDE` for a path outside of the skill. */
  read(path: string): Promise<Uint8Array>;
}

/** What a source of tools offers at one moment. */
export interface SourceSnapshot {
  readonly tools: readonly Tool[];
  readonly skills: readonly SkillEntry[];
  readonly prompts?: readonly Prompt[];
  readonly resources?: readonly Resource[];
  readonly resourceTemplates?: readonly ResourceTemplate[];
  readonly diagnostics: readonly Diagnostic[];
}

/**
 * Anything that provides tools or skills. Its snapshot is immutable and replaced as a whole; subscribers are called after a new one is in
 * place. Errors of the source are diagnostics of its snapshot and are never thrown.
 */
export interface ToolSource extends AsyncDisposable {
  readonly id: string;
  readonly snapshot: SourceSnapshot;
  /** Settles when the first snapshot is complete, or rejects with the signal's reason. */
  ready(signal: AbortSignal): Promise<void>;
  subscribe(listener: () => void): Disposable;
}

type Meta = Readonly<Record<string, unknown>>;

const metaOfCalls = new WeakMap<ToolContext, Meta>();

/** Sets the metadata that a call of a remote tool carries, such as what a hook added and the trace context. */
export function setCallMeta(context: ToolContext, meta: Meta): void {
  metaOfCalls.set(context, meta);
}

/** The metadata set for this call, if any. */
export function callMetaOf(context: ToolContext): Meta | undefined {
  return metaOfCalls.get(context);
}
