import { isRecord } from "../base/json.ts";
import { isSecretName, redactText } from "../base/logger.ts";

const removed = "[redacted]";
// Shorter ones occur in other texts by chance.
const shortestSecret = 6;

/** Removes credentials from what is recorded: given values, values under names of secrets, and texts with the form of a credential. */
export class RecordingCleaner {
  readonly #secrets: readonly string[];

  /** `secrets`: values that must not be recorded, beside those of environment variables with names such as `API_KEY`. */
  constructor(secrets: readonly string[] = []) {
    const ofEnvironment = Object.entries(process.env).flatMap(([name, value = ""]) => (isSecretName(name) ? [value] : []));
    const known = [...ofEnvironment.filter(({ length }) => length >= shortestSecret), ...secrets.filter((secret) => secret !== "")];
    const forms = known.flatMap((secret) => [secret, encodeURIComponent(secret), Buffer.from(secret).toString("base64")]);
    // The longest first: one may contain another.
    this.#secrets = [...new Set(forms)].sort((a, b) => b.length - a.length || (a < b ? -1 : 1));
  }

  clean<T>(value: T): T {
    return this.#clean(value) as T;
  }

  #clean(value: unknown): unknown {
    if (typeof value === "string") return this.#cleanText(value);
    if (Array.isArray(value)) return value.map((item) => this.#clean(item));
    if (!isRecord(value)) return value;
    return Object.fromEntries(
      Object.entries(value).map(([key, item]) => [this.#cleanText(key), isSecretName(key) && isValue(item) ? removed : this.#clean(item)]),
    );
  }

  #cleanText(text: string): string {
    const known = this.#secrets.reduce((cleaned, secret) => cleaned.replaceAll(secret, removed), text);
    const pairs = known.replace(pair, (whole, before: string, name: string) =>
      isSecretName(name) ? `${before}${name}=${removed}` : whole,
    );
    const members = pairs.replace(member, (whole, name: string) => (isSecretName(name) ? `${name}"${removed}"` : whole));
    return redactText(members);
  }
}

/** Of a query or a form: `&api_key=…`. */
const pair = /([?&;]|^)([\w.[\]-]{1,100})=[^&;#\s]+/g;
/** Of JSON within a text: `"token": "…"`. */
const member = /("[^"\\]{1,100}"\s{0,5}:\s{0,5})"(?:[^"\\]|\\.)*"/g;

/** Numbers such as `total_tokens`, and schemas with properties of such a name, are not credentials. */
function isValue(value: unknown): boolean {
  return typeof value === "string" && value !== "";
}
