import { describe, expect, test } from "vitest";
import type { ToolInvocation } from "../../src/tools/tool.ts";
import {
  createTestEnvironment,
  deferred,
  openSession,
  recordEvents,
  sessionWith,
  settleMicrotasks,
  sourceOf,
  toolOf,
} from "./session-kit.ts";

const a = { name: "a", description: "does a", handler: () => "a" };
const b = { name: "b", description: "does b", handler: () => "b" };
const updated = "session.tools_updated";

describe("session.tools_updated", () => {
  test("tools_updated is emitted for the first build, also to later listeners", async () => {
    const session = openSession(createTestEnvironment(sourceOf("skill", "s", a)), { model: "m-1" });
    const events = recordEvents(session, updated);
    await settleMicrotasks();
    expect(events.map(({ data, ephemeral }) => [data, ephemeral])).toEqual([[{ model: "m-1", version: 1 }, true]]);
  });

  test("tools_updated is emitted when the contract changes, once for a burst", async () => {
    const environment = createTestEnvironment(sourceOf("skill", "s", a));
    const session = openSession(environment);
    const events = recordEvents(session, updated);
    await settleMicrotasks();
    environment.publish(sourceOf("skill", "s", { ...a, handler: () => "another" }));
    await settleMicrotasks();
    expect(events).toHaveLength(1);
    environment.publish(sourceOf("skill", "s", a, b));
    environment.publish(sourceOf("skill", "s", { ...a, description: "new" }, b));
    await session.setTools([{ name: "pushed" }]);
    await settleMicrotasks();
    expect(events.map(({ data }) => data["version"])).toEqual([1, 2]);
    await session.callTool("a");
    session.listTools();
    await settleMicrotasks();
    expect(events).toHaveLength(2);
  });

  test("tools_updated is emitted for a new client with the current version", async () => {
    const session = openSession();
    const events = recordEvents(session, updated);
    await settleMicrotasks();
    session.attach({ level: "connection", answers: [] });
    await settleMicrotasks();
    expect(events.map(({ data }) => data)).toEqual([
      { model: "", version: 1 },
      { model: "", version: 1 },
    ]);
  });

  test("without a listener, nothing is assembled before it is read", async () => {
    const environment = createTestEnvironment(sourceOf("skill", "s", a));
    const session = openSession(environment);
    for (let round = 0; round < 5; round++) environment.publish(sourceOf("skill", "s", a));
    await settleMicrotasks();
    expect(environment.assemblies).toBe(0);
    expect(session.tools).toHaveLength(1);
    expect(session.tools).toHaveLength(1);
    expect(environment.assemblies).toBe(1);
  });

  test("a listener to other events causes no assembly", async () => {
    const environment = createTestEnvironment(sourceOf("skill", "s", a));
    openSession(environment).on("tool.execution_start", () => {});
    await settleMicrotasks();
    expect(environment.assemblies).toBe(0);
  });
});

describe("a refresh that fails", () => {
  test("a failed refresh keeps the previous tools and reports the reason", async () => {
    const environment = createTestEnvironment(sourceOf("skill", "s", a));
    const session = openSession(environment);
    const infos = recordEvents(session, "session.info");
    await settleMicrotasks();
    environment.failWith(new Error("the source is broken"));
    environment.publish(sourceOf("skill", "s", b));
    await settleMicrotasks();
    expect(session.tools.map(({ name }) => name)).toEqual(["a"]);
    expect((await session.callTool("a")).textResultForLlm).toBe("a");
    expect(infos.map(({ data }) => data["message"])).toEqual([
      "The tools could not be refreshed; the session keeps the previous ones: the source is broken",
    ]);
    environment.failWith(undefined);
    environment.publish(sourceOf("skill", "s", b));
    expect(session.tools.map(({ name }) => name)).toEqual(["b"]);
  });

  test("a failure of the first refresh is thrown to the reader, and the next read tries again", () => {
    const environment = createTestEnvironment(sourceOf("skill", "s", a));
    const session = openSession(environment);
    environment.failWith(new Error("not yet"));
    expect(() => session.tools).toThrow("not yet");
    environment.failWith(undefined);
    expect(session.tools).toHaveLength(1);
  });
});

describe("names in filters that have no effect", () => {
  test("names without effect are reported once each when the sources are ready", async () => {
    const environment = createTestEnvironment();
    const ready = deferred();
    environment.readyWhen(ready.promise);
    const session = openSession(environment, { excludedTools: ["a", "veiw"], availableTools: ["a", "b"] });
    const infos = recordEvents(session, "session.info");
    const waiting = session.ready();
    await settleMicrotasks();
    expect(infos).toEqual([]);
    environment.publish(sourceOf("skill", "s", a, b));
    ready.resolve();
    await waiting;
    await settleMicrotasks();
    environment.publish(sourceOf("skill", "s", a, b));
    await settleMicrotasks();
    expect(infos.map(({ data }) => data["message"])).toEqual([
      'Disabled tool name in availableTools: "a" (it is also in excludedTools, which wins).',
      'Unknown tool name in excludedTools: "veiw" (it matches no tool of this session).',
    ]);
  });

  test("names without effect are reported to later listeners and again after a change of filters", async () => {
    const session = openSession(createTestEnvironment(sourceOf("skill", "s", a)), { excludedTools: ["x"] });
    await session.ready();
    expect(session.tools).toHaveLength(1);
    const infos = recordEvents(session, "session.info");
    await settleMicrotasks();
    expect(infos).toHaveLength(1);
    await session.update({ excludedTools: ["x", "y"] });
    expect(infos.slice(1).map(({ data }) => String(data["message"]).match(/"(\w)"/)?.[1])).toEqual(["x", "y"]);
  });
});

describe("updating a session", () => {
  test("an update changes filters, skills and model with one rebuild and one event", async () => {
    const environment = createTestEnvironment(sourceOf("skill", "s", a, b));
    const session = openSession(environment);
    const events = recordEvents(session, updated);
    await settleMicrotasks();
    const before = environment.assemblies;
    await session.update({ excludedTools: ["a"], model: "m-2", disabledSkills: ["other"], toolTimeout: 5 });
    await settleMicrotasks();
    expect(environment.assemblies).toBe(before + 1);
    expect(events.map(({ data }) => data)).toEqual([
      { model: "", version: 1 },
      { model: "m-2", version: 2 },
    ]);
    expect(session.tools.map(({ name }) => name)).toEqual(["b"]);
    expect((await session.callTool("a")).textResultForLlm).toMatch(/^Tool 'a' is no longer available/);
  });

  test("changes that do not affect the tools cause no rebuild", async () => {
    const session = openSession(createTestEnvironment(sourceOf("skill", "s", a)));
    const events = recordEvents(session, updated);
    await settleMicrotasks();
    await session.update({ onPermissionRequest: undefined, toolTimeout: 10 });
    await settleMicrotasks();
    expect(events).toHaveLength(1);
    expect((await session.callTool("a")).resultType).toBe("denied");
    await session.update({ onPermissionRequest: () => ({ kind: "approve-once" }) });
    expect((await session.callTool("a")).resultType).toBe("success");
  });

  test("sources that change during an update cause no second event", async () => {
    const environment = createTestEnvironment(sourceOf("skill", "s", a));
    const session = openSession(environment);
    const events = recordEvents(session, updated);
    await settleMicrotasks();
    const ready = deferred();
    environment.readyWhen(ready.promise);
    const update = session.update({ model: "m" });
    environment.publish(sourceOf("skill", "s", a, b));
    await settleMicrotasks();
    environment.publish(sourceOf("skill", "s", b));
    ready.resolve();
    await update;
    await settleMicrotasks();
    expect(events).toHaveLength(2);
    expect(session.tools.map(({ name }) => name)).toEqual(["b"]);
  });

  test("a refused update changes nothing", async () => {
    const session = openSession(createTestEnvironment(sourceOf("skill", "s", a)));
    const { config } = session;
    await expect(session.update({ model: "m", excludedTools: ["*"] })).rejects.toMatchObject({ code: "SESSION_OPTIONS" });
    expect(session.config).toBe(config);
  });
});

test("listTools describes the callable tools", () => {
  const parameters = { type: "object", properties: {} };
  const search = toolOf("mcp", "github", { name: "github-search", description: "finds", parameters, handler: () => "x" }, "search");
  const session = openSession(
    createTestEnvironment({ kind: "mcp", id: "github", tools: [search] }, sourceOf("builtin", "workspace", { name: "view" })),
    {
      excludedTools: ["nothing"],
    },
  );
  expect(session.listTools()).toEqual([
    { name: "view", source: { kind: "builtin", name: "workspace" }, deferred: false, signature: expect.stringMatching(/^[0-9a-f]{64}$/) },
    {
      name: "github-search",
      namespacedName: "github/search",
      description: "finds",
      parameters,
      source: { kind: "mcp", name: "github" },
      deferred: false,
      signature: search.signature,
    },
  ]);
});

test("filtered tools are neither advertised nor callable", async () => {
  const session = openSession(createTestEnvironment(sourceOf("skill", "s", a, b)), { excludedTools: ["a"] });
  expect(session.tools.map(({ name }) => name)).toEqual(["b"]);
  for (const ref of ["a", "s/a"]) expect((await session.callTool(ref)).textResultForLlm).toContain("does not exist");
});

describe("ending a session", () => {
  test("ending a session settles calls, closes requests and emits the last event", async () => {
    const environment = createTestEnvironment();
    const signals: AbortSignal[] = [];
    const hang = (_args: unknown, { signal }: ToolInvocation): Promise<never> => {
      signals.push(signal);
      return new Promise(() => {});
    };
    const session = openSession(environment, {
      tools: [
        { name: "hangs", handler: hang, skipPermission: true },
        { name: "declared", skipPermission: true },
        { name: "asks", handler: () => "x" },
      ],
      onPermissionRequest: () => new Promise(() => {}),
    });
    const events = recordEvents(session);
    const calls = ["hangs", "declared", "asks"].map((name) => session.callTool(name));
    await settleMicrotasks();
    await session.disconnect();
    const results = await Promise.all(calls);
    expect(results.map(({ resultType, textResultForLlm }) => [resultType, textResultForLlm])).toEqual(
      ["hangs", "declared", "asks"].map((name) => ["failure", `The session ended before tool '${name}' answered.`]),
    );
    expect(signals[0]?.aborted).toBe(true);
    expect(events.filter(({ type }) => type === "tool.execution_complete")).toHaveLength(3);
    expect(events.at(-1)).toMatchObject({ type: "session.shutdown", data: { shutdownType: "routine" } });
    expect(environment.released).toBe(true);
  });

  test.each<[string, object, object]>([
    ["a gate", { hooks: { onPreToolUse: () => new Promise(() => {}) } }, a],
    ["an observer", { hooks: { onPostToolUse: () => new Promise(() => {}) } }, a],
    ["a permission check", {}, { ...a, permission: () => new Promise(() => {}) }],
    [
      "an observer of a timeout",
      { hooks: { onPostToolUseFailure: () => new Promise(() => {}) } },
      { ...a, timeout: 1, handler: () => new Promise(() => {}) },
    ],
  ])("%s that never returns does not delay the end", async (_title, options, tool) => {
    const session = sessionWith([tool as typeof a], options);
    const waiting = deferred();
    const call = session.callTool("a").finally(() => waiting.resolve());
    await settleMicrotasks();
    if ("timeout" in tool) await new Promise((resolve) => setTimeout(resolve, 20));
    await session.disconnect();
    await waiting.promise;
    expect(await call).toBeDefined();
  });

  test("an ended session reports that it is closed, and closing again is allowed", async () => {
    const session = sessionWith([a]);
    const client = session.attach({ level: "connection", answers: [] });
    const [prepared] = await session.prepare([{ id: "1", name: "a", arguments: {} }]);
    await Promise.all([session.disconnect(), session.disconnect()]);
    await session[Symbol.asyncDispose]();
    const closed = { code: "SESSION_CLOSED", message: expect.stringContaining("session-1") };
    await expect(session.callTool("a")).rejects.toMatchObject(closed);
    await expect(session.prepare([])).rejects.toMatchObject(closed);
    await expect(session.run(prepared!)).rejects.toMatchObject(closed);
    await expect(session.setTools([])).rejects.toMatchObject(closed);
    await expect(session.update({})).rejects.toMatchObject(closed);
    await expect(session.ready()).rejects.toMatchObject(closed);
    for (const act of [
      () => session.tools,
      () => session.listTools(),
      () => session.on(() => {}),
      () => client.setTools([]),
      () => session.attach({ level: "host", answers: [] }),
    ]) {
      expect(act).toThrow(expect.objectContaining(closed));
    }
    expect(session.respondToTool("x", "y")).toBe(false);
    await client[Symbol.asyncDispose]();
  });

  test("ready rejects when the session ends or the caller aborts", async () => {
    const environment = createTestEnvironment();
    const session = openSession(environment);
    await expect(session.ready(AbortSignal.abort(new Error("enough")))).rejects.toThrow("enough");
    await expect(session.ready()).resolves.toBeUndefined();
  });
});
