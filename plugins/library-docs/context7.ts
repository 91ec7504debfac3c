import type { PluginApi } from "skillhost";

export interface Context7Options {
  /** Default: `https://context7.com/api`. */
  readonly baseUrl: string;
  /** Sent as a bearer token. */
  readonly apiKey?: string | undefined;
}

/** Outcome of a request: the result, not found, a message of the service, or no answer. */
export type Asked<Value> =
  | { readonly kind: "found"; readonly value: Value }
  | { readonly kind: "nothing" }
  | { readonly kind: "refused"; readonly status: number; readonly message: string; readonly retryAfter?: string | undefined }
  | { readonly kind: "unreachable"; readonly message: string };

export interface FoundLibrary {
  readonly id: string;
  readonly title: string;
  readonly description: string;
}

const searchTimeout = 10_000;
const docsTimeout = 15_000;
const maxBytes = 2 * 1024 * 1024;
const maxLibraries = 10;
const idPattern = /^\/[^/\s]+\/[^/\s]+(?:[/@][^/\s]+)?$/;

/**
 * Requests libraries and their documentation from the public API of Context7, version 2 (`/v2/libs/search`,
 * `/v2/context`). Never rejects.
 */
export class Context7 {
  readonly #options: Context7Options;
  readonly #fetch: PluginApi["fetch"];

  constructor(options: Context7Options, fetch: PluginApi["fetch"]) {
    this.#options = options;
    this.#fetch = fetch;
  }

  searchAddress(libraryName: string): string {
    return this.#address("/v2/libs/search", { libraryName, query: libraryName });
  }

  docsAddress(libraryId: string, query: string): string {
    return this.#address("/v2/context", { libraryId, query, type: "txt" });
  }

  /** Whether this can be a library id of Context7: `/owner/name`, optionally with a version. */
  isId(id: string): boolean {
    return idPattern.test(id);
  }

  async search(libraryName: string, signal: AbortSignal): Promise<Asked<readonly FoundLibrary[]>> {
    const answer = settled(await this.#get(this.searchAddress(libraryName), searchTimeout, signal));
    if (answer.kind !== "found") return answer;
    const found = librariesIn(parsed(answer.value));
    return found.length === 0 ? { kind: "nothing" } : { kind: "found", value: found };
  }

  /** A moved library is requested once more with its new id. */
  async docs(libraryId: string, query: string, signal: AbortSignal): Promise<Asked<string>> {
    const answer = await this.#get(this.docsAddress(libraryId, query), docsTimeout, signal);
    const last = answer.kind === "moved" ? await this.#get(this.docsAddress(answer.to, query), docsTimeout, signal) : answer;
    const found = settled(last);
    return found.kind === "found" && found.value.trim() === "" ? { kind: "nothing" } : found;
  }

  #address(path: string, query: Readonly<Record<string, string>>): string {
    return `${this.#options.baseUrl.replace(/\/+$/, "")}${path}?${new URLSearchParams(query)}`;
  }

  async #get(url: string, timeout: number, signal: AbortSignal): Promise<Answer> {
    const { apiKey } = this.#options;
    const answer = await this.#fetch({
      url,
      method: "GET",
      headers: { accept: "application/json, text/plain", ...(apiKey !== undefined && { authorization: `Bearer ${apiKey}` }) },
      signal: AbortSignal.any([signal, AbortSignal.timeout(timeout)]),
      maxBytes,
      // The body, not a header, contains the new id of a moved library.
      maxRedirects: 0,
    });
    return answer.kind === "failed" ? { kind: "unreachable", message: answer.message } : judge(answer);
  }
}

type Answer = Asked<string> | { readonly kind: "moved"; readonly to: string };
type Response = Extract<Awaited<ReturnType<PluginApi["fetch"]>>, { kind: "response" }>;

function judge({ status, text, headers }: Response): Answer {
  if (status === 200) return { kind: "found", value: text };
  if (status === 404) return { kind: "nothing" };
  const body = parsed(text);
  const to = field(body, "redirectUrl");
  if (status === 301 && to !== undefined && idPattern.test(to)) return { kind: "moved", to };
  const message = field(body, "message") ?? field(body, "error") ?? fallbackWords(status);
  return { kind: "refused", status, message: message.slice(0, 300), retryAfter: headers["retry-after"]?.slice(0, 40) };
}

function settled(answer: Answer): Asked<string> {
  return answer.kind === "moved" ? { kind: "refused", status: 301, message: `It has moved to ${answer.to}.` } : answer;
}

function fallbackWords(status: number): string {
  if (status === 202) return "The library is still being prepared.";
  return status === 429 ? "There were too many requests." : "There was no explanation.";
}

/** Earlier answers were a bare list with `name` instead of `title`. */
function librariesIn(body: unknown): readonly FoundLibrary[] {
  const list = Array.isArray(body) ? body : (body as { readonly results?: unknown } | null | undefined)?.results;
  if (!Array.isArray(list)) return [];
  return list.flatMap(libraryIn).slice(0, maxLibraries);
}

function libraryIn(entry: unknown): FoundLibrary[] {
  const id = field(entry, "id");
  if (id === undefined || !idPattern.test(id)) return [];
  const title = field(entry, "title") ?? field(entry, "name") ?? id;
  return [{ id, title: oneLine(title), description: oneLine(field(entry, "description") ?? "") }];
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, " ").trim().slice(0, 300);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The page of a gateway, not JSON.
    return undefined;
  }
}

function field(value: unknown, name: string): string | undefined {
  if (typeof value !== "object" || value === null || !Object.hasOwn(value, name)) return undefined;
  const found: unknown = (value as Record<string, unknown>)[name];
  return typeof found === "string" && found !== "" ? found : undefined;
}
