import type { Agent, IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { onAbort } from "../base/wait.ts";
import type { RequestOrigin } from "./model.ts";
import { SocketMessages } from "./socket-messages.ts";

/** A WebSocket connection to a model endpoint. */
export interface ModelSocket {
  /** Whether a message can be sent. */
  readonly isOpen: boolean;
  send(text: string): void;
  /** The next message. Undefined: the connection has ended. Rejects when it broke. */
  receive(): Promise<string | undefined>;
  /** Whether the connection keeps this process running. */
  hold(isHeld: boolean): void;
  /** Ends the connection at once. */
  close(): void;
}

export interface SocketRequest {
  readonly headers: Record<string, string>;
  /** Gives up opening the connection. */
  readonly signal: AbortSignal;
  readonly origin?: RequestOrigin | undefined;
}

/** What opening a connection comes to. */
export type OpenedSocket =
  | { readonly kind: "open"; readonly socket: ModelSocket }
  /** The server answered with another status than 101. */
  | { readonly kind: "refused"; readonly answer: RefusedUpgrade };

export interface RefusedUpgrade {
  readonly status: number;
  readonly headers: { get(name: string): string | null | undefined };
  readonly body: AsyncIterable<Uint8Array> | null;
}

/** Opens a connection. Rejects when the server cannot be reached, and with the signal's reason. */
export type ConnectSocket = (url: string, request: SocketRequest) => Promise<OpenedSocket>;

/** The byte limit of one message. Longer ones are refused by their announced length. */
const longestMessage = 32 * 1024 * 1024;

/**
 * Opens a WebSocket with Node's own HTTP client and its global agents, as `nodeFetch` does. Redirects are not followed. Messages are not
 * compressed: they are short, and each compressed connection needs memory of its own.
 */
export const connectSocket: ConnectSocket = async (url, { headers, signal }) => {
  signal.throwIfAborted();
  const { WebSocket } = await import("ws");
  const socket = new WebSocket(url, {
    headers,
    agent: await agentFor(url),
    maxPayload: longestMessage,
    perMessageDeflate: false,
    followRedirects: false,
  });
  let connection: Socket | undefined;
  const messages = new SocketMessages((isPaused) => (isPaused ? socket.pause() : socket.resume()));
  socket.on("upgrade", (response) => {
    connection = response.socket;
  });
  // Some servers send JSON in binary messages. What is not JSON is reported by the reader of the answer.
  socket.on("message", (data: Buffer) => messages.add(data.toString()));
  socket.on("close", (code, reason) => messages.end(code === 1000 ? undefined : closed(code, reason)));
  // "close" follows, and counts for those who have the connection.
  let failure: Error | undefined;
  socket.on("error", (error) => {
    failure = error;
    messages.end(error);
  });
  return new Promise<OpenedSocket>((resolve, reject) => {
    const waiting = onAbort(signal, () => {
      reject(signal.reason);
      socket.terminate();
    });
    const settle = (opened: OpenedSocket): void => {
      waiting[Symbol.dispose]();
      resolve(opened);
    };
    socket.once("unexpected-response", (_request, response: IncomingMessage) => settle({ kind: "refused", answer: refusal(response) }));
    socket.once("close", () => {
      waiting[Symbol.dispose]();
      reject(failure ?? new Error("The connection was closed before it was open."));
    });
    socket.once("open", () =>
      settle({
        kind: "open",
        socket: {
          get isOpen() {
            return socket.readyState === WebSocket.OPEN;
          },
          send: (text) => socket.send(text),
          receive: () => messages.next(),
          hold: (isHeld) => void (isHeld ? connection?.ref() : connection?.unref()),
          close: () => socket.terminate(),
        },
      }),
    );
  });
};

async function agentFor(url: string): Promise<Agent> {
  const { globalAgent } = url.startsWith("wss:") ? await import("node:https") : await import("node:http");
  return globalAgent;
}

function refusal(response: IncomingMessage): RefusedUpgrade {
  // The reader receives errors. Without a reader they are ignored.
  response.on("error", () => {});
  const { statusCode = 0, headers } = response;
  const get = (name: string): string | undefined => {
    const value = headers[name.toLowerCase()];
    return Array.isArray(value) ? value.join(", ") : value;
  };
  return { status: statusCode, headers: { get }, body: response };
}

function closed(code: number, reason: Buffer): Error {
  const said = reason.length === 0 ? "" : `: ${reason.toString()}`;
  return Object.assign(new Error(`closed with code ${code}${said}`), { closeCode: code });
}
