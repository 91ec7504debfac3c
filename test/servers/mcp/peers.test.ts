import { definePlugin, type McpPeer, type McpPeers, type McpSessionRequests } from "skillhost";
import { describe, expect, onTestFinished, test } from "vitest";
import { createHost } from "../../../src/host/create-host.ts";
import { serveMcp } from "../../../src/servers/mcp/serve-mcp.ts";
import { approveAll } from "../../../src/tools/tool.ts";
import { putAll, tempFolder } from "../../skills/kit.ts";
import { deferred, skillDocument, toolModule } from "./serving-kit.ts";

const tools = toolModule(`[
  defineTool("level", { description: "Logs.", handler: (_args, _invocation, { progress }) => { progress({ level: "info", message: "noted" }); return "done"; } }),
  defineTool("hold", { description: "Waits for the test.", handler: (_args, _invocation, { progress }) => { progress({ progress: 1 }); return globalThis.heldCall; } }),
]`);

/** Peers in one process, which share a table of sessions. */
class LocalPeers implements McpPeers {
  readonly #servers = new Map<string, McpPeer>();
  readonly #records = new Map<string, { readonly owner: string; readonly requests: McpSessionRequests; readonly revision: number }>();
  #count = 0;

  get sessions(): readonly string[] {
    return [...this.#records.keys()];
  }

  join(_name: string, server: McpPeer): ReturnType<McpPeers["join"]> {
    const id = `server-${++this.#count}`;
    this.#servers.set(id, server);
    const [servers, records] = [this.#servers, this.#records];
    const keep = (sessionId: string, requests: McpSessionRequests): void =>
      void records.set(sessionId, { owner: id, requests, revision: (records.get(sessionId)?.revision ?? 0) + 1 });
    return {
      id,
      async pass(to, request, response) {
        const peer = servers.get(to);
        if (peer === undefined) return "absent";
        return new Promise((resolve) => {
          const { signal } = response;
          peer.answer(request, {
            signal,
            begin: (status, headers) => response.begin(status, headers),
            write: (text) => response.write(text),
            end: () => {
              response.end();
              resolve("ended");
            },
            abandon: () => {
              response.abandon();
              resolve("ended");
            },
            refuse: () => resolve("absent"),
          });
        });
      },
      announce: (list) => {
        for (const [other, peer] of servers) if (other !== id) peer.listChanged(list);
      },
      find: async (sessionId) => records.get(sessionId),
      keep: async (sessionId, requests) => keep(sessionId, requests),
      take: async (sessionId, found) => {
        if (records.get(sessionId)?.revision !== found.revision) return false;
        keep(sessionId, found.requests);
        servers.get(found.owner)?.sessionTaken(sessionId);
        return true;
      },
      forget: async (sessionId) => void records.delete(sessionId),
      [Symbol.asyncDispose]: async () => void servers.delete(id),
    };
  }
}

async function serve(peers: McpPeers): Promise<{ readonly url: string; stop(): Promise<void> }> {
  const root = tempFolder();
  putAll(`${root}/helper`, { "SKILL.md": skillDocument("helper"), "tools/all.ts": tools });
  const plugin = definePlugin({ name: "peers", activate: (api) => api.addMcpPeers(peers) });
  const host = await createHost({ skillDirectories: [root], workingDirectory: root, plugins: [plugin], watch: false });
  onTestFinished(() => host.close());
  const session = { onPermissionRequest: approveAll };
  const face = await serveMcp(host, { transport: "http", port: 0, token: false, asksPermission: false, session });
  const stop = async (): Promise<void> => face[Symbol.asyncDispose]();
  onTestFinished(stop);
  return { url: face.url, stop };
}

const common = { accept: "application/json, text/event-stream", "content-type": "application/json" };

interface RawSession {
  readonly headers: Readonly<Record<string, string>>;
  send(url: string, message: object): Promise<Response>;
}

async function open(url: string): Promise<RawSession> {
  const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "raw", version: "1" } };
  const body = JSON.stringify({ jsonrpc: "2.0", id: 0, method: "initialize", params });
  const begun = await fetch(url, { method: "POST", headers: common, body });
  await begun.text();
  const headers = { ...common, "mcp-session-id": begun.headers.get("mcp-session-id") as string, "mcp-protocol-version": "2025-11-25" };
  const send = (to: string, message: object): Promise<Response> =>
    fetch(to, { method: "POST", headers, body: JSON.stringify({ jsonrpc: "2.0", ...message }) });
  await send(url, { method: "notifications/initialized" });
  return { headers, send };
}

const calling = (id: string | number, name: string): object => ({ id, method: "tools/call", params: { name, arguments: {} } });

/** The text of a stream up to the first event that has this. */
async function readUntil(response: Response, what: string): Promise<string> {
  const reader = (response.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (let read = await reader.read(); !read.done; read = await reader.read()) {
    text += read.value;
    if (text.includes(what)) break;
  }
  await reader.cancel();
  return text;
}

describe("servers that are peers", () => {
  test("answer for each other, with what the client had chosen", async () => {
    const peers = new LocalPeers();
    const [first, second] = [await serve(peers), await serve(peers)];
    const { send } = await open(first.url);
    expect((await send(second.url, { id: 1, method: "logging/setLevel", params: { level: "error" } })).status).toBe(200);
    expect(await (await send(second.url, calling(2, "level"))).text()).not.toContain("noted");
    await first.stop();
    // The session that the second server continues has the level, too.
    const answer = await (await send(second.url, calling(3, "level"))).text();
    expect(answer).toContain("done");
    expect(answer).not.toContain("noted");
  });

  test("answer the requests of a stream whose server is gone: their outcome is unknown", async () => {
    const held = deferred();
    Object.assign(globalThis, { heldCall: held.promise });
    onTestFinished(() => void Reflect.deleteProperty(globalThis, "heldCall"));
    onTestFinished(() => held.resolve());
    const peers = new LocalPeers();
    const [first, second] = [await serve(peers), await serve(peers)];
    const { headers, send } = await open(first.url);
    const text = await readUntil(await send(first.url, calling("a/b", "hold")), "\n\n");
    const [, lastEventId = ""] = /^id: (\S+)$/m.exec(text) ?? [];
    await first.stop();
    const resume = (id: string): Promise<Response> => fetch(second.url, { headers: { ...headers, "last-event-id": id } });
    const resumed = await (await resume(lastEventId)).text();
    expect(JSON.parse(/^data: (.*)$/m.exec(resumed)?.[1] as string)).toMatchObject({
      id: "a/b",
      error: { message: expect.stringContaining("unknown") },
    });
    // The stream of notifications begins again, with what the client may have missed.
    const listening = await resume(lastEventId.replace(/\.[^.]*$/, ".standalone"));
    expect(await readUntil(listening, "resources/list_changed")).toContain("notifications/tools/list_changed");
    for (const id of ["1", "x", lastEventId.replace(/[^.-]*$/, "!"), lastEventId.replace(/[^.-]*$/, "eyJ9")])
      expect((await resume(id)).status).toBe(400);
  });

  test("forget a session that its client has ended", async () => {
    const peers = new LocalPeers();
    const [first, second] = [await serve(peers), await serve(peers)];
    const { headers, send } = await open(first.url);
    expect(peers.sessions).toHaveLength(1);
    expect((await fetch(second.url, { method: "DELETE", headers })).status).toBe(200);
    await expect.poll(() => peers.sessions).toEqual([]);
    expect((await send(second.url, calling(1, "level"))).status).toBe(404);
    expect((await send(first.url, calling(1, "level"))).status).toBe(404);
  });

  test("refuse a record that no server has written", async () => {
    const peers = new LocalPeers();
    const { url } = await serve(peers);
    const { send, headers } = await open(url);
    const id = headers["mcp-session-id"] as string;
    const stray = peers.join("skillhost", { answer: () => {}, listChanged: () => {}, sessionTaken: () => {} });
    await stray.take(id, { ...((await stray.find(id)) as never as { owner: string; requests: []; revision: number }) });
    await stray.keep(id, [{ method: "tools/list" }]);
    await stray[Symbol.asyncDispose]();
    expect((await send(url, calling(1, "level"))).status).toBe(503);
  });
});
