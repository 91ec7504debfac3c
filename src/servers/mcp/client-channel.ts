import type { Server, ServerContext } from "@modelcontextprotocol/server";
import { toError } from "../../base/errors.ts";
import type { Logger } from "../../base/logger.ts";
import type { AskHandler, AskHandlers, AskInvocation } from "../../session/clients/client-requests.ts";
import { type AskKind, noResult } from "../../session/clients/request-kinds.ts";
import type { Progress } from "../../tools/tool.ts";
import { type ClientQuestion, type DeclaredCapabilities, missingCapabilities, toClientQuestion } from "./client-questions.ts";

/** Runs the work for a request with a channel to the client that sent it. */
export type WithClient = <T extends object>(
  request: IncomingRequest,
  context: ServerContext,
  work: (channel: ClientChannel) => Promise<T>,
) => Promise<T>;

/** Identifies a request among those of its client. */
export interface IncomingRequest {
  readonly method: string;
  /** The name of the tool or prompt, or the URI of the resource. */
  readonly name: string;
  readonly arguments: unknown;
}

/** The options that all channels of one endpoint share. */
export interface ClientChannelOptions {
  /** Whether several clients share the session. */
  readonly isShared: boolean;
  /** Whether clients are asked for permission. */
  readonly asksPermission: boolean;
}

/** A question for the client. */
export interface AskedQuestion {
  readonly kind: AskKind;
  readonly question: ClientQuestion;
  /** The key that the tool chose for the answer. */
  readonly key: string | undefined;
  /** Fires when the answer is no longer needed. */
  readonly signal: AbortSignal;
}

/**
 * The channel to a client during the work for one of its requests: cancellation, questions and progress. Most calls ask and
 * report nothing, so everything for that is created on first use.
 */
export abstract class ClientChannel {
  /** Fires when the client has cancelled the request or disconnected. */
  abstract readonly signal: AbortSignal;
  readonly #options: ClientChannelOptions;
  #report: ProgressReport | undefined;
  #missing: DeclaredCapabilities | undefined;
  #lackedPermission = false;

  constructor(options: ClientChannelOptions) {
    this.#options = options;
  }

  /** The request being handled. Undefined: there is none at the moment. */
  protected abstract readonly context: ServerContext | undefined;
  /** The capabilities that the client has declared. */
  protected abstract readonly capabilities: DeclaredCapabilities;
  /** Returns the client's answer, as the question reads it. Called only for questions that the client supports. */
  protected abstract ask(asked: AskedQuestion): Promise<unknown>;

  /** The handlers that ask the client. */
  get answers(): AskHandlers {
    return this as AskHandlers;
  }

  get onProgress(): ReportProgress {
    this.#report ??= new ProgressReport(() => this.context);
    const report = this.#report;
    return (update, call) => report.send(update, call);
  }

  /** The undeclared capabilities that questions would have needed. */
  get missing(): DeclaredCapabilities | undefined {
    return this.#missing;
  }

  /** Whether a call needed permission and the client could not be asked. */
  get lackedPermission(): boolean {
    return this.#lackedPermission;
  }

  get permission(): AskHandler<"permission"> {
    const handler: AskHandler<"permission"> = (data, by) => this.#handle("permission", data, by);
    // Undefined: the session asks its attached clients at once.
    return (this.#options.asksPermission ? handler : undefined) as AskHandler<"permission">;
  }

  get elicitation(): AskHandler<"elicitation"> {
    return (data, by) => this.#handle("elicitation", data, by);
  }

  get sampling(): AskHandler<"sampling"> {
    return (data, by) => this.#handle("sampling", data, by);
  }

  get roots(): AskHandler<"roots"> {
    return (data, by) => this.#handle("roots", data, by);
  }

  get userInput(): AskHandler<"userInput"> {
    return (data, by) => this.#handle("userInput", data, by);
  }

  #handle<K extends AskKind>(kind: K, data: Parameters<AskHandler<K>>[0], { key, signal }: AskInvocation): unknown {
    const question = toClientQuestion(kind, data, this.#options.isShared);
    if (question === undefined) return noResult;
    const lacking = missingCapabilities(question.requires, this.capabilities);
    if (lacking === undefined) return this.ask({ kind, question, key, signal });
    // A call without permission is denied. Only for questions of the tool itself can the client declare the capability and retry.
    if (kind === "permission") this.#lackedPermission = true;
    else this.#missing = { ...this.#missing, ...lacking };
    return noResult;
  }
}

/** Long enough for a user. The signal of the call can end the wait earlier. */
const answerTimeoutMs = 600_000;

/**
 * Channels of protocol revisions up to 2025-11-25: while the server handles a request of the client, it sends its own requests on
 * the stream of that request.
 */
export function createRequestChannels(server: Server, options: ClientChannelOptions, log: Logger): WithClient {
  const client = { ...options, server, log };
  return (_request, context, work) => work(new ServerRequestChannel(context, client));
}

interface PushClient extends ClientChannelOptions {
  readonly server: Server;
  readonly log: Logger;
}

class ServerRequestChannel extends ClientChannel {
  protected readonly context: ServerContext;
  readonly #client: PushClient;

  constructor(context: ServerContext, client: PushClient) {
    super(client);
    this.context = context;
    this.#client = client;
  }

  get signal(): AbortSignal {
    return this.context.mcpReq.signal;
  }

  protected get capabilities(): DeclaredCapabilities {
    return this.#client.server.getClientCapabilities() ?? {};
  }

  protected async ask({ question, kind, signal }: AskedQuestion): Promise<unknown> {
    try {
      const options = { signal, timeout: answerTimeoutMs, resetTimeoutOnProgress: true };
      return question.read(await this.context.mcpReq.send(question.request, options));
    } catch (error) {
      this.#client.log.warning("A client did not answer a request.", { kind, error: toError(error) });
      throw error;
    }
  }
}

type ReportProgress = (update: Progress, call?: { readonly toolName: string }) => void;

// Much smaller than any step of a tool, and large enough to be exact in a sum.
const smallStep = 2 ** -16;

/** Sends the progress of a request if the client wants it, and log messages at the level that the client chose. */
class ProgressReport {
  readonly #context: () => ServerContext | undefined;
  #last = -1;
  #isCounted = false;

  /** `context` returns the request being handled. Without one, nothing is sent. */
  constructor(context: () => ServerContext | undefined) {
    this.#context = context;
  }

  /** Ignores failures: the client has disconnected, which the signal of the work reports. */
  send({ level, message, data, progress, total }: Progress, call?: { readonly toolName: string }): void {
    const mcpReq = this.#context()?.mcpReq;
    if (mcpReq === undefined) return;
    if (level !== undefined) {
      const line = data === undefined ? message : message === undefined ? data : { message, data };
      mcpReq.log(level, line ?? "", call?.toolName).catch(() => {});
      return;
    }
    const progressToken = mcpReq._meta?.progressToken;
    if (typeof progressToken !== "string" && typeof progressToken !== "number") return;
    const isHigher = progress !== undefined && Number.isFinite(progress) && progress > this.#last;
    if (message === undefined && !isHigher) return;
    const params = {
      progressToken,
      progress: this.#next(isHigher ? progress : undefined),
      ...(total !== undefined && { total }),
      ...(message !== undefined && { message }),
    };
    mcpReq.notify({ method: "notifications/progress", params }).catch(() => {});
  }

  /** The specification requires that progress increases with every notification, even with those that only have a message. */
  #next(progress: number | undefined): number {
    if (progress !== undefined) this.#isCounted = true;
    this.#last = progress ?? Math.max(this.#last + (this.#isCounted ? smallStep : 1), 0);
    return this.#last;
  }
}
