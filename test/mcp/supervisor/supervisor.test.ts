import { describe, expect, test } from "vitest";
import { HostError } from "../../../src/base/errors.ts";
import type { ServerChange } from "../../../src/mcp/supervisor/server-lease.ts";
import { settled } from "../manual-clock.ts";
import { FakeServers, keepingLog, localSpec, makeKit, neverAborted, remoteSpec } from "../supervisor-kit.ts";

const notRun = (): Error => new HostError("MCP_NOT_RUN", "The session is unknown.");
const closed = (): Error => new HostError("MCP_CLOSED", "The connection is over.");
const refused = (): Error => new HostError("MCP_UNAUTHORIZED", "Sign in.");
const tool = (name: string): Record<string, unknown> => ({ name, inputSchema: { type: "object" } });

describe("starting", () => {
  test("acquiring starts nothing; ready starts all at once and gives what they offer", async () => {
    const { supervisor, servers } = makeKit(new FakeServers({ tools: () => [tool("add")] }));
    const lease = supervisor.acquire([localSpec("one"), localSpec("two")]);
    await settled();
    expect(servers.tries).toEqual([]);
    expect(lease.servers.map(({ state, lists }) => [state, lists])).toEqual([
      ["idle", undefined],
      ["idle", undefined],
    ]);
    await lease.ready(neverAborted);
    expect(lease.servers.map(({ name, state, lists }) => [name, state, lists?.tools])).toEqual([
      ["one", "ready", [tool("add")]],
      ["two", "ready", [tool("add")]],
    ]);
    expect(lease.servers[0]?.lists).toMatchObject({ from: "server", instructions: "Use it well.", capabilities: { tools: {} } });
    expect(Object.isFrozen(lease.servers[0]?.lists)).toBe(true);
    expect(lease.servers[0]?.status).toMatchObject({ pid: 1, era: "legacy", protocolVersion: "2025-11-25", users: 1, startedIn: 0 });
  });

  test("a slow server does not hold back the others, and is announced when it is ready", async () => {
    const { supervisor, servers, clock } = makeKit(new FakeServers({}, false));
    const lease = supervisor.acquire([localSpec("quick"), localSpec("slow")]);
    const heard: string[] = [];
    lease.subscribe(({ server, kind }: ServerChange) => heard.push(`${server.name} ${kind} ${server.state}`));
    const ready = lease.ready(neverAborted, { waitMs: 3_000 });
    await settled();
    servers.tries[0]?.accept();
    await clock.pass(2_999);
    let isOver = false;
    void ready.then(() => {
      isOver = true;
    });
    await settled();
    expect(isOver).toBe(false);
    await clock.pass(1);
    await ready;
    expect(lease.servers.map(({ state }) => state)).toEqual(["ready", "starting"]);
    heard.length = 0;
    servers.tries[1]?.accept();
    await settled();
    expect(heard).toEqual(["slow lists ready", "slow state ready"]);
  });

  test("ten servers that take a second each are ready after that second", async () => {
    const servers = new FakeServers();
    const { supervisor, clock } = makeKit(servers, {
      connect: async (spec, request) => {
        await new Promise<void>((resolve) => clock.after(1_000, resolve));
        return await servers.connect(spec, request);
      },
    });
    const lease = supervisor.acquire(Array.from({ length: 10 }, (_, index) => localSpec(`s${index}`)));
    lease.start();
    await clock.pass(1_000);
    expect(lease.servers.map(({ status }) => [status.state, status.startedIn])).toEqual(Array(10).fill(["ready", 1_000]));
  });

  test("a server that fails its first try is waited for no longer, though it is tried on", async () => {
    const { supervisor, servers, clock } = makeKit(new FakeServers({}, false));
    const lease = supervisor.acquire([localSpec("shy")]);
    const ready = lease.ready(neverAborted, { waitMs: 60_000 });
    await settled();
    servers.lastTry.refuse();
    await ready;
    expect(lease.servers[0]?.status).toMatchObject({ state: "starting", failures: 1, error: { message: "It exited with code 1." } });
    await clock.pass(200);
    servers.lastTry.accept();
    await settled();
    expect(lease.servers[0]?.state).toBe("ready");
    expect(lease.servers[0]?.status.error).toBeUndefined();
  });

  test("waiting ends with the signal, and the start continues", async () => {
    const { supervisor, servers } = makeKit(new FakeServers({}, false));
    const lease = supervisor.acquire([localSpec("slow")]);
    const controller = new AbortController();
    const ready = lease.ready(controller.signal);
    controller.abort(new Error("enough"));
    await expect(ready).rejects.toThrow("enough");
    expect(servers.lastTry.request.signal.aborted).toBe(false);
  });

  test("no more than so many start at a time, and one that takes long gives its place up", async () => {
    const { supervisor, servers, clock } = makeKit(new FakeServers({}, false), { maxConcurrentStarts: 2 });
    const lease = supervisor.acquire(["a", "b", "c", "d"].map((name) => localSpec(name)));
    lease.start();
    await settled();
    expect(servers.tries.map(({ name }) => name)).toEqual(["a", "b"]);
    servers.tries[0]?.accept();
    await settled();
    expect(servers.tries.map(({ name }) => name)).toEqual(["a", "b", "c"]);
    await clock.pass(3_000);
    expect(servers.tries.map(({ name }) => name)).toEqual(["a", "b", "c", "d"]);
  });

  test("disabled ones, ones without wanted tools and ones that lack something are listed and never started", async () => {
    const { supervisor, servers } = makeKit();
    const lease = supervisor.acquire([
      localSpec("off", { isDisabled: true }),
      localSpec("none", { tools: [] }),
      { name: "empty", type: "http", reason: "Its url is empty. Fill it in." },
    ]);
    await lease.ready(neverAborted);
    expect(lease.servers.map(({ status }) => [status.name, status.state, status.error?.message])).toEqual([
      ["off", "disabled", "It is disabled in its configuration."],
      ["none", "disabled", "Its configuration selects none of its tools (tools: []), so it is not started."],
      ["empty", "needs-configuration", "Its url is empty. Fill it in."],
    ]);
    for (const server of lease.servers) {
      server.start();
      await server.restart();
      await expect(server.callTool("x", {})).rejects.toMatchObject({ code: "MCP_UNAVAILABLE" });
    }
    expect(servers.tries).toEqual([]);
    expect(supervisor.list()).toEqual([]);
  });

  test("a call starts the server that it needs, and waits for it", async () => {
    const { supervisor, servers } = makeKit(new FakeServers({ tools: () => new Promise(() => {}) }, false));
    const server = supervisor.acquire([localSpec("lazy")]).servers[0]!;
    const answer = server.callTool("add", {});
    await settled();
    // It need not wait for the lists, which never come here.
    servers.lastTry.accept();
    expect(await answer).toEqual({ from: 1 });
  });

  test("a call that is cancelled while its server starts says so, and one that waits too long says what state it is in", async () => {
    const { supervisor, clock } = makeKit(new FakeServers({}, false), { callWait: 1_000 });
    const server = supervisor.acquire([localSpec("slow", { timeout: 5_000 })]).servers[0]!;
    const controller = new AbortController();
    const cancelled = server.callTool("add", {}, { signal: controller.signal });
    controller.abort();
    await expect(cancelled).rejects.toMatchObject({ code: "MCP_CANCELLED" });
    const late = server.callTool("add", {});
    const refused = expect(late).rejects.toMatchObject({
      code: "MCP_UNAVAILABLE",
      message: expect.stringContaining('"slow" is not available (starting)'),
    });
    await clock.pass(6_000);
    await refused;
  });
});

describe("sharing", () => {
  test("equal configurations share one connection, whatever they are called, filter or allow of time", async () => {
    const { supervisor, servers } = makeKit(new FakeServers({}, false));
    const spec = localSpec("one", { command: "srv", timeout: 1_000 });
    const mine = supervisor.acquire([spec]);
    const theirs = supervisor.acquire([{ ...spec, name: "other", tools: ["x"], timeout: 90_000 }]);
    mine.start();
    theirs.start();
    await settled();
    expect(servers.tries).toHaveLength(1);
    expect(servers.lastTry.request.timeout).toBe(90_000);
    servers.lastTry.accept();
    await settled();
    expect([mine, theirs].map((lease) => lease.servers[0]?.status)).toMatchObject([
      { name: "one", state: "ready", users: 2 },
      { name: "other", state: "ready", users: 2 },
    ]);
    expect(mine.servers[0]?.lists).toBe(theirs.servers[0]?.lists);
    expect(supervisor.list()).toHaveLength(1);
  });

  test.each([
    ["arguments", { args: ["-x"] }],
    ["environment", { env: { KEY: "1" } }],
    ["folder", { cwd: "elsewhere" }],
  ])("another connection is made for other %s", async (_what, more) => {
    const { supervisor, servers } = makeKit();
    await supervisor.acquire([localSpec("a", { command: "srv" }), localSpec("b", { command: "srv", ...more })]).ready(neverAborted);
    expect(servers.connections).toHaveLength(2);
  });

  test("the last to let go ends the connection, a short while later", async () => {
    const { supervisor, servers, clock } = makeKit(new FakeServers(), { linger: 5_000 });
    const mine = supervisor.acquire([localSpec("one")]);
    const theirs = supervisor.acquire([localSpec("one")]);
    await mine.ready(neverAborted);
    mine[Symbol.dispose]();
    await clock.pass(60_000);
    expect(servers.last.isDisposed).toBe(false);
    theirs[Symbol.dispose]();
    await clock.pass(4_999);
    expect(servers.last.isDisposed).toBe(false);
    await clock.pass(1);
    expect(servers.last.isDisposed).toBe(true);
    expect(supervisor.list()).toEqual([]);
    await expect(theirs.servers[0]?.callTool("x", {})).rejects.toMatchObject({ code: "MCP_UNAVAILABLE" });
  });

  test("who comes back in time finds the same connection", async () => {
    const { supervisor, servers, clock } = makeKit();
    const before = supervisor.acquire([localSpec("one")]);
    await before.ready(neverAborted);
    before[Symbol.dispose]();
    await clock.pass(1_000);
    const after = supervisor.acquire([localSpec("one")]);
    expect(after.servers[0]?.state).toBe("ready");
    await clock.pass(60_000);
    expect(servers.connections).toHaveLength(1);
    expect(servers.last.isDisposed).toBe(false);
  });

  test("an update keeps what is configured as before, and a connection whose filter alone is another", async () => {
    const { supervisor, servers, clock } = makeKit();
    const [same, filtered, gone] = [localSpec("same"), localSpec("filtered"), localSpec("gone")];
    const lease = supervisor.acquire([same, filtered, gone]);
    await lease.ready(neverAborted);
    const [keptServer] = lease.servers;
    const pids = lease.servers.map(({ status }) => status.pid);
    lease.update([{ ...filtered, tools: ["x"] }, { ...same }, localSpec("fresh")]);
    await clock.pass(10_000);
    expect(lease.servers.map(({ name, status }) => [name, status.pid])).toEqual([
      ["filtered", pids[1]],
      ["same", pids[0]],
      ["fresh", 4],
    ]);
    expect(lease.servers[1]).toBe(keptServer);
    expect(servers.connections.map(({ isDisposed }) => isDisposed)).toEqual([false, false, true, false]);
  });

  test("a server that is started again while its predecessor still ends waits for that", async () => {
    const { supervisor, servers, clock } = makeKit(new FakeServers(), { linger: 0 });
    const first = supervisor.acquire([localSpec("one")]);
    await first.ready(neverAborted);
    let release = (): void => {};
    servers.last.disposal = new Promise((resolve) => {
      release = resolve;
    });
    first[Symbol.dispose]();
    await clock.pass(0);
    supervisor.acquire([localSpec("one")]).start();
    await settled();
    expect(servers.tries).toHaveLength(1);
    release();
    await settled();
    expect(servers.tries).toHaveLength(2);
  });
});

describe("crashes", () => {
  test("a crash brings a new start, while its tools stay offered and calls wait for it", async () => {
    const { supervisor, servers, clock } = makeKit(new FakeServers({ tools: () => [tool("add")] }));
    const lease = supervisor.acquire([localSpec("one")]);
    const server = lease.servers[0]!;
    await lease.ready(neverAborted);
    const { lists } = server;
    servers.last.crash("It was ended by SIGSEGV.");
    await settled();
    expect(server.status).toMatchObject({
      state: "starting",
      failures: 1,
      error: { code: "MCP_CLOSED", message: "It was ended by SIGSEGV." },
    });
    expect(server.lists).toBe(lists);
    const answer = server.callTool("add", {});
    await clock.pass(200);
    expect(await answer).toEqual({ from: 2 });
    expect(server.status).toMatchObject({ state: "ready", pid: 2, error: undefined });
    expect(server.lists?.tools).toEqual([tool("add")]);
  });

  test("pauses between tries grow, with half of each left to chance", async () => {
    for (const [chance, pauses] of [
      [1, [200, 400, 800, 1_600]],
      [0, [100, 200, 400, 800]],
    ] as const) {
      const { supervisor, servers, clock } = makeKit(new FakeServers({}, false), { random: () => chance });
      supervisor.acquire([localSpec("broken")]).start();
      await settled();
      for (const [index, pause] of pauses.entries()) {
        servers.lastTry.refuse();
        await clock.pass(pause - 1);
        expect(servers.tries).toHaveLength(index + 1);
        await clock.pass(1);
        expect(servers.tries).toHaveLength(index + 2);
      }
    }
  });

  test("a server that exits at once each time is given up, says why, and costs nothing after that", async () => {
    const log = keepingLog();
    const { supervisor, servers, clock } = makeKit(new FakeServers({}, false), { log });
    const lease = supervisor.acquire([localSpec("broken")]);
    const server = lease.servers[0]!;
    lease.start();
    for (let count = 0; count < 5; count++) {
      await settled();
      servers.lastTry.request.onStderr("Cannot find module 'x'\n");
      servers.lastTry.refuse("MCP_CLOSED", "It exited with code 3.");
      await clock.pass(2_000);
    }
    expect(servers.tries).toHaveLength(5);
    expect(server.status).toMatchObject({ state: "failed", failures: 5, stderrTail: "Cannot find module 'x'\n" });
    expect(server.status.error?.message).toBe("It exited with code 3.");
    expect(log.lines.filter(({ level }) => level === "error")).toMatchObject([{ data: { stderr: "Cannot find module 'x'\n" } }]);
    expect(clock.pending).toBe(0);
    await expect(server.callTool("x", {})).rejects.toMatchObject({
      code: "MCP_UNAVAILABLE",
      message: expect.stringMatching(/"broken" is not available \(failed\)\. It exited with code 3\./),
    });
    expect(servers.tries).toHaveLength(5);
  });

  test("after some time a call tries a given-up server once more, and only the first of many does", async () => {
    const { supervisor, servers, clock } = makeKit(new FakeServers({}, false), { respawn: { maxFailures: 1, coolDown: 30_000 } });
    const server = supervisor.acquire([localSpec("broken")]).servers[0]!;
    server.start();
    await settled();
    servers.lastTry.refuse();
    await clock.pass(30_000);
    const calls = [1, 2, 3].map(() => server.callTool("x", {}));
    await settled();
    expect(servers.tries).toHaveLength(2);
    servers.lastTry.refuse();
    for (const result of await Promise.allSettled(calls)) expect(result).toMatchObject({ reason: { code: "MCP_UNAVAILABLE" } });
    await expect(server.callTool("x", {})).rejects.toMatchObject({ code: "MCP_UNAVAILABLE" });
    expect(servers.tries).toHaveLength(2);
    await clock.pass(30_000);
    const answer = server.callTool("x", {});
    await settled();
    servers.lastTry.accept();
    expect(await answer).toEqual({ from: 1 });
    expect(server.state).toBe("ready");
  });

  test("one that was given up is not tried by the next user either, until some time has passed", async () => {
    const { supervisor, servers, clock } = makeKit(new FakeServers({}, false), { respawn: { maxFailures: 1 } });
    const first = supervisor.acquire([localSpec("broken")]);
    first.start();
    await settled();
    servers.lastTry.refuse("MCP_CLOSED", "It exited with code 7.");
    await settled();
    first[Symbol.dispose]();
    expect(supervisor.list()).toEqual([]);
    const second = supervisor.acquire([localSpec("broken")]);
    await second.ready(neverAborted);
    expect(servers.tries).toHaveLength(1);
    expect(second.servers[0]?.status).toMatchObject({ state: "failed", error: { message: "It exited with code 7." } });
    await clock.pass(30_000);
    second.start();
    await settled();
    expect(servers.tries).toHaveLength(2);
  });

  test("what cannot start at all is not tried again", async () => {
    const { supervisor, servers, clock } = makeKit(new FakeServers({}, false));
    const server = supervisor.acquire([localSpec("missing")]).servers[0]!;
    server.start();
    await settled();
    servers.lastTry.refuse("MCP_NOT_STARTED", "The command missing was not found.");
    await clock.pass(20_000);
    expect(servers.tries).toHaveLength(1);
    expect(server.status).toMatchObject({ state: "failed", failures: 1 });
  });

  test("crashes soon after each start count, and a long time of working forgives them", async () => {
    const { supervisor, servers, clock } = makeKit(new FakeServers(), { respawn: { maxFailures: 3, stableAfter: 30_000 } });
    const server = supervisor.acquire([localSpec("flaky")]).servers[0]!;
    server.start();
    for (let count = 0; count < 2; count++) {
      await clock.pass(1_000);
      servers.last.crash();
    }
    await clock.pass(30_000);
    await clock.pass(1_000);
    expect(server.status).toMatchObject({ state: "ready", failures: 0 });
    for (let count = 0; count < 2; count++) {
      servers.last.crash();
      await clock.pass(1_000);
      expect(server.state).toBe("ready");
    }
    servers.last.crash();
    await clock.pass(1_000);
    expect(server.state).toBe("failed");
  });

  test("it has no users: it is not restarted", async () => {
    const { supervisor, servers, clock } = makeKit();
    const lease = supervisor.acquire([localSpec("one")]);
    await lease.ready(neverAborted);
    lease[Symbol.dispose]();
    servers.last.crash();
    await clock.pass(60_000);
    expect(servers.tries).toHaveLength(1);
    expect(clock.pending).toBe(0);
  });
});

describe("requests", () => {
  test("a session that the server forgot is replaced, and the call that it certainly did not run is repeated", async () => {
    const { supervisor, servers } = makeKit();
    const lease = supervisor.acquire([remoteSpec("web")]);
    const server = lease.servers[0]!;
    await lease.ready(neverAborted);
    servers.last.answers["call"] = () => Promise.reject(notRun());
    expect(await Promise.all([1, 2, 3].map(() => server.callTool("add", {})))).toEqual([{ from: 2 }, { from: 2 }, { from: 2 }]);
    expect(servers.connections).toHaveLength(2);
    expect(servers.connections[0]?.isDisposed).toBe(true);
    expect(server.state).toBe("ready");
  });

  test("calls in flight on a session that is gone each get their own answer, or are sent again, each once", async () => {
    const { supervisor, servers, clock } = makeKit();
    const lease = supervisor.acquire([remoteSpec("web")]);
    await lease.ready(neverAborted);
    const old = servers.last;
    const settle: ((answer: Promise<object>) => void)[] = [];
    old.answers["call"] = () => new Promise((resolve) => settle.push(resolve as (answer: Promise<object>) => void));
    const calls = ["a", "b", "c"].map((name) => lease.servers[0]!.callTool(name, {}));
    await settled();
    settle[0]?.(Promise.reject(notRun()));
    await settled();
    expect(servers.connections).toHaveLength(2);
    expect(old.isDisposed).toBe(false);
    settle[1]?.(Promise.resolve({ late: true }));
    settle[2]?.(Promise.reject(notRun()));
    expect(await Promise.all(calls)).toEqual([{ from: 2 }, { late: true }, { from: 2 }]);
    await clock.pass(0);
    expect(old.isDisposed).toBe(true);
    expect(servers.connections).toHaveLength(2);
  });

  test("it is sent again once only", async () => {
    const { supervisor, servers, clock } = makeKit(new FakeServers({ call: () => Promise.reject(notRun()) }));
    const lease = supervisor.acquire([remoteSpec("web")]);
    await lease.ready(neverAborted);
    await expect(lease.servers[0]?.callTool("add", {})).rejects.toMatchObject({ code: "MCP_NOT_RUN" });
    expect(servers.connections.flatMap(({ asked }) => asked.filter((text) => text === "call add"))).toHaveLength(2);
    await clock.pass(1_000);
    expect(lease.servers[0]?.state).toBe("ready");
  });

  test("a call that was cancelled meanwhile is not sent again", async () => {
    const { supervisor, servers } = makeKit();
    const lease = supervisor.acquire([remoteSpec("web")]);
    await lease.ready(neverAborted);
    const controller = new AbortController();
    servers.last.answers["call"] = () => {
      controller.abort();
      return Promise.reject(notRun());
    };
    await expect(lease.servers[0]!.callTool("add", {}, { signal: controller.signal })).rejects.toMatchObject({ code: "MCP_NOT_RUN" });
    await settled();
    expect(servers.last.asked).not.toContain("call add");
  });

  test("nothing is repeated on a connection that says it is over and is not", async () => {
    const { supervisor, servers, clock } = makeKit(new FakeServers({ read: () => Promise.reject(closed()) }));
    const lease = supervisor.acquire([localSpec("one")]);
    await lease.ready(neverAborted);
    const refusal = expect(lease.servers[0]!.readResource("a:b")).rejects.toMatchObject({ code: "MCP_CLOSED" });
    await clock.pass(1_000);
    await refusal;
    expect(servers.last.asked.filter((text) => text === "read a:b")).toHaveLength(1);
  });

  test("a call that the server may have run is not repeated, and reading is", async () => {
    const { supervisor, servers, clock } = makeKit();
    const lease = supervisor.acquire([localSpec("one")]);
    const server = lease.servers[0]!;
    await lease.ready(neverAborted);
    const dying = servers.last;
    const die = (): Promise<never> => {
      dying.crash();
      return Promise.reject(closed());
    };
    dying.answers["call"] = die;
    dying.answers["read"] = die;
    const call = server.callTool("add", {});
    const read = server.readResource("a:b");
    await expect(call).rejects.toMatchObject({ code: "MCP_CLOSED" });
    await clock.pass(200);
    expect(await read).toEqual({ from: 2 });
    expect(servers.last.asked).not.toContain("call add");
  });

  test("a server that requires sign-in has that state, keeps what it offered, and is tried on request", async () => {
    const { supervisor, servers, clock } = makeKit(new FakeServers({}, false));
    const server = supervisor.acquire([remoteSpec("web")]).servers[0]!;
    server.start();
    await settled();
    servers.lastTry.refuse("MCP_UNAUTHORIZED", "Sign in first.");
    await clock.pass(20_000);
    expect(server.status).toMatchObject({ state: "needs-auth", error: { code: "MCP_UNAUTHORIZED" } });
    expect(servers.tries).toHaveLength(1);
    await expect(server.callTool("x", {})).rejects.toMatchObject({
      code: "MCP_UNAVAILABLE",
      message: expect.stringContaining("needs-auth"),
    });
    server.start();
    await settled();
    servers.lastTry.accept();
    await settled();
    expect(server.state).toBe("ready");
  });

  test("a call that is refused for want of a sign-in leaves the connection to the others", async () => {
    const { supervisor, servers } = makeKit();
    const lease = supervisor.acquire([remoteSpec("web")]);
    const server = lease.servers[0]!;
    await lease.ready(neverAborted);
    servers.last.answers["call"] = () => Promise.reject(refused());
    await expect(server.callTool("admin", {})).rejects.toMatchObject({ code: "MCP_UNAUTHORIZED" });
    expect(server.state).toBe("needs-auth");
    expect(await server.readResource("a:b")).toEqual({ from: 1 });
    expect(server.status).toMatchObject({ state: "ready", error: undefined });
  });

  test("watching a resource continues on another connection, and the listener is called for what may have been missed", async () => {
    const { supervisor, servers, clock } = makeKit();
    const lease = supervisor.acquire([localSpec("one")]);
    await lease.ready(neverAborted);
    let heard = 0;
    const watch = await lease.servers[0]!.watchResource("a:b", () => heard++);
    servers.last.watched.get("a:b")?.();
    expect(heard).toBe(1);
    servers.last.crash();
    await clock.pass(200);
    expect(heard).toBe(2);
    servers.last.watched.get("a:b")?.();
    expect(heard).toBe(3);
    servers.connections[0]?.watched.get("a:b")?.();
    expect(heard).toBe(3);
    await watch[Symbol.asyncDispose]();
    expect(servers.last.watched.size).toBe(0);
    servers.last.crash();
    await clock.pass(1_000);
    expect(servers.last.watched.size).toBe(0);
    expect(heard).toBe(3);
  });

  test("all requests go to the connection with what they were given", async () => {
    const { supervisor, servers } = makeKit();
    const server = supervisor.acquire([localSpec("one")]).servers[0]!;
    await server.getPrompt("hello", {});
    await server.complete({});
    await server.request("x/y", { a: 1 });
    expect(servers.last.asked.slice(-3)).toEqual(["prompt hello", "complete", 'x/y {"a":1}']);
  });
});

describe("stopping", () => {
  test("a stopped server offers nothing and stays stopped until it is started", async () => {
    const { supervisor, servers, clock } = makeKit(new FakeServers({ tools: () => [tool("add")] }));
    const lease = supervisor.acquire([localSpec("one")]);
    const server = lease.servers[0]!;
    await lease.ready(neverAborted);
    const heard: string[] = [];
    lease.subscribe(({ kind }) => heard.push(`${kind} ${server.state} ${server.lists?.tools.length}`));
    await server.stop();
    expect(servers.last.isDisposed).toBe(true);
    expect(heard).toEqual(["lists stopped undefined", "state stopped undefined"]);
    lease.start();
    await expect(server.callTool("add", {})).rejects.toMatchObject({
      code: "MCP_UNAVAILABLE",
      message: expect.stringContaining("Start it"),
    });
    await clock.pass(60_000);
    expect(servers.tries).toHaveLength(1);
    server.start();
    await settled();
    expect(server.state).toBe("ready");
    expect(server.lists?.tools).toEqual([tool("add")]);
  });

  test("a restart ends the old connection before the new one is made, and forgives what was", async () => {
    const { supervisor, servers, clock } = makeKit(new FakeServers(), { respawn: { maxFailures: 2 } });
    const lease = supervisor.acquire([localSpec("one")]);
    const server = lease.servers[0]!;
    await lease.ready(neverAborted);
    servers.last.crash();
    await clock.pass(1_000);
    let release = (): void => {};
    servers.last.disposal = new Promise((resolve) => {
      release = resolve;
    });
    const restarted = server.restart();
    await settled();
    expect(servers.tries).toHaveLength(2);
    release();
    await restarted;
    expect(servers.tries).toHaveLength(3);
    expect(server.status).toMatchObject({ state: "ready", failures: 0, pid: 3 });
  });

  test("stopping during a start ends the try, and a connection that comes all the same", async () => {
    const { supervisor, servers } = makeKit(new FakeServers({}, false));
    const lease = supervisor.acquire([localSpec("one")]);
    lease.start();
    await settled();
    const late = servers.lastTry.accept();
    await lease.servers[0]!.stop();
    expect(servers.lastTry.request.signal.aborted).toBe(true);
    expect(late.isDisposed).toBe(true);
    expect(lease.servers[0]?.state).toBe("stopped");
  });

  test("disposing ends all at once; what comes later is refused", async () => {
    const { supervisor, servers, clock } = makeKit(new FakeServers());
    const lease = supervisor.acquire([localSpec("one"), localSpec("two"), remoteSpec("three")]);
    await lease.ready(neverAborted);
    await supervisor[Symbol.asyncDispose]();
    expect(servers.connections.map(({ isDisposed }) => isDisposed)).toEqual([true, true, true]);
    expect(lease.servers.map(({ state }) => state)).toEqual(["stopped", "stopped", "stopped"]);
    expect(supervisor.list()).toEqual([]);
    expect(clock.pending).toBe(0);
    await expect(lease.servers[0]?.callTool("x", {})).rejects.toMatchObject({ code: "MCP_UNAVAILABLE" });
    expect(() => supervisor.acquire([])).toThrow(expect.objectContaining({ code: "MCP_SUPERVISOR_CLOSED" }));
  });

  test("disposing waits no longer than it may for a connection that does not end", async () => {
    const log = keepingLog();
    const { supervisor, servers, clock } = makeKit(new FakeServers(), { log });
    await supervisor.acquire([localSpec("one")]).ready(neverAborted);
    servers.last.disposal = new Promise(() => {});
    const disposed = supervisor[Symbol.asyncDispose]();
    await clock.pass(10_000);
    await disposed;
    expect(log.lines.at(-1)).toMatchObject({ level: "error", message: "Not all MCP servers could be stopped in time." });
  });

  test("a listener that throws does not affect others", async () => {
    const { supervisor } = makeKit();
    const lease = supervisor.acquire([localSpec("one")]);
    const states: string[] = [];
    lease.subscribe(() => {
      throw new Error("mine");
    });
    supervisor.subscribe(() => {
      throw new Error("mine too");
    });
    supervisor.subscribe(({ name, state }) => states.push(`${name} ${state}`));
    await lease.ready(neverAborted);
    expect(states).toEqual(["one starting", "one ready"]);
  });
});

describe("what is known of a server's protocol", () => {
  test("spares the next connection finding out", async () => {
    const { supervisor, servers, clock } = makeKit();
    const lease = supervisor.acquire([localSpec("one")]);
    await lease.ready(neverAborted);
    servers.last.crash();
    await clock.pass(1_000);
    expect(servers.tries.map(({ request }) => request.prior)).toEqual([undefined, { era: "legacy", protocolVersion: "2025-11-25" }]);
  });

  test("is forgotten within the same try when it does not hold", async () => {
    const { supervisor, servers, clock } = makeKit();
    const lease = supervisor.acquire([localSpec("one")]);
    await lease.ready(neverAborted);
    servers.isEager = false;
    servers.last.crash();
    await clock.pass(1_000);
    servers.lastTry.refuse("MCP_ANSWER", "Never heard of this protocol.");
    await settled();
    expect(servers.tries.map(({ request }) => request.prior?.era)).toEqual([undefined, "legacy", undefined]);
    servers.lastTry.accept();
    await settled();
    expect(lease.servers[0]?.status).toMatchObject({ state: "ready", failures: 1 });
  });

  test("is not asked for in vain at once again, when the server did not answer in time", async () => {
    const { supervisor, servers, clock } = makeKit();
    await supervisor.acquire([localSpec("one")]).ready(neverAborted);
    servers.isEager = false;
    servers.last.crash();
    await clock.pass(200);
    servers.lastTry.refuse("MCP_TIMEOUT", "No answer.");
    await settled();
    expect(servers.tries).toHaveLength(2);
    await clock.pass(400);
    expect(servers.tries.map(({ request }) => request.prior?.era)).toEqual([undefined, "legacy", undefined]);
  });

  test("is negotiated again after some days, also when it was confirmed in between", async () => {
    const day = 24 * 60 * 60 * 1000;
    const { supervisor, servers, clock } = makeKit();
    await supervisor.acquire([localSpec("one")]).ready(neverAborted);
    for (const days of [4, 4]) {
      await clock.pass(days * day);
      servers.last.crash();
      await clock.pass(1_000);
    }
    expect(servers.tries.map(({ request }) => request.prior?.era)).toEqual([undefined, "legacy", undefined]);
  });
});
