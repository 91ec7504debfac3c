import { EventEmitter } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, test } from "vitest";
import { emptyFolder } from "../../io/temp-folder.ts";
import { patience } from "../../slowness.ts";
import { callContext, connect, failure, isAlive, localDouble, nodeProgram, recordingLog, textOf, until } from "../connect-kit.ts";

const raw = (...habits: string[]) => localDouble("raw-server.mjs", ...habits);

describe("connecting to a local server", () => {
  test("an old server that does not know the question for its protocol takes the old handshake in the same process", async () => {
    const frames: string[] = [];
    const connection = await connect(raw(), { onMessage: (_direction, message) => frames.push(JSON.stringify(message)) });
    expect(connection).toMatchObject({
      era: "legacy",
      protocolVersion: "2025-11-25",
      serverInfo: { name: "raw" },
      instructions: "Be kind.",
    });
    expect(frames.filter((line) => line.includes("server/discover"))).toHaveLength(1);
    expect(await textOf(connection.callTool("echo", { a: 1 }))).toBe('{"a":1}');
  });

  test("a server that is known to be an old one is not asked", async () => {
    const frames: string[] = [];
    await connect(raw("exit-on-unknown"), {
      prior: { era: "legacy" },
      onMessage: (_direction, message) => frames.push(JSON.stringify(message)),
    });
    expect(frames.filter((line) => line.includes("server/discover"))).toEqual([]);
  });

  test("a server of both eras speaks the newer, known or not", async () => {
    for (const prior of [undefined, { era: "modern" } as const]) {
      const connection = await connect(localDouble("v2-server.mjs"), { prior });
      expect(connection).toMatchObject({ era: "modern", protocolVersion: "2026-07-28", instructions: "Speak either." });
      expect(await textOf(connection.callTool("echo", { text: "hi" }))).toBe("hi");
    }
  });

  test.each(["exit-on-unknown", "silent-on-unknown", "stuck-on-unknown"])(
    "a server with the habit %s is spoken to in the old way",
    async (habit) => {
      const connection = await connect(raw(habit), { timeout: patience(2_000) });
      expect(connection.era).toBe("legacy");
      expect(await textOf(connection.callTool("echo", {}))).toBe("{}");
    },
  );

  test("a server that cannot be started fails with MCP_NOT_STARTED", async () => {
    const missing = await failure(connect({ ...raw(), command: "no-such-program-anywhere" }));
    expect(missing.code).toBe("MCP_NOT_STARTED");
    expect(missing.message).toContain("no-such-program-anywhere");
    expect((await failure(connect({ ...raw(), cwd: "not/there" }))).code).toBe("MCP_NOT_STARTED");
  });

  test("the error of a server that exits at once has its exit code and its last line of stderr", async () => {
    const heard: string[] = [];
    const error = await failure(connect(raw("exit-at-once"), { onStderr: (text) => heard.push(text) }));
    expect(error.code).toBe("MCP_CLOSED");
    expect(error.message).toContain("code 3");
    expect(error.message).toContain("config missing: set a token");
    expect(heard.join("")).toContain("config missing");
  });

  test("a second server is not started before the first one has ended", async () => {
    const folder = emptyFolder();
    const starts = join(folder, "starts");
    // It answers nothing, and records whether another one runs when it starts.
    const script = join(folder, "server.mjs");
    writeFileSync(
      script,
      `import { appendFileSync, existsSync, readFileSync } from "node:fs";
const log = ${JSON.stringify(starts)};
const isAlive = (pid) => { try { process.kill(pid, 0); return true; } catch { return false; } };
const others = existsSync(log) ? readFileSync(log, "utf8").trim().split("\\n").map((line) => Number(line.split(" ")[0])) : [];
appendFileSync(log, process.pid + " " + others.filter(isAlive).length + "\\n");
process.stdin.resume();
process.stdin.on("end", () => process.exit(0));
`,
    );
    const error = await failure(connect(nodeProgram(script), { timeout: patience(3_000) }));
    expect([error.code, error.message]).toEqual(["MCP_TIMEOUT", expect.stringMatching(/within \d+ ms/)]);
    const lines = readFileSync(starts, "utf8").trim().split("\n");
    expect(lines).toHaveLength(2);
    expect(lines.map((line) => line.split(" ")[1])).toEqual(["0", "0"]);
  });

  test("a server that never answers is given up and ended", async () => {
    const error = await failure(connect(raw("never"), { timeout: 600 }));
    expect(error.code).toBe("MCP_TIMEOUT");
  });

  test("connecting can be cancelled, and nothing is left of the server", async () => {
    const controller = new AbortController();
    const connecting = failure(connect(raw("never"), { signal: controller.signal, onMessage: () => controller.abort() }));
    expect((await connecting).code).toBe("MCP_CANCELLED");
    expect((await failure(connect(raw(), { signal: controller.signal }))).code).toBe("MCP_CANCELLED");
  });

  test("it gets what its configuration gives it and nothing of the host's secrets", async () => {
    process.env["PLANTED_SECRET"] = "hunter2";
    const connection = await connect({ ...raw(), env: { GIVEN: "yes" }, cwd: "test" });
    delete process.env["PLANTED_SECRET"];
    const env = JSON.parse(await textOf(connection.callTool("env", {}))) as Record<string, string>;
    expect(env).toMatchObject({ GIVEN: "yes" });
    expect(JSON.stringify(env)).not.toContain("hunter2");
  });
});

describe("a local server that misbehaves", () => {
  test("lines on stdout that are not messages are skipped and reported a few times", async () => {
    const { log, lines } = recordingLog();
    const connection = await connect(raw("garbage"), { log });
    await until(() => lines.length >= 5, "five lines of garbage are reported");
    expect(await textOf(connection.callTool("echo", {}))).toBe("{}");
    expect(lines.filter((line) => line.includes("not a message"))).toHaveLength(5);
    expect(lines.join()).toContain("Listening on port 3000");
  });

  test("a flood on stderr holds nothing up", async () => {
    let heard = 0;
    const connection = await connect(raw("flood"), { onStderr: (text) => (heard += text.length) });
    await until(() => heard > 2_000_000, "2 MB have come");
    expect(await textOf(connection.callTool("echo", {}))).toBe("{}");
  });

  test("its exit in the middle of calls settles all of them with its exit code", async () => {
    const connection = await connect(raw("exit-mid-call"));
    const errors = await Promise.all([1, 2, 3].map(() => failure(connection.callTool("echo", {}))));
    expect(errors.map(({ code }) => code)).toEqual(["MCP_CLOSED", "MCP_CLOSED", "MCP_CLOSED"]);
    expect(errors[0]?.message).toContain("code 9");
    expect(await connection.ended).toMatchObject({ reason: "exited" });
    expect((await failure(connection.callTool("echo", {}))).code).toBe("MCP_NOT_RUN");
  });

  test("20 MB in one result pass", async () => {
    const connection = await connect(raw());
    const bytes = 20 * 1024 * 1024;
    expect((await textOf(connection.callTool("big", { bytes }))).length).toBe(bytes);
  });

  test("a result over the limit fails its own call only", async () => {
    const connection = await connect(raw(), { maxMessageBytes: 100_000 });
    const [big, small] = await Promise.all([
      failure(connection.callTool("big", { bytes: 200_000 })),
      textOf(connection.callTool("echo", {})),
    ]);
    expect(big.code).toBe("MCP_ANSWER");
    expect(big.message).toContain("100000 bytes");
    expect(small).toBe("{}");
  });

  test("an invalid result and an error are distinguished", async () => {
    const connection = await connect(raw());
    expect((await failure(connection.callTool("strange", {}))).code).toBe("MCP_ANSWER");
    const error = await failure(connection.callTool("fail", {}));
    expect(error).toMatchObject({ code: "MCP_ERROR", message: "no such thing", cause: { code: -32050, data: { hint: 1 } } });
  });

  test("a list that goes round in a circle comes to an end, and one odd entry spoils no list", async () => {
    const found: string[] = [];
    const endless = await connect(raw("endless-list"), { onDiagnostic: ({ code }) => found.push(code) });
    expect(await endless.listTools()).toHaveLength(2);
    expect(found).toEqual(["MCP_LIST_INVALID"]);
    const tools = await (await connect(raw())).listTools();
    expect(tools.length).toBeGreaterThan(10);
    expect(tools).toContainEqual({ name: "odd", inputSchema: { type: "string" } });
  });
});

describe("ending a local server", () => {
  test("nothing is left of one that forks, nor of one that takes no hint", async () => {
    const ending = ["fork", "stubborn"].map(async (habit) => {
      const connection = await connect(raw(habit));
      const pids = JSON.parse(await textOf(connection.callTool("pid", {}))) as number[];
      expect(pids.map(isAlive)).toEqual([true, true]);
      const hanging = failure(connection.callTool("wait", {}));
      await connection[Symbol.asyncDispose]();
      expect((await hanging).code).toBe("MCP_CLOSED");
      expect(await connection.ended).toMatchObject({ reason: "closed" });
      await until(() => !pids.some(isAlive), "all its processes are gone");
    });
    await Promise.all(ending);
  });
});

describe("requests to a local server", () => {
  test("progress comes in order, all of it before the answer", async () => {
    for (const server of [raw(), localDouble("v2-server.mjs")]) {
      const connection = await connect(server);
      const heard: number[] = [];
      await connection.callTool("progress", { times: 3 }, { onProgress: ({ progress }) => heard.push(progress) });
      expect(heard).toEqual([1, 2, 3]);
    }
  });

  test("progress keeps a call from running out of time, silence does not", async () => {
    const connection = await connect(raw());
    expect(await textOf(connection.callTool("slow", { every: patience(60), times: 6 }, { timeout: patience(250) }))).toBe("slow but done");
    const error = await failure(connection.callTool("wait", {}, { timeout: 50 }));
    expect(error.code).toBe("MCP_TIMEOUT");
  });

  test("the server hears of a cancelled call, in both eras", async () => {
    const controller = new AbortController();
    const old = await connect(raw());
    const waiting = failure(old.callTool("wait", {}, { signal: controller.signal }));
    controller.abort();
    expect((await waiting).code).toBe("MCP_CANCELLED");
    expect(await textOf(old.callTool("cancelled", {}))).toBe('["cancelled"]');
    const stderr: string[] = [];
    const modern = await connect(localDouble("v2-server.mjs"), { onStderr: (text) => stderr.push(text) });
    expect((await failure(modern.callTool("wait", {}, { timeout: 50 }))).code).toBe("MCP_TIMEOUT");
    await until(() => stderr.join("").includes("aborted"), "the server has aborted");
    expect((await failure(modern.callTool("echo", {}, { signal: controller.signal }))).code).toBe("MCP_CANCELLED");
  });

  test("two thousand calls on one signal leave nothing on it", async () => {
    const connection = await connect(raw());
    const { signal } = new AbortController();
    for (let count = 0; count < 2000; count += 50) {
      await Promise.all(Array.from({ length: 50 }, () => connection.callTool("echo", {}, { signal, timeout: patience(5_000) })));
    }
    expect(EventEmitter.getEventListeners(signal, "abort")).toEqual([]);
  });

  test("_meta goes along, and extension requests come back as they are", async () => {
    const modern = await connect(localDouble("v2-server.mjs"));
    expect(JSON.parse(await textOf(modern.callTool("meta", {}, { meta: { traceparent: "00-1", "x/y": 1 } })))).toMatchObject({
      traceparent: "00-1",
      "x/y": 1,
    });
    const old = await connect(raw());
    expect(await old.request("x/echo", { a: 1 }, { meta: { m: 2 } })).toMatchObject({ params: { a: 1, _meta: { m: 2 } } });
    expect((await failure(old.request("x/none", {}))).code).toBe("MCP_ERROR");
  });

  test("each announced change of a list is passed on; the server's log goes to ours, without secrets", async () => {
    const { log, lines } = recordingLog();
    const connection = await connect(raw(), { log });
    const heard: string[] = [];
    connection.onListChanged((list) => heard.push(list));
    await connection.callTool("change", { times: 20 });
    await until(() => heard.length === 20, "each announcement is passed on");
    expect(new Set(heard)).toEqual(new Set(["tools"]));
    const said = lines.find((line) => line.includes("raw/disk") || line.includes("peer/disk"));
    expect(said).toContain('"level":"error"');
    expect(said).not.toContain("abcdefghijklmnop");
  });

  test("a server of the newer era reports changed lists and watched resources, too", async () => {
    const connection = await connect(localDouble("v2-server.mjs"));
    const heard: string[] = [];
    connection.onListChanged((list) => heard.push(list));
    const watch = await connection.watchResource("note://one", () => heard.push("note"));
    await until(async () => {
      if (!heard.includes("tools")) await connection.callTool("grow", {}).catch(() => {});
      return heard.includes("tools");
    }, "the new tool is announced");
    await connection.callTool("touch", {});
    await until(() => heard.includes("note"), "the changed resource is announced");
    await watch[Symbol.asyncDispose]();
  });

  test("those who watch one resource share a subscription, which ends with the last of them", async () => {
    const stderr: string[] = [];
    const connection = await connect(raw(), { onStderr: (text) => stderr.push(text) });
    const heard: string[] = [];
    const one = await connection.watchResource("a:b", () => heard.push("one"));
    const two = await connection.watchResource("a:b", () => heard.push("two"));
    await connection.callTool("touch", { uri: "a:b" });
    await one[Symbol.asyncDispose]();
    await connection.callTool("touch", { uri: "a:b" });
    expect(heard).toEqual(["one", "two", "two"]);
    expect(stderr.join("")).toBe("");
    await two[Symbol.asyncDispose]();
    await until(() => stderr.join("").includes("unsubscribed a:b"), "the subscription has ended");
  });

  test("a server sees the working directory of the call and no other root", async () => {
    const connection = await connect(raw(), { workingDirectory: tmpdir() });
    const ask = (context = {}) => textOf(connection.callTool("ask", { method: "roots/list", params: { more: "/etc" } }, context));
    expect(JSON.parse(await ask())).toMatchObject({ result: { roots: [{ uri: pathToFileURL(tmpdir()).href }] } });
    const workingDirectory = join(tmpdir(), "elsewhere");
    const { result } = JSON.parse(await ask({ context: callContext({ workingDirectory }) })) as { result: { roots: unknown[] } };
    expect(result.roots).toEqual([{ uri: pathToFileURL(workingDirectory).href, name: "elsewhere" }]);
  });

  test("the log at debug holds each message as one redacted line of bounded length", async () => {
    const { log, lines } = recordingLog("debug");
    const connection = await connect(raw(), { log });
    await connection.callTool("echo", { password: "hunter2", text: "y".repeat(100_000) });
    const frames = lines.filter((line) => line.includes("MCP message"));
    expect(frames.length).toBeGreaterThan(6);
    expect(frames.join()).not.toContain("hunter2");
    expect(Math.max(...frames.map((line) => line.length))).toBeLessThan(10_000);
  });
});
