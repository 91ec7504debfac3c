import { isPlainRecord } from "../../../base/read-fields.ts";
import { badParams } from "./rpc-error.ts";

/**
 * What a client sent with a request. Null and absent are the same, since clients in other languages send null for what
 * they leave open. What is not of the type that is asked for is refused by a message that names it.
 */
export class Params {
  readonly method: string;
  readonly #values: Readonly<Record<string, unknown>>;

  constructor(method: string, values: unknown) {
    this.method = method;
    // Some clients send their one object in a list.
    const given = Array.isArray(values) ? values[0] : values;
    this.#values = isPlainRecord(given) ? given : {};
  }

  get(key: string): unknown {
    return Object.hasOwn(this.#values, key) ? (this.#values[key] ?? undefined) : undefined;
  }

  /** Whether it was mentioned at all, be it as null. */
  has(key: string): boolean {
    return Object.hasOwn(this.#values, key);
  }

  /** All that was sent and is not null. */
  all(): Readonly<Record<string, unknown>> {
    return Object.fromEntries(Object.entries(this.#values).filter(([, value]) => value !== null && value !== undefined));
  }

  text(key: string): string {
    return this.optionalText(key) ?? this.#wrong(key, "a text");
  }

  optionalText(key: string): string | undefined {
    const value = this.get(key);
    return value === undefined || typeof value === "string" ? value : this.#wrong(key, "a text");
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
    return isList ? value : this.#wrong(key, "a list of texts");
  }

  record(key: string): Readonly<Record<string, unknown>> {
    return this.optionalRecord(key) ?? this.#wrong(key, "an object");
  }

  optionalRecord(key: string): Readonly<Record<string, unknown>> | undefined {
    const value = this.get(key);
    return value === undefined || isPlainRecord(value) ? value : this.#wrong(key, "an object");
  }

  records(key: string): readonly Readonly<Record<string, unknown>>[] {
    const value = this.get(key) ?? [];
    return Array.isArray(value) && value.every(isPlainRecord) ? value : this.#wrong(key, "a list of objects");
  }

  #wrong(key: string, what: string): never {
    throw badParams(this.method, `${key} must be ${what}.`);
  }
}
