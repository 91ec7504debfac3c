import { HostError } from "../base/errors.ts";
import { isDefinedPrompt } from "./define-prompt.ts";
import type { StandardSchema } from "./standard-schema.ts";
import type { JsonSchema, PermissionRequest, ToolAnnotations, ToolContext, ToolInvocation } from "./tool.ts";

/** Marks what `defineTool` returns, also across copies of this package in one process. */
const toolBrand: unique symbol = Symbol.for("skillhost.tool");

/** What a tool does when it is called. It may take none, one, two or all of its arguments, and may be asynchronous. */
export type ToolHandler<Args> = (args: Args, invocation: ToolInvocation, context: ToolContext) => unknown;

/** Says what a call is about to do, for whoever must allow it; null when it needs no permission. */
export type ToolPermission<Args> = (args: Args, context: ToolContext) => PermissionRequest | null | Promise<PermissionRequest | null>;

/** A schema of a library: Zod, Valibot, ArkType, any Standard Schema, TypeBox, or anything with `toJSONSchema()`. */
export type SchemaObject =
  | StandardSchema<unknown, unknown>
  | { readonly static: unknown; readonly params: readonly unknown[] }
  | { readonly toJSONSchema: (...options: never) => object; readonly _output?: unknown };

/** The type of the arguments that a handler gets: the schema's output, after defaults and transformations. */
export type ArgumentsOf<Schema> = Schema extends { readonly "~standard": { readonly types?: infer Types } }
  ? NonNullable<Types> extends { readonly output: infer Output }
    ? Output
    : Record<string, unknown>
  : Schema extends { readonly static: infer Static }
    ? Static
    : Schema extends { readonly _output: infer Output }
      ? Output
      : Record<string, unknown>;

export interface ToolOptions<Args> {
  /** A name for people. */
  readonly title?: string | undefined;
  /** What the tool does and when to use it. A model decides by it. */
  readonly description?: string | undefined;
  /** JSON Schema of what the tool answers with. */
  readonly outputSchema?: object | undefined;
  readonly annotations?: ToolAnnotations | undefined;
  /** Absent: a declaration, whose calls wait for somebody who is attached to answer them. */
  readonly handler?: ToolHandler<Args> | undefined;
  readonly permission?: ToolPermission<Args> | undefined;
  readonly overridesBuiltInTool?: boolean | undefined;
  readonly skipPermission?: boolean | undefined;
  readonly defer?: "auto" | "never" | undefined;
  readonly isTerminal?: boolean | undefined;
  readonly metadata?: Readonly<Record<string, unknown>> | undefined;
  /** Deadline of one call in milliseconds. */
  readonly timeout?: number | undefined;
}

/** Anything that a tool can be made of: what `defineTool` returns, or a plain object of the same shape. */
export interface ToolLike extends Omit<ToolOptions<never>, "defer"> {
  readonly name: string;
  readonly parameters?: object | undefined;
  readonly defer?: string | undefined;
}

/** A tool as its author wrote it, not yet part of a host. Frozen. */
export interface DefinedTool extends ToolLike {
  readonly [toolBrand]: true;
}

/**
 * Defines a tool. The arguments of the handler are typed from the schema in `parameters`: from a library's schema by
 * its output, from a plain JSON Schema as `Record<string, unknown>` unless you name a type: `defineTool<{ city: string }>(…)`.
 * Nothing is registered and nothing is checked beyond shapes: a host does that when it loads the definition.
 * @throws HostError `TOOL_INVALID` when the name is not a string, the handler is no function, or an option cannot be read.
 */
export function defineTool<const Schema extends SchemaObject>(
  name: string,
  options: ToolOptions<ArgumentsOf<Schema>> & { readonly parameters: Schema },
): DefinedTool;
export function defineTool<Args = Record<string, unknown>>(
  name: string,
  options: ToolOptions<Args> & { readonly parameters?: JsonSchema | undefined },
): DefinedTool;
export function defineTool(name: string, options: ToolOptions<never> & { readonly parameters?: object | undefined }): DefinedTool {
  if (typeof name !== "string") throw invalid(`The first argument of defineTool is the tool's name, not ${kindOf(name)}.`);
  if (typeof options !== "object" || options === null)
    throw invalid(`Tool "${name}": the options must be an object, not ${kindOf(options)}.`);
  const defined: Record<PropertyKey, unknown> = { name };
  for (const key of optionKeys) {
    const value = readOption(options, key, name);
    if (value !== undefined) defined[key] = value;
  }
  checkShapes(name, defined);
  defined[toolBrand] = true;
  return Object.freeze(defined) as unknown as DefinedTool;
}

/** Whether a value is meant as a tool: made by `defineTool`, or an object with a name and a handler. Never throws. */
export function isToolLike(value: unknown): value is ToolLike {
  if (typeof value !== "object" || value === null) return false;
  try {
    if ((value as Partial<DefinedTool>)[toolBrand] === true) return true;
    const { name, handler } = value as Partial<ToolLike>;
    if (isDefinedPrompt(value)) return false;
    return typeof name === "string" && typeof handler === "function";
  } catch {
    // A getter or proxy that throws: whatever it is, it is not a tool.
    return false;
  }
}

/** @throws HostError `TOOL_INVALID` when what must be a function or an object is not. */
export function checkShapes(name: string, fields: Readonly<Record<PropertyKey, unknown>>): void {
  for (const key of ["handler", "permission"]) {
    const value = fields[key];
    if (value === undefined || value === null || typeof value === "function") continue;
    throw invalid(`Tool "${name}": ${key} must be a function, not ${kindOf(value)}.`);
  }
  const { parameters } = fields;
  // Some libraries' schemas are functions.
  const isSchema =
    parameters === undefined || parameters === null || (!Array.isArray(parameters) && /object|function/.test(typeof parameters));
  if (!isSchema) throw invalid(`Tool "${name}": parameters must be a schema, not ${kindOf(parameters)}.`);
}

export const optionKeys: readonly (keyof ToolLike)[] = [
  "title",
  "description",
  "parameters",
  "outputSchema",
  "annotations",
  "handler",
  "permission",
  "overridesBuiltInTool",
  "skipPermission",
  "defer",
  "isTerminal",
  "metadata",
  "timeout",
];

/** @throws HostError `TOOL_INVALID` when reading throws. */
export function readOption(from: object, key: string, name: string): unknown {
  try {
    return (from as Record<string, unknown>)[key];
  } catch (cause) {
    throw new HostError("TOOL_INVALID", `Tool "${name}": ${key} cannot be read, its getter throws.`, { cause });
  }
}

function invalid(message: string): HostError {
  return new HostError("TOOL_INVALID", message);
}

function kindOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "an array";
  return value === undefined ? "undefined" : `a ${typeof value}`;
}
