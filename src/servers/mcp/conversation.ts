import type { ServerContext } from "@modelcontextprotocol/server";
import { type AskKind, noResult } from "../../session/asks/ask-kinds.ts";
import type { AskHandler, AskHandlers } from "../../session/asks/asks.ts";
import type { AskInvocation } from "../../session/asks/open-ask.ts";
import { type ClientCapabilities, type ClientQuestion, missingCapabilities, toClientQuestion } from "./client-questions.ts";
import { ProgressReport, type ReportProgress } from "./progress-report.ts";

/** Has the work for a request done in a conversation with the client that sent it. */
export type Converse = <T extends object>(
  request: ConversedRequest,
  context: ServerContext,
  work: (conversation: Conversation) => Promise<T>,
) => Promise<T>;

/** What tells one request from others, beside the client. */
export interface ConversedRequest {
  readonly method: string;
  /** The tool, prompt or resource. */
  readonly name: string;
  readonly arguments: unknown;
}

/** What conversations with one client, or with clients of one face, have in common. */
export interface ConversationOptions {
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
export abstract class Conversation {
  /** Fires when the client has cancelled the request or is gone. */
  abstract readonly signal: AbortSignal;
  readonly #options: ConversationOptions;
  #report: ProgressReport | undefined;
  #missing: ClientCapabilities | undefined;
  #lackedPermission = false;

  constructor(options: ConversationOptions) {
    this.#options = options;
  }

  /** The request of now; undefined between two. */
  protected abstract readonly context: ServerContext | undefined;
  /** What the client says that it can do. */
  protected abstract readonly capabilities: ClientCapabilities;
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
  get missing(): ClientCapabilities | undefined {
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
