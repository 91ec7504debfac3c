import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createMessageConnection, type MessageConnection, StreamMessageReader, StreamMessageWriter } from "vscode-jsonrpc/node.js";
import { type Listening, listenForClients } from "../../../src/servers/copilot/connection/listen.ts";
import { patience } from "../../slowness.ts";
import { Served } from "./wire-kit.ts";

const token = "the-right-token";

let served: Served;
let listening: Listening;
const sockets: Socket[] = [];

beforeEach(() => begin({ server: { token } }));

afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await listening[Symbol.asyncDispose]();
  await served[Symbol.asyncDispose]();
});

async function begin(options: object): Promise<void> {
  served = await Served.start(options);
  listening = await listenForClients(served.server, { port: 0, host: "127.0.0.1" });
}

async function again(options: object): Promise<void> {
  await listening[Symbol.asyncDispose]();
  await served[Symbol.asyncDispose]();
  await begin(options);
}

/** A connection; `text` is what the server sent over it. */
function open(): { readonly socket: Socket; readonly text: () => string } {
  const socket = connect(listening.port, "127.0.0.1");
  sockets.push(socket);
  let text = "";
  socket
    .on("error", () => {})
    .on("data", (chunk: Buffer) => {
      text += chunk.toString();
    });
  return { socket, text: () => text };
}

/** Many connections; each was made, or turned away, when this settles. */
async function crowd(count: number): Promise<Socket[]> {
  const made = Array.from({ length: count }, () => open().socket);
  await Promise.all(made.map((socket) => new Promise<void>((resolve) => socket.once("connect", resolve).once("close", () => resolve()))));
  return made;
}

function client(): MessageConnection {
  const { socket } = open();
  const connection = createMessageConnection(new StreamMessageReader(socket), new StreamMessageWriter(socket));
  connection.listen();
  return connection;
}

async function admitted(): Promise<MessageConnection> {
  const connection = client();
  expect(await connection.sendRequest("connect", { token })).toMatchObject({ ok: true });
  return connection;
}

function frame(message: object): string {
  const text = JSON.stringify({ jsonrpc: "2.0", ...message });
  return `Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`;
}

function idsIn(text: string): readonly number[] {
  return [...text.matchAll(/"id":(\d+)/g)].map(([, id]) => Number(id));
}

describe("before a client has given the token", () => {
  test("five wrong tokens end the line, and not even the right one helps after them", async () => {
    const { socket, text } = open();
    const guesses = Array.from({ length: 5 }, (_value, id) => frame({ id, method: "connect", params: { token: `guess-${id}` } }));
    socket.write([...guesses, frame({ id: 5, method: "connect", params: { token } }), frame({ id: 6, method: "ping" })].join(""));
    await once(socket, "close");
    expect(idsIn(text()).slice(0, 5)).toEqual([0, 1, 2, 3, 4]);
    expect(text().match(/AUTHENTICATION_FAILED/g)!.length).toBeGreaterThanOrEqual(5);
    expect(text()).not.toContain('"result"');
    await admitted();
  });

  test.each(["ping", "session.create", "session.tools.execute", "no.such.method"])(
    "%s is refused, and five such requests end the line",
    async (method) => {
      const { socket, text } = open();
      socket.write(Array.from({ length: 9 }, (_value, id) => frame({ id, method, params: {} })).join(""));
      await once(socket, "close");
      expect(text()).toContain("AUTHENTICATION_FAILED");
      expect(text()).not.toContain('"result"');
    },
  );

  test("a message may have 8 KiB, and any length afterwards", async () => {
    const { socket, text } = open();
    socket.write("Content-Length: 8193\r\n\r\n");
    await once(socket, "close");
    expect(text()).toContain("the limit is 8192");
    const connection = await admitted();
    expect(await connection.sendRequest("ping", { message: "x".repeat(1_000_000) })).toMatchObject({ protocolVersion: 3 });
  });

  test.each([
    ["without an answer", frame({ method: "note", params: { text: "x".repeat(1_000) } })],
    ["that cannot be read", "Content-Length: 1\r\n\r\n{"],
  ])("unlimited messages %s end the connection", async (_name, message) => {
    const { socket, text } = open();
    socket.write(message.repeat(Math.ceil(70_000 / message.length)));
    await once(socket, "close");
    expect(text()).toContain("were received before a valid connect");
  });

  test(
    "the line is closed when it says nothing for some seconds",
    async () => {
      const [{ socket }, half] = [open(), open()];
      half.socket.write("Content-Length: 50\r\n\r\n{");
      await Promise.all([once(socket, "close"), once(half.socket, "close")]);
      await expect.poll(() => served.server.clients.size).toBe(0);
    },
    patience(30_000),
  );
});

describe("many connections", () => {
  test(
    "silent connections neither prevent new ones nor end established ones",
    async () => {
      const early = await admitted();
      const silent = await crowd(600);
      const late = await admitted();
      silent.push(...(await crowd(600)));
      expect(await early.sendRequest("ping")).toMatchObject({ protocolVersion: 3 });
      expect(await late.sendRequest("ping")).toMatchObject({ protocolVersion: 3 });
      const stillOpen = (): number => silent.filter(({ closed }) => !closed).length;
      await expect.poll(stillOpen).toBeLessThanOrEqual(254);
      await expect.poll(stillOpen).toBe(0);
      expect(await early.sendRequest("ping")).toMatchObject({ protocolVersion: 3 });
    },
    patience(60_000),
  );

  test(
    "of clients with the token are 256 at the most; there is room again when one goes",
    async () => {
      const clients = await Promise.all(Array.from({ length: 256 }, admitted));
      const { socket } = open();
      await once(socket, "close");
      expect(await clients[0]!.sendRequest("ping")).toMatchObject({ protocolVersion: 3 });
      sockets[1]!.destroy();
      await expect.poll(() => served.server.clients.size).toBe(255);
      await admitted();
    },
    patience(60_000),
  );
});

describe("a server without a token", () => {
  test(
    "answers clients of both protocols, and closes lines that say nothing",
    async () => {
      await again({});
      expect(await client().sendRequest("ping")).toMatchObject({ protocolVersion: 2 });
      const connection = client();
      expect(await connection.sendRequest("connect", {})).toMatchObject({ protocolVersion: 3 });
      await crowd(600);
      expect(await client().sendRequest("connect", {})).toMatchObject({ ok: true });
      expect(await connection.sendRequest("ping")).toMatchObject({ protocolVersion: 3 });
    },
    patience(30_000),
  );
});
