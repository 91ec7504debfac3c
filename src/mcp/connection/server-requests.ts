import { basename } from "node:path";
import { pathToFileURL } from "node:url";
import { errorMessage } from "../../base/errors.ts";
import { isRecord, type Json } from "../../base/json.ts";
import type { Logger } from "../../base/logger.ts";
import type { Asks, ToolContext } from "../../tools/tool.ts";
import type { ServerAnswers, ServerRequestPolicy } from "./connection.ts";

interface ServerRequestOptions {
  readonly serverName: string;
  readonly workingDirectory: string;
  readonly log: Logger;
  readonly policy: ServerRequestPolicy | undefined;
  readonly answers: ServerAnswers | undefined;
  readonly extensions: Readonly<Record<string, object>> | undefined;
}

/** The call that a server's request belongs to; `none`: it belongs to no call; `unclear`: to one of several. */
export type Asker = { readonly kind: "call"; readonly context: ToolContext; hold(): Disposable } | { readonly kind: "none" | "unclear" };

/** An error to return to the server. */
class RequestRefusal extends Error {
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.name = "RequestRefusal";
    this.code = code;
  }
}

export const requestMethods = ["elicitation/create", "sampling/createMessage", "roots/list"] as const;
type RequestMethod = (typeof requestMethods)[number];

const invalidParams = -32602;
const methodNotFound = -32601;
// What the specification shows for a user who refuses sampling.
const rejected = -1;

/** Answers requests of a server, by policy and through the call that they belong to. */
export class ServerRequests {
  readonly #options: ServerRequestOptions;

  constructor(options: ServerRequestOptions) {
    this.#options = options;
  }

  /** The capabilities that are declared to the server. */
  get capabilities(): { [capability: string]: object } {
    const { policy, extensions } = this.#options;
    return {
      roots: {},
      ...(policy?.elicitation !== "deny" && { elicitation: { form: { applyDefaults: true }, url: {} } }),
      ...(this.#maySample && { sampling: { tools: {} } }),
      ...(extensions !== undefined && { extensions }),
    };
  }

  offers(method: RequestMethod): boolean {
    if (method === "elicitation/create") return this.#options.policy?.elicitation !== "deny";
    return method === "roots/list" || this.#maySample;
  }

  /**
   * @param key The key of the answer, when the server asks several things at once.
   * @throws an error with a `code`, to return to the server instead of a result.
   */
  async answer(method: string, params: unknown, asker: Asker, key?: string): Promise<Json> {
    if (!requestMethods.some((known) => known === method && this.offers(known))) {
      throw new RequestRefusal(methodNotFound, `${method.slice(0, 100)} is not supported by this client.`);
    }
    if (method === "roots/list") {
      // The working directory and nothing else, whatever the server asks for.
      const folder = asker.kind === "call" ? asker.context.invocation.workingDirectory : this.#options.workingDirectory;
      return { roots: [{ uri: pathToFileURL(folder).href, name: basename(folder) || folder }] };
    }
    if (method === "elicitation/create") {
      const request = readElicitation(params);
      if (typeof request === "string") throw new RequestRefusal(invalidParams, `Invalid elicitation: ${request}.`);
      const answer = await this.#askPerson(request, asker, key);
      return toElicitResult(request, answer);
    }
    return await this.#sample(params, asker, key);
  }

  get #maySample(): boolean {
    return (this.#options.policy?.sampling ?? "deny") !== "deny";
  }

  async #askPerson(request: Elicitation, asker: Asker, key: string | undefined): Promise<ElicitationAnswer> {
    const { answers } = this.#options;
    if (asker.kind !== "call" && (asker.kind === "unclear" || answers?.elicitation === undefined)) return { action: "decline" };
    try {
      if (asker.kind !== "call") return (await answers?.elicitation?.(request)) ?? { action: "decline" };
      return await held(asker, () => asker.context.ask("elicitation", request, ...keyOption(key)));
    } catch (error) {
      this.#note("elicitation", error);
      return { action: "cancel" };
    }
  }

  async #sample(params: unknown, asker: Asker, key: string | undefined): Promise<Json> {
    const fault = faultOfSampling(params);
    if (fault !== undefined) throw new RequestRefusal(invalidParams, `Invalid sampling request: ${fault}.`);
    const { answers } = this.#options;
    const data = params as Json;
    try {
      const answer =
        asker.kind === "call"
          ? await held(asker, () => asker.context.ask("sampling", data, ...keyOption(key)))
          : asker.kind === "none" && (await answers?.sampling?.(data));
      if (isSamplingResult(answer)) return answer;
    } catch (error) {
      this.#note("sampling", error);
    }
    throw new RequestRefusal(rejected, "The sampling request was rejected.");
  }

  #note(what: string, error: unknown): void {
    this.#options.log.info(`A question of the MCP server ${this.#options.serverName} (${what}) was not answered: ${errorMessage(error)}`);
  }
}

async function held<T>(asker: Extract<Asker, { kind: "call" }>, ask: () => Promise<T>): Promise<T> {
  const hold = asker.hold();
  try {
    return await ask();
  } finally {
    hold[Symbol.dispose]();
  }
}

function keyOption(key: string | undefined): [] | [{ readonly key: string }] {
  return key === undefined ? [] : [{ key }];
}

function faultOfSampling(params: unknown): string | undefined {
  if (!isRecord(params)) return "the parameters are not an object";
  const { messages, maxTokens } = params;
  if (!Array.isArray(messages) || messages.length === 0 || !messages.every(isRecord)) return "it has no messages";
  if (typeof maxTokens !== "number" || !(maxTokens > 0)) return "its maxTokens is not a positive number";
  return undefined;
}

function isSamplingResult(value: unknown): value is Json {
  if (!isRecord(value)) return false;
  const { role, model, content } = value;
  return (role === "assistant" || role === "user") && typeof model === "string" && content !== undefined;
}

type Elicitation = Asks["elicitation"]["data"];
type ElicitationAnswer = Asks["elicitation"]["answer"];

const longestRequest = 100_000;

/** Reads the parameters of `elicitation/create`; a string says what is wrong with them. @internal Exported for tests. */
export function readElicitation(params: unknown): Elicitation | string {
  if (!isRecord(params)) return "the parameters are not an object";
  const { message, mode, url, requestedSchema } = params;
  if (typeof message !== "string") return "it has no message";
  if (JSON.stringify(params).length > longestRequest) return "it is too long";
  if (mode === "url") return isWebAddress(url) ? { message, url } : "its url is not an http or https URL";
  if (mode !== undefined && mode !== "form") return "its mode is neither form nor url";
  if (!isFormSchema(requestedSchema)) return "its requestedSchema is not an object schema with properties";
  return { message, requestedSchema };
}

/**
 * The answer in the protocol's form. Fields of an accepted form that are missing get the schema's defaults, and values
 * that a form cannot hold are removed.
 * @internal Exported for tests.
 */
export function toElicitResult(request: Elicitation, answer: ElicitationAnswer): Json {
  const { action, content } = answer;
  if (action !== "accept" && action !== "decline") return { action: "cancel" };
  if (action === "decline" || request.requestedSchema === undefined) return { action };
  const given = isRecord(content) ? Object.entries(content).filter(([, value]) => isFormValue(value)) : [];
  // Object.fromEntries creates own properties, even for "__proto__".
  return { action, content: Object.fromEntries([...defaultsOf(request.requestedSchema), ...given]) };
}

function defaultsOf(schema: Json): [string, unknown][] {
  const properties = Object.entries(schema["properties"] as Json);
  return properties.flatMap(([name, property]) =>
    isRecord(property) && isFormValue(property["default"]) ? [[name, property["default"]]] : [],
  );
}

function isFormSchema(value: unknown): value is Json {
  return isRecord(value) && value["type"] === "object" && isRecord(value["properties"]);
}

function isFormValue(value: unknown): boolean {
  if (Array.isArray(value)) return value.every((item) => typeof item === "string");
  return typeof value === "string" || typeof value === "boolean" || (typeof value === "number" && Number.isFinite(value));
}

function isWebAddress(value: unknown): value is string {
  return typeof value === "string" && URL.canParse(value) && /^https?:$/.test(new URL(value).protocol);
}
