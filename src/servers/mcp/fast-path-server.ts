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
 * A server of the SDK without its second validation. The SDK validates every message, call and result with schemas, which takes
 * several times as long as the call of a small tool. Here the transports have validated the messages, `callParams` validates the
 * parameters of calls, and results consist of validated parts.
 */
export class FastPathServer extends Server {
  /** Passes requests directly to the method to which the SDK passes them after its validation. */
  override async connect(transport: Transport): Promise<void> {
    const connected = super.connect(transport);
    const { onmessage } = transport;
    // Not part of the SDK's public interface. Without it, the SDK's own validation is used.
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

/** Creates a schema for the SDK. `fault` returns the problem of invalid parameters. */
export function schemaOf<T extends object>(
  fault: (params: Readonly<Record<string, unknown>>) => string | undefined,
): StandardSchemaV1<T, T> {
  const validate = (value: unknown) => {
    const message = isRecord(value) ? fault(value) : "the parameters must be an object";
    return message === undefined ? { value: value as T } : { issues: [{ message }] };
  };
  return { "~standard": { version: 1, vendor: "skillhost", validate } };
}

/** Errors that the client caused and receives. All others are only logged. */
const callersFault: ReadonlySet<string> = new Set(["PROMPT_UNKNOWN", "PROMPT_ARGUMENTS", "RESOURCE_UNKNOWN"]);

/** Runs the handler of a request, and converts exceptions into errors for the client. */
export async function guarded<T>(log: Logger, what: string, run: () => T | Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    throw toWireError(error, log, what);
  }
}

/** Hides the details of unknown errors from the client, since they may contain paths, addresses or secrets. */
export function toWireError(error: unknown, log: Logger, what: string): Error {
  if (error instanceof ProtocolError) return error;
  if (error instanceof HostError && callersFault.has(error.code)) return new ProtocolError(ProtocolErrorCode.InvalidParams, error.message);
  log.error(`A request of an MCP client failed: ${what}.`, { error: toError(error) });
  return new ProtocolError(ProtocolErrorCode.InternalError, "The server failed to handle the request. See its log for details.");
}

export function resourceNotFound(uri: string): ProtocolError {
  return new ProtocolError(ProtocolErrorCode.InvalidParams, "Resource not found", { uri });
}
