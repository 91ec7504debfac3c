import { errorMessage, HostError } from "../../base/errors.ts";
import { isRecord } from "../../base/json.ts";
import { isThenable } from "../../base/wait.ts";
import type { ArgumentIssue, JsonSchema, Validated } from "../tool.ts";
import { maxIssues, pathText } from "./argument-issues.ts";

/** The part of the Standard Schema specification (https://standardschema.dev) that a tool needs of a schema library. */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
}

export type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | {
      readonly issues: readonly {
        readonly message: string;
        readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
      }[];
    };

/** A schema of some library: something with `~standard` or a method that gives its JSON Schema. */
export type LibrarySchema = object;

/** Whether this is a schema of a library and not a JSON Schema document. */
export function isLibrarySchema(value: object): value is LibrarySchema {
  return "~standard" in value || typeof value === "function" || hasMethod(value, "toJSONSchema") || hasMethod(value, "toJsonSchema");
}

export interface ConvertedSchema {
  readonly schema: JsonSchema;
  /** The library could not express a part of the schema, which is left open for the model. */
  readonly isPartial: boolean;
}

/**
 * The JSON Schema of a library's schema in input form, in which a field with a default is optional.
 * @throws HostError `TOOL_INVALID` when the library cannot convert it; the message says what to do.
 */
export function toJsonSchema(schema: LibrarySchema): ConvertedSchema {
  let failure: unknown;
  for (const isPartial of [false, true]) {
    for (const convert of conversionsOf(schema, isPartial)) {
      try {
        const converted = convert();
        if (isRecord(converted)) return { schema: withoutDefaultDialect(converted), isPartial };
      } catch (error) {
        failure ??= error;
      }
    }
  }
  const reason = failure === undefined ? "it does not support conversion" : errorMessage(failure);
  const message = `The schema (${vendorOf(schema)}) cannot be converted to JSON Schema: ${reason}. ${adviceFor(schema)}`;
  throw new HostError("TOOL_INVALID", message, failure === undefined ? undefined : { cause: failure });
}

/** The library's own validation, or null when the schema has none. Synchronous when the library answers at once. */
export function standardValidator(schema: LibrarySchema): ((args: unknown) => Validated | Promise<Validated>) | null {
  if (!isStandardSchema(schema)) return null;
  const standard = schema["~standard"];
  return (args) => {
    try {
      const result: unknown = standard.validate(args);
      if (!isThenable(result)) return toValidated(result, args);
      return Promise.resolve(result).then((settled) => toValidated(settled, args), refuse);
    } catch {
      // An error of the schema's own code may contain anything; a model must not read it.
      return refuse();
    }
  };
}

function isStandardSchema(schema: LibrarySchema): schema is StandardSchema {
  const standard = (schema as Partial<StandardSchema>)["~standard"];
  return (typeof standard === "object" || typeof standard === "function") && standard !== null && typeof standard.validate === "function";
}

interface Convertible {
  readonly "~standard"?: { readonly vendor?: unknown; readonly jsonSchema?: { input?(options: object): unknown } };
  toJSONSchema?(options: object): unknown;
  toJsonSchema?(): unknown;
}

/** The specified conversion comes first: it guarantees the input form. `unrepresentable` is Zod's option for leaving a part open. */
function* conversionsOf(schema: Convertible, isPartial: boolean): Generator<() => unknown> {
  const options = isPartial ? { unrepresentable: "any" } : {};
  const converter = schema["~standard"]?.jsonSchema;
  if (typeof converter?.input === "function") {
    for (const target of ["draft-2020-12", "draft-07"]) yield () => converter.input?.({ target, libraryOptions: options });
  }
  if (typeof schema.toJSONSchema === "function") yield () => schema.toJSONSchema?.({ io: "input", ...options });
  if (typeof schema.toJsonSchema === "function" && !isPartial) yield () => schema.toJsonSchema?.();
}

/** 2020-12 is the default dialect of a tool's schema; stating it costs tokens in every model request. */
function withoutDefaultDialect(schema: JsonSchema): JsonSchema {
  const { $schema, ...rest } = schema;
  return $schema === "https://json-schema.org/draft/2020-12/schema" ? rest : schema;
}

function vendorOf(schema: Convertible): string {
  const vendor = schema["~standard"]?.vendor;
  return typeof vendor === "string" ? vendor.slice(0, 40) : "unknown library";
}

function adviceFor(schema: Convertible): string {
  if (vendorOf(schema) === "valibot") return 'Wrap it: toStandardJsonSchema(schema) of "@valibot/to-json-schema".';
  if (vendorOf(schema) === "zod") return 'Use Zod 4 (import { z } from "zod") with types that JSON supports.';
  return "Use types that JSON supports, or pass the JSON Schema itself as parameters.";
}

function toValidated(result: unknown, args: unknown): Validated {
  // A failure may be an array with an `issues` member, as ArkType's is.
  if (typeof result !== "object" || result === null) return refuse();
  const { issues, value } = result as { readonly issues?: unknown; readonly value?: unknown };
  if (issues === undefined || issues === null) return "value" in result ? { ok: true, value } : refuse();
  if (!Array.isArray(issues)) return refuse();
  return { ok: false, issues: issues.slice(0, maxIssues).map((issue) => toIssue(issue, args)) };
}

function toIssue(issue: unknown, args: unknown): ArgumentIssue {
  if (!isRecord(issue)) return { path: "", message: "is not valid" };
  const segments = Array.isArray(issue["path"]) ? issue["path"].map((part) => (isRecord(part) ? part["key"] : part) as PropertyKey) : [];
  const path = pathText(segments, args);
  const message = typeof issue["message"] === "string" && issue["message"] !== "" ? issue["message"] : "is not valid";
  // Some libraries begin the message with the path.
  return { path, message: (path !== "" && message.startsWith(`${path} `) ? message.slice(path.length + 1) : message).slice(0, 500) };
}

function refuse(): Validated {
  return { ok: false, issues: [{ path: "", message: "cannot be checked: validating this tool's arguments failed" }] };
}

function hasMethod(value: object, name: string): boolean {
  return name in value && typeof (value as Record<string, unknown>)[name] === "function";
}
