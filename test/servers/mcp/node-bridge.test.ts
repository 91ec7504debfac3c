import { once } from "node:events";
import { type IncomingMessage, type RequestOptions, request } from "node:http";
import { connect, type Socket } from "node:net";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, onTestFinished, test } from "vitest";
import { createNodeBridge, type NodeBridgeOptions } from "../../../src/servers/mcp/node-bridge.ts";
import { listen } from "../../mcp/http-doubles.ts";
import { deferred } from "./serving-kit.ts";

interface Bridged {
  readonly url: string;
  /** What was reported. */
  readonly errors: Error[];
  /** Settles when the bridge is done with its latest request. */
  done(): Promise<void>;
}

async function bridge(
  handle: (request: Request) => Response | Promise<Response>,
  options: Partial<NodeBridgeOptions> = {},
): Promise<Bridged> {
  const errors: Error[] = [];
  let latest = Promise.resolve();
  const answer = createNodeBridge(async (asked) => handle(asked), {
    maxBodyBytes: 8 * 1024 * 1024,
    onError: (error) => void errors.push(error),
    ...options,
  });
  const { url } = await listen((incoming, outgoing) => {
    latest = answer(incoming, outgoing);
  }, "/");
  return { url, errors, done: () => latest };
}

/** The head of an answer; its body is not read. */
async function ask(url: string, options: RequestOptions = {}, body = ""): Promise<IncomingMessage> {
  const sent = request(url, options);
  sent.end(body);
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  response.on("error", () => {});
  return response;
}

function openSocket(url: string): Socket {
  const socket = connect(Number(new URL(url).port), "127.0.0.1");
  onTestFinished(() => void socket.destroy());
  return socket.setEncoding("latin1");
}

/** What a server says to these bytes until it hangs up. */
async function sendRaw(url: string, text: string): Promise<string> {
  const socket = openSocket(url);
  let heard = "";
  socket.on("data", (more: string) => {
    heard += more;
  });
  socket.write(text, "latin1");
  await once(socket, "close");
  return heard;
}

const bytes = (length: number): Uint8Array => Uint8Array.from({ length }, (_, index) => index % 251);
const encode = (text: string): Uint8Array => new TextEncoder().encode(text);

test.each([
  ["nothing", ""],
  ["text", '{"ä":"😀"}'],
  ["bytes that are not text", bytes(256)],
  ["a megabyte", bytes(1024 * 1024)],
])("a body of %s comes in and goes out as it is", async (_title, body) => {
  const { url } = await bridge(async (asked) => new Response(await asked.arrayBuffer()));
  const response = await fetch(url, { method: "POST", body });
  expect(Buffer.from(await response.arrayBuffer()).equals(Buffer.from(body as string))).toBe(true);
});

test("a body that comes in pieces is whole for the handler", async () => {
  const { url } = await bridge(async (asked) => new Response(await asked.text()));
  const pieces = new ReadableStream<Uint8Array>({
    start(controller) {
      // A character of two bytes, in two pieces.
      for (const piece of [[0x61, 0xc3], [0xa4], [0x62]]) controller.enqueue(Uint8Array.from(piece));
      controller.close();
    },
  });
  const response = await fetch(url, { method: "POST", body: pieces, duplex: "half" } as RequestInit);
  expect(await response.text()).toBe("aäb");
});

test("method, address and headers arrive, the repeated ones too", async () => {
  const seen = deferred<Request>();
  const { url } = await bridge((asked) => {
    seen.resolve(asked);
    return new Response();
  });
  const text =
    "DELETE /a%20b?c=1&c=2 HTTP/1.1\r\nHost: localhost:1\r\nAccept: a/b\r\nX-Two: 1\r\nx-two: 2\r\nAccept: c/d\r\nX-Name: \xe9\r\n";
  await sendRaw(url, `${text}Authorization: Bearer first\r\nAuthorization: Bearer second\r\nConnection: close\r\n\r\n`);
  const { method, url: address, headers } = await seen.promise;
  expect([method, address]).toEqual(["DELETE", "http://localhost:1/a%20b?c=1&c=2"]);
  expect([headers.get("accept"), headers.get("x-two"), headers.get("x-name")]).toEqual(["a/b, c/d", "1, 2", "é"]);
  // As the guard saw it.
  expect(headers.get("authorization")).toBe("Bearer first");
});

test("status and headers of the answer go out, each cookie in a header of its own", async () => {
  const { url } = await bridge(() => {
    const headers = new Headers({ "X-One": "1", "Set-Cookie": "a=1" });
    headers.append("Set-Cookie", "b=2, c");
    headers.append("Vary", "Accept");
    headers.append("Vary", "Origin");
    return new Response("made", { status: 201, statusText: "Made Up", headers });
  });
  const { statusCode, statusMessage, headers } = await ask(url, { agent: false });
  expect([statusCode, statusMessage]).toEqual([201, "Made Up"]);
  expect(headers).toMatchObject({ "x-one": "1", "set-cookie": ["a=1", "b=2, c"], vary: "Accept, Origin" });
});

test.each([
  ["GET", 204],
  ["GET", 304],
  ["HEAD", 200],
])("a %s that is answered %i has no body, and the connection serves the next", async (method, status) => {
  const cancelled = deferred();
  const { url } = await bridge((asked) => {
    if (asked.method === "POST") return new Response("next");
    return new Response(method === "HEAD" ? new ReadableStream({ cancel: () => cancelled.resolve() }) : null, { status });
  });
  const head = "Host: localhost\r\n";
  const heard = await sendRaw(url, `${method} / HTTP/1.1\r\n${head}\r\nPOST / HTTP/1.1\r\n${head}Connection: close\r\n\r\n`);
  const [first, second, ...more] = heard.split(/(?=HTTP\/1\.1 )/);
  expect(first).toMatch(new RegExp(`^HTTP/1\\.1 ${status} .*\\r\\n\\r\\n$`, "s"));
  expect(first?.match(/\r\n\r\n/g)).toHaveLength(1);
  expect([second?.includes("next"), more]).toEqual([true, []]);
  if (method === "HEAD") await cancelled.promise;
});

test("the headers of an event stream go out at once, and each event as it comes", async () => {
  let events!: ReadableStreamDefaultController<Uint8Array>;
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      events = controller;
    },
  });
  const { url, done } = await bridge(() => new Response(body, { headers: { "Content-Type": "text/event-stream" } }));
  const response = await ask(url, { agent: false });
  expect(response.headers["content-type"]).toBe("text/event-stream");
  for (const text of ["data: 1\n\n", "data: 2\n\n"]) {
    events.enqueue(encode(text));
    expect(String((await once(response, "data"))[0])).toBe(text);
  }
  response.resume();
  events.close();
  await once(response, "end");
  await done();
});

test("a stream is asked for no more than its reader takes, and arrives whole", async () => {
  const piece = new Uint8Array(64 * 1024).fill(7);
  const total = 512;
  let asked = 0;
  let ended = false;
  const { url, done } = await bridge(() => {
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        if (asked++ < total) return controller.enqueue(piece);
        ended = true;
        controller.close();
      },
    });
    return new Response(body);
  });
  const socket = openSocket(url);
  socket.pause().write("GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  // The client does not read: the buffers of both sides fill up, then the server requests no more data.
  for (let before = -1; asked !== before || asked === 0; await new Promise((resolve) => setTimeout(resolve, 50))) before = asked;
  expect([asked < total, ended]).toEqual([true, false]);
  let heard = 0;
  socket.on("data", (text: string) => {
    heard += text.split("\x07").length - 1;
  });
  socket.resume();
  await once(socket, "close");
  await done();
  expect([heard, ended]).toEqual([total * piece.length, true]);
});

test.each([
  ["while it waits for the next event", 0],
  ["while more is there than it reads", 1024 * 1024],
])("a client that goes away %s has its signal fired and its stream cancelled", async (_title, flood) => {
  const [fired, cancelled] = [deferred(), deferred()];
  const piece = new Uint8Array(flood);
  const { url, errors, done } = await bridge((asked) => {
    asked.signal.addEventListener("abort", () => fired.resolve());
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(encode("first")),
      ...(flood > 0 && { pull: (controller: ReadableStreamDefaultController<Uint8Array>) => controller.enqueue(piece) }),
      cancel: () => cancelled.resolve(),
    });
    return new Response(body);
  });
  const response = await ask(url, { agent: false });
  await once(response, "data");
  response.destroy();
  await Promise.all([fired.promise, cancelled.promise, done()]);
  expect(errors).toEqual([]);
});

test("when a client disconnects early, the signal fires, a late response is cancelled and a late error is ignored", async () => {
  for (const isError of [false, true]) {
    const [began, fired, cancelled] = [deferred(), deferred(), deferred()];
    const { url, errors, done } = await bridge(async ({ signal }) => {
      began.resolve();
      await once(signal, "abort");
      fired.resolve();
      if (isError) throw new Error("too late");
      return new Response(new ReadableStream({ cancel: () => cancelled.resolve() }));
    });
    const sent = request(url, { method: "POST" });
    sent.on("error", () => {}).end("{}");
    await began.promise;
    sent.destroy();
    await fired.promise;
    if (!isError) await cancelled.promise;
    await done();
    expect(errors).toEqual([]);
  }
});

test("the signal fires even when the handler kept nothing else of the request", async () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const fired = deferred();
  const { url } = await bridge(({ signal }) => {
    signal.addEventListener("abort", () => fired.resolve());
    return new Response(new ReadableStream({ start: (controller) => controller.enqueue(encode("first")) }));
  });
  const response = await ask(url, { agent: false });
  await once(response, "data");
  for (let turn = 0; turn < 5; turn++) {
    await new Promise((resolve) => setImmediate(resolve));
    collect();
  }
  response.destroy();
  await fired.promise;
});

test("a request that was answered in full does not count as one whose client went away", async () => {
  let signal: AbortSignal | undefined;
  const { url, done } = await bridge((asked) => {
    signal = asked.signal;
    return new Response("whole");
  });
  const response = await ask(url, { agent: false });
  response.resume();
  await Promise.all([once(response, "close"), done()]);
  expect(signal?.aborted).toBe(false);
});

test("half a request leaves the handler alone", async () => {
  let isAsked = false;
  const { url, errors, done } = await bridge(() => {
    isAsked = true;
    return new Response();
  });
  const socket = openSocket(url);
  socket.write("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\nExpect: 100-continue\r\n\r\n{");
  // The server is reading then.
  await once(socket, "data");
  socket.destroy();
  await done();
  expect([isAsked, errors]).toEqual([false, []]);
});

test.each([
  ["throws", () => Promise.reject(new Error("a secret"))],
  ["throws a value that is not an error", () => Promise.reject("a secret")],
  ["answers what cannot be sent", async () => Response.error()],
])("a handler that %s is answered for with 500 and no details", async (_title, handle) => {
  const { url, errors } = await bridge(handle as () => Promise<Response>);
  const response = await fetch(url, { method: "POST", body: '{"id":1}' });
  const text = await response.text();
  expect([response.status, JSON.parse(text)]).toEqual([
    500,
    { jsonrpc: "2.0", id: null, error: { code: -32603, message: "Internal error." } },
  ]);
  expect(text).not.toContain("secret");
  expect(errors).toHaveLength(1);
});

test.each([
  ["breaks", (controller: ReadableStreamDefaultController) => controller.error(new Error("a secret"))],
  ["yields values that are not bytes", (controller: ReadableStreamDefaultController) => controller.enqueue(7)],
])("a stream that %s in the middle does not end as if it were whole", async (_title, spoil) => {
  let stream!: ReadableStreamDefaultController<Uint8Array>;
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      stream = controller;
      controller.enqueue(encode("first"));
    },
  });
  const { url, errors, done } = await bridge(() => new Response(body));
  const reader = (await fetch(url)).body?.getReader();
  expect(Buffer.from((await reader?.read())?.value ?? []).toString()).toBe("first");
  spoil(stream);
  await expect(reader?.read()).rejects.toThrow();
  await done();
  expect(errors).toHaveLength(1);
});

test("a body over the limit is refused by its length or, without one, as soon as it is over; one at the limit is not", async () => {
  let calls = 0;
  const { url } = await bridge(
    () => {
      calls++;
      return new Response("in");
    },
    { maxBodyBytes: 10 },
  );
  const head = "POST / HTTP/1.1\r\nHost: localhost\r\n";
  for (const rest of ["Content-Length: 11\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n8\r\n12345678\r\n8\r\n12345678\r\n"])
    expect(await sendRaw(url, head + rest)).toMatch(/^HTTP\/1\.1 413 [\s\S]*larger than 10 bytes/);
  expect(calls).toBe(0);
  expect(await (await fetch(url, { method: "POST", body: "1234567890" })).text()).toBe("in");
});

test.each([
  ["TRACE / HTTP/1.1", "localhost"],
  ["OPTIONS * HTTP/1.1", "localhost"],
  ["GET / HTTP/1.1", "user@localhost"],
  ["GET / HTTP/1.1", "local host:99999"],
])("%s with the host %s is refused with 400", async (line, host) => {
  const { url, errors } = await bridge(() => new Response("in"));
  expect(await sendRaw(url, `${line}\r\nHost: ${host}\r\n\r\n`)).toMatch(/^HTTP\/1\.1 400 /);
  expect(errors).toEqual([]);
});

test("requests that come together on one connection are answered in turn", async () => {
  const { url } = await bridge(async (asked) => new Response(await asked.text()));
  const post = (body: string, more = ""): string =>
    `POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${body.length}\r\n${more}\r\n${body}`;
  const heard = await sendRaw(url, post("first") + post("second") + post("third", "Connection: close\r\n"));
  expect(heard.match(/first|second|third/g)).toEqual(["first", "second", "third"]);
});

test("a client of HTTP/1.0 gets the stream without pieces' lengths", async () => {
  const { url } = await bridge(() => new Response(new Blob(["whole"]).stream()));
  expect(await sendRaw(url, "POST / HTTP/1.0\r\nContent-Length: 2\r\n\r\n{}")).toMatch(/\r\n\r\nwhole$/);
});
