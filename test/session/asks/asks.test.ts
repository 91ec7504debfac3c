import { describe, expect, test } from "vitest";
import { type AskHandlers, type AskInvocation, ClientRequests } from "../../../src/session/clients/client-requests.ts";
import { type AskKind, type AskOutcome, noResult } from "../../../src/session/clients/request-kinds.ts";
import { type RecordedEvent, SessionEvents } from "../../../src/session/history/events.ts";
import { deferred, type LogLine, recordingLogger, settleMicrotasks } from "../session-kit.ts";

const permission = { kind: "custom-tool", toolCallId: "c1", toolName: "t", toolArgs: {} };
const approve = { kind: "approve-once" } as const;
const reject = { kind: "reject", feedback: "no" } as const;

function table() {
  const lines: LogLine[] = [];
  const log = recordingLogger(lines);
  const events = new SessionEvents(log);
  const seen: RecordedEvent[] = [];
  events.addSink((event) => void seen.push(event));
  const asks = new ClientRequests("session-1", events, log);
  const attach = (id: string, answers: AskKind[] = ["permission"], handlers: AskHandlers = {}): void =>
    asks.attach({ id, answers: new Set(answers), handlers });
  return { asks, attach, seen, lines };
}

describe("a request with several clients", () => {
  test("the first answer wins, and later ones are refused", async () => {
    const { asks, attach, seen } = table();
    attach("one");
    attach("two");
    const outcome = asks.open("permission", permission, { toolCallId: "c1" });
    const [ask] = asks.pending;
    expect(ask).toMatchObject({ kind: "permission", data: permission, toolCallId: "c1" });
    expect(asks.answer(ask!.id, approve, "two")).toBe(true);
    expect(asks.answer(ask!.id, reject, "one")).toBe(false);
    expect(await outcome).toEqual({ kind: "answered", answer: approve, from: "two" });
    expect(asks.pending).toEqual([]);
    expect(seen.map(({ type, data }) => [type, data["requestId"]])).toEqual([
      ["permission.requested", ask!.id],
      ["permission.completed", ask!.id],
    ]);
    expect(seen[1]?.data).toMatchObject({ result: { kind: "approved" }, toolCallId: "c1" });
  });

  test("only clients for its kind and target can answer a request", async () => {
    const { asks, attach } = table();
    attach("listener", ["userInput"]);
    attach("owner", ["tool"]);
    attach("other", ["tool"]);
    const data = { toolCallId: "c", toolName: "t", arguments: {}, workingDirectory: "/" };
    const outcome = asks.open("tool", data, { from: ["owner"] });
    const { id } = asks.pending[0]!;
    for (const stranger of ["listener", "other", "unavailable", ""]) expect(asks.answer(id, { result: 1 }, stranger)).toBe(false);
    expect(asks.answer("unknown", { result: 1 }, "owner")).toBe(false);
    expect(asks.answer(id, { result: 1 }, "owner")).toBe(true);
    expect(await outcome).toMatchObject({ kind: "answered", from: "owner" });
  });

  test("callbacks are asked in order until one answers", async () => {
    const { asks, attach } = table();
    const slow = deferred<unknown>();
    attach("slow", ["permission"], { permission: () => slow.promise });
    attach("quick", ["permission"], { permission: () => approve });
    expect(asks.open("permission", permission, {})).toEqual({ kind: "answered", answer: approve, from: "quick" });
    slow.resolve(reject);
    await settleMicrotasks();
    expect(asks.pending).toEqual([]);
  });

  test("after an answer, no further callback is called", () => {
    const { asks, attach } = table();
    let bothered = 0;
    attach("one", ["permission"], { permission: () => approve });
    attach("two", ["permission"], { permission: () => bothered++ });
    asks.open("permission", permission, {});
    expect(bothered).toBe(0);
  });

  test("an answer that a listener gives during the announcement counts", () => {
    const { asks, attach } = table();
    const log = recordingLogger([]);
    const events = new SessionEvents(log);
    const eager = new ClientRequests("s", events, log);
    eager.attach({ id: "wire", answers: new Set(["permission"]), handlers: {} });
    events.addSink(({ data }) => void eager.answer(String(data["requestId"]), approve, "wire"), "permission.requested");
    expect(eager.open("permission", permission, {})).toMatchObject({ kind: "answered", from: "wire" });
    attach("unused");
    expect(asks.pending).toEqual([]);
  });
});

describe("a request without an answer", () => {
  const ended = (reason: string): object => ({ kind: "ended", reason });

  test("without clients a request ends at once, unless a client is expected", async () => {
    const { asks, attach } = table();
    expect(asks.open("permission", permission, {})).toEqual(ended("unavailable"));
    const waiting = asks.open("permission", permission, { waits: true });
    expect(asks.pending).toHaveLength(1);
    attach("late", ["permission"], { permission: () => approve });
    expect(await waiting).toMatchObject({ kind: "answered", from: "late" });
  });

  test("a request ends when the last client leaves, unless another is expected", async () => {
    const { asks, attach } = table();
    attach("one");
    attach("two");
    const outcome = asks.open("permission", permission, {});
    const patient = asks.open("permission", permission, { waits: true });
    asks.detach("one");
    expect(asks.pending).toHaveLength(2);
    asks.detach("two");
    expect(await outcome).toEqual(ended("detached"));
    expect(asks.pending).toHaveLength(1);
    asks.close();
    expect(await patient).toEqual(ended("closed"));
  });

  test("a client that reports an absent user leaves the request to the others, and the last one ends it", async () => {
    const { asks, attach } = table();
    attach("one");
    attach("two");
    const outcome = asks.open("permission", permission, { waits: true });
    const { id } = asks.pending[0]!;
    expect(asks.answer(id, { kind: "user-not-available" }, "one")).toBe(true);
    expect(asks.pending).toHaveLength(1);
    expect(asks.answer(id, approve, "one")).toBe(false);
    expect(asks.answer(id, { kind: "user-not-available" }, "two")).toBe(true);
    expect(await outcome).toEqual(ended("unavailable"));
  });

  test("a client that declines does not end the request while another is expected", () => {
    const { asks, attach } = table();
    attach("one", ["permission"], { permission: () => noResult });
    expect(asks.open("permission", permission, {})).toEqual(ended("unavailable"));
    void asks.open("permission", permission, { waits: true });
    expect(asks.pending).toHaveLength(1);
  });

  test("the signal withdraws a request before and while it is open", async () => {
    const { asks, attach, seen } = table();
    attach("one");
    const controller = new AbortController();
    const outcome = asks.open("permission", permission, { signal: () => controller.signal });
    controller.abort();
    expect(await outcome).toEqual(ended("cancelled"));
    expect(await asks.open("permission", permission, { signal: () => controller.signal })).toEqual(ended("cancelled"));
    expect(seen.at(-1)?.data["result"]).toEqual({ kind: "cancelled", reason: "cancelled" });
  });

  test("after the session has ended, requests are rejected", async () => {
    const { asks, attach } = table();
    attach("one");
    const outcome = asks.open("permission", permission, {});
    asks.close();
    expect(await outcome).toEqual(ended("closed"));
    expect(asks.open("permission", permission, { waits: true })).toEqual(ended("closed"));
  });
});

describe("the answers of requests", () => {
  const ask = <K extends AskKind>(kind: K, answer: unknown): AskOutcome | Promise<AskOutcome> | string => {
    const { asks, attach } = table();
    attach("one", [kind]);
    const data = kind === "tool" ? { toolCallId: "c", toolName: "t", arguments: {}, workingDirectory: "/" } : permission;
    const outcome = asks.open(kind as "permission", data as typeof permission, {});
    try {
      asks.answer(asks.pending[0]!.id, answer, "one");
    } catch (error) {
      return (error as { code: string }).code;
    }
    return outcome as Promise<AskOutcome>;
  };

  test.each([
    undefined,
    null,
    3,
    "yes",
    [],
    {},
    { kind: "maybe" },
    { kind: "__proto__" },
    { decision: "perhaps" },
    { kind: 1, decision: "allow" },
  ])("the permission answer %j is unclear", async (answer) => {
    expect(await ask("permission", answer)).toEqual({ kind: "unclear", from: "one" });
  });

  test("an answer whose getters throw is unclear", async () => {
    const hostile = Object.defineProperty({}, "kind", {
      enumerable: true,
      get() {
        throw new Error("boo");
      },
    });
    expect(await ask("permission", hostile)).toEqual({ kind: "unclear", from: "one" });
  });

  test.each<[AskKind, unknown]>([
    ["tool", "text"],
    ["tool", {}],
    ["tool", { error: 3 }],
    ["userInput", { answer: 3 }],
    ["userInput", null],
    ["elicitation", { action: "perhaps" }],
  ])("requests of other kinds refuse the invalid answer (%s: %j) and stay open", (kind, answer) => {
    expect(ask(kind, answer)).toBe("ANSWER_INVALID");
  });

  test("valid answers of other kinds are accepted", async () => {
    expect(await ask("userInput", { answer: "blue", wasFreeform: true, more: 1 })).toMatchObject({
      answer: { answer: "blue", wasFreeform: true },
    });
    expect(await ask("elicitation", { action: "accept", content: { a: 1 } })).toMatchObject({
      answer: { action: "accept", content: { a: 1 } },
    });
    expect(await ask("tool", { result: undefined })).toMatchObject({ answer: { result: undefined } });
    expect(await ask("tool", { error: "broken" })).toMatchObject({ answer: { error: "broken" } });
  });
});

test("a callback that fails is logged and counts as absent; for a pending tool its failure is the answer", async () => {
  const { asks, attach, lines } = table();
  attach("one", ["permission", "tool"], {
    permission: () => Promise.reject(new Error("handler")),
    tool: () => {
      throw new Error("provider");
    },
  });
  expect(await asks.open("permission", permission, {})).toEqual({ kind: "ended", reason: "unavailable" });
  const data = { toolCallId: "c", toolName: "t", arguments: {}, workingDirectory: "/" };
  expect(await asks.open("tool", data, {})).toMatchObject({ answer: { error: "provider" } });
  expect(lines.filter(({ level }) => level === "error")).toHaveLength(2);
});

describe("a request of a call whose caller can answer", () => {
  test("the request goes only to the caller, and to the others when the caller declines", async () => {
    const { asks, attach, seen } = table();
    const asked: string[] = [];
    const answering = (name: string, answer: unknown) => (): unknown => {
      asked.push(name);
      return answer;
    };
    attach("program", ["permission"], { permission: answering("program", approve) });
    const caller = (answer: unknown): AskHandlers => ({ permission: answering("caller", answer) });
    expect(asks.open("permission", permission, { caller: caller(reject) })).toMatchObject({ answer: reject, from: "caller" });
    expect(asked.splice(0)).toEqual(["caller"]);
    expect(asks.open("permission", permission, { caller: caller(noResult) })).toMatchObject({ answer: approve, from: "program" });
    expect(asked.splice(0)).toEqual(["caller", "program"]);
    expect(asks.open("permission", permission, { caller: {} })).toMatchObject({ from: "program" });
    expect(seen.filter(({ type }) => type === "permission.requested")).toHaveLength(3);
  });

  test("the request stays with the caller while it decides, and goes to the others when the caller fails", async () => {
    const { asks, attach } = table();
    const thinking = deferred<unknown>();
    const outcome = asks.open("permission", permission, { caller: { permission: () => thinking.promise } });
    attach("late", ["permission"], { permission: () => approve });
    const [ask] = asks.pending;
    expect(asks.answer(ask!.id, approve, "late")).toBe(false);
    thinking.reject(new Error("gone"));
    expect(await outcome).toMatchObject({ kind: "answered", from: "late" });
  });

  test("the request ends when neither the caller nor another client answers", async () => {
    const { asks } = table();
    expect(asks.open("permission", permission, { caller: { permission: () => noResult } })).toEqual({
      kind: "ended",
      reason: "unavailable",
    });
  });
});

describe("the client that answers", () => {
  test("a client receives the call, the key and a withdrawal signal, but no withdrawal after its own answer", async () => {
    const { asks, attach } = table();
    const received: { readonly id: string; readonly invocation: AskInvocation }[] = [];
    const answers = { one: deferred<unknown>(), two: deferred<unknown>() };
    for (const id of ["one", "two"] as const) {
      const note = (_data: unknown, invocation: AskInvocation): Promise<unknown> => {
        received.push({ id, invocation });
        return answers[id].promise;
      };
      attach(id, ["elicitation"], { elicitation: note });
    }
    const outcome = asks.open("elicitation", { message: "?" }, { toolCallId: "c", agentId: "a", key: "who" });
    const [one, two] = received.map(({ invocation }) => invocation);
    expect(one).toMatchObject({ sessionId: "session-1", toolCallId: "c", agentId: "a", key: "who" });
    expect(one!.signal.aborted).toBe(false);
    answers.one.resolve({ action: "decline" });
    await outcome;
    expect([one!.signal.aborted, two!.signal.aborted]).toEqual([false, true]);
  });

  test("a client receives requests of a server in the session's terms with the server's name", () => {
    const { asks, attach, seen } = table();
    attach("one", ["elicitation", "sampling"]);
    const hostile = { message: "Pay?", requestId: "forged", toolCallId: "forged", elicitationSource: "bank" };
    void asks.open("elicitation", hostile, { toolCallId: "c", serverName: "shop" });
    void asks.open("sampling", { messages: [], requestId: "forged" }, { toolCallId: "c", serverName: "shop" });
    const [elicitation, sampling] = asks.pending;
    expect(seen.map(({ data }) => data)).toEqual([
      { message: "Pay?", mode: "form", elicitationSource: "shop", requestId: elicitation!.id, toolCallId: "c" },
      {
        requestId: sampling!.id,
        toolCallId: "c",
        serverName: "shop",
        mcpRequestId: "c",
        request: { messages: [], requestId: "forged" },
      },
    ]);
  });

  test("a client receives the URL that a server wants the user to open, without a form", () => {
    const { asks, attach, seen } = table();
    attach("one", ["elicitation"]);
    void asks.open("elicitation", { message: "Sign in.", url: "https://shop.example/sign-in" }, { toolCallId: "c", serverName: "shop" });
    expect(seen.map(({ data }) => data)).toEqual([
      {
        message: "Sign in.",
        mode: "url",
        url: "https://shop.example/sign-in",
        elicitationSource: "shop",
        requestId: asks.pending[0]!.id,
        toolCallId: "c",
      },
    ]);
  });
});
