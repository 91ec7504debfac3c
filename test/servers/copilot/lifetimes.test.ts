import { join } from "node:path";
import { PassThrough } from "node:stream";
import { afterEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { silentLogger } from "../../../src/base/logger.ts";
import { ModelRequests } from "../../../src/servers/copilot/clients/model-requests.ts";
import { type AnswerRequest, Wire } from "../../../src/servers/copilot/connection/wire.ts";
import { dropClient } from "../../../src/servers/copilot/sessions/session-registry.ts";
import { calling, Served, TestClient, weather } from "./wire-kit.ts";

let served: Served;

afterEach(() => served?.[Symbol.asyncDispose]());

/** Unhandled rejections during the test. */
function unhandled(): unknown[] {
  const reasons: unknown[] = [];
  const note = (reason: unknown): void => void reasons.push(reason);
  const others = process.listeners("unhandledRejection");
  process.removeAllListeners("unhandledRejection").on("unhandledRejection", note);
  onTestFinished(() => {
    process.off("unhandledRejection", note);
    for (const other of others) process.on("unhandledRejection", other);
  });
  return reasons;
}

async function turnsOfTheLoop(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise(setImmediate);
}

function wirePair(): { readonly wire: Wire; readonly client: TestClient } {
  const [toServer, fromServer] = [new PassThrough(), new PassThrough()];
  const output = { write: (text: string) => void fromServer.write(text), pendingBytes: 0 };
  const answer: AnswerRequest = () => null;
  const wire = new Wire({ input: toServer, output }, answer, silentLogger);
  onTestFinished(() => wire.close());
  return { wire, client: new TestClient(toServer, fromServer) };
}

describe("a request to a client", () => {
  test("a request settles when its signal fires, even if the client ignores the cancellation", async () => {
    const { wire, client } = wirePair();
    let isAsked = (): void => {};
    const asked = new Promise<void>((resolve) => {
      isAsked = resolve;
    });
    client.answers("hooks.invoke", () => {
      isAsked();
      return new Promise(() => {});
    });
    const stop = new AbortController();
    const answer = wire.request("hooks.invoke", {}, stop.signal);
    await asked;
    stop.abort(new Error("not any more"));
    await expect(answer).rejects.toThrow("not any more");
  });

  test("settles when the line is closed", async () => {
    const { wire, client } = wirePair();
    client.answers("hooks.invoke", () => new Promise(() => {}));
    const answer = wire.request("hooks.invoke", {}, new AbortController().signal);
    wire.close();
    await expect(answer).rejects.toThrow();
  });
});

describe("a request to a model that a client carries", () => {
  const request = { method: "POST", headers: {}, body: "{}", redirect: "manual" } as const;

  /** A client that never answers. */
  function carrier() {
    const wire = { isOpen: true, closed: new Promise<void>(() => {}), request: vi.fn(() => new Promise(() => {})) };
    return { wire, requests: new ModelRequests(wire as never) };
  }

  test("that ends while it is still being sent leaves no rejection unhandled", async () => {
    const reasons = unhandled();
    const { wire, requests } = carrier();
    const refusals: ((error: Error) => void)[] = [];
    wire.request.mockImplementation(() => new Promise((_resolve, reject) => refusals.push(reject)));
    const stop = new AbortController();
    const failed = expect(requests.fetchFor("s")("http://model", { ...request, signal: stop.signal })).rejects.toThrow(
      "the turn was stopped",
    );
    stop.abort(new Error("the turn was stopped"));
    await turnsOfTheLoop(5);
    for (const refuse of refusals) refuse(new Error("gone"));
    await failed;
    await turnsOfTheLoop(5);
    expect(reasons).toEqual([]);
  });

  test("that was cancelled before it began fails with the reason of that", async () => {
    const reasons = unhandled();
    const { requests } = carrier();
    const signal = AbortSignal.abort(new Error("the session has ended"));
    await expect(requests.fetchFor("s")("http://model", { ...request, signal })).rejects.toThrow("the session has ended");
    await turnsOfTheLoop(5);
    expect(reasons).toEqual([]);
  });

  test("fails with all others when the client has gone, and leaves nothing on the client when it is over", async () => {
    const { wire, requests } = carrier();
    const listens = vi.spyOn(wire.closed, "then");
    const fetch = requests.fetchFor("s");
    const open = Array.from({ length: 100 }, () => fetch("http://model", { ...request, signal: new AbortController().signal }));
    await turnsOfTheLoop(2);
    requests.close();
    for (const answer of await Promise.allSettled(open)) expect(answer).toMatchObject({ status: "rejected" });
    expect(listens).not.toHaveBeenCalled();
  });

  test("ends when its session does", async () => {
    const reasons = unhandled();
    served = await Served.start();
    const client = await served.connect();
    await client.request("llmInference.setProvider", {});
    const asked = new Promise<void>((resolve) => {
      client.answers("llmInference.httpRequestStart", () => {
        resolve();
        return new Promise(() => {});
      });
    });
    client.answers("llmInference.httpRequestChunk", () => ({}));
    const sessionId = await client.create({ model: "m" });
    await client.request("session.send", { sessionId, prompt: "Go" });
    await asked;
    await client.request("session.destroy", { sessionId });
    await turnsOfTheLoop(5);
    expect(reasons).toEqual([]);
  });
});

describe("a resume that is refused", () => {
  const plugin = {
    "guard/plugin.json": JSON.stringify({ name: "guard", version: "1.0.0" }),
    "guard/hooks.json": JSON.stringify({ version: 1, hooks: { preToolUse: [{ type: "command", bash: "true" }] } }),
    "other/plugin.json": JSON.stringify({ name: "other", version: "1.0.0" }),
  };

  async function withPlugin(): Promise<{ readonly client: TestClient; readonly sessionId: string }> {
    served = await Served.start({ files: plugin });
    const client = await served.connect();
    client.serve({ get_weather: () => "Sun." });
    const pluginDirectories = [join(served.folder, "guard")];
    return { client, sessionId: await client.create({ model: "m", pluginDirectories, tools: [weather] }) };
  }

  async function expectCalled(client: TestClient, sessionId: string): Promise<void> {
    served.says(calling("get_weather", { city: "Rome" }), "Done.");
    await client.say(sessionId, "Go");
    expect(served.asked.messages.at(-1).content).toBe("Sun.");
  }

  test("leaves the session with the plugins that it has", async () => {
    const { client, sessionId } = await withPlugin();
    await expectCalled(client, sessionId);
    const other = await served.connect();
    const { message } = await other.refusal("session.resume", {
      sessionId,
      pluginDirectories: [join(served.folder, "other")],
      availableTools: "none of these",
    });
    expect(message).not.toBe("");
    await expectCalled(client, sessionId);
    expect((await client.request("session.plugins.list", { sessionId })).plugins).toMatchObject([{ name: "guard" }]);
  });

  test("a client that leaves takes its hooks with it", async () => {
    const { client, sessionId } = await withPlugin();
    const other = await served.connect();
    other.answers("hooks.invoke", () => new Promise(() => {}));
    const clashing = { ...weather, description: "Another of the same name." };
    await other.refusal("session.resume", { sessionId, hooks: true, tools: [clashing] });
    await expectCalled(client, sessionId);
  });
});

test("one session that cannot be kept for a client that has gone does not keep the others from it", async () => {
  served = await Served.start();
  const [client, other] = [await served.connect(), await served.connect()];
  const ids = [await client.create({ hooks: true }), await client.create({ hooks: true }), await client.create({ hooks: true })];
  for (const sessionId of ids) await other.request("session.resume", { sessionId });
  const sessions = ids.map((id) => served.server.sessions.get(id)!);
  vi.spyOn(sessions[0]!.session, "update").mockRejectedValue(new Error("not now"));
  const [gone] = [...served.server.clients];
  await expect(dropClient(served.server, gone!)).rejects.toThrow("1 sessions of a disconnected client");
  expect(sessions.map(({ clients }) => clients.includes(gone!))).toEqual([false, false, false]);
});
