import type { Server } from "@modelcontextprotocol/server";
import { toError } from "../../base/errors.ts";
import { createMcpServer, type ServerParts } from "./create-mcp-server.ts";
import { sendNewErrors } from "./diagnostic-messages.ts";
import type { ResourceWatches } from "./resource-watches.ts";
import type { ServedList } from "./served-session.ts";

export type ConnectionEra = "legacy" | "modern";

/** A server with a connection of its own, which is told of news for as long as it is open. */
export function createConnectedServer({ parts, watches }: { parts: ServerParts; watches: ResourceWatches }, era: ConnectionEra): Server {
  const { served, log } = parts;
  const server = createMcpServer(parts, era);
  const tell: { readonly [L in ServedList]: () => Promise<void> } = {
    tools: () => server.sendToolListChanged(),
    prompts: () => server.sendPromptListChanged(),
    resources: () => server.sendResourceListChanged(),
  };
  const send = (news: () => Promise<void>): void => {
    // Before the handshake there is nobody to tell; whoever connects then asks for everything.
    if (server.transport === undefined || (era === "legacy" && server.getNegotiatedProtocolVersion() === undefined)) return;
    news().catch((error) => log.debug("News could not be sent to an MCP client.", { error: toError(error) }));
  };
  const errors = era === "legacy" && parts.errors !== undefined ? sendNewErrors(server, parts.errors, log) : undefined;
  const subscription = served.onChanged((list) => send(tell[list]));
  const subscribed = new Map<string, () => void>();
  server.setRequestHandler("resources/subscribe", ({ params: { uri } }) => {
    const listener = (): void => send(() => server.sendResourceUpdated({ uri }));
    if (!subscribed.has(uri) && watches.add(uri, listener)) subscribed.set(uri, listener);
    return {};
  });
  server.setRequestHandler("resources/unsubscribe", ({ params: { uri } }) => {
    const listener = subscribed.get(uri);
    if (listener !== undefined) watches.remove(uri, listener);
    subscribed.delete(uri);
    return {};
  });
  server.onclose = () => {
    subscription[Symbol.dispose]();
    errors?.[Symbol.dispose]();
    for (const [uri, listener] of subscribed) watches.remove(uri, listener);
  };
  return server;
}
