import type { ServerContext } from "@modelcontextprotocol/server";
import { expect, test } from "vitest";
import type { ClientChannel } from "../../../src/servers/mcp/client-channel.ts";
import { InputRequiredCalls } from "../../../src/servers/mcp/input-required-calls.ts";

const request = { method: "tools/call", name: "ask", arguments: {} };

/** The context of a request, with what it brings. */
function contextOf(
  given: { readonly state?: unknown; readonly inputResponses?: object; readonly signal?: AbortSignal } = {},
): ServerContext {
  const envelope = { "io.modelcontextprotocol/clientCapabilities": { elicitation: {} } };
  const { state, inputResponses, signal = new AbortController().signal } = given;
  return { mcpReq: { method: "tools/call", id: 1, signal, envelope, inputResponses, requestState: () => state } } as never;
}

/** Asks this number of questions at once and returns the answers. */
const asking =
  (questions: number, onSignal?: (signal: AbortSignal) => unknown) =>
  async ({ answers, signal }: ClientChannel): Promise<{ answers: unknown[] }> => {
    onSignal?.(signal);
    const by = { sessionId: "s", signal };
    const asked = Array.from({ length: questions }, (_value, index) => answers.elicitation?.({ message: `${index}` }, by));
    return { answers: await Promise.all(asked) };
  };

const options = { isShared: true, asksPermission: true };

async function begin(trips: InputRequiredCalls, work: (conversation: ClientChannel) => Promise<object>) {
  const { requestState, inputRequests } = (await trips.withClient(request, contextOf(), work)) as {
    readonly requestState: string;
    readonly inputRequests: object;
  };
  return { state: requestState, keys: Object.keys(inputRequests) };
}

const refused = { code: -32602, data: { reason: "invalid_request_state" } };

test("questions without a key are numbered, so that a client can answer them before they are asked", async () => {
  using trips = new InputRequiredCalls(options);
  expect((await begin(trips, asking(2))).keys).toEqual(["elicitation-1", "elicitation-2"]);
  const accept = { action: "accept", content: {} };
  const given = contextOf({ inputResponses: { "elicitation-1": accept, "elicitation-2": accept, other: accept } });
  expect(await trips.withClient(request, given, asking(2))).toEqual({ answers: [accept, accept] });
});

test("the call that waits longest is ended when too many wait", async () => {
  using trips = new InputRequiredCalls(options, { maxWaiting: 1 });
  const signals: AbortSignal[] = [];
  const first = await begin(
    trips,
    asking(1, (own) => signals.push(own)),
  );
  const second = await begin(trips, asking(1));
  expect(signals[0]?.aborted).toBe(true);
  await expect(trips.withClient(request, contextOf({ state: first.state }), asking(1))).rejects.toMatchObject(refused);
  const inputResponses = { "elicitation-1": { action: "decline" } };
  expect(await trips.withClient(request, contextOf({ state: second.state, inputResponses }), asking(1))).toEqual({
    answers: [{ action: "decline" }],
  });
});

test("a call whose client does not return is ended after the time limit", async () => {
  using trips = new InputRequiredCalls(options, { waitMs: 20 });
  const ended = new Promise<void>((resolve) => {
    void begin(
      trips,
      asking(1, (signal) => signal.addEventListener("abort", () => resolve())),
    );
  });
  await ended;
});

test("the end of the face, and of the request that a call is in, end the call", async () => {
  const trips = new InputRequiredCalls(options);
  const signals: AbortSignal[] = [];
  await begin(
    trips,
    asking(1, (own) => signals.push(own)),
  );
  trips[Symbol.dispose]();
  expect(signals[0]?.aborted).toBe(true);
  const stop = new AbortController();
  const work = ({ signal: own }: ClientChannel): Promise<object> =>
    new Promise((resolve) => own.addEventListener("abort", () => resolve({ ended: true })));
  const call = trips.withClient(request, contextOf({ signal: stop.signal }), work);
  stop.abort();
  expect(await call).toEqual({ ended: true });
});

test("a request state is refused by another endpoint, and when it is not a string", async () => {
  using trips = new InputRequiredCalls(options);
  using others = new InputRequiredCalls(options);
  const { state } = await begin(trips, asking(1));
  for (const strange of [state, `${state}x`, "", 7, {}, null])
    await expect(others.withClient(request, contextOf({ state: strange }), asking(1))).rejects.toMatchObject(refused);
  const other = { ...request, arguments: { more: true } };
  await expect(trips.withClient(other, contextOf({ state }), asking(1))).rejects.toMatchObject(refused);
});
