import type { Diagnostic } from "../base/diagnostic.ts";
import type { Prompt } from "./prompt.ts";
import type { Resource, ResourceTemplate } from "./resource.ts";
import type { Tool, ToolContext } from "./tool.ts";

/** Resources that come and go while whoever offers them stays the same. */
export interface ResourceSet {
  /** Found when it is first read. The same array until something about them changes. */
  readonly resources: readonly Resource[];
}

/** What a session needs of a skill, wherever the skill lives. */
export interface SkillEntry {
  readonly name: string;
  readonly description: string;
  /** The folder it lies in, where there is one. */
  readonly folder?: string;
  /** `eager`: its prompts are context for every turn. Default: `on-demand`, they are given when the skill is used. */
  readonly promptMode?: "eager" | "on-demand";
  readonly prompts?: readonly { readonly path: string; readonly text: string }[];
  /** Its files, as resources `skill://<skill>/<path>`. Absent: none of them are offered. */
  readonly files?: ResourceSet;
  /** The model is not told of it; a person may still use it. */
  readonly hiddenFromModel?: boolean;
  /** False: it has nothing to give when it is used, such as one that only brings tools. */
  readonly hasInstructions?: boolean;
  /** False: a person may not call it up by `/name`; only a model may use it. */
  readonly userInvocable?: boolean;
  /**
   * The body to give a model when the skill is used. `argumentsText` is what a person wrote after the skill's name: it
   * takes the place of `$ARGUMENTS` and the positional and named arguments, or follows the body.
   */
  instructions(argumentsText?: string): Promise<string>;
  /** Reads a file of the skill by its path relative to the skill. Rejects with `PATH_OUTSIDE` when it leads out of it. */
  read(path: string): Promise<Uint8Array>;
}

export interface SourceSnapshot {
  readonly tools: readonly Tool[];
  readonly skills: readonly SkillEntry[];
  readonly prompts?: readonly Prompt[];
  readonly resources?: readonly Resource[];
  readonly resourceTemplates?: readonly ResourceTemplate[];
  readonly diagnostics: readonly Diagnostic[];
}

/**
 * Anything that provides tools or skills. Its snapshot is immutable and replaced as a whole; `subscribe` tells that a
 * new one is there, after it is. Errors of the source are diagnostics of its snapshot, never thrown.
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

/** Says what a call of a remote tool takes along, such as what a hook added and where the call stands in a trace. */
export function setCallMeta(context: ToolContext, meta: Meta): void {
  metaOfCalls.set(context, meta);
}

/** What was set for this call; undefined: nothing. */
export function callMetaOf(context: ToolContext): Meta | undefined {
  return metaOfCalls.get(context);
}
