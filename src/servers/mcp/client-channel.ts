import type { Server, ServerContext } from "@modelcontextprotocol/server";
import { toError } from "../../base/errors.ts";
import type { Logger } from "../../base/logger.ts";
import type { AskHandler, AskHandlers, AskInvocation } from "../../session/clients/client-requests.ts";
import { type AskKind, noResult } from "../../session/clients/request-kinds.ts";
import type { Progress } from "../../tools/tool.ts";
import { type ClientQuestion, type DeclaredCapabilities, missingCapabilities, toClientQuestion } from "./client-questions.ts";

/** Has the work for a request done in a conversation with the client that sent it. */
export type WithClient = <T extends object>(
  request: IncomingRequest,
  context: ServerContext,
  work: (conversation: ClientChannel) => Promise<T>,
) => Promise<T>;

/** What tells one request from others, beside the client. */
export interface IncomingRequest {
  readonly method: string;
  /** The tool, prompt or resource. */
  readonly name: string;
  readonly arguments: unknown;
}

/** What conversations with one client, or with clients of one face, have in common. */
export interface ClientChannelOptions {
  /** Several clients share the session behind it. */
  readonly isShared: boolean;
  /** False: permissions are somebody else's to give. */
  readonly asksPermission: boolean;
}

/** A question on its way to the client. */
export interface AskedQuestion {
  readonly kind: AskKind;
  readonly question: ClientQuestion;
  /** What the tool wants the answer filed under. */
  readonly key: string | undefined;
  /** Fires when nobody waits for the answer any more. */
  readonly signal: AbortSignal;
}

/**
 * What the work for one request of a client is given: how to end, whom to ask, whom to tell. Most calls ask nothing and
 * tell nothing, so that whatever is for that is made when it is first wanted.
 */
export abstract class ClientChannel {
  /** Fires when the client has cancelled the request or is gone. */
  abstract readonly signal: AbortSignal;
  readonly #options: ClientChannelOptions;
  #report: ProgressReport | undefined;
  #missing: DeclaredCapabilities | undefined;
  #lackedPermission = false;

  constructor(options: ClientChannelOptions) {
    this.#options = options;
  }

  /** The request of now; undefined between two. */
  protected abstract readonly context: ServerContext | undefined;
  /** What the client says that it can do. */
  protected abstract readonly capabilities: DeclaredCapabilities;
  /** Gives what the client answers, as the question reads it. Called only for what the client can be asked. */
  protected abstract ask(asked: AskedQuestion): Promise<unknown>;

  /** The client, as the one who is asked what the work wants to know. */
  get answers(): AskHandlers {
    return this as AskHandlers;
  }

  get onProgress(): ReportProgress {
    this.#report ??= new ProgressReport(() => this.context);
    const report = this.#report;
    return (update, call) => report.send(update, call);
  }

  /** What the client should have declared for questions that could not be asked. */
  get missing(): DeclaredCapabilities | undefined {
    return this.#missing;
  }

  /** A permission was needed that the client could not be asked for. */
  get lackedPermission(): boolean {
    return this.#lackedPermission;
  }

  get permission(): AskHandler<"permission"> {
    const handler: AskHandler<"permission"> = (data, by) => this.#handle("permission", data, by);
    // Absent for the session: those who are attached are asked at once.
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
    // A call without permission is denied; only what the tool itself asks for is the client's to make up for.
    if (kind === "permission") this.#lackedPermission = true;
    else this.#missing = { ...this.#missing, ...lacking };
    return noResult;
  }
}

/** People take their time; the call's own signal ends the wait earlier. */
const answerTimeoutMs = 600_000;

/**
 * Conversations as protocol revisions up to 2025-11-25 have them: the server sends requests of its own while it works on
 * one of the client's, on the stream of that one.
 */
export function createRequestChannels(server: Server, options: ClientChannelOptions, log: Logger): WithClient {
  const client = { ...options, server, log };
  return (_request, context, work) => work(new PushConversation(context, client));
}

interface PushClient extends ClientChannelOptions {
  readonly server: Server;
  readonly log: Logger;
}

class PushConversation extends ClientChannel {
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

// Small against any step that a tool counts in, and never lost beside what it is added to.
const smallStep = 2 ** -16;

/** Tells a client how the work for its request goes: progress if it wants any, and log lines at the level that it wants. */
class ProgressReport {
  readonly #context: () => ServerContext | undefined;
  #last = -1;
  #isCounted = false;

  /** `context` gives the request of now; while there is none, nobody is told. */
  constructor(context: () => ServerContext | undefined) {
    this.#context = context;
  }

  /** What cannot be sent is passed over: the client is gone, and the work is told so by its signal. */
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

  /** The specification wants every notification higher than the one before, also those that only say something. */
  #next(progress: number | undefined): number {
    if (progress !== undefined) this.#isCounted = true;
    this.#last = progress ?? Math.max(this.#last + (this.#isCounted ? smallStep : 1), 0);
    return this.#last;
  }
}
