import { HostError } from "./errors.ts";
import { isRecord } from "./json.ts";

/** The reader of each field of an options object. `path` names the field in errors. Throws `FieldError` by `mustBe`. */
export type FieldReaders<T> = { readonly [K in keyof T]-?: (value: unknown, path: string) => Exclude<T[K], undefined> };

/**
 * Reads an object by a table of its fields. Every field must be known and of its type; undefined counts as absent.
 * @throws HostError with `code`, naming the unknown or invalid field.
 */
export function readFields<T extends object>(value: unknown, what: string, code: string, readers: FieldReaders<T>): T {
  try {
    return fieldsOf(value, what, readers, (key) => key);
  } catch (error) {
    throw error instanceof FieldError ? new HostError(code, `${error.message}.`) : error;
  }
}

/** A reader for a nested object. Its errors contain the full path: `largeOutput.enabled`. */
export function fieldsReader<T extends object>(readers: FieldReaders<T>): (value: unknown, path: string) => T {
  return (value, path) => fieldsOf(value, path, readers, (key) => `${path}.${key}`);
}

export function readText(value: unknown, path: string): string {
  return typeof value === "string" && value !== "" && !value.includes("\0") ? value : mustBe(path, "a non-empty string");
}

export function readTexts(value: unknown, path: string): readonly string[] {
  if (!Array.isArray(value)) return mustBe(path, "an array of strings");
  const texts = value.map((text: unknown, index) => (typeof text === "string" ? text : mustBe(`${path}[${index}]`, "a string")));
  return Object.freeze(texts);
}

export function readFlag(value: unknown, path: string): boolean {
  return typeof value === "boolean" ? value : mustBe(path, "true or false");
}

/** A plain object or another record, taken as it is. */
export function readRecord(value: unknown, path: string): Readonly<Record<string, unknown>> {
  return isRecord(value) ? value : mustBe(path, "an object");
}

export function readPositive(value: unknown, path: string): number {
  return typeof value === "number" && value > 0 ? value : mustBe(path, "a positive number");
}

export function readCallback<F extends (...args: never) => unknown>(value: unknown, path: string): F {
  return typeof value === "function" ? (value as F) : mustBe(path, "a function");
}

export function readOneOf<T extends string>(allowed: readonly T[]): (value: unknown, path: string) => T {
  return (value, path) => {
    if (typeof value === "string" && (allowed as readonly string[]).includes(value)) return value as T;
    return mustBe(path, `one of ${allowed.map((word) => JSON.stringify(word)).join(", ")}`);
  };
}

export function mustBe(path: string, what: string): never {
  throw new FieldError(`${path} must be ${what}`);
}

class FieldError extends Error {}

function fieldsOf<T extends object>(value: unknown, what: string, readers: FieldReaders<T>, pathOf: (key: string) => string): T {
  if (!isRecord(value)) return mustBe(what, "an object");
  const read: Record<string, unknown> = {};
  for (const key of Object.keys(value)) {
    const path = pathOf(key);
    if (!Object.hasOwn(readers, key)) {
      const among = path === key ? `the ${what}` : `the fields of ${what}`;
      throw new FieldError(`${path} is not one of ${among}: ${Object.keys(readers).join(", ")}`);
    }
    const field = value[key];
    read[key] = field === undefined ? undefined : readers[key as keyof T](field, path);
  }
  return Object.freeze(read) as T;
}
