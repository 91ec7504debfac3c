import { HostError } from "../../base/errors.ts";
import { isRecord } from "../../base/json.ts";
import { type Completion, type CompletionContext, isPromptName, type OfferContext } from "../prompt.ts";
import { type ContentLike, kindOf } from "./content-block.ts";
import { hasPromptBrand, promptBrand } from "./define-tool.ts";

/**
 * Options of an argument of a prompt.
 *
 * @example
 * ```ts
 * const argument: PromptArgumentOptions = { description: "The tone.", required: true, complete: ["friendly", "formal"] };
 * ```
 */
export interface PromptArgumentOptions {
  /** A display name. Default: its name. */
  readonly title?: string | undefined;
  /** What to fill in. Default: none. */
  readonly description?: string | undefined;
  /** Whether it must be filled in. Default: false. */
  readonly required?: boolean | undefined;
  /** Suggests values while the user fills in the argument: an array, or a function of the text typed so far. */
  readonly complete?: Completer | undefined;
}

/** An argument in a list. */
interface NamedArgument extends PromptArgumentOptions {
  readonly name: string;
}

/** The arguments of a handler: required ones are present, others may be absent. */
type PromptArgumentsOf<Declared> = Declared extends readonly unknown[]
  ? Readonly<Record<string, string | undefined>>
  : { readonly [K in keyof Declared as Declared[K] extends { readonly required: true } ? K : never]: string } & {
      readonly [K in keyof Declared as Declared[K] extends { readonly required: true } ? never : K]?: string;
    };

/** What a prompt may return for one message. */
export interface PromptMessageLike {
  readonly role: "user" | "assistant";
  /** One block, or several, each of which becomes a message. */
  readonly content: string | ContentLike | readonly (string | ContentLike)[];
}

/** What a handler may return: text or blocks become user messages. */
export type PromptReply =
  | string
  | ContentLike
  | PromptMessageLike
  | readonly (string | ContentLike | PromptMessageLike)[]
  | { readonly description?: string; readonly messages: readonly (string | ContentLike | PromptMessageLike)[] };

/**
 * Options of `definePrompt`.
 *
 * @example
 * ```ts
 * const options: PromptOptions<readonly []> = { description: "Asks for a review.", handler: () => "Review the change." };
 * ```
 */
export interface PromptOptions<Declared> {
  /** A display name. */
  readonly title?: string | undefined;
  /** What it is for, for people. Default: none. */
  readonly description?: string | undefined;
  /** The arguments that a user fills in, by name. Default: none. */
  readonly arguments?: Declared | undefined;
  /** Returns the messages: a text, or a list of messages. */
  readonly handler: (args: PromptArgumentsOf<Declared>, context: OfferContext) => PromptReply | Promise<PromptReply>;
}

/** A prompt as its author wrote it, not yet part of a host. Frozen. */
export interface DefinedPrompt {
  readonly [promptBrand]: true;
  readonly name: string;
  readonly title: string | undefined;
  readonly description: string | undefined;
  readonly arguments: readonly NamedArgument[];
  readonly handler: (args: never, context: OfferContext) => unknown;
}

/**
 * Defines a prompt: messages that a user requests by name, with arguments. Nothing is registered: a module exports it.
 * @throws HostError `PROMPT_INVALID` naming the invalid field.
 */
export function definePrompt<const Declared extends Readonly<Record<string, PromptArgumentOptions>>>(
  name: string,
  options: PromptOptions<Declared>,
): DefinedPrompt;
export function definePrompt(name: string, options: PromptOptions<readonly NamedArgument[]>): DefinedPrompt;
export function definePrompt(name: string, options: unknown): DefinedPrompt {
  if (!isPromptName(name))
    throw invalid("The first argument of definePrompt must be the prompt's name: 1 to 128 letters, digits, _ . or -.");
  if (!isRecord(options)) throw invalid(`Prompt "${name}": the options must be an object, not ${kindOf(options)}.`);
  const { title, description, arguments: declared, handler } = readOptions(name, options);
  for (const [key, value] of Object.entries({ title, description }))
    if (value !== undefined && typeof value !== "string") throw invalid(`Prompt "${name}": ${key} must be a string, not ${kindOf(value)}.`);
  if (typeof handler !== "function") throw invalid(`Prompt "${name}": handler must be a function, not ${kindOf(handler)}.`);
  const defined = { name, title, description, arguments: argumentsOf(name, declared), handler, [promptBrand]: true as const };
  return Object.freeze(defined) as DefinedPrompt;
}

/** Whether `definePrompt` created this value. Never throws. */
export function isDefinedPrompt(value: unknown): value is DefinedPrompt {
  return hasPromptBrand(value);
}

type Fields = Readonly<Record<string, unknown>>;

function readOptions(name: string, options: object): Fields {
  try {
    return { ...options };
  } catch (cause) {
    throw invalid(`Prompt "${name}": the options cannot be read, because a getter throws.`, cause);
  }
}

function argumentsOf(prompt: string, declared: unknown): readonly NamedArgument[] {
  if (declared === undefined || declared === null) return Object.freeze([]);
  if (!isRecord(declared) && !Array.isArray(declared))
    throw invalid(`Prompt "${prompt}": arguments must be an object or an array, not ${kindOf(declared)}.`);
  const list: readonly [unknown, unknown][] = Array.isArray(declared)
    ? declared.map((item: unknown) => [isRecord(item) ? item["name"] : undefined, item])
    : Object.entries(declared);
  const names = new Set<unknown>();
  return Object.freeze(list.map(([name, options]) => argumentOf(prompt, name, options, names)));
}

function argumentOf(prompt: string, name: unknown, options: unknown, names: Set<unknown>): NamedArgument {
  const shown = JSON.stringify(name) ?? kindOf(name);
  if (typeof name !== "string" || name === "" || name === "__proto__" || name.length > 128)
    throw invalid(`Prompt "${prompt}": ${shown} is not a valid argument name.`);
  if (names.has(name)) throw invalid(`Prompt "${prompt}": the argument ${shown} occurs twice.`);
  names.add(name);
  if (!isRecord(options)) throw invalid(`Prompt "${prompt}": the argument ${shown} must be an object, such as { required: true }.`);
  const { title, description, required, complete } = options;
  const wrong = Object.entries({ title, description }).find(([, value]) => value !== undefined && typeof value !== "string");
  if (wrong) throw invalid(`Prompt "${prompt}": ${wrong[0]} of the argument ${shown} must be a string.`);
  if (required !== undefined && typeof required !== "boolean")
    throw invalid(`Prompt "${prompt}": required of the argument ${shown} must be true or false.`);
  if (complete !== undefined && !isCompleter(complete))
    throw invalid(`Prompt "${prompt}": complete of the argument ${shown} must be a function or an array of strings.`);
  return Object.freeze({ name, title, description, required, complete }) as NamedArgument;
}

function invalid(message: string, cause?: unknown): HostError {
  return new HostError("PROMPT_INVALID", message, cause === undefined ? undefined : { cause });
}

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
