import type { Server, ServerContext } from "@modelcontextprotocol/server";
import { toError } from "../../base/errors.ts";
import type { Logger } from "../../base/logger.ts";
import type { ClientCapabilities } from "./client-questions.ts";
import { type AskedQuestion, Conversation, type ConversationOptions, type Converse } from "./conversation.ts";

/** People take their time; the call's own signal ends the wait earlier. */
const answerTimeoutMs = 600_000;

/**
 * Conversations as protocol revisions up to 2025-11-25 have them: the server sends requests of its own while it works on
 * one of the client's, on the stream of that one.
 */
export function createPushConversations(server: Server, options: ConversationOptions, log: Logger): Converse {
  const client = { ...options, server, log };
  return (_request, context, work) => work(new PushConversation(context, client));
}

interface PushClient extends ConversationOptions {
  readonly server: Server;
  readonly log: Logger;
}

class PushConversation extends Conversation {
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

  protected get capabilities(): ClientCapabilities {
    return this.#client.server.getClientCapabilities() ?? {};
  }

  protected async ask({ question, kind, signal }: AskedQuestion): Promise<unknown> {
    try {
      const options = { signal, timeout: answerTimeoutMs, resetTimeoutOnProgress: true };
      return question.read(await this.context.mcpReq.send(question.request, options));
    } catch (error) {
      this.#client.log.warning("A client did not answer a question.", { kind, error: toError(error) });
      throw error;
    }
  }
}
