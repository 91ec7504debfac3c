import {
  type JSONRPCMessage,
  type JSONRPCRequest,
  type MessageExtraInfo,
  type Result,
  Server,
  type ServerContext,
  type Transport,
} from "@modelcontextprotocol/server";

type Handler = (request: JSONRPCRequest, context: ServerContext) => Promise<Result>;
type Dispatch = (request: JSONRPCRequest, extra?: MessageExtraInfo) => void;

/**
 * A server of the SDK that does not check twice. The SDK looks at every message, call and result through schemas, which
 * takes several times as long as the call of a small tool. The transports have checked the messages when they come here,
 * `callParams` checks the parameters of calls, and their results are made of checked parts.
 */
export class LeanServer extends Server {
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
