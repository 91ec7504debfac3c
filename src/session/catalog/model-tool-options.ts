import { matchesWildcard } from "../../base/text.ts";
import type { SystemMessageOptions } from "../prompt/customize-prompt.ts";

/**
 * What may be different for a model, or for a family of models. A field that is given takes the place of the session's own.
 *
 * @example
 * ```ts
 * const options: ModelToolOptions = { excludedTools: ["shell"], toolSearch: { enabled: false } };
 * ```
 */
export interface ModelToolOptions {
  /** Only these tools. Default: the session's. */
  readonly availableTools?: readonly string[] | undefined;
  /** All tools but these. Default: the session's. */
  readonly excludedTools?: readonly string[] | undefined;
  /** Whether it has to search for tools. Default: the session's. */
  readonly toolSearch?: ToolSearchOptions | undefined;
  /**
   * Of the tools that say in their metadata which `editingStyle` they are for, the model gets those of this one.
   * Default: `edit`.
   */
  readonly editingStyle?: string | undefined;
  /** Comes after the session's own. */
  readonly systemMessage?: SystemMessageOptions | undefined;
}

/** By the model's name, or a pattern of it with `*` for any text; of several that fit, the later is stronger field by field. */
export type ModelToolTable = { readonly [pattern: string]: ModelToolOptions };

/** What a table says of a model. */
export function toolOptionsFor(model: string | undefined, table: ModelToolTable = {}): ModelToolOptions {
  let found: ModelToolOptions = {};
  if (model === undefined) return found;
  for (const [pattern, options] of Object.entries(table)) {
    if (matchesWildcard(pattern.toLowerCase(), model.toLowerCase())) found = { ...found, ...definedFields(options) };
  }
  return found;
}

function definedFields(options: ModelToolOptions): ModelToolOptions {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}

/**
 * When tools are deferred, so that a model searches for them.
 *
 * @example
 * ```ts
 * const options: ToolSearchOptions = { enabled: true };
 * ```
 */
export interface ToolSearchOptions {
  /** False: every tool is advertised, however many there are. Default: true. */
  readonly enabled?: boolean | undefined;
  /** With more tools than this, those of MCP servers, clients and skills are found by searching. Default: 30. */
  readonly deferThreshold?: number | undefined;
}

export interface ToolSearchSettings {
  readonly enabled: boolean;
  readonly deferThreshold: number;
}

/** Fills in what the options leave open. */
export function resolveToolSearch({ enabled = true, deferThreshold = 30 }: ToolSearchOptions = {}): ToolSearchSettings {
  return Object.freeze({ enabled, deferThreshold });
}
