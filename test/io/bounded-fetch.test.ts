import { createServer, type IncomingMessage, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { expect, onTestFinished, test } from "vitest";
import { boundedFetch, type FetchRequest } from "../../src/io/net/bounded-fetch.ts";
import { patience } from "../slowness.ts";

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const ask = (url: string, more: Partial<FetchRequest> = {}): ReturnType<typeof boundedFetch> =>
  boundedFetch({ url, method: "GET", signal: AbortSignal.timeout(patience(10_000)), maxBytes: 10_000, ...more });

const bodyOf = async (request: IncomingMessage): Promise<string> => {
  let body = "";
  for await (const chunk of request) body += chunk;
  return body;
};

test("a fetch returns status, headers and text for every status", async () => {
  const url = await serve(async (request, response) => {
    response.writeHead(418, { "X-Kind": "teapot", "content-type": "text/plain; charset=iso-8859-1" });
    response.end(
      Buffer.concat([Buffer.from(`${request.method} ${request.headers["x-a"]} ${await bodyOf(request)} `), Buffer.from([0xe4])]),
    );
  });
  const outcome = await ask(url, { method: "post", headers: { "x-a": "1" }, body: "hello" });
  expect(outcome).toMatchObject({ kind: "response", status: 418, text: "POST 1 hello ä", truncated: false, url: `${url}/` });
  expect(outcome.kind === "response" && outcome.headers["x-kind"]).toBe("teapot");
});

test("a fetch stops reading at the limit, counted after decompression", async () => {
  const big = Buffer.alloc(5_000_000, "ü");
  const packed = { gzip: gzipSync(big), br: brotliCompressSync(big, { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } }), none: big };
  const url = await serve((request, response) => {
    const kind = (request.url ?? "").slice(1) as keyof typeof packed;
    if (kind !== "none") response.setHeader("content-encoding", kind);
    response.end(packed[kind]);
  });
  for (const kind of ["gzip", "br", "none"]) {
    const outcome = await ask(`${url}/${kind}`, { maxBytes: 101 });
    expect(outcome).toMatchObject({ kind: "response", truncated: true, text: "ü".repeat(50) });
    expect(outcome.kind === "response" && outcome.bytes.length).toBe(101);
  }
  expect(await ask(`${url}/gzip`, { maxBytes: 5_000_000 })).toMatchObject({ truncated: false });
});

test("a fetch ends an endless body at the limit", async () => {
  const url = await serve((_request, response) => {
    const timer = setInterval(() => response.write("x".repeat(1000)), 1);
    response.on("close", () => clearInterval(timer));
  });
  expect(await ask(url, { maxBytes: 5000 })).toMatchObject({ kind: "response", truncated: true, text: "x".repeat(5000) });
});

test("a fetch follows redirects within the origin, with method and headers as browsers do", async () => {
  const url = await serve(async (request, response) => {
    const status = Number(request.url?.slice(1));
    if (status > 300) return void response.writeHead(status, { location: "/end" }).end();
    response.end(`${request.method} ${request.headers.authorization} ${request.headers["content-type"]} ${await bodyOf(request)}`);
  });
  const post = (status: number): ReturnType<typeof boundedFetch> =>
    ask(`${url}/${status}`, { method: "POST", body: "b", headers: { authorization: "key", "content-type": "text/x" } });
  for (const status of [301, 302, 303]) expect(await post(status)).toMatchObject({ text: "GET key undefined ", url: `${url}/end` });
  for (const status of [307, 308]) expect(await post(status)).toMatchObject({ text: "POST key text/x b" });
});

test("a fetch follows a redirect to another origin only if allowed, and sends no credentials there", async () => {
  const other = await serve((request, response) => response.end(JSON.stringify(request.headers)));
  const url = await serve((_request, response) => response.writeHead(307, { location: `${other}/there?a=1` }).end());
  const headers = { authorization: "Bearer s3cret", cookie: "s3cret", "x-api-key": "s3cret", accept: "text/x" };
  expect(await ask(url, { headers })).toMatchObject({ kind: "failed", reason: "redirect-refused" });
  const asked: string[] = [];
  const allowHost = (to: URL): boolean => {
    asked.push(to.origin);
    return true;
  };
  const outcome = await ask(url, { headers, allowHost });
  expect(outcome).toMatchObject({ kind: "response", url: `${other}/there?a=1` });
  expect(outcome.kind === "response" && outcome.text).not.toContain("s3cret");
  expect(outcome.kind === "response" && JSON.parse(outcome.text).accept).toBe("text/x");
  expect(asked).toEqual([url, other]);
});

test("a fetch checks whether a host is allowed before each request, including the first", async () => {
  let requests = 0;
  const url = await serve((_request, response) => {
    requests++;
    response.end();
  });
  expect(await ask(url, { allowHost: () => false })).toMatchObject({ kind: "failed", reason: "host-refused" });
  const redirecting = await serve((_request, response) => response.writeHead(302, { location: url }).end());
  expect(await ask(redirecting, { allowHost: (to) => to.origin === redirecting })).toMatchObject({ reason: "host-refused" });
  expect(requests).toBe(0);
});

test.each(["file:///etc/passwd", "ftp://x/", "javascript:1", "http://user:s3cret@127.0.0.1/", "not an address", "//x", ""])(
  "a bounded fetch refuses the address %j",
  async (url) => {
    const outcome = await ask(url);
    expect(outcome).toMatchObject({ kind: "failed", reason: "invalid-url" });
    expect(JSON.stringify(outcome)).not.toContain("s3cret");
  },
);

test.each(["file:///etc/passwd", "data:text/plain,x", "http://u:p@127.0.0.1/", "http://["])(
  "a bounded fetch refuses a redirect to %s",
  async (location) => {
    const url = await serve((_request, response) => response.writeHead(302, { location }).end());
    expect(await ask(url, { allowHost: () => true })).toMatchObject({ kind: "failed", reason: "redirect-refused" });
  },
);

test("a fetch ends endless redirects, and returns a redirect without a location as a response", async () => {
  let count = 0;
  const url = await serve((request, response) => {
    count++;
    response.writeHead(302, request.url === "/nowhere" ? {} : { location: `/${count}` }).end();
  });
  expect(await ask(url, { maxRedirects: 3 })).toMatchObject({ kind: "failed", reason: "too-many-redirects" });
  expect(count).toBe(4);
  expect(await ask(url, { maxRedirects: 1 })).toMatchObject({ reason: "too-many-redirects" });
  expect(await ask(url, { maxRedirects: 0 })).toMatchObject({ kind: "response", status: 302, headers: { location: expect.any(String) } });
  expect(await ask(`${url}/nowhere`)).toMatchObject({ kind: "response", status: 302 });
});

test("an error of a fetch contains the host, but no header, path or query", async () => {
  const headers = { authorization: "Bearer s3cret" };
  const dead = await serve((request) => request.socket.destroy());
  expect(await ask(`${dead}/s3cret?k=s3cret`, { headers })).toMatchObject({ kind: "failed", reason: "network" });
  const outcomes = [
    await ask(`${dead}/s3cret?k=s3cret`, { headers }),
    await ask("http://127.0.0.1:1/s3cret", { headers }),
    await ask(dead, { headers: { "x-key": "s3cret\r\nx: y" } }),
    await ask(dead, { headers: { "bad name s3cret": "x" } }),
    await ask(dead, { method: "s3cret method" }),
    await ask(dead, { body: "s3cret" }),
  ];
  expect(outcomes.map((outcome) => outcome.kind === "failed" && outcome.reason)).toEqual([
    "network",
    "network",
    "invalid-request",
    "invalid-request",
    "invalid-request",
    "invalid-request",
  ]);
  expect(JSON.stringify(outcomes)).not.toContain("s3cret");
});

test("an abort ends a fetch at any point, and leaves no listener on the signal", async () => {
  const controller = new AbortController();
  const url = await serve((request, response) => {
    if (request.url === "/body") response.write("some");
    setImmediate(() => controller.abort());
  });
  expect(await ask(`${url}/body`, { signal: controller.signal })).toMatchObject({ kind: "failed", reason: "aborted" });
  expect(await ask(url, { signal: controller.signal })).toMatchObject({ kind: "failed", reason: "aborted" });
  const long = new AbortController();
  let listening = 0;
  const { addEventListener, removeEventListener } = long.signal;
  long.signal.addEventListener = (...args: Parameters<typeof addEventListener>) => {
    listening++;
    addEventListener.apply(long.signal, args);
  };
  long.signal.removeEventListener = (...args: Parameters<typeof removeEventListener>) => {
    listening--;
    removeEventListener.apply(long.signal, args);
  };
  const plain = await serve((_request, response) => response.end("ok"));
  for (let i = 0; i < 20; i++) expect(await ask(plain, { signal: long.signal })).toMatchObject({ text: "ok" });
  expect(listening).toBe(0);
});

test("headers named like object members are ordinary headers", async () => {
  const url = await serve((_request, response) => {
    response.setHeader("__proto__", "x");
    response.setHeader("constructor", "y");
    response.end();
  });
  const outcome = await ask(url);
  expect(outcome.kind === "response" && Object.getPrototypeOf(outcome.headers)).toBe(null);
  expect(outcome.kind === "response" && outcome.headers["constructor"]).toBe("y");
});
