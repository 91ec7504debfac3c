import { request as httpRequest, type RequestOptions } from "node:http";
import { connect } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import { type LoopbackCallback, type LoopbackCallbackOptions, openLoopbackCallback } from "../../src/io/net/loopback-callback.ts";

async function open(options: Partial<LoopbackCallbackOptions> = {}): Promise<LoopbackCallback> {
  const callback = await openLoopbackCallback({ path: "/callback", thanks: "Thanks.", ...options });
  onTestFinished(() => callback[Symbol.asyncDispose]());
  return callback;
}

const never = new AbortController().signal;
const hasCode = (address: URL): boolean => address.searchParams.get("code") === "right";

describe("a request to the callback", () => {
  test("the first accepted request is returned unchanged and gets a page", async () => {
    const callback = await open();
    expect(callback.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/callback$/);
    const received = callback.received(hasCode, never);
    const page = await fetch(`${callback.url}?code=right&state=a%20b`);
    expect(page.status).toBe(200);
    expect(await page.text()).toBe("Thanks.\n");
    expect(page.headers.get("referrer-policy")).toBe("no-referrer");
    expect(page.headers.get("cache-control")).toBe("no-store");
    expect((await received).href).toBe(`${callback.url}?code=right&state=a%20b`);
  });

  test("every other request gets status 400 and has no effect", async () => {
    const callback = await open();
    const received = callback.received(hasCode, never);
    expect((await fetch(`${callback.url}?code=wrong<script>`)).status).toBe(400);
    await fetch(`${callback.url}?code=right`);
    expect((await received).searchParams.get("code")).toBe("right");
    expect((await fetch(`${callback.url}?code=right`)).status).toBe(400);
  });

  test("no request is accepted before the caller waits for one", async () => {
    const callback = await open();
    expect((await fetch(`${callback.url}?code=right`)).status).toBe(400);
  });
});

describe("refused requests to the callback", () => {
  test.for([
    ["another name for this machine", { headers: { host: "evil.example" } }, 403],
    ["another port in the Host", { headers: { host: "127.0.0.1:1" } }, 403],
    ["another path", { path: "/other?code=right" }, 404],
    ["a path that begins like it", { path: "/callback/more?code=right" }, 404],
    ["another host in the request line", { path: "http://evil.example/callback?code=right" }, 404],
    ["a path that is read as a host", { path: "//evil.example/callback?code=right" }, 404],
    ["another method", { method: "POST" }, 405],
  ] as const)("the callback refuses %s", async ([, options, status]) => {
    const callback = await open();
    let isReceived = false;
    const stop = new AbortController();
    const received = callback.received(hasCode, stop.signal).then(
      () => {
        isReceived = true;
      },
      () => {},
    );
    const { port } = new URL(callback.url);
    expect(await ask({ host: "127.0.0.1", port, path: "/callback?code=right", ...options })).toEqual({ status, holdsRequest: false });
    stop.abort();
    await received;
    expect(isReceived).toBe(false);
  });

  test("the callback listens on the loopback address only, under both of its names", async () => {
    const callback = await open({ hostname: "localhost" });
    const { port } = new URL(callback.url);
    expect(callback.url).toBe(`http://localhost:${port}/callback`);
    expect(await ask({ host: "127.0.0.1", port, path: "/callback", headers: { host: `localhost:${port}` } })).toMatchObject({
      status: 400,
    });
    expect(await ask({ host: "127.0.0.1", port, path: "/callback", headers: { host: `127.0.0.1:${port}` } })).toMatchObject({
      status: 400,
    });
  });
});

describe("the end of a callback", () => {
  test("an abort ends the wait with its reason", async () => {
    const callback = await open();
    const stop = new AbortController();
    const received = callback.received(hasCode, stop.signal);
    stop.abort(new Error("enough"));
    await expect(received).rejects.toThrow("enough");
  });

  test("disposing closes the port, even with a connected, silent client", async () => {
    const callback = await open();
    const { port } = new URL(callback.url);
    const socket = connect(Number(port), "127.0.0.1");
    await new Promise((resolve) => socket.once("connect", resolve));
    socket.on("error", () => {});
    await callback[Symbol.asyncDispose]();
    await expect(fetch(callback.url)).rejects.toThrow("fetch failed");
  });

  test("a port in use is an error of the system", async () => {
    const callback = await open();
    await expect(open({ port: Number(new URL(callback.url).port) })).rejects.toMatchObject({ code: "EADDRINUSE" });
  });
});

function ask(options: RequestOptions): Promise<{ status: number | undefined; holdsRequest: boolean }> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(options, async (response) => {
      let body = "";
      for await (const chunk of response) body += chunk;
      resolve({ status: response.statusCode, holdsRequest: /evil|right|other/.test(body) });
    });
    request.on("error", reject);
    request.end();
  });
}
