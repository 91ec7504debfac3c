import { EventEmitter } from "node:events";
import { expect, test } from "vitest";
import { guardFetch } from "../../../src/mcp/connection/http-transport.ts";

const options = { serverName: "peer", url: new URL("https://peer.test/mcp"), headers: { "X-Key": "k1" }, maxMessageBytes: 100 };

/** A fetch that answers with these chunks, and notes what it was asked with. */
function answering(chunks: readonly string[], type = "application/json") {
  const asked: { url: string; key: string | null }[] = [];
  const base = async (url: string | URL, init?: RequestInit): Promise<Response> => {
    asked.push({ url: String(url), key: new Headers(init?.headers).get("x-key") });
    const bytes = chunks.map((chunk) => new TextEncoder().encode(chunk));
    return new Response(ReadableStream.from(bytes), { headers: { "content-type": type } });
  };
  return { asked, fetch: guardFetch(options, base) };
}

test("configured headers go to the server's own origin only, and never over one that is there", async () => {
  const { fetch, asked } = answering(["{}"]);
  for (const url of ["https://peer.test/other", "https://auth.test/token", "http://peer.test/mcp", "https://peer.test:8443/mcp"])
    await fetch(url);
  await fetch("https://peer.test/mcp", { headers: { "x-key": "own" } });
  expect(asked.map(({ key }) => key)).toEqual(["k1", null, null, null, "own"]);
});

test("an answer over the limit fails while it is read", async () => {
  const response = await answering(["x".repeat(60), "x".repeat(60)]).fetch("https://peer.test/mcp");
  await expect(response.text()).rejects.toMatchObject({ code: "MCP_ANSWER" });
});

test("of a stream of events each event counts, wherever the chunks are cut", async () => {
  const event = `data: ${"x".repeat(50)}`;
  const chunks = [`${event}\n\n${event}`, "\n", "\n", event, "\r\n\r\n", `${event}\n\n${event}\n\n`];
  const response = await answering(chunks, "text/event-stream").fetch("https://peer.test/mcp");
  expect((await response.text()).length).toBeGreaterThan(250);
  const long = await answering([event, event], "text/event-stream; charset=utf-8").fetch("https://peer.test/mcp");
  await expect(long.text()).rejects.toMatchObject({ code: "MCP_ANSWER" });
});

test("nothing is left on a signal that lives as long as the connection", async () => {
  const { signal } = new AbortController();
  const { fetch } = answering(["{}"]);
  const read = await fetch("https://peer.test/mcp", { signal });
  await read.text();
  const dropped = await fetch("https://peer.test/mcp", { signal });
  await dropped.body?.cancel();
  const failing = guardFetch(options, () => Promise.reject(new TypeError("fetch failed")));
  await expect(failing("https://peer.test/mcp", { signal })).rejects.toThrow("fetch failed");
  expect(EventEmitter.getEventListeners(signal, "abort")).toEqual([]);
});

test("the signal ends a request that waits", async () => {
  const controller = new AbortController();
  const base = (_url: string | URL, init?: RequestInit) =>
    new Promise<Response>((_resolve, reject) => init?.signal?.addEventListener("abort", () => reject(init.signal?.reason)));
  const waiting = guardFetch(options, base)("https://peer.test/mcp", { signal: controller.signal });
  controller.abort(new Error("enough"));
  await expect(waiting).rejects.toThrow("enough");
});
