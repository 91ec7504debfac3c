import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Json, Served, type TestClient } from "./wire-kit.ts";

let served: Served;
let client: TestClient;
let sessionId: string;

beforeEach(async () => {
  served = await Served.start();
  client = await served.connect();
  sessionId = await client.create({ model: "m" });
});

afterEach(() => served?.[Symbol.asyncDispose]());

const update = (params: object): Promise<Json> => client.request("session.metadata.updateClientMetadata", { sessionId, ...params });
const get = (): Promise<Json> => client.request("session.metadata.getClientMetadata", { sessionId });

/** Replaces the stored file. */
function store(text: string): void {
  const folder = join(served.folder, ".home/sessions", sessionId);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "client-metadata.json"), text);
}

describe("metadata of clients", () => {
  test("entries are cleared, removed and set, in this order", async () => {
    expect(await get()).toEqual({});
    expect(await update({ set: { "app/color": "red", "app/size": "1" } })).toEqual({ "app/color": "red", "app/size": "1" });
    expect(await update({ remove: ["app/color", "app/none"], set: { "app/size": "2" } })).toEqual({ "app/size": "2" });
    expect(await update({ remove: ["app/size"], set: { "app/size": "3" } })).toEqual({ "app/size": "3" });
    expect(await update({ clear: true, set: { __proto__x: "y" } })).toEqual({ __proto__x: "y" });
    expect(await get()).toEqual({ __proto__x: "y" });
  });

  test("updates at the same time are all kept", async () => {
    const keys = Array.from({ length: 12 }, (_, index) => `key-${index}`);
    await Promise.all(keys.map((key) => update({ set: { [key]: "x" } })));
    expect(Object.keys(await get()).sort()).toEqual([...keys].sort());
  });

  test("many sessions are read at once, in the order of the request, and with the chosen keys", async () => {
    await update({ set: { a: "1", b: "2" } });
    const sessionIds = ["none", sessionId, "../../etc"];
    expect(await client.request("sessions.getClientMetadata", { sessionIds, keys: ["b"] })).toEqual([
      { sessionId: "none", status: "notFound" },
      { sessionId, status: "ok", metadata: { b: "2" } },
      { sessionId: "../../etc", status: "notFound" },
    ]);
  });

  test.each([
    ["{", "corrupt"],
    ['{"version":1,"metadata":{"a":1}}', "corrupt"],
    ["[]", "corrupt"],
    ['{"version":2,"metadata":{}}', "unsupportedVersion"],
  ])("a stored file with %j is %s, and no change replaces it", async (text, status) => {
    store(text);
    expect(await client.request("sessions.getClientMetadata", { sessionIds: [sessionId] })).toEqual([{ sessionId, status }]);
    await expect(update({ set: { a: "b" } })).rejects.toThrow("client-metadata.json");
    await expect(get()).rejects.toThrow("client-metadata.json");
    expect(await update({ clear: true, set: { a: "b" } })).toEqual({ a: "b" });
  });

  test.each([
    [{ set: { "": "x" } }, "is empty"],
    [{ set: { "copilot/x": "x" } }, "reserved namespace"],
    [{ remove: ["github/x"] }, "reserved namespace"],
    [{ set: { ["é".repeat(129)]: "x" } }, "longer than 256 bytes"],
    [{ set: { a: "x".repeat(16 * 1024 + 1) } }, "longer than 16384 bytes"],
    [{ set: { a: 1 } }, "must be a string"],
    [{ set: Object.fromEntries(Array.from({ length: 129 }, (_, index) => [`k${index}`, "x"])) }, "at most 128 entries"],
    [{ set: Object.fromEntries(Array.from({ length: 5 }, (_, index) => [`k${index}`, "x".repeat(15_000)])) }, "65536 bytes"],
  ])("%# is refused, and changes nothing", async (params, message) => {
    await update({ set: { kept: "x" } });
    expect((await client.refusal("session.metadata.updateClientMetadata", { sessionId, ...params })).message).toContain(message);
    expect(await get()).toEqual({ kept: "x" });
  });
});

describe("facts about the repository", () => {
  test("of the session's directory become an event, and those of another are ignored", async () => {
    const report = (context: object): Promise<Json> => client.request("session.metadata.recordContextChange", { sessionId, context });
    const { workingDirectory } = await client.request("session.metadata.snapshot", { sessionId });
    expect(await report({ cwd: "/elsewhere", branch: "other" })).toEqual({});
    expect(await report({ cwd: workingDirectory, branch: "main", headCommit: 5, unknown: "x" })).toEqual({});
    const { data } = await client.event("session.context_changed");
    expect(data).toEqual({ cwd: workingDirectory, branch: "main" });
    await expect(report({})).rejects.toThrow("context.cwd must be a string");
  });
});

describe("the models of policies and repositories", () => {
  test.each([
    [{ repoModel: "repo", repoReasoningEffort: "high" }, "repo", "high"],
    [{ repoModel: "repo", cliModel: "cli", repoReasoningEffort: "high" }, "cli", undefined],
    [{ cliModel: "cli", serverManagedModel: "server", deviceManagedModel: "device" }, "device", undefined],
    [{ repoReasoningEffort: "low" }, "m", "low"],
    [{}, "m", undefined],
  ])("%j selects %s with effort %s", async (params, modelId, effort) => {
    expect(await client.request("session.model.applyStartupOverlay", { sessionId, ...params })).toMatchObject({ modelId });
    const current = await client.request("session.model.getCurrent", { sessionId });
    expect([current.modelId, current.reasoningEffort]).toEqual([modelId, effort]);
  });
});

test("the effect of a command is already stored", async () => {
  const finalize = (params: object): Promise<Json> => client.request("session.commands.finalizeInvocationEffect", { sessionId, ...params });
  expect(await finalize({ effect: { kind: "completed" }, outcome: "applied" })).toEqual({ success: true });
  await expect(finalize({ effect: {}, outcome: "later" })).rejects.toThrow("outcome must be");
});
