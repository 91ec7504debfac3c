import { type JSONRPCMessage, PROTOCOL_VERSION_META_KEY, type Server } from "@modelcontextprotocol/server";
import { serveStdio as serveConnection } from "@modelcontextprotocol/server/stdio";
import type { Logger } from "../../base/logger.ts";
import { isPlainRecord } from "../../base/read-fields.ts";
import type { ConnectionEra } from "./connected-server.ts";
import type { Face, OpenFace } from "./face.ts";
import { LineTransport, type LineTransportOptions } from "./line-transport.ts";
import { ListenedResources } from "./listened-resources.ts";

/** One client at the other end of two streams. */
export interface McpStdioFace extends AsyncDisposable {
  /** Settles when the connection is over and everything behind it has ended. */
  readonly closed: Promise<void>;
}

/** Serves one client over two streams, in whichever era it begins. */
export async function serveStdio(face: Face, streams: Omit<LineTransportOptions, "onInbound">, log: Logger): Promise<McpStdioFace> {
  const opened = await face.open({ isShared: false });
  let tell: (uri: string) => void = () => {};
  const transport = new LineTransport({ ...streams, onInbound: createListenWatch(opened, (uri) => tell(uri)) });
  const onerror = (error: Error): void => log.warning("The connection with an MCP client had trouble.", { error });
  const createServer = (era: ConnectionEra): Server => {
    const server = opened.createServer(era);
    tell = (uri) => void server.sendResourceUpdated({ uri }).catch(() => {});
    return server;
  };
  transport.onmessage = (first) => {
    // For whoever takes over, whenever they do.
    transport.onmessage = undefined;
    transport.takeBack(first);
    // What begins with the old handshake has nothing to choose any more, so that nothing need stand in between.
    if (isOldHandshake(first)) void createServer("legacy").connect(transport).catch(onerror);
    else serveConnection(({ era }) => createServer(era), { transport, onerror });
  };
  transport.onerror = onerror;
  await transport.start();
  const closed = transport.closed.then(() => opened[Symbol.asyncDispose]());
  return {
    closed,
    async [Symbol.asyncDispose]() {
      await transport.close();
      await closed;
    },
  };
}

function isOldHandshake(message: JSONRPCMessage): boolean {
  if (!("method" in message) || message.method !== "initialize") return false;
  const meta = message.params?.["_meta"];
  return !isPlainRecord(meta) || meta[PROTOCOL_VERSION_META_KEY] === undefined;
}

/** Watches what `subscriptions/listen` names until it is cancelled. */
function createListenWatch({ watches }: OpenFace, tell: (uri: string) => void): (message: JSONRPCMessage) => void {
  const listened = new ListenedResources(watches, tell);
  const open = new Map<unknown, Disposable>();
  const end = (id: unknown): void => {
    open.get(id)?.[Symbol.dispose]();
    open.delete(id);
  };
  return (message) => {
    if (!("method" in message)) return;
    const added = listened.add(message);
    if (added !== undefined && "id" in message) {
      end(message.id);
      open.set(message.id, added);
    }
    if (message.method === "notifications/cancelled" && isPlainRecord(message.params)) end(message.params["requestId"]);
  };
}
