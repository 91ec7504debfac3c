import {
  type JSONRPCMessage,
  type JSONRPCRequest,
  type MessageExtraInfo,
  ProtocolError,
  ProtocolErrorCode,
  type Result,
  Server,
  type ServerContext,
  type StandardSchemaV1,
  type Transport,
} from "@modelcontextprotocol/server";
import { HostError, toError } from "../../base/errors.ts";
import { isRecord } from "../../base/json.ts";
import type { Logger } from "../../base/logger.ts";

type Handler = (request: JSONRPCRequest, context: ServerContext) => Promise<Result>;
type Dispatch = (request: JSONRPCRequest, extra?: MessageExtraInfo) => void;

/**
 * A server of the SDK that does not check twice. The SDK looks at every message, call and result through schemas, which
 * takes several times as long as the call of a small tool. The transports have checked the messages when they come here,
 * `callParams` checks the parameters of calls, and their results are made of checked parts.
 */
export class FastPathServer extends Server {
  /** Requests go where the SDK sends them once it knows that they are requests. */
  override async connect(transport: Transport): Promise<void> {
    const connected = super.connect(transport);
    const { onmessage } = transport;
    // No part of the SDK's interface: where it is missing, the SDK's own way is taken.
    const dispatch = (this as unknown as { readonly _onrequest?: Dispatch })._onrequest?.bind(this);
    if (onmessage !== undefined && dispatch !== undefined) {
      transport.onmessage = (message: JSONRPCMessage, extra?: MessageExtraInfo) =>
        "method" in message && "id" in message ? dispatch(message, extra) : onmessage(message, extra);
    }
    await connected;
  }

  protected override _wrapHandler(method: string, handler: Handler): Handler {
    return method === "tools/call" ? handler : super._wrapHandler(method, handler);
  }
}

/** The form in which the SDK wants the parameters of a method described; `fault` says what is wrong with them. */
export function schemaOf<T extends object>(
  fault: (params: Readonly<Record<string, unknown>>) => string | undefined,
): StandardSchemaV1<T, T> {
  const validate = (value: unknown) => {
    const message = isRecord(value) ? fault(value) : "the parameters must be an object";
    return message === undefined ? { value: value as T } : { issues: [{ message }] };
  };
  return { "~standard": { version: 1, vendor: "skillhost", validate } };
}

/** What clients are told that is their own doing; everything else that fails stays in the log. */
const callersFault: ReadonlySet<string> = new Set(["PROMPT_UNKNOWN", "PROMPT_ARGUMENTS", "RESOURCE_UNKNOWN"]);

/** Runs a handler of a request, and turns what it throws into an error that may go out. */
export async function guarded<T>(log: Logger, what: string, run: () => T | Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    throw toWireError(error, log, what);
  }
}

/** Nothing of an error that somebody's code threw goes out: it may hold paths, addresses or secrets. */
export function toWireError(error: unknown, log: Logger, what: string): Error {
  if (error instanceof ProtocolError) return error;
  if (error instanceof HostError && callersFault.has(error.code)) return new ProtocolError(ProtocolErrorCode.InvalidParams, error.message);
  log.error(`A request of an MCP client failed: ${what}.`, { error: toError(error) });
  return new ProtocolError(ProtocolErrorCode.InternalError, "The server failed to handle the request. See its log for details.");
}

export function resourceNotFound(uri: string): ProtocolError {
  return new ProtocolError(ProtocolErrorCode.InvalidParams, "Resource not found", { uri });
}
