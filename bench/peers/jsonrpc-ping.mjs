// The least that a runtime could be: a JSON-RPC server over stdio that answers connect and ping.
import { createMessageConnection, StreamMessageReader, StreamMessageWriter } from "vscode-jsonrpc/node.js";

const connection = createMessageConnection(new StreamMessageReader(process.stdin), new StreamMessageWriter(process.stdout));
connection.onRequest("connect", () => ({ ok: true, protocolVersion: 3, version: "0" }));
connection.onRequest("ping", ({ message }) => ({ message: `pong: ${message}`, timestamp: new Date().toISOString(), protocolVersion: 3 }));
connection.onClose(() => process.exit(0));
connection.listen();
