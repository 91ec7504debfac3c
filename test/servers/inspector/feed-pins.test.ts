import { readFileSync, rmSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { definePlugin, defineTool } from "../../../src/index.ts";
import { approveAll } from "../../../src/tools/tool.ts";
import { put, skillMd } from "../../skills/kit.ts";
import { type InspectedHost, openInspected } from "./inspector-kit.ts";

const tool = (name: string, body: string, more = "skipPermission: true, annotations: { readOnlyHint: true },"): string =>
  `import { defineTool } from "skillhost";
export default defineTool("${name}", { description: "Says it.", ${more}
  parameters: { type: "object", properties: { city: { type: "string" }, password: { type: "string" } } },
  handler: async (args) => { ${body} } });
`;

const calls = (entries: object): string => JSON.stringify({ calls: entries }, null, 2);
const oslo = { tool: "forecast", arguments: { city: "Oslo" } };

const files = {
  "skills/weather/SKILL.md": skillMd("weather"),
  "skills/weather/tools/forecast.ts": tool("forecast", "return `sunny in ${args.city}`;"),
  "skills/weather/tools/measure.ts": tool("measure", "return 3;"),
  "skills/weather/tools/store.ts": tool("store", "return 'stored';", "skipPermission: true,"),
};

const marks = definePlugin({
  name: "marks",
  activate: (api) => api.addTools(defineTool("mark", { description: "Marks.", handler: () => "x" })),
});

const stored = ({ folder }: InspectedHost): unknown => JSON.parse(readFileSync(`${folder}/skills/weather/calls.json`, "utf8")).calls;

describe("stored calls after a save", () => {
  test("only those whose tool was saved are made again, with the difference to the last result and the load that caused it", async () => {
    const inspected = await openInspected({
      ...files,
      "skills/weather/calls.json": calls({
        "in Oslo": { ...oslo, expect: { contains: "sunny" } },
        cold: { tool: "measure" },
        writes: { tool: "store" },
        marked: { tool: "store", automatic: true },
      }),
    });
    const reader = inspected.read();
    const { pins } = await reader.next("snapshot");
    const file = `${inspected.folder}/skills/weather/calls.json`;
    expect(pins[0]).toMatchObject({ id: "weather/in Oslo", name: "in Oslo", skill: "weather", ...oslo, isAutomatic: false, file });
    expect((await reader.next("pin.run", ({ pinId }) => pinId === "weather/in Oslo")).run).toMatchObject({
      outcome: "passed",
      result: { ok: true, text: "sunny in Oslo" },
      diff: [],
    });
    expect((await reader.next("pin.run", ({ pinId }) => pinId === "weather/cold")).run.outcome).toBe("first");
    expect((await reader.next("pin.run", ({ pinId }) => pinId === "weather/writes")).run).toMatchObject({
      outcome: "skipped",
      reasons: [expect.stringContaining("does not claim to read only")],
    });
    const { seq } = await reader.next("pin.run", ({ pinId }) => pinId === "weather/marked");

    put(
      `${inspected.folder}/skills/weather/tools/forecast.ts`,
      tool("forecast", "return `rain in ${args.city}`;").replace("Says it.", "Says more."),
    );
    await inspected.host.reload();
    const again = await reader.next("pin.run", (message) => message.seq > seq);
    expect(again).toMatchObject({
      pinId: "weather/in Oslo",
      run: {
        outcome: "failed",
        reasons: ['The text does not contain "sunny".'],
        result: { text: "rain in Oslo" },
        diff: ["-sunny in Oslo", "+rain in Oslo"],
        isSignatureChanged: true,
        reloadId: 1,
        previousDurationMs: expect.any(Number),
      },
    });
    expect(again.run.schemaDiff?.join("\n")).toContain("Says more.");
    const reload = await reader.next("reload");
    expect(reload.seq).toBeLessThan(again.seq);
    // None of the others was made again before this.
    const manual = await inspected.request("pin.run", { pinId: "weather/writes" });
    expect(manual).toMatchObject({ outcome: "first", result: { text: "stored" } });
    await reader.next("pin.run", ({ run }) => run.at === manual.at && run.outcome === "first");
    expect(reader.seen.filter((message) => message.type === "pin.run" && message.seq > seq)).toHaveLength(2);
    const later = await inspected.read().next("snapshot");
    expect(later.pins.find(({ name }) => name === "in Oslo")?.lastRun?.outcome).toBe("failed");
  });

  test("a host that watches its files makes the call of a saved tool, and reads a changed file of calls", async () => {
    const inspected = await openInspected({ ...files, "skills/weather/calls.json": calls({ cold: { tool: "measure" } }) }, { watch: true });
    await inspected.host.idle();
    const reader = inspected.read();
    await reader.next("pin.run", ({ run }) => run.outcome === "first");
    put(`${inspected.folder}/skills/weather/tools/measure.ts`, tool("measure", "return 4;"));
    expect((await reader.next("pin.run", ({ run }) => run.outcome === "changed")).run.diff).toEqual(["-3", "+4"]);
    put(`${inspected.folder}/skills/weather/calls.json`, calls({ cold: { tool: "measure", expect: { text: "4" } }, "in Oslo": oslo }));
    await reader.next("pins", ({ pins }) => pins.length === 2);
    await reader.next("pin.run", ({ pinId, run }) => pinId === "weather/cold" && run.outcome === "passed");
    await reader.next("pin.run", ({ pinId }) => pinId === "weather/in Oslo");
    put(`${inspected.folder}/skills/weather/calls.json`, '{"calls": {"cold": {"tool": "measure", "expect": {"contain": "4"}}}}');
    const { problem } = await reader.next("pins", (message) => message.problem !== undefined);
    expect(problem).toMatch(/calls\.json:1:\d+ error CALL_EXPECTATION "contain" is not an expectation/);
    rmSync(`${inspected.folder}/skills/weather/calls.json`);
    await reader.next("pins", ({ pins, problem: left }) => pins.length === 0 && left === undefined);
  });

  test("nothing is called before there is a reader, and nothing by itself in a read-only inspector", async () => {
    const counting = {
      ...files,
      "skills/weather/tools/measure.ts": tool("measure", "return (globalThis.measured = (globalThis.measured ?? 0) + 1);"),
    };
    const state = globalThis as { measured?: number };
    delete state.measured;
    const withCalls = { ...counting, "skills/weather/calls.json": calls({ cold: { tool: "measure" } }) };
    const unread = await openInspected(withCalls);
    put(`${unread.folder}/skills/weather/tools/measure.ts`, tool("measure", "return (globalThis.measured = 5);"));
    await unread.host.reload();
    const readOnly = await openInspected(withCalls, {}, { readOnly: true });
    const reader = readOnly.read();
    expect((await reader.next("snapshot")).pins).toMatchObject([{ name: "cold" }]);
    for (const [method, params] of [
      ["pin.run", { pinId: "weather/cold" }],
      ["pin.remove", { pinId: "weather/cold" }],
      ["pin.save", { pin: { name: "x", tool: "measure", arguments: {}, isAutomatic: false } }],
    ] as const) {
      await expect(readOnly.request(method, params)).rejects.toThrow("INSPECTOR_READ_ONLY");
    }
    expect(await readOnly.request("exportCall", { tool: "measure", arguments: {} })).toMatchObject({
      command: "skillhost call measure '{}'",
    });
    expect(state.measured).toBeUndefined();
  });

  test("a question of a stored call waits for its answer, and an approval for the session holds after the next save", async () => {
    const asking = (text: string): string => tool("measure", `return ${JSON.stringify(text)};`, "annotations: { readOnlyHint: true },");
    const inspected = await openInspected({
      ...files,
      "skills/weather/tools/measure.ts": asking("one"),
      "skills/weather/calls.json": calls({ cold: { tool: "measure", expect: { ok: true } } }),
    });
    const reader = inspected.read();
    const { ask } = await reader.next("ask");
    await inspected.request("answer", { askId: ask.id, sessionId: ask.sessionId, answer: { kind: "approve-for-session" } });
    const { seq } = await reader.next("pin.run");
    put(`${inspected.folder}/skills/weather/tools/measure.ts`, asking("two"));
    await inspected.host.reload();
    expect((await reader.next("pin.run", (message) => message.seq > seq)).run).toMatchObject({ outcome: "passed", diff: ["-one", "+two"] });
    expect(reader.seen.filter(({ type }) => type === "ask")).toHaveLength(1);
  });

  test("a newer save cancels the run of the older one", async () => {
    const slow = `await new Promise((go) => { globalThis.releasePin = go; }); return "old";`;
    const inspected = await openInspected({
      ...files,
      "skills/weather/tools/measure.ts": tool("measure", slow),
      "skills/weather/calls.json": calls({ cold: { tool: "measure" } }),
    });
    const reader = inspected.read();
    await reader.next("event", ({ event }) => event.type === "tool.execution_start");
    put(`${inspected.folder}/skills/weather/tools/measure.ts`, tool("measure", 'return "new";'));
    await inspected.host.reload();
    expect((await reader.next("pin.run")).run).toMatchObject({ outcome: "first", result: { text: "new" } });
    (globalThis as unknown as { releasePin(): void }).releasePin();
  });

  test("a stored call is made once, although the file that it was stored in is watched", async () => {
    const counting =
      "globalThis.pinCalls = (globalThis.pinCalls ?? 0) + 1; await new Promise((go) => { globalThis.releasePin = go; }); return 1;";
    const state = globalThis as unknown as { pinCalls?: number; releasePin(): void };
    delete state.pinCalls;
    const inspected = await openInspected({ ...files, "skills/weather/tools/measure.ts": tool("measure", counting) }, { watch: true });
    const reader = inspected.read();
    await reader.next("snapshot");
    await inspected.request("pin.save", { pin: { name: "a", tool: "forecast", arguments: {}, isAutomatic: false } });
    await inspected.request("pin.save", { pin: { name: "b", tool: "measure", arguments: {}, isAutomatic: false } });
    await reader.next("event", ({ event }) => event.type === "tool.execution_start" && event.data["toolName"] === "measure");
    // Seen by the watcher: it follows what was stored before.
    const file = `${inspected.folder}/skills/weather/calls.json`;
    put(file, readFileSync(file, "utf8").replace('"forecast"', '"store"'));
    await reader.next("pins", ({ pins }) => pins[0]?.tool === "store");
    state.releasePin();
    await reader.next("pin.run", ({ pinId }) => pinId === "weather/b");
    await reader.next("pin.run", ({ run }) => run.outcome === "skipped");
    expect(state.pinCalls).toBe(1);
  });

  test("a file of calls that is written beside a skill is read without a load of the skill", async () => {
    const inspected = await openInspected({ ...files, "skills/other/SKILL.md": skillMd("other") }, { watch: true });
    await inspected.host.idle();
    const reader = inspected.read();
    await reader.next("snapshot");
    // Its answer comes when the files of all skills are watched.
    await inspected.request("pin.save", { pin: { name: "x", tool: "measure", arguments: {}, isAutomatic: false } });
    put(`${inspected.folder}/skills/other/calls.json`, calls({ gone: { tool: "nothing" } }));
    expect((await reader.next("pin.run", ({ pinId }) => pinId === "other/gone")).run.reasons).toEqual(['Tool "nothing" does not exist.']);
  });

  test("while the file of the calls cannot be read, the calls that it had stay", async () => {
    const inspected = await openInspected({ ...files, "skills/weather/calls.json": calls({ cold: { tool: "measure" } }) }, { watch: true });
    await inspected.host.idle();
    const reader = inspected.read();
    await reader.next("pin.run");
    put(`${inspected.folder}/skills/weather/calls.json`, '{"calls": {"cold"');
    expect((await reader.next("pins", ({ problem }) => problem !== undefined)).pins).toMatchObject([
      { name: "cold", lastRun: { outcome: "first" } },
    ]);
    put(`${inspected.folder}/skills/weather/tools/measure.ts`, tool("measure", "return 4;"));
    expect((await reader.next("pin.run", ({ run }) => run.outcome === "changed")).run.diff).toEqual(["-3", "+4"]);
  });
});

describe("requests for stored calls", () => {
  const weatherPin = { name: "in Oslo", tool: "skill/weather/forecast", arguments: { city: "Oslo" }, isAutomatic: false };

  test("a call is stored in the file of its skill, made, changed, renamed and removed", async () => {
    const inspected = await openInspected(files);
    const reader = inspected.read();
    await reader.next("snapshot");
    expect(await inspected.request("pin.save", { pin: weatherPin })).toEqual({ pinId: "weather/in Oslo" });
    expect(stored(inspected)).toEqual({ "in Oslo": oslo });
    await reader.next("pin.run", ({ pinId }) => pinId === "weather/in Oslo");
    const changed = { ...weatherPin, id: "weather/in Oslo", tool: "forecast", expect: { contains: ["rain"] } };
    await inspected.request("pin.save", { pin: changed });
    expect(stored(inspected)).toEqual({ "in Oslo": { ...oslo, expect: { contains: ["rain"] } } });
    await reader.next("pin.run", ({ run }) => run.outcome === "failed");
    await inspected.request("pin.save", { pin: { ...weatherPin, name: "cold", tool: "measure", isAutomatic: true } });
    expect(await inspected.request("pin.save", { pin: { ...weatherPin, id: "weather/in Oslo", name: "of Oslo" } })).toEqual({
      pinId: "weather/of Oslo",
    });
    expect(stored(inspected)).toEqual({ cold: { tool: "measure", arguments: { city: "Oslo" }, automatic: true }, "of Oslo": oslo });
    await inspected.request("pin.remove", { pinId: "weather/cold" });
    expect(stored(inspected)).toEqual({ "of Oslo": oslo });
    await reader.next("pins", ({ pins }) => pins.length === 1 && pins[0]?.name === "of Oslo");
  });

  test("what cannot be stored is refused with the reason, and nothing is written", async () => {
    const inspected = await openInspected(files, {
      plugins: [marks],
    });
    await inspected.request("pin.save", { pin: weatherPin });
    const before = stored(inspected);
    const refused = async (pin: object, why: string): Promise<void> => {
      const params = { pin: { ...weatherPin, ...pin } };
      await expect(inspected.request("pin.save", params)).rejects.toThrow(why);
    };
    await refused({}, "PIN_EXISTS");
    await refused({ tool: "gone", name: "x" }, "TOOL_UNKNOWN");
    await refused({ tool: "mark", name: "x" }, 'PIN_PLACE: Calls are stored with a skill, and tool "mark" is of plugin "marks".');
    await refused({ id: "weather/gone" }, "PIN_UNKNOWN");
    await refused({ name: "a\u202eb" }, "CALL_INVALID");
    await refused({ name: "x", expect: { contain: "y" } }, "CALL_INVALID");
    await refused({ name: "x", arguments: [] }, "INSPECTOR_PARAMS: pin.arguments must be an object");
    await refused({ name: "x", arguments: { password: "[redacted]" } }, "INSPECTOR_PARAMS: arguments.password is not the real value");
    await expect(inspected.request("pin.save", {} as never)).rejects.toThrow("INSPECTOR_PARAMS");
    await expect(inspected.request("pin.run", { pinId: "weather/x" })).rejects.toThrow("PIN_UNKNOWN");
    await expect(inspected.request("pin.remove", { pinId: "weather/x" })).rejects.toThrow("PIN_UNKNOWN");
    expect(stored(inspected)).toEqual(before);
  });

  test("secrets and long texts of a stored call are not shown, and stay in the file when it is stored again", async () => {
    const secret = { city: "x".repeat(50_000), password: "hunter2" };
    const inspected = await openInspected({
      ...files,
      "skills/weather/calls.json": calls({ cold: { tool: "measure", arguments: secret } }),
    });
    const reader = inspected.read();
    const [pin] = (await reader.next("snapshot")).pins;
    expect(pin?.arguments).toMatchObject({ city: { $blob: { size: 50_000 } }, password: "[redacted]" });
    await inspected.request("pin.save", {
      pin: { id: pin!.id, name: "colder", tool: pin!.tool, arguments: pin!.arguments, isAutomatic: true },
    });
    expect(stored(inspected)).toEqual({ colder: { tool: "measure", arguments: secret, automatic: true } });
    expect(JSON.stringify(reader.seen)).not.toContain("hunter2");
  });

  test("an exported call names the tool as a session does, and only tools of skills have a test", async () => {
    const inspected = await openInspected(files, {
      plugins: [marks],
    });
    const exported = await inspected.request("exportCall", { tool: "skill/weather/forecast", arguments: { city: "Oslo's" } });
    expect(exported).toMatchObject({
      command: `skillhost call forecast '{"city":"Oslo'\\''s"}'`,
      powershell: `'{"city":"Oslo''s"}' | skillhost call forecast -`,
      test: expect.stringContaining('skill.call("forecast", {'),
    });
    expect(exported.curl).toContain(`http://127.0.0.1:${inspected.inspector.port}/request`);
    expect(exported.curl).not.toContain(inspected.inspector.token);
    const body = JSON.parse(/--data-raw '(.*)'$/.exec(exported.curl)![1]!.replaceAll("'\\''", "'")) as { method: "call"; params: never };
    expect(await inspected.request(body.method, body.params)).toMatchObject({
      call: { state: "completed", result: { text: "sunny in Oslo's" } },
    });
    expect(await inspected.request("exportCall", { tool: "mark", arguments: {} })).not.toHaveProperty("test");
    await expect(inspected.request("exportCall", { tool: "gone", arguments: {} })).rejects.toThrow("TOOL_UNKNOWN");
  });
});

describe("stored calls with bad inputs", () => {
  test("a result of 50 MB is a blob, and its difference is short", async () => {
    const big = (end: string): string => tool("measure", `return "<b>line</b>\\n".repeat(4_400_000) + ${JSON.stringify(end)};`);
    const inspected = await openInspected({
      ...files,
      "skills/weather/tools/measure.ts": big("one"),
      "skills/weather/calls.json": calls({ big: { tool: "measure" } }),
    });
    const reader = inspected.read();
    const first = await reader.next("pin.run");
    expect(first.run.result?.text).toMatchObject({ $blob: { size: 52_800_003 } });
    put(`${inspected.folder}/skills/weather/tools/measure.ts`, big("other"));
    await inspected.host.reload();
    const { run } = await reader.next("pin.run", ({ seq }) => seq > first.seq);
    expect(run).toMatchObject({ outcome: "changed", diff: [expect.stringContaining("52800003"), expect.stringContaining("52800005")] });
    expect(JSON.stringify(reader.seen).length).toBeLessThan(100_000);
  });

  test("1,000 calls of a tool are all made after its save, and markup in names and results stays data", async () => {
    const markup = '</script><img src=x onerror="alert(1)">';
    const many = Object.fromEntries(Array.from({ length: 1_000 }, (_, index) => [`${markup} ${index}`, { tool: "measure" }]));
    const inspected = await openInspected({
      ...files,
      "skills/weather/tools/measure.ts": tool("measure", `return ${JSON.stringify(markup)};`),
      "skills/weather/calls.json": calls(many),
    });
    const reader = inspected.read();
    await reader.next("pin.run", ({ pinId }) => pinId.endsWith(" 999"));
    put(`${inspected.folder}/skills/weather/tools/measure.ts`, tool("measure", `return ${JSON.stringify(`${markup}!`)};`));
    await inspected.host.reload();
    const last = await reader.next("pin.run", ({ pinId, run }) => pinId.endsWith(" 999") && run.outcome === "changed");
    expect(last.run).toMatchObject({ result: { text: `${markup}!` }, diff: [`-${markup}`, `+${markup}!`] });
    const { pins } = await inspected.read().next("snapshot");
    expect(pins.filter(({ lastRun }) => lastRun?.outcome === "changed")).toHaveLength(1_000);
  });

  test("a tool whose schema refers to itself, and an expectation that does, are compared and end", async () => {
    const recursive = `skipPermission: true, annotations: { readOnlyHint: true },`;
    const self = (title: string): string => `export default { name: "tree", description: "A tree.", ${recursive}
  parameters: { type: "object", properties: { title: { type: "string", title: "${title}" }, child: { $ref: "#" } } },
  handler: () => ({ next: { next: {} } }) };`;
    const node = { type: "object", properties: { next: { $ref: "#" } } };
    const inspected = await openInspected({
      ...files,
      "skills/weather/tools/tree.mjs": self("one"),
      "skills/weather/calls.json": calls({
        tree: { tool: "tree", arguments: { child: { child: { child: {} } } }, expect: { schema: node } },
        endless: { tool: "tree", expect: { schema: { $ref: "#" } } },
      }),
    });
    const reader = inspected.read();
    expect((await reader.next("pin.run", ({ pinId }) => pinId === "weather/tree")).run).toMatchObject({ outcome: "passed" });
    const { seq, run } = await reader.next("pin.run", ({ pinId }) => pinId === "weather/endless");
    expect(run.outcome).toBe("failed");
    put(`${inspected.folder}/skills/weather/tools/tree.mjs`, self("two"));
    await inspected.host.reload();
    const again = await reader.next("pin.run", (message) => message.seq > seq);
    expect(again.run).toMatchObject({ outcome: "passed", isSignatureChanged: true, diff: [] });
    expect(again.run.schemaDiff?.join("\n")).toContain("two");
  });

  test("a session that was closed is opened again for the next run", async () => {
    const inspected = await openInspected({ ...files, "skills/weather/calls.json": calls({ cold: { tool: "measure" } }) });
    const reader = inspected.read();
    await reader.next("pin.run");
    for (const { session } of inspected.host.openSessions) await session.disconnect();
    expect((await inspected.request("pin.run", { pinId: "weather/cold" })).outcome).toBe("first");
    expect(await inspected.host.createSession({ onPermissionRequest: approveAll })).toBeDefined();
  });
});
