import { HostError, type MessageStream, type StreamPart } from "skillhost";
import { describe, expect, test } from "vitest";
import type { FakeAnswer } from "../../doubles/fake-chat.ts";
import { fakeChat } from "../../doubles/fake-chat.ts";
import { deferred, nextEvent, sessionWith, settleMicrotasks } from "../session-kit.ts";

const echo = { name: "echo", skipPermission: true, handler: ({ text }: { text?: string }) => `said ${text}` };

/** A model whose answer comes in two parts if the request asks for that. */
const inParts =
  (first: string, second: string): FakeAnswer =>
  async ({ stream }, { onDelta }) => {
    if (stream) {
      onDelta?.({ kind: "reasoning", text: "hm", receivedBytes: 2 });
      onDelta?.({ kind: "text", text: first, receivedBytes: 5 });
      await settleMicrotasks();
      onDelta?.({ kind: "text", text: second, receivedBytes: 10 });
    }
    return first + second;
  };

const open = (...answers: FakeAnswer[]) =>
  sessionWith([echo], { chatModel: fakeChat(...answers), onPermissionRequest: () => ({ kind: "approve-once" }) });

async function readAll(stream: MessageStream): Promise<StreamPart[]> {
  const parts: StreamPart[] = [];
  for await (const part of stream) parts.push(part);
  return parts;
}

async function textOf(stream: MessageStream): Promise<string> {
  let text = "";
  for await (const part of stream.textStream) text += part;
  return text;
}

describe("the stream of a message", () => {
  test("gives text, thoughts, calls and results in order, then the reply", async () => {
    const session = open({ calls: [{ id: "c1", name: "echo", args: { text: "a" } }] }, inParts("It ", "works."));
    const parts = await readAll(session.stream("Go."));
    expect(parts).toEqual([
      { type: "tool-call", toolCallId: "c1", toolName: "echo", input: { text: "a" } },
      { type: "tool-result", toolCallId: "c1", toolName: "echo", success: true, output: "said a" },
      { type: "reasoning-delta", text: "hm" },
      { type: "text-delta", text: "It " },
      { type: "text-delta", text: "works." },
      { type: "finish", reply: expect.objectContaining({ content: "It works.", model: "fake-model" }) },
    ]);
  });

  test("asks the model to stream only for its own message", async () => {
    const chat = fakeChat("one", "two", "three");
    const session = sessionWith([], { chatModel: chat });
    await session.sendAndWait("1");
    await readAll(session.stream("2"));
    await session.sendAndWait("3");
    expect(chat.requests.map(({ stream }) => stream)).toEqual([false, true, false]);
  });

  test("gives the whole text at once when the model does not stream, and the same reply as sendAndWait", async () => {
    const session = open("Plain.");
    const stream = session.stream({ prompt: "Go." });
    expect(await readAll(stream)).toMatchObject([{ type: "text-delta", text: "Plain." }, { type: "finish" }]);
    expect(await stream.reply).toMatchObject({ content: "Plain." });
  });

  test("joins text that waits for a slow reader, and can be read after the turn has ended", async () => {
    const session = open(inParts("a", "b"));
    const stream = session.stream("Go.");
    await stream.reply;
    expect(await readAll(stream)).toMatchObject([{ type: "reasoning-delta" }, { type: "text-delta", text: "ab" }, { type: "finish" }]);
  });

  test("has the parts of its own message alone when several are sent", async () => {
    const session = open(inParts("one ", "1"), inParts("two ", "2"));
    const streams = [session.stream("1"), session.stream("2")];
    expect(await Promise.all(streams.map(textOf))).toEqual(["one 1", "two 2"]);
  });

  test("is read once", async () => {
    const session = open("x");
    const stream = session.stream("Go.");
    await readAll(stream);
    expect(() => stream[Symbol.asyncIterator]()).toThrow(expect.objectContaining({ code: "STREAM_TAKEN" }));
    expect(() => stream.toResponse()).toThrow(HostError);
  });

  test("throws the error of the turn to its reader, after the parts before it, and causes no unhandled rejection", async () => {
    const session = open({ calls: [{ id: "c", name: "echo", args: {} }] }, () => Promise.reject(new Error("The endpoint is down.")));
    const parts: StreamPart[] = [];
    const reading = (async () => {
      for await (const part of session.stream("Go.")) parts.push(part);
    })();
    await expect(reading).rejects.toThrow("The endpoint is down.");
    expect(parts.map(({ type }) => type)).toEqual(["tool-call", "tool-result"]);
  });

  test("a message that cannot be sent throws at once and leaves no listener", () => {
    const session = sessionWith([]);
    expect(() => session.stream({} as never)).toThrow(expect.objectContaining({ code: "SEND_OPTIONS" }));
    expect(session.events.hasListener("tool.execution_progress")).toBe(false);
  });
});

describe("stopping a stream", () => {
  const hanging = () => {
    const begun = deferred();
    const answer: FakeAnswer = (_request, { signal, onDelta }) => {
      onDelta?.({ kind: "text", text: "first", receivedBytes: 5 });
      begun.resolve();
      return new Promise((_, reject) => signal?.addEventListener("abort", () => reject(signal.reason)));
    };
    return { begun: begun.promise, answer };
  };

  test("leaving the loop stops the turn, and the next message is answered", async () => {
    const { answer } = hanging();
    const session = open(answer, "next");
    const stopped = nextEvent(session, "abort");
    for await (const part of session.stream("Go.")) if (part.type === "text-delta") break;
    await stopped;
    expect((await session.sendAndWait("And now?")).content).toBe("next");
  });

  test("a signal stops the turn with its reason, and takes back a message that waits without touching the running turn", async () => {
    const { begun, answer } = hanging();
    const session = open(answer, "next");
    const [first, second] = [new AbortController(), new AbortController()];
    const running = readAll(session.stream("1", { signal: first.signal }));
    const waiting = readAll(session.stream("2", { signal: second.signal }));
    const third = session.stream("3");
    await begun;
    second.abort(new Error("not needed"));
    await expect(waiting).rejects.toThrow("not needed");
    first.abort(new Error("enough"));
    await expect(running).rejects.toThrow("enough");
    expect(await textOf(third)).toBe("next");
    expect(() => session.stream("4", { signal: first.signal })).toThrow("enough");
  });

  test("leaving the loop after the turn has ended stops nothing", async () => {
    const session = open("one", "two");
    const stream = session.stream("Go.");
    await stream.reply;
    const next = session.sendAndWait("2");
    for await (const _part of stream) break;
    expect((await next).content).toBe("two");
  });

  test("a session that closes ends the stream with its error", async () => {
    const { begun, answer } = hanging();
    const session = open(answer);
    const reading = readAll(session.stream("Go."));
    await begun;
    await session.disconnect();
    await expect(reading).rejects.toMatchObject({ code: "SESSION_CLOSED" });
  });
});

describe("the stream as a response", () => {
  test("server-sent events hold one part each", async () => {
    const session = open({ calls: [{ id: "c1", name: "echo", args: { text: "<b>\n</b>" } }] }, "Done.");
    const response = session.stream("Go.").toResponse({ headers: { "x-chat": "1" } });
    expect(response.status).toBe(200);
    expect(response.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
    expect(response.headers.get("x-chat")).toBe("1");
    const lines = (await response.text()).split("\n\n").filter((line) => line !== "");
    const parts = lines.map((line) => JSON.parse(line.replace(/^data: /, "")) as StreamPart);
    expect(parts.map(({ type }) => type)).toEqual(["tool-call", "tool-result", "text-delta", "finish"]);
    expect(parts[1]).toMatchObject({ output: "said <b>\n</b>" });
  });

  test("an error is the last event, with its code, and text ends with it", async () => {
    const failing: FakeAnswer = () => Promise.reject(new HostError("QUOTA", "No more today."));
    const body = await open(failing).stream("Go.").toResponse().text();
    expect(JSON.parse(body.replace(/^data: /, ""))).toEqual({ type: "error", code: "QUOTA", message: "No more today." });
    await expect(open(failing).stream("Go.").toResponse({ format: "text" }).text()).rejects.toThrow("No more today.");
  });

  test("text has the text alone, and a client that goes away stops the turn", async () => {
    expect(await open(inParts("a", "b")).stream("Go.").toResponse({ format: "text" }).text()).toBe("ab");
    const aborted = deferred();
    const session = open((_request, { signal, onDelta }) => {
      onDelta?.({ kind: "text", text: "first", receivedBytes: 5 });
      return new Promise((_, reject) =>
        signal?.addEventListener("abort", () => {
          aborted.resolve();
          reject(signal.reason);
        }),
      );
    });
    const reader = session.stream("Go.").toResponse().body!.getReader();
    await reader.read();
    // By now the response waits for the next part, which never comes.
    await settleMicrotasks();
    await reader.cancel();
    await aborted.promise;
  });
});
