import { createHash } from "node:crypto";
import { headers, type Msg, type NatsConnection } from "@nats-io/transport-node";
import { describe, expect, onTestFinished, test } from "vitest";
import { silentLogger } from "../../../src/base/logger.ts";
import { callingHost, startServer, startWorker } from "./fleet-kit.ts";
import { findNatsServer, type NatsServer, until } from "./nats-server.ts";

const { path, reason } = findNatsServer();
if (path === "") process.stderr.write(`skipped: ${reason}\n`);

const worker = "worker-of-a-test";
const echo = { name: "echo", description: "Echoes.", parameters: { type: "object" } };
const echoTool = `import { defineTool } from "skillhost";
export default defineTool("echo", { description: "Echoes.", parameters: { type: "object" }, handler: (args) => args });
`;

interface Pretended {
  readonly connection: NatsConnection;
  readonly signature: string;
  announce(fields?: object): void;
}

/** The signature of the tool `echo`, from a real worker that leaves again. */
async function signatureOfEcho(server: NatsServer): Promise<string> {
  const { worker: real, host } = await startWorker(server, { "tools/echo.ts": echoTool });
  const signature = (await host.createSession({ persist: false })).catalog.executables.get("echo")!.signature;
  await real.drain();
  return signature;
}

/** Speaks to hosts as a worker with one tool would, and answers calls as `answer` says. */
async function pretend(
  server: NatsServer,
  answer: (message: Msg, send: (fields: object) => void) => void,
  offer: object = {},
): Promise<Pretended> {
  const signature = await signatureOfEcho(server);
  const connection = await server.connect();
  onTestFinished(() => connection.close());
  const tools = [{ signature, definition: echo, ...offer }];
  const digest = createHash("sha256").update(JSON.stringify(tools)).digest("hex");
  const announce = (fields: object = {}): void =>
    connection.publish("skillhost.presence", JSON.stringify({ v: 1, type: "here", worker, tools: digest, ...fields }));
  connection.subscribe(`skillhost.workers.${worker}.tools`, { callback: (_, message) => void message.respond(JSON.stringify({ tools })) });
  connection.subscribe("skillhost.roll-call", { callback: () => announce() });
  connection.subscribe(`skillhost.tools.${signature}.echo`, {
    queue: signature,
    callback: (_, message) => answer(message, (fields) => void message.respond(JSON.stringify({ worker, ...fields }))),
  });
  await connection.flush();
  return { connection, signature, announce };
}

// .ci/allowed-skips.json lists this title with the reason.
describe.skipIf(path === "")("a real nats-server (workers that are wrong)", () => {
  test("the first answer counts: a second one, and one by another worker, change nothing", async () => {
    const server = await startServer();
    await pretend(server, (_, send) => {
      send({ type: "accepted" });
      send({ type: "result", worker: "another-worker", value: "theirs" });
      send({ type: "result", value: "first" });
      send({ type: "result", value: "second" });
    });
    const { session } = await callingHost(server);
    expect((await session.callTool("echo")).text).toBe("first");
    expect((await session.callTool("echo")).text).toBe("first");
  });

  test.each([
    ["no JSON", "nonsense", "not a JSON object"],
    ["an unknown kind of message", JSON.stringify({ worker, type: "surprise" }), "unknown form"],
    ["no worker", JSON.stringify({ type: "result", value: 1 }), "unknown form"],
    ["a message without its fields", JSON.stringify({ worker, type: "progress" }), "unknown form"],
  ])("an answer with %s fails the call as of unknown outcome", async (_, data, problem) => {
    const server = await startServer();
    await pretend(server, (message) => void message.respond(data));
    const { session } = await callingHost(server);
    const result = await session.callTool("echo");
    expect(result).toMatchObject({ ok: false, error: expect.stringContaining(problem), text: expect.stringContaining("unknown") });
  });

  test("a tool with another contract than its signature says is not offered", async () => {
    const server = await startServer();
    const { signature } = await pretend(server, () => {}, { definition: { ...echo, description: "Something else." } });
    const { session } = await callingHost(server);
    expect(session.catalog.executables.has("echo")).toBe(false);
    expect(session.catalog.diagnostics).toContainEqual(
      expect.objectContaining({ code: "FLEET_TOOL", message: expect.stringContaining(signature) }),
    );
  });

  test.each([
    ["an illegal name", { ...echo, name: "no such name" }],
    ["no usable schema", { ...echo, parameters: { type: 7 } }],
  ])("a tool with %s is not offered", async (_, definition) => {
    const server = await startServer();
    await pretend(server, () => {}, { definition });
    const { session } = await callingHost(server);
    expect(session.catalog.diagnostics).toContainEqual(expect.objectContaining({ code: "FLEET_TOOL" }));
  });

  test("a list of tools that is not the announced one is not used: two workers have one id", async () => {
    const server = await startServer();
    const { announce } = await pretend(server, (_, send) => send({ type: "result", value: "ok" }));
    const { session, has } = await callingHost(server);
    await has("echo");
    announce({ tools: "0".repeat(64) });
    const report = expect.objectContaining({ code: "FLEET_WORKER", message: expect.stringContaining("not the one that it announced") });
    await until(() => session.catalog.diagnostics.some(({ code }) => code === "FLEET_WORKER"), "the report");
    expect(session.catalog.diagnostics).toContainEqual(report);
  });

  test("a list of tools that is too large is fetched once and reported by both sides, and the other workers are used", async () => {
    const server = await startServer();
    const tools = Array.from({ length: 17 }, (_, index) => ({
      signature: "0".repeat(64),
      definition: { ...echo, name: `large${index}`, description: "x".repeat(1_048_576) },
    }));
    const bytes = Buffer.from(JSON.stringify({ tools }));
    const digest = createHash("sha256").update(JSON.stringify(tools)).digest("hex");
    const connection = await server.connect();
    onTestFinished(() => connection.close());
    let fetched = 0;
    const answer = (message: Msg): void => {
      fetched++;
      const count = Math.ceil(bytes.length / 1_000_000);
      for (let part = 0; part < count; part++) {
        const place = headers();
        place.set("Skillhost-Part", `list ${part} ${count}`);
        message.respond(bytes.subarray(part * 1_000_000, (part + 1) * 1_000_000), { headers: place });
      }
    };
    connection.subscribe(`skillhost.workers.${worker}.tools`, { callback: (_, message) => answer(message) });
    const announce = (): void => connection.publish("skillhost.presence", JSON.stringify({ v: 1, type: "here", worker, tools: digest }));
    connection.subscribe("skillhost.roll-call", { callback: announce });
    await startWorker(server, { "tools/echo.ts": echoTool });
    const { session, has } = await callingHost(server);
    const isReported = (): boolean =>
      session.catalog.diagnostics.some(({ code, message }) => code === "FLEET_WORKER" && /larger than 16777216/.test(message));
    await until(isReported, "the report");
    for (let one = 0; one < 3; one++) announce();
    await connection.flush();
    await has("echo");
    expect((await session.callTool("echo", { a: 1 })).ok).toBe(true);
    expect([fetched, isReported()]).toEqual([1, true]);
    const warnings: string[] = [];
    const huge = `import { defineTool } from "skillhost";\nexport default defineTool("huge", { description: "Huge.", metadata: { text: "x".repeat(17_000_000) }, handler: () => 1 });\n`;
    await startWorker(server, { "tools/huge.ts": huge }, { logger: { ...silentLogger, warning: (text) => void warnings.push(text) } });
    expect(warnings).toEqual([expect.stringContaining("too large")]);
  });

  test("an answer of 100 MB fails its call, and the host keeps working", async () => {
    const server = await startServer();
    const part = Buffer.alloc(1_000_000, "x");
    let isFirst = true;
    await pretend(server, (message, send) => {
      if (!isFirst) return send({ type: "result", value: "small" });
      isFirst = false;
      for (let index = 0; index < 100; index++) {
        const place = headers();
        place.set("Skillhost-Part", `flood ${index} 100`);
        message.respond(part, { headers: place });
      }
    });
    const { session } = await callingHost(server);
    expect(await session.callTool("echo")).toMatchObject({
      ok: false,
      error: expect.stringContaining("larger than 67108864 bytes"),
      text: expect.stringContaining("unknown"),
    });
    expect((await session.callTool("echo")).text).toBe("small");
  });

  test("a worker and a host with another version of the protocol do not use each other, and say so", async () => {
    const server = await startServer();
    const { connection, signature, announce } = await pretend(server, () => {});
    const { session } = await callingHost(server);
    for (const [v, other] of [
      [2, "newer-worker"],
      [0, "older-worker"],
    ] as const) {
      announce({ v, worker: other });
      const says = `${other} is not used: it speaks version ${v}`;
      await until(() => session.catalog.diagnostics.some(({ message }) => message.includes(says)), "the report");
    }
    await startWorker(server, { "tools/echo.ts": echoTool });
    // The pretended one does not answer, so both are asked until the real one does.
    const refused = { worker: expect.any(String), type: "refused", reason: "version", message: expect.stringContaining("version 9") };
    const older = JSON.stringify({ v: 9, call: "call-of-a-test", session: "s", toolCall: "t", args: {} });
    await until(async () => {
      const answer = await connection.request(`skillhost.tools.${signature}.echo`, older, { timeout: 200 }).catch(() => undefined);
      if (answer !== undefined) expect(answer.json()).toEqual(refused);
      return answer !== undefined;
    }, "the refusal");
  });

  test("only approved contracts are offered where some are named, and only they may do without a question", async () => {
    const server = await startServer();
    const free = echoTool.replace("handler", "skipPermission: true, handler");
    const { host } = await startWorker(server, { "tools/echo.ts": free });
    const { signature } = (await host.createSession({ persist: false })).catalog.executables.get("echo")!;
    const unasked = { onPermissionRequest: undefined };
    const all = await callingHost(server, {}, unasked);
    expect((await all.session.callTool("echo")).resultType).toBe("denied");
    const approved = await callingHost(server, { signatures: [signature] }, unasked);
    expect((await approved.session.callTool("echo")).ok).toBe(true);
    const none = await callingHost(server, { signatures: [] });
    expect(none.session.catalog.executables.has("echo")).toBe(false);
    expect(none.session.catalog.diagnostics).toContainEqual(
      expect.objectContaining({ code: "FLEET_NOT_APPROVED", message: expect.stringContaining(signature) }),
    );
  });

  test("who gives up stops what it began: the worker of a host that is gone cancels the call", async () => {
    const server = await startServer();
    const state = globalThis as { strayAborted?: boolean };
    const handler = `(_, { signal }) => new Promise((_, reject) => signal.addEventListener("abort", () => { globalThis.strayAborted = true; reject(signal.reason); }))`;
    await startWorker(server, { "tools/echo.ts": echoTool.replace("(args) => args", handler) });
    const signature = (await callingHost(server)).session.catalog.executables.get("echo")!.signature;
    await using connection = await server.connect();
    const call = { v: 1, call: "call-of-a-test", session: "s", toolCall: "t", args: {} };
    connection.publish(`skillhost.tools.${signature}.echo`, JSON.stringify(call), { reply: "nothing.listens.here" });
    await until(() => state.strayAborted === true, "the call to be cancelled");
  });
});
