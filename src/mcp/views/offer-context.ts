import { HostError } from "../../base/errors.ts";
import type { OfferContext } from "../../tools/prompt.ts";
import type { ToolContext } from "../../tools/tool.ts";
import type { CallRequestOptions } from "../connection/connection.ts";

/**
 * What a request for a prompt or a resource is made with: a server may ask back while it answers one, as it may during a
 * call. There is no call here, so of the context only asking means something.
 */
export function callContextOf({ signal, ask }: OfferContext, name: string, args: unknown): CallRequestOptions {
  const context: ToolContext = {
    invocation: { sessionId: "", toolCallId: "", toolName: name, arguments: args, signal, workingDirectory: "" },
    ask,
    callTool: () => Promise.reject(new HostError("CALL_FOREIGN", "A server that gives a prompt or a resource cannot call tools.")),
    progress: () => {},
    fileChanged: () => {},
    background: () => {},
  };
  return { signal, context };
}
