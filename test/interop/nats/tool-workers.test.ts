import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { SpanKind, trace } from "@opentelemetry/api";
import { describe, expect, onTestFinished, test } from "vitest";
import { registerTracing } from "../../doubles/memory-tracing.ts";
import { callingHost, skillFolder, startServer, startWorker, startWorkerProcess } from "./fleet-kit.ts";
import { findNatsServer, until } from "./nats-server.ts";

const { path, reason } = findNatsServer();
if (path === "") process.stderr.write(`skipped: ${reason}\n`);

const greet = `import { defineTool } from "skillhost";
export default defineTool("greet", {
  description: "Greets.",
  parameters: { type: "object", properties: { name: { type: "string" }, mark: { type: "string", default: "!" } }, required: ["name"] },
  handler: ({ name, mark }) => "Hello, " + name + mark,
});
`;
const tool = (name: string, handler: string, more = ""): string =>
  `import { defineTool } from "skillhost";
export default defineTool("${name}", { description: "A tool.", parameters: { type: "object" }, ${more} handler: ${handler} });
`;

// .ci/allowed-skips.json lists this title with the reason.
describe.skipIf(path === "")("a real nats-server (a worker)", () => {
  test("serves its skills' tools with the same definitions and signatures, and the calling host decides about permission", async () => {
    const server = await startServer();
    const { host } = await startWorker(server, { "tools/greet.ts": greet });
    const own = (await host.createSession({ persist: false })).catalog.executables.get("greet");
    const asked: string[] = [];
    const { session } = await callingHost(
      server,
      {},
      {
        onPermissionRequest: ({ toolName }) => {
          asked.push(String(toolName));
          return { kind: "approve-once" };
        },
      },
    );
    const remote = session.catalog.executables.get("greet");
    expect([remote?.definition, remote?.signature]).toEqual([own?.definition, own?.signature]);
    expect(remote?.origin).toMatchObject({ kind: "plugin", source: "nats", nativeName: "greet" });
    expect(await session.callTool("greet", { name: "Ada" })).toMatchObject({ ok: true, text: "Hello, Ada!" });
    expect(asked).toEqual(["greet"]);
    await session.update({ onPermissionRequest: () => ({ kind: "reject" }) });
    expect((await session.callTool("greet", { name: "Ada" })).ok).toBe(false);
    expect((await session.callTool("greet", {})).text).toContain("name");
  });

  test("what the handler does reaches the session that called: progress, files, questions and calls of other tools", async () => {
    const server = await startServer();
    const handler = `async (args, { sessionId, toolCallId, workingDirectory }, context) => {
      context.progress({ message: "half", progress: 1, total: 2 });
      context.fileChanged("/tmp/far.txt", "new");
      const { content } = await context.ask("elicitation", { message: "Which?" });
      const back = await context.callTool("local", { a: 1 });
      return { sessionId, toolCallId, which: content.which, back: back.text, ok: back.ok, data: back.json() };
    }`;
    await startWorker(server, { "tools/far.ts": tool("far", handler) });
    const { session } = await callingHost(
      server,
      {},
      {
        onElicitationRequest: ({ message }) => ({ action: "accept", content: { which: `${message} this` } }),
        tools: [{ name: "local", description: "Here.", parameters: { type: "object" }, handler: (args: unknown) => args }],
      },
    );
    const files: string[] = [];
    session.onFileChanged(({ path: file, content }) => void files.push(`${file} ${content}`));
    const progress: unknown[] = [];
    const result = await session.callTool("far", {}, { toolCallId: "c1", onProgress: (update) => void progress.push(update) });
    expect(result.json()).toEqual({
      sessionId: session.id,
      toolCallId: "c1",
      which: "Which? this",
      back: '{"a":1}',
      ok: true,
      data: { a: 1 },
    });
    expect(progress).toEqual([expect.objectContaining({ message: "half", progress: 1, total: 2 })]);
    expect(files).toEqual(["/tmp/far.txt new"]);
  });

  test("a cancelled call, and one past its deadline, are cancelled at the worker", async () => {
    const server = await startServer();
    const handler = `(args, { signal }) => new Promise((_, reject) => {
      globalThis.farBegan = (globalThis.farBegan ?? 0) + 1;
      signal.addEventListener("abort", () => { globalThis.farAborted = (globalThis.farAborted ?? 0) + 1; reject(signal.reason); });
    })`;
    const state = globalThis as { farBegan?: number; farAborted?: number };
    await startWorker(server, { "tools/slow.ts": tool("slow", handler), "tools/short.ts": tool("short", handler, "timeout: 100,") });
    const { session } = await callingHost(server);
    const stop = new AbortController();
    const call = session.callTool("slow", {}, { signal: stop.signal });
    await until(() => state.farBegan === 1, "the call to begin");
    stop.abort();
    expect((await call).ok).toBe(false);
    await until(() => state.farAborted === 1, "the worker to hear of it");
    expect((await session.callTool("short")).resultType).toBe("timeout");
    await until(() => state.farAborted === 2, "the worker to hear of the deadline");
  });

  test("errors, invalid results and results of any size arrive as of a tool of the host's own", async () => {
    const server = await startServer();
    const { host } = await startWorker(server, {
      "tools/large.ts": tool("large", `({ text, times }) => ({ length: text?.length, text: "é".repeat(times ?? 0) })`),
      "tools/fails.ts": tool("fails", `() => { throw new Error("secret path"); }`),
      "tools/cyclic.ts": tool("cyclic", `() => { const a = {}; a.a = a; return a; }`),
      "tools/denied.ts": tool("denied", `() => ({ resultType: "failure", textResultForLlm: "No.", error: "because" })`),
      "tools/nothing.ts": tool("nothing", `() => undefined`),
    });
    const own = await host.createSession({ persist: false, onPermissionRequest: () => ({ kind: "approve-once" }) });
    const { session } = await callingHost(server, { maxResult: 8_000_000 }, { largeOutput: { enabled: false } });
    expect((await session.callTool("large", { times: 2_500_000 })).json<{ text: string }>().text).toBe("é".repeat(2_500_000));
    expect((await session.callTool("large", { text: "x".repeat(3_000_000) })).json()).toMatchObject({ length: 3_000_000 });
    expect(await session.callTool("large", { times: 5_000_000 })).toMatchObject({
      ok: false,
      error: expect.stringContaining("larger than 8000000 bytes"),
    });
    const failed = await session.callTool("fails");
    expect([failed.ok, failed.text.includes("secret"), failed.error]).toEqual([false, false, expect.stringContaining("secret path")]);
    expect((await session.callTool("cyclic")).ok).toBe(false);
    expect(await session.callTool("denied")).toMatchObject({ resultType: "failure", text: "No.", error: "because" });
    expect(await session.callTool("nothing")).toEqual(await own.callTool("nothing"));
  });

  test("a worker that is killed, or stops, fails its calls within two seconds as of unknown outcome", async () => {
    const server = await startServer();
    const root = skillFolder({ "tools/wait.ts": tool("wait", `() => new Promise((resolve) => setTimeout(resolve, 60_000))`) });
    const ending = await startWorkerProcess(server, root);
    const { session, has } = await callingHost(server);
    await has("wait");
    const lost = async (stop: () => unknown): Promise<number> => {
      const stats = async (): Promise<boolean> => (await workerStats(server)).some((text) => text.includes("wait"));
      const call = session.callTool("wait");
      await until(stats, "the worker to answer");
      await new Promise((resolve) => setTimeout(resolve, 300));
      await stop();
      const began = performance.now();
      expect(await call).toMatchObject({
        ok: false,
        error: "FLEET_WORKER_LOST: outcome unknown",
        text: expect.stringContaining("unknown"),
      });
      return performance.now() - began;
    };
    expect(await lost(() => ending.kill("SIGKILL"))).toBeLessThan(2_000);
    await ending.ended;
    expect(await session.callTool("wait")).toMatchObject({ ok: false, error: "FLEET_NO_WORKER" });
    const pausing = await startWorkerProcess(server, root);
    let paused: Disposable | undefined;
    expect(
      await lost(async () => {
        paused = await pausing.pause();
      }),
    ).toBeLessThan(2_000);
    paused?.[Symbol.dispose]();
  });

  test("a call of a tool that may be repeated goes to another worker, and runs once there", async () => {
    const server = await startServer();
    // The first run never ends, and the second one does at once.
    const handler = `async ({ log }) => {
      const { appendFileSync, existsSync } = await import("node:fs");
      const isFirst = !existsSync(log);
      appendFileSync(log, process.pid + "\\n");
      if (isFirst) await new Promise((resolve) => setTimeout(resolve, 60_000));
      return "done";
    }`;
    const root = skillFolder({ "tools/again.ts": tool("again", handler, "annotations: { idempotentHint: true },") });
    const log = join(root, "log");
    const first = await startWorkerProcess(server, root);
    const { session, has } = await callingHost(server);
    await has("again");
    const call = session.callTool("again", { log });
    await until(() => existsSync(log), "the call to begin");
    const second = await startWorkerProcess(server, root);
    first.kill("SIGKILL");
    expect(await call).toMatchObject({ ok: true, text: "done" });
    expect(readFileSync(log, "utf8").trim().split("\n")).toHaveLength(2);
    expect(second.id).not.toBe(first.id);
  });

  test("the programs of NATS find it, with its statistics", async () => {
    const server = await startServer();
    const { worker } = await startWorker(server, { "tools/greet.ts": greet }, { name: "greeters" });
    const { session } = await callingHost(server);
    await session.callTool("greet", { name: "Ada" });
    await using connection = await server.connect();
    const ask = async (subject: string): Promise<unknown> => (await connection.request(subject)).json();
    const same = { name: "greeters", id: worker.id, version: expect.stringMatching(/^\d+\.\d+\.\d+/), metadata: { protocol: "1" } };
    expect(await ask("$SRV.PING")).toEqual({ type: "io.nats.micro.v1.ping_response", ...same });
    expect(await ask("$SRV.INFO.greeters")).toMatchObject({
      ...same,
      endpoints: [{ name: "greet", subject: expect.stringMatching(/^skillhost\.tools\.\w{64}\.greet$/) }],
    });
    expect(await ask(`$SRV.STATS.greeters.${worker.id}`)).toMatchObject({
      ...same,
      endpoints: [{ num_requests: 1, num_errors: 0, average_processing_time: expect.any(Number) }],
    });
  });

  test("a worker that has received many calls which compute sends its signs of life between them", async () => {
    const server = await startServer();
    // In a process of its own: a busy thread is silent, and here it would be the caller, too.
    const busy = `() => { const end = performance.now() + 100; while (performance.now() < end); return "done"; }`;
    const root = skillFolder({ "tools/spin.ts": tool("spin", busy) });
    await startWorkerProcess(server, root);
    const { session, has } = await callingHost(server);
    await has("spin");
    const results = await Promise.all(Array.from({ length: 24 }, () => session.callTool("spin")));
    expect(results.map(({ text, error }) => error ?? text)).toEqual(results.map(() => "done"));
  });

  test("a call is one trace: the worker's span is a child of the host's, and the handler's spans are of the worker's", async () => {
    const spans = registerTracing({ contexts: true });
    const server = await startServer();
    const handler = `(args, { traceparent }) => { globalThis.tracedInside?.(); return traceparent; }`;
    await startWorker(server, { "tools/traced.ts": tool("traced", handler) });
    const state = globalThis as { tracedInside?: () => void };
    state.tracedInside = () => trace.getTracer("of a skill").startSpan("inside").end();
    onTestFinished(() => {
      delete state.tracedInside;
    });
    const { session, has } = await callingHost(server);
    await has("traced");
    const { text } = await session.callTool("traced");
    await until(() => spans.length === 3 && spans.every(({ ended }) => ended === 1), "the spans to end");
    const [atHost, atWorker, inside] = spans;
    expect(spans.map(({ name }) => name)).toEqual(["execute_tool traced", "execute_tool traced", "inside"]);
    expect(atWorker?.kind).toBe(SpanKind.SERVER);
    expect(atWorker?.parentId).toBe(atHost?.context.spanId);
    expect(inside?.parentId).toBe(atWorker?.context.spanId);
    expect(new Set(spans.map(({ context }) => context.traceId)).size).toBe(1);
    expect(text).toContain(atWorker?.context.spanId);
    expect(atWorker?.attributes["gen_ai.tool.call.id"]).toBe(atHost?.attributes["gen_ai.tool.call.id"]);
  });

  test("a drained worker ends what it runs, and no call fails while another takes over", async () => {
    const server = await startServer();
    const files = { "tools/work.ts": tool("work", `() => new Promise((resolve) => setTimeout(() => resolve("done"), 20))`) };
    const first = await startWorker(server, files);
    const { session } = await callingHost(server);
    let isOver = false;
    const outcomes: string[] = [];
    const caller = async (): Promise<void> => {
      while (!isOver) outcomes.push((await session.callTool("work")).text);
    };
    const callers = Promise.all(Array.from({ length: 8 }, caller));
    await until(() => outcomes.length > 20, "calls");
    await startWorker(server, files);
    await first.worker.drain();
    const before = outcomes.length;
    await until(() => outcomes.length > before + 40, "calls of the other worker");
    isOver = true;
    await callers;
    expect(new Set(outcomes)).toEqual(new Set(["done"]));
  });

  test("a changed tool is the new one at the hosts, and one that is gone is gone", async () => {
    const server = await startServer();
    const { host, root } = await startWorker(server, { "tools/greet.ts": greet });
    const { session, has } = await callingHost(server);
    await has("greet");
    const { put } = await import("../../skills/kit.ts");
    put(join(root, "far/tools/greet.ts"), greet.replace("Greets.", "Greets again.").replace("Hello", "Good day"));
    put(join(root, "far/tools/more.ts"), tool("more", `() => "more"`));
    await host.reload();
    await has("more");
    await until(() => session.catalog.executables.get("greet")?.definition.description === "Greets again.", "the new definition");
    expect((await session.callTool("greet", { name: "Ada" })).text).toBe("Good day, Ada!");
    host.disableSkill("far");
    await until(() => !session.catalog.executables.has("greet"), "the tool to be gone");
  });

  test("a server that goes away and returns: the tools stay, the host reports it, and calls work again", async () => {
    const server = await startServer();
    await startWorker(server, { "tools/greet.ts": greet });
    const { session } = await callingHost(server);
    const isReported = (): boolean => session.catalog.diagnostics.some(({ code }) => code === "FLEET_DISCONNECTED");
    await server.kill();
    await until(isReported, "the report");
    expect(await session.callTool("greet", { name: "Ada" })).toMatchObject({ ok: false, error: "FLEET_DISCONNECTED" });
    expect(session.catalog.executables.has("greet")).toBe(true);
    await server.start();
    await until(() => !isReported(), "the connection");
    await until(async () => (await session.callTool("greet", { name: "Ada" })).ok, "a call that works");
  });
});

async function workerStats(server: Awaited<ReturnType<typeof startServer>>): Promise<readonly string[]> {
  await using connection = await server.connect();
  const answers: string[] = [];
  for await (const answer of await connection.requestMany("$SRV.STATS", undefined, { maxWait: 200 })) answers.push(answer.string());
  return answers;
}
