import type { Client, RequestOptions as SdkRequestOptions, StandardSchemaV1 } from "@modelcontextprotocol/client";
import { HostError } from "../../base/errors.ts";
import { isPlainRecord } from "../../base/read-fields.ts";
import { faultOfAnswer } from "./answer-shape.ts";
import type { CallRequestOptions } from "./connection.ts";
import { httpStatusOf, isUnreachable, toConnectionError } from "./connection-errors.ts";
import { longestTimeout } from "./held-timer.ts";
import type { InFlight } from "./in-flight.ts";
import { answerInput, isInputRequired, mostRounds } from "./input-rounds.ts";
import type { ObservedTransport } from "./observed-transport.ts";
import { PendingRequest, type RequestStop, type StoppedRequest } from "./pending-request.ts";
import type { Sdk } from "./sdk.ts";
import type { ServerLink } from "./server-link.ts";
import type { ServerRequests } from "./server-requests.ts";

type Json = Readonly<Record<string, unknown>>;

export interface ExchangeParts {
  readonly sdk: Sdk;
  readonly serverName: string;
  readonly client: Client;
  readonly link: ServerLink;
  readonly transport: ObservedTransport;
  readonly inFlight: InFlight;
  readonly requests: ServerRequests;
  /** Sent with every request as part of its `_meta`. */
  readonly meta: Json;
}

/** One request and what goes with it. */
export interface ExchangeRequest {
  readonly method: string;
  readonly params: Json;
  readonly options: CallRequestOptions;
  /** Milliseconds without an answer or progress; undefined: only the signal ends it. */
  readonly timeout: number | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** The SDK's schema for whatever came: it is looked at where it is used. */
const anything: StandardSchemaV1<unknown, unknown> = {
  "~standard": { version: 1, vendor: "skillhost", validate: (value) => ({ value }) },
};

/** Sends requests and gets their answers, over the SDK's client. */
export class Exchange {
  readonly #parts: ExchangeParts;
  #tokens = 0;
  /** Why nothing more can come of the connection; it ends when what is in flight has heard its own answer. */
  #gone: string | undefined;
  #graceTimer: NodeJS.Timeout | undefined;

  constructor(parts: ExchangeParts) {
    this.#parts = parts;
  }

  /** The result as it came. As many messages go out as the server wants input in between. Rejects with HostError. */
  async request({ method, params, options, timeout, headers }: ExchangeRequest): Promise<Json> {
    const { link, serverName, inFlight, transport } = this.#parts;
    const over = link.end?.message ?? this.#gone;
    if (over !== undefined) throw new HostError("MCP_NOT_RUN", over);
    if (options.signal?.aborted === true) throw new HostError("MCP_CANCELLED", `${method} was cancelled before it went to ${serverName}.`);
    const pending = new PendingRequest(method, ++this.#tokens, options, timeout);
    inFlight.add(pending);
    try {
      const full = { ...params, _meta: this.#meta(params["_meta"], options.meta, pending.token) };
      return await this.#rounds(pending, full, headers);
    } catch (error) {
      throw this.#explain(error, pending);
    } finally {
      pending[Symbol.dispose]();
      inFlight.delete(pending);
      transport.forget(pending);
      if (this.#gone !== undefined && inFlight.isEmpty) this.#lose();
    }
  }

  /** Ends the connection when an error says that nothing more can come of it, and nothing is in flight. */
  loseIfGone(error: unknown): void {
    this.#gone ??= this.#goneBy(error);
    if (this.#gone !== undefined && this.#parts.inFlight.isEmpty) this.#lose();
  }

  /** What an error says about the connection as a whole; undefined: nothing. */
  #goneBy(error: unknown): string | undefined {
    const { link, serverName, sdk } = this.#parts;
    if (isUnreachable(error)) return `The MCP server ${serverName} cannot be reached.`;
    if (link.sessionId === undefined || httpStatusOf(error, sdk) !== 404) return undefined;
    return `The MCP server ${serverName} has forgotten the session.`;
  }

  // Closing it would tell all requests in flight the same; each of them is about to hear whether the server took it up.
  #loseSoon(): void {
    this.#graceTimer ??= setTimeout(() => this.#lose(), lastAnswers).unref();
  }

  #lose(): void {
    clearTimeout(this.#graceTimer);
    this.#parts.link.lose(this.#gone!);
  }

  async #rounds(pending: PendingRequest, params: Json, headers: ExchangeRequest["headers"]): Promise<Json> {
    let input: Json = {};
    for (let round = 0; round <= mostRounds; round++) {
      const result = await this.#send(pending, { ...params, ...input }, headers);
      if (!isInputRequired(result)) return this.#check(pending.method, pending.answer);
      input = await answerInput(result, this.#parts.requests, pending);
    }
    throw new HostError("MCP_ANSWER", `The MCP server ${this.#parts.serverName} asked for input ${mostRounds} times and did not answer.`);
  }

  #send(pending: PendingRequest, params: Json, headers: ExchangeRequest["headers"]): Promise<unknown> {
    const { client, transport } = this.#parts;
    // The SDK's own deadline does not know of progress that it does not see, nor of people who are asked.
    const options: SdkRequestOptions = { signal: pending.signal, timeout: longestTimeout, allowInputRequired: true, headers };
    return transport.sendFor(pending, () => client.request({ method: pending.method, params }, anything, options));
  }

  #check(method: string, answer: unknown): Json {
    const fault = faultOfAnswer(method, answer);
    if (fault === undefined) return answer as Json;
    throw new HostError("MCP_ANSWER", `The MCP server ${this.#parts.serverName} gave no valid answer to ${method}: ${fault}.`);
  }

  #meta(own: unknown, added: Json | undefined, progressToken: number): Json {
    return { ...this.#parts.meta, ...(isPlainRecord(own) ? own : undefined), ...added, progressToken };
  }

  #explain(error: unknown, pending: PendingRequest): HostError {
    const { link, serverName, sdk } = this.#parts;
    if (pending.stop !== undefined) return stopError(pending.method, pending.stop, serverName);
    if (link.end !== undefined) return new HostError("MCP_CLOSED", link.end.message, { cause: error });
    const gone = this.#goneBy(error);
    if (gone !== undefined) {
      this.#gone ??= gone;
      this.#loseSoon();
      return new HostError(pending.wasHeard ? "MCP_CLOSED" : "MCP_NOT_RUN", gone, { cause: error });
    }
    return toConnectionError(error, sdk, serverName);
  }
}

/** Milliseconds that requests in flight may still take when the connection is known to be over. */
const lastAnswers = 1000;

const stopCodes: Readonly<Record<RequestStop, string>> = {
  timeout: "MCP_TIMEOUT",
  cancelled: "MCP_CANCELLED",
  broken: "MCP_CLOSED",
  unreadable: "MCP_ANSWER",
};

function stopError(method: string, { why, message }: StoppedRequest, serverName: string): HostError {
  return new HostError(stopCodes[why], `${method} of the MCP server ${serverName} was given up: ${message}.`);
}
