import { ErrorCodes, ResponseError } from "vscode-jsonrpc/node.js";
import { errorMessage, HostError } from "../../../base/errors.ts";
import { isRecord } from "../../../base/json.ts";

/**
 * The parameters of a request. Null counts as absent, since clients in other languages send null for missing values. A value of
 * the wrong type is refused by a message that names it.
 */
export class Params {
  readonly method: string;
  readonly #values: Readonly<Record<string, unknown>>;

  constructor(method: string, values: unknown) {
    this.method = method;
    // Some clients send their parameters in an array.
    const given = Array.isArray(values) ? values[0] : values;
    this.#values = isRecord(given) ? given : {};
  }

  get(key: string): unknown {
    return Object.hasOwn(this.#values, key) ? (this.#values[key] ?? undefined) : undefined;
  }

  /** Whether the parameter was sent, even as null. */
  has(key: string): boolean {
    return Object.hasOwn(this.#values, key);
  }

  /** All parameters that are not null. */
  all(): Readonly<Record<string, unknown>> {
    return Object.fromEntries(Object.entries(this.#values).filter(([, value]) => value !== null && value !== undefined));
  }

  text(key: string): string {
    return this.optionalText(key) ?? this.#wrong(key, "a string");
  }

  optionalText(key: string): string | undefined {
    const value = this.get(key);
    return value === undefined || typeof value === "string" ? value : this.#wrong(key, "a string");
  }

  flag(key: string): boolean {
    return this.optionalFlag(key) ?? false;
  }

  optionalFlag(key: string): boolean | undefined {
    const value = this.get(key);
    return value === undefined || typeof value === "boolean" ? value : this.#wrong(key, "true or false");
  }

  optionalNumber(key: string): number | undefined {
    const value = this.get(key);
    return value === undefined || (typeof value === "number" && Number.isFinite(value)) ? value : this.#wrong(key, "a number");
  }

  texts(key: string): readonly string[] {
    return this.optionalTexts(key) ?? [];
  }

  optionalTexts(key: string): readonly string[] | undefined {
    const value = this.get(key);
    if (value === undefined) return undefined;
    const isList = Array.isArray(value) && value.every((item): item is string => typeof item === "string");
    return isList ? value : this.#wrong(key, "an array of strings");
  }

  record(key: string): Readonly<Record<string, unknown>> {
    return this.optionalRecord(key) ?? this.#wrong(key, "an object");
  }

  optionalRecord(key: string): Readonly<Record<string, unknown>> | undefined {
    const value = this.get(key);
    return value === undefined || isRecord(value) ? value : this.#wrong(key, "an object");
  }

  records(key: string): readonly Readonly<Record<string, unknown>>[] {
    const value = this.get(key) ?? [];
    return Array.isArray(value) && value.every(isRecord) ? value : this.#wrong(key, "an array of objects");
  }

  #wrong(key: string, what: string): never {
    throw badParams(this.method, `${key} must be ${what}.`);
  }
}

/** The error for parameters that a method does not take. */
export function badParams(method: string, problem: string): Error {
  return new ResponseError(ErrorCodes.InvalidParams, `Request ${method} failed with message: ${problem}`);
}

/** The error for a method that does not exist or is not supported. */
export function notSupported(message: string): Error {
  return new ResponseError(ErrorCodes.MethodNotFound, message);
}

/** The error for a method, or a use of it, that is refused for a reason. */
export function refused(method: string, reason: string): Error {
  return notSupported(`${method} is not supported by skillhost: ${reason}`);
}

/** Converts an exception into the error that clients of the Copilot SDK evaluate. */
export function toRpcError(method: string, error: unknown): Error {
  if (error instanceof ResponseError) return error;
  const data = error instanceof HostError ? { code: error.code } : undefined;
  return new ResponseError(ErrorCodes.InternalError, `Request ${method} failed with message: ${errorMessage(error)}`, data);
}
