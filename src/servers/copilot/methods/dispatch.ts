import type { Client } from "../clients/client.ts";
import { notSupported, Params, toRpcError } from "../connection/params.ts";
import type { AnswerRequest } from "../connection/wire.ts";
import type { ServerContext } from "../context.ts";
import { loadMethod } from "./families.ts";
import { handshake } from "./handshake.ts";
import type { Call, Method } from "./method.ts";

/** Creates the function that answers a client's requests. */
export function answerRequest(server: ServerContext, client: Client): AnswerRequest {
  return (method, values, signal) => {
    const call: Call = { server, client, params: new Params(method, values), signal };
    try {
      const answer = answerAtOnce(method, call);
      return answer instanceof Promise ? answer.catch((error: unknown) => Promise.reject(toRpcError(method, error))) : answer;
    } catch (error) {
      throw toRpcError(method, error);
    }
  };
}

/** Returns a promise only when the method has to be loaded or takes time itself. */
function answerAtOnce(name: string, call: Call): unknown {
  const first = Object.hasOwn(handshake, name) ? handshake[name] : undefined;
  if (!call.client.isAdmitted && name !== "connect") admitWithoutToken(name, call);
  const method = first ?? loaded.get(name);
  return method === undefined ? answerWhenLoaded(name, call) : method(call);
}

const loaded = new Map<string, Method>();

async function answerWhenLoaded(name: string, call: Call): Promise<unknown> {
  const method = await loadMethod(name);
  if (method === undefined) throw await refusalOf(name);
  loaded.set(name, method);
  return method(call);
}

async function refusalOf(name: string): Promise<Error> {
  const { unsupported } = await import("./unsupported.ts");
  const reason = Object.entries(unsupported).find(([, methods]) => methods.includes(name))?.[0];
  if (reason === undefined)
    return notSupported(`Method ${name.slice(0, 100)} is not part of the protocol version that skillhost supports.`);
  return notSupported(`${name} is not supported by skillhost: ${reason}`);
}

/** Without a token, a client may begin with any method. */
function admitWithoutToken(method: string, { server, client }: Call): void {
  if (server.accepts()) {
    client.admit();
    return;
  }
  client.countRefusal();
  throw new Error(`AUTHENTICATION_FAILED: ${method} requires an authenticated connection. Send connect with the token first.`);
}
