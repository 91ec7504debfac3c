import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";
import { type WebSocket, WebSocketServer } from "ws";
import type { ScriptedReply } from "./scripted-model.ts";
import { responsesEvents } from "./scripted-responses.ts";

/** A message that reached the endpoint. */
interface SocketMessage {
  /** The connection, by the order in which they were opened. */
  readonly connection: number;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into it freely
  readonly body: any;
}

/** What is done with a message: an answer, or whatever a test wants. */
type SocketAnswer = ScriptedReply | ((socket: WebSocket) => void);

/** An endpoint on loopback that answers the Responses API over WebSocket connections, and nothing over HTTP by default. */
export interface ScriptedSocket {
  readonly url: string;
  readonly messages: readonly SocketMessage[];
  /** The headers of each connection. */
  readonly handshakes: readonly IncomingHttpHeaders[];
  /** The bodies of requests over HTTP, with their paths. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into it freely
  readonly requests: readonly { readonly path: string; readonly body: any }[];
  answer(...answers: readonly SocketAnswer[]): void;
  /** Closes all connections from this side. */
  drop(): Promise<void>;
}

interface SocketOptions {
  /** Answers a handshake by another status. */
  readonly refuse?: () => number | undefined;
  /** Answers requests over HTTP. */
  readonly http?: (path: string) => object | undefined;
}

export async function startScriptedSocket({ refuse, http }: SocketOptions = {}): Promise<ScriptedSocket> {
  const messages: SocketMessage[] = [];
  const handshakes: IncomingHttpHeaders[] = [];
  const requests: ScriptedSocket["requests"][number][] = [];
  const answers: SocketAnswer[] = [];
  const server = createServer(async (request, response) => {
    let text = "";
    for await (const piece of request) text += piece;
    requests.push({ path: request.url!, body: text === "" ? undefined : JSON.parse(text) });
    const answer = http?.(request.url!);
    response.statusCode = answer === undefined ? 404 : 200;
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify(answer ?? { error: { message: "Not here." } }));
  });
  const sockets = new WebSocketServer({ noServer: true });
  server.on("upgrade", (request, stream, head) => {
    const connection = handshakes.push(request.headers) - 1;
    const status = refuse?.();
    if (status !== undefined) {
      const body = JSON.stringify({ error: { message: "No upgrade.", code: "no_upgrade" } });
      stream.end(`HTTP/1.1 ${status} No\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
      return;
    }
    sockets.handleUpgrade(request, stream, head, (socket) => {
      socket.on("error", () => {});
      socket.on("message", (data: Buffer) => {
        messages.push({ connection, body: JSON.parse(data.toString()) });
        const answer = answers.shift() ?? { content: "Nothing is scripted." };
        if (typeof answer === "function") answer(socket);
        else for (const event of socketEvents(answer, `resp_${messages.length}`)) socket.send(JSON.stringify(event));
      });
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(async () => {
    for (const socket of sockets.clients) socket.terminate();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    messages,
    handshakes,
    requests,
    answer: (...more) => void answers.push(...more),
    drop: async () => {
      const closed = [...sockets.clients].map((socket) => new Promise((resolve) => socket.once("close", resolve)));
      for (const socket of sockets.clients) socket.close(1001);
      await Promise.all(closed);
    },
  };
}

/** The events of a reply, of a response with this id. */
export function socketEvents(reply: ScriptedReply, id: string): readonly object[] {
  return responsesEvents(reply).map((event) =>
    "response" in event ? { ...event, response: { ...(event["response"] as object), id } } : event,
  );
}
