import { HostError } from "../../base/errors.ts";
import type { JsonSchemaArguments } from "../schema/json-schema-value.ts";
import type { StandardSchema } from "../schema/standard-schema.ts";
import type { JsonSchema, PermissionRequest, ToolAnnotations, ToolContext, ToolInvocation } from "../tool.ts";

/** Marks what `defineTool` returns, also across copies of this package in one process. */
const toolBrand: unique symbol = Symbol.for("skillhost.tool");

/** Marks what `definePrompt` returns, also across copies of this package in one process. */
export const promptBrand: unique symbol = Symbol.for("skillhost.prompt");

/** Whether `definePrompt` made it. Never throws. */
export function hasPromptBrand(value: unknown): boolean {
  try {
    return typeof value === "object" && value !== null && (value as { readonly [promptBrand]?: unknown })[promptBrand] === true;
  } catch {
    // A proxy that throws is not a prompt.
    return false;
  }
}

/** The code of a tool. It may take none, one, two or all of its arguments, and may be asynchronous. */
export type ToolHandler<Args> = (args: Args, invocation: ToolInvocation, context: ToolContext) => unknown;

/** Describes what a call is about to do, for the permission decision; null when it needs no permission. */
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

/**
 * Options of `defineTool`.
 *
 * @example
 * ```ts
 * const options: ToolOptions<unknown> = { description: "Returns the time.", skipPermission: true, handler: () => new Date().toISOString() };
 * ```
 */
export interface ToolOptions<Args> {
  /** A display name. */
  readonly title?: string | undefined;
  /** What the tool does and when to use it. Models choose tools by this text. */
  readonly description?: string | undefined;
  /** JSON Schema of the tool's result. */
  readonly outputSchema?: object | undefined;
  /** What the tool does to its surroundings, as in MCP; for people and programs. Default: none. */
  readonly annotations?: ToolAnnotations | undefined;
  /** Absent: a client tool, whose calls wait for an attached client to answer them. */
  readonly handler?: ToolHandler<Args> | undefined;
  /** Another name of `handler`, as in other libraries. */
  readonly execute?: ToolHandler<Args> | undefined;
  /** Describes what a call would do, for the decision whether it runs. Default: the tool and its arguments. */
  readonly permission?: ToolPermission<Args> | undefined;
  /** The tool may take the place of one that the session brings. Default: false. */
  readonly overridesBuiltInTool?: boolean | undefined;
  /** Calls run without a question where the skill may decide that. Default: false. */
  readonly skipPermission?: boolean | undefined;
  /** `never`: a model sees it from the start, however many tools there are. Default: `auto`. */
  readonly defer?: "auto" | "never" | undefined;
  /** A success ends the turn. Default: false. */
  readonly isTerminal?: boolean | undefined;
  /** For programs; it decides nothing. Default: none. */
  readonly metadata?: Readonly<Record<string, unknown>> | undefined;
  /** Deadline of one call in milliseconds. */
  readonly timeout?: number | undefined;
}

/** Everything that a tool can be created from: a `defineTool` result, or a plain object of the same shape. */
export interface ToolLike extends Omit<ToolOptions<never>, "defer"> {
  readonly name: string;
  readonly parameters?: object | undefined;
  /** Another name of `parameters`, as in MCP and other libraries. */
  readonly inputSchema?: object | undefined;
  readonly defer?: string | undefined;
}

/** A tool as its author wrote it, not yet part of a host. Frozen. */
export interface DefinedTool extends ToolLike {
  readonly [toolBrand]: true;
  readonly [leftOutKeys]?: LeftOutKeys;
}

/** Where `defineTool` keeps the names of ignored options, so that the loader can report them. */
const leftOutKeys: unique symbol = Symbol.for("skillhost.tool.left-out-keys");

/** The keys of a tool that have no effect. */
export interface LeftOutKeys {
  readonly unknown: readonly string[];
  /** Aliases of options that are present too. */
  readonly twice: readonly string[];
}

/**
 * Defines a tool. The arguments of the handler are typed from the schema in `parameters`: from a library's schema by its output, from a
 * JSON Schema that is written in place, or `as const`, by its properties. Name a type for a schema from elsewhere:
 * `defineTool<{ city: string }>(…)`. Nothing is registered, and
 * only shapes are checked: a host checks the rest when it loads the definition.
 * @throws HostError `TOOL_INVALID` when the name is not a string, the handler is not a function, or an option cannot be read.
 */
export function defineTool<const Schema extends SchemaObject>(
  name: string,
  options: ToolOptions<ArgumentsOf<Schema>> & { readonly parameters: Schema },
): DefinedTool;
export function defineTool<const Schema extends SchemaObject>(
  name: string,
  options: ToolOptions<ArgumentsOf<Schema>> & { readonly inputSchema: Schema },
): DefinedTool;
export function defineTool<const Schema extends JsonSchema>(
  name: string,
  options: ToolOptions<JsonSchemaArguments<Schema>> & { readonly parameters: Schema },
): DefinedTool;
export function defineTool<const Schema extends JsonSchema>(
  name: string,
  options: ToolOptions<JsonSchemaArguments<Schema>> & { readonly inputSchema: Schema },
): DefinedTool;
export function defineTool<Args = Record<string, unknown>>(
  name: string,
  options: ToolOptions<Args> & { readonly parameters?: JsonSchema | undefined; readonly inputSchema?: JsonSchema | undefined },
): DefinedTool;
export function defineTool(name: string, options: ToolOptions<never> & { readonly parameters?: object | undefined }): DefinedTool {
  if (typeof name !== "string") throw invalid(`The first argument of defineTool must be the tool's name, not ${kindOf(name)}.`);
  if (typeof options !== "object" || options === null)
    throw invalid(`Tool "${name}": the options must be an object, not ${kindOf(options)}.`);
  const { fields, leftOut } = readOptions(options, name);
  const defined: Record<PropertyKey, unknown> = { name };
  for (const [key, value] of Object.entries(fields)) if (value !== undefined) defined[key] = value;
  checkShapes(name, defined);
  defined[toolBrand] = true;
  if (leftOut.unknown.length + leftOut.twice.length > 0) defined[leftOutKeys] = leftOut;
  return Object.freeze(defined) as unknown as DefinedTool;
}

/** Whether a value is meant as a tool: made by `defineTool`, or an object with a name and a handler. Never throws. */
export function isToolLike(value: unknown): value is ToolLike {
  if (typeof value !== "object" || value === null) return false;
  try {
    if ((value as Partial<DefinedTool>)[toolBrand] === true) return true;
    if (hasPromptBrand(value)) return false;
    return typeof (value as Partial<ToolLike>).name === "string" && handlerIn(value) !== undefined;
  } catch {
    // A getter or proxy that throws is not a tool.
    return false;
  }
}

/** The tool's handler, under either of its names. */
export function handlerIn(tool: Partial<ToolLike>): ToolHandler<never> | undefined {
  const { handler } = tool;
  if (typeof handler === "function") return handler;
  const { execute } = tool;
  return typeof execute === "function" ? execute : undefined;
}

/** @throws HostError `TOOL_INVALID` when a field has the wrong type. */
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

/** The known options of a tool, with aliases resolved, and the names of those that have no effect. */
export interface DefinitionReadOptions {
  readonly fields: Readonly<Record<string, unknown>>;
  readonly leftOut: LeftOutKeys;
}

/**
 * Reads the options of a tool, each once.
 * @throws HostError `TOOL_INVALID` when reading one throws.
 */
export function readOptions(from: object, name: string): DefinitionReadOptions {
  const fields: Record<string, unknown> = {};
  for (const key of optionKeys) fields[key] = readOption(from, key, name);
  const twice: string[] = [];
  for (const [alias, key] of Object.entries(aliases)) {
    const value = readOption(from, alias, name);
    if (value === undefined || value === null) continue;
    if (fields[key] === undefined || fields[key] === null) fields[key] = value;
    else if (fields[key] !== value) twice.push(alias);
  }
  const before = readOption(from, leftOutKeys, name) as LeftOutKeys | undefined;
  const known = new Set<string>(["name", "$schema", ...optionKeys, ...Object.keys(aliases)]);
  return { fields, leftOut: before ?? { unknown: keysOf(from, name).filter((key) => !known.has(key)), twice } };
}

function keysOf(from: object, name: string): readonly string[] {
  try {
    return Object.keys(from);
  } catch (cause) {
    throw new HostError("TOOL_INVALID", `Tool "${name}": its options cannot be listed.`, { cause });
  }
}

const aliases: Readonly<Record<string, keyof ToolLike>> = { inputSchema: "parameters", execute: "handler" };

const optionKeys: readonly (keyof ToolLike)[] = [
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
export function readOption(from: object, key: string | symbol, name: string): unknown {
  try {
    return (from as Record<string | symbol, unknown>)[key];
  } catch (cause) {
    throw new HostError("TOOL_INVALID", `Tool "${name}": ${String(key)} cannot be read, because its getter throws.`, { cause });
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
