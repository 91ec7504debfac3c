import type { Severity } from "../../base/diagnostic.ts";
import { isRecord, type Json } from "../../base/json.ts";
import type { JsonPath } from "./json-document.ts";

/** Reports a fault at a path of the JSON value that is being read. */
export type JsonComplain = (severity: Severity, code: string, message: string, path: JsonPath) => void;

/** Reads the members of one JSON object by type. A value of another type is reported as an error and treated as absent. */
export interface FieldReader {
  has(key: string): boolean;
  raw(key: string): unknown;
  text(key: string): string | undefined;
  flag(key: string): boolean | undefined;
  object(key: string): Json | undefined;
  oneOf<const T extends string>(key: string, choices: readonly T[]): T | undefined;
  /** An array of any values; undefined if the value is not an array. */
  list(key: string): readonly unknown[] | undefined;
  /** An object with string values; other values are reported and omitted. */
  texts(key: string): Readonly<Record<string, string>> | undefined;
  /** All keys except these. */
  others(known: readonly string[]): readonly string[];
  wrong(key: string, message: string): undefined;
}

/** `code` is the code of every wrong type; `path` is the path of the object. */
export function createFieldReader(object: Json, complain: JsonComplain, options: { code: string; path: JsonPath }): FieldReader {
  const { code, path } = options;
  const raw = (key: string): unknown => (Object.hasOwn(object, key) ? object[key] : undefined);
  const wrong = (key: string, message: string): undefined => {
    complain("error", code, message, [...path, key]);
    return undefined;
  };
  const typed = <T>(key: string, is: (value: unknown) => value is T, expected: string): T | undefined => {
    const value = raw(key);
    if (value === undefined || is(value)) return value;
    return wrong(key, `"${key}" must be ${expected}, not ${describe(value)}.`);
  };
  const reader: FieldReader = {
    has: (key) => raw(key) !== undefined,
    raw,
    wrong,
    text: (key) => typed(key, (value) => typeof value === "string", "text"),
    flag: (key) => typed(key, (value) => typeof value === "boolean", "true or false"),
    object: (key) => typed(key, isRecord, "an object"),
    list: (key) => typed(key, (value) => Array.isArray(value), "an array"),
    oneOf: (key, choices) => typed(key, isOneOf(choices), choices.map((choice) => `"${choice}"`).join(" or ")),
    texts: (key) =>
      onlyTexts(reader.object(key), (name, value) =>
        complain("error", code, `"${name}" in "${key}" must be a string, not ${describe(value)}.`, [...path, key, name]),
      ),
    others: (known) => Object.keys(object).filter((key) => !known.includes(key)),
  };
  return reader;
}

function isOneOf<T extends string>(choices: readonly T[]): (value: unknown) => value is T {
  return (value): value is T => (choices as readonly unknown[]).includes(value);
}

function onlyTexts(map: Json | undefined, wrong: (name: string, value: unknown) => void): Readonly<Record<string, string>> | undefined {
  if (map === undefined) return undefined;
  const texts: Record<string, string> = {};
  for (const [name, value] of Object.entries(map)) {
    if (typeof value === "string") texts[name] = value;
    else wrong(name, value);
  }
  return texts;
}

/** A description of a JSON value for messages: "…, not an array". */
export function describe(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "an array";
  if (typeof value === "string") return value === "" ? "an empty string" : `the string ${JSON.stringify(value.slice(0, 40))}`;
  return typeof value === "object" ? "an object" : String(value);
}

/** The reason that a path of a manifest is refused. */
interface PathFault {
  readonly code: "PATH_OUTSIDE" | "PATH_INVALID";
  readonly message: string;
}

/**
 * The fault of a path that must stay inside a skill's folder, by its text only: symbolic links are checked when it is opened.
 * Manifests use forward slashes on all systems. `up: true` allows `..`, for paths that are relative to a subfolder.
 */
export function pathFault(path: string, options: { up?: boolean } = {}): PathFault | undefined {
  const shown = JSON.stringify(path.slice(0, 200));
  if (path.trim() === "")
    return { code: "PATH_INVALID", message: "A path is empty. Write one relative to the skill's folder, or remove it." };
  if (path.includes("\0")) return { code: "PATH_INVALID", message: `The path ${shown} contains a NUL character. Remove it.` };
  if (/^(?:\/|~|[A-Za-z]:|\\\\|file:)/.test(path)) return outside(`The path ${shown} is absolute.`);
  if (path.includes("\\")) return { code: "PATH_INVALID", message: `The path ${shown} contains a backslash. Use forward slashes.` };
  return options.up || !path.split("/").includes("..") ? undefined : outside(`The path ${shown} contains "..".`);
}

function outside(what: string): PathFault {
  return { code: "PATH_OUTSIDE", message: `${what} Only files inside the skill's folder can be used: write a path relative to it.` };
}
