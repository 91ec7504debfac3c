import { isRecord } from "../../base/json.ts";
import type { Completion, CompletionContext } from "../prompt.ts";
import { kindOf } from "./content-block.ts";

/** What an author's completer may return: the suggestions, best first, or a whole `Completion`. */
export type CompletionLike = readonly string[] | Completion;

/** Suggests values: a function of the text typed so far, or an array that is filtered by it. */
export type Completer =
  | readonly string[]
  | ((value: string, context: CompletionContext) => CompletionLike | undefined | Promise<CompletionLike | undefined>);

/** The maximum number of suggestions (MCP specification 2025-11-25, completion). */
const most = 100;

/**
 * Runs a completer; without one there are no suggestions. Rejects with the completer's error, or with a TypeError when its result is not
 * an array of strings.
 */
export async function complete(completer: Completer | undefined, value: string, context: CompletionContext): Promise<Completion> {
  if (completer === undefined) return none;
  return toCompletion(typeof completer === "function" ? await completer(value, context) : beginningWith(completer, value));
}

/** Whether a value can be a completer; a list is checked when it is used. */
export function isCompleter(value: unknown): value is Completer {
  return typeof value === "function" || Array.isArray(value);
}

const none: Completion = Object.freeze({ values: Object.freeze([]) });

function beginningWith(values: readonly string[], value: string): readonly string[] {
  const typed = value.toLowerCase();
  return values.filter((candidate) => String(candidate).toLowerCase().startsWith(typed));
}

function toCompletion(given: unknown): Completion {
  if (given === undefined || given === null) return none;
  const completion: Partial<Record<keyof Completion, unknown>> = isRecord(given) ? given : { values: given };
  const { values, total, hasMore } = completion;
  if (!Array.isArray(values) || values.some((item) => typeof item !== "string"))
    throw new TypeError(
      `A completion must return an array of strings, not ${Array.isArray(values) ? "an array of other values" : kindOf(values)}.`,
    );
  const isCut = values.length > most;
  return Object.freeze({
    values: Object.freeze(values.slice(0, most) as string[]),
    ...(typeof total === "number" ? { total } : isCut ? { total: values.length } : {}),
    ...(typeof hasMore === "boolean" && !isCut ? { hasMore } : isCut ? { hasMore: true } : {}),
  });
}
