import type { Client } from "../clients/client.ts";
import { notSupported, Params, toRpcError } from "../connection/params.ts";
import type { AnswerRequest } from "../connection/wire.ts";
import type { ServerContext } from "../context.ts";
import { handshake } from "./handshake.ts";
import type { Call, Method, MethodFamily } from "./method.ts";
import { families, methodTable } from "./table.ts";

/** Finds the method of a request and has it answered. */
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

/** A promise only where something takes time: most families are loaded when they are first asked for. */
function answerAtOnce(method: string, call: Call): unknown {
  const first = Object.hasOwn(handshake, method) ? handshake[method] : undefined;
  if (!call.client.isAdmitted && method !== "connect") admitWithoutToken(method, call);
  return (first ?? loaded.get(method) ?? load(method))(call);
}

const loaded = new Map<string, Method>();

function load(method: string): Method {
  const entry = methodTable.get(method);
  if (entry === undefined)
    throw notSupported(`Method ${method.slice(0, 100)} is not part of the protocol version that skillhost supports.`);
  if ("reason" in entry) throw notSupported(`${method} is not supported by skillhost: ${entry.reason}`);
  const loading = families[entry.family]();
  return async (call) => {
    const family: MethodFamily = await loading;
    for (const [name, known] of Object.entries(family)) loaded.set(name, known);
    return loaded.get(method)!(call);
  };
}

/** Where no token is needed, a client may begin with whatever it likes. */
function admitWithoutToken(method: string, { server, client }: Call): void {
  if (server.accepts()) {
    client.admit();
    return;
  }
  client.countRefusal();
  throw new Error(`AUTHENTICATION_FAILED: ${method} requires an authenticated connection. Send connect with the token first.`);
}
