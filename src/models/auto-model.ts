import { fetchModels } from "./list-models.ts";
import type { ChatModel, CompleteOptions, ModelReply, ModelRequest } from "./model.ts";
import { ModelError } from "./model-error.ts";
import type { Endpoint } from "./provider-endpoint.ts";

interface AutoModelParts {
  readonly chat: ChatModel;
  readonly responses: ChatModel;
  /** The Responses API over WebSocket connections. Undefined: they are not to be used. */
  readonly overSocket: ChatModel | undefined;
  readonly endpoint: Endpoint;
  /** The model's name at the endpoint. */
  readonly name: string;
}

/**
 * A model that is asked by chat completions until the endpoint refuses it there. Then the endpoint's list of models decides, once:
 * a model that is listed for `/responses` and not for chat completions is asked by the Responses API from then on, over a WebSocket
 * connection if it is listed for that.
 */
export function createAutoModel({ chat, responses, overSocket, endpoint, name }: AutoModelParts): ChatModel {
  let decided: ChatModel | undefined;
  const complete = async (request: ModelRequest, how: CompleteOptions): Promise<ModelReply> => {
    if (decided !== undefined) return decided.complete(request, how);
    try {
      const reply = await chat.complete(request, how);
      decided = chat;
      return reply;
    } catch (error) {
      if (!mayBeOtherApi(error)) throw error;
      const listed = await supportedEndpoints(endpoint, name, how.signal);
      if (listed === undefined) throw error;
      const other = listed.includes("ws:/responses") ? (overSocket ?? responses) : responses;
      decided = listed.includes("/responses") && !listed.includes("/chat/completions") ? other : chat;
      if (decided === chat) throw error;
      return other.complete(request, how);
    }
  };
  return { ...chat, complete, bodyOf: (request) => (decided ?? chat).bodyOf!(request) };
}

function mayBeOtherApi(error: unknown): boolean {
  return error instanceof ModelError && error.code === "MODEL_HTTP" && [400, 404, 405].includes(error.status ?? 0);
}

/** Undefined: the list is not available, so the refusal stands. */
async function supportedEndpoints(endpoint: Endpoint, name: string, signal: AbortSignal): Promise<readonly string[] | undefined> {
  try {
    const models = await fetchModels(endpoint, signal, {});
    return models.find(({ id }) => id === name)?.supportedEndpoints ?? [];
  } catch {
    return undefined;
  }
}
