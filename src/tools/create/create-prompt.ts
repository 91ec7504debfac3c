import { canonicalJson, sha256 } from "../../base/canonical-json.ts";
import { errorMessage, HostError } from "../../base/errors.ts";
import { isRecord } from "../../base/json.ts";
import { withoutHidden } from "../../base/untrusted-text.ts";
import { kindOf, toContentBlock } from "../define/content-block.ts";
import { complete, type DefinedPrompt } from "../define/define-prompt.ts";
import type { OfferContext, Prompt, PromptDefinition, PromptMessage, PromptResult } from "../prompt.ts";
import type { ToolOrigin } from "../tool.ts";

/** Creates the prompt that a host offers from what `definePrompt` returned. `generation` identifies the version of the code behind it. */
export function createPrompt(defined: DefinedPrompt, origin: ToolOrigin, generation: string): Prompt {
  const definition = definitionOf(defined);
  const completers = new Map(defined.arguments.map(({ name, complete: completer }) => [name, completer]));
  const canComplete = defined.arguments.some(({ complete: completer }) => completer !== undefined);
  return assemblePrompt({
    definition,
    origin,
    generation: () => generation,
    async make(args, context) {
      return toPromptResult(await defined.handler(args as never, context), definition);
    },
    ...(canComplete && { complete: (argument, value, context) => complete(completers.get(argument), value, context) }),
  });
}

export interface PromptParts extends Pick<Prompt, "definition" | "origin" | "complete"> {
  /** Identifies the version of the code or text behind the prompt. Called when its revision is first needed. */
  generation(): string;
  /** Gets exactly the arguments that are declared and given. */
  make(args: Readonly<Record<string, string>>, context: OfferContext): Promise<PromptResult>;
}

/** Creates a prompt that checks its arguments before `make` runs. */
export function assemblePrompt(parts: PromptParts): Prompt {
  return Object.freeze(new AssembledPrompt(parts));
}

/** A class, because each object with an accessor of its own has a hidden class of its own: ten times the memory. */
class AssembledPrompt implements Prompt {
  readonly definition: PromptDefinition;
  readonly origin: ToolOrigin;
  readonly get: Prompt["get"];
  declare readonly complete?: NonNullable<Prompt["complete"]>;
  readonly #generation: () => string;
  #revision: string | undefined;

  constructor({ definition, origin, generation, make, complete: completion }: PromptParts) {
    this.definition = definition;
    this.origin = Object.freeze({ ...origin });
    this.get = async (args, context) => make(checkArguments(definition, args), context);
    if (completion !== undefined) this.complete = completion;
    this.#generation = generation;
  }

  get revision(): string {
    this.#revision ??= sha256(canonicalJson({ definition: this.definition, generation: this.#generation() }));
    return this.#revision;
  }
}

/** The same prompt under another name; its origin keeps the native one. */
export function renamePrompt(prompt: Prompt, name: string): Prompt {
  const { definition, origin, get, complete: completion } = prompt;
  return Object.freeze({
    definition: Object.freeze({ ...definition, name }),
    origin,
    get revision() {
      return sha256(`${name} ${prompt.revision}`);
    },
    get,
    ...(completion && { complete: completion }),
  });
}

function definitionOf({ name, title, description, arguments: declared }: DefinedPrompt): PromptDefinition {
  const args = declared.map((argument) =>
    Object.freeze({
      name: argument.name,
      ...(argument.title !== undefined && { title: withoutHidden(argument.title) }),
      ...(argument.description !== undefined && { description: withoutHidden(argument.description) }),
      ...(argument.required !== undefined && { required: argument.required }),
    }),
  );
  return Object.freeze({
    name,
    ...(title !== undefined && { title: withoutHidden(title) }),
    ...(description !== undefined && { description: withoutHidden(description) }),
    ...(args.length > 0 && { arguments: Object.freeze(args) }),
  });
}

/** Undeclared arguments are ignored, as in a form without a field for them. */
function checkArguments({ name, arguments: declared = [] }: PromptDefinition, given: unknown): Readonly<Record<string, string>> {
  if (given !== undefined && given !== null && !isRecord(given)) throw wrong(`The arguments of prompt "${name}" must be an object.`);
  const args: Record<string, string> = Object.create(null);
  const missing: string[] = [];
  for (const argument of declared) {
    const value = isRecord(given) && Object.hasOwn(given, argument.name) ? given[argument.name] : undefined;
    if (typeof value === "string") args[argument.name] = value;
    else if (value !== undefined && value !== null)
      throw wrong(`Prompt "${name}": ${argument.name} must be a string, not ${kindOf(value)}.`);
    else if (argument.required) missing.push(argument.name);
  }
  if (missing.length > 0) throw wrong(`Prompt "${name}" requires ${missing.join(", ")}. Pass each as a string.`);
  return Object.freeze(args);
}

function wrong(message: string): HostError {
  return new HostError("PROMPT_ARGUMENTS", message);
}

function toPromptResult(reply: unknown, { name, description: about }: PromptDefinition): PromptResult {
  const isWhole = isRecord(reply) && Array.isArray(reply["messages"]);
  const items: unknown = isWhole ? reply["messages"] : reply;
  const description = isWhole && typeof reply["description"] === "string" ? reply["description"] : about;
  try {
    const messages = (Array.isArray(items) ? items : [items]).flatMap(toMessages);
    return Object.freeze({ ...(description !== undefined && { description }), messages: Object.freeze(messages) });
  } catch (cause) {
    throw new HostError(
      "PROMPT_RESULT",
      `The handler of prompt "${name}" returned a value that is not a message: ${errorMessage(cause)}.`,
      {
        cause,
      },
    );
  }
}

function toMessages(item: unknown, index: number): PromptMessage[] {
  const isMessage = isRecord(item) && item["role"] !== undefined;
  const role = isMessage ? item["role"] : "user";
  const content: unknown = isMessage ? item["content"] : item;
  try {
    if (role !== "user" && role !== "assistant") throw new TypeError(`has the role ${JSON.stringify(role)}. Use "user" or "assistant"`);
    return (Array.isArray(content) ? content : [content]).map((block) => Object.freeze({ role, content: toContentBlock(block) }));
  } catch (cause) {
    throw new TypeError(`message ${index} ${errorMessage(cause)}`, { cause });
  }
}
