import { mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, onTestFinished, test } from "vitest";
import { GenAiMetrics } from "../../../src/servers/copilot/telemetry/genai-metrics.ts";
import { TelemetryFile } from "../../../src/servers/copilot/telemetry/telemetry-file.ts";
import { readTelemetrySettings, type TelemetrySettings } from "../../../src/servers/copilot/telemetry/telemetry-settings.ts";
import { jsonAnswer } from "../../doubles/scripted-model.ts";
import { recordingLogger } from "../../session/session-kit.ts";
import { tempFolder } from "../../skills/kit.ts";
import { calling, type Json, Served, type TestClient, weather } from "./wire-kit.ts";

let served: Served;

afterEach(() => served?.[Symbol.asyncDispose]());

/** The file that the last server writes. */
let file: string;

const records = (): Json[] =>
  readFileSync(file, "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));

/** The spans by name, in the order of their ends. */
function spans(): Json[] {
  return records().filter(({ type }) => type === "span");
}

const named = (name: string): Json => spans().find((span) => span.name === name) ?? expect.fail(`No span is named ${name}.`);
const parentOf = (span: Json): string | undefined => spans().find(({ spanId }) => spanId === span.parentSpanId)?.name;

interface Begun {
  readonly client: TestClient;
  readonly sessionId: string;
}

async function begin(variables: object = {}, options: object = {}, lines: Json[] = []): Promise<Begun> {
  file = join(tempFolder(), "otel.jsonl");
  served = await Served.start({
    server: { environment: { COPILOT_OTEL_FILE_EXPORTER_PATH: file, ...variables }, log: recordingLogger(lines) },
  });
  const client = await served.connect();
  const provider = { type: "openai", baseUrl: served.model.url };
  return { client, sessionId: await client.create({ model: "m", provider, ...options }) };
}

/** Ends the session and the server, so that everything is written. */
async function end(): Promise<void> {
  await served.server.close();
}

const capturing = { OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT: "true" };
const tools = [{ ...weather, skipPermission: false }];
const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/** A turn in which the model calls a client's tool. */
async function converse({ client, sessionId }: Begun, more: object = {}): Promise<void> {
  client.serve({ get_weather: () => "Sun over Oslo." });
  served.says(calling("get_weather", { city: "Oslo" }), "It is sunny.");
  await client.say(sessionId, "What is the weather?", more);
}

describe("spans in a file", () => {
  test("a turn has the tree, names and attributes of the official runtime", async () => {
    const begun = await begin({}, { tools });
    await converse(begun);
    const { data } = await begun.client.event("external_tool.requested");
    await end();
    const tool = named("execute_tool get_weather");
    expect(data["traceparent"]).toBe(`00-${tool.traceId}-${tool.spanId}-01`);
    const external = spans().find(({ name }) => name.startsWith("external_tool "));
    expect(spans().map((span) => [span.name, span.kind, parentOf(span)])).toEqual([
      ["chat m", 2, "invoke_agent"],
      ["permission", 0, "execute_tool get_weather"],
      [external.name, 0, "execute_tool get_weather"],
      ["execute_tool get_weather", 0, "invoke_agent"],
      ["chat m", 2, "invoke_agent"],
      ["invoke_agent", 0, undefined],
    ]);
    const chat = named("chat m");
    expect(chat).toMatchObject({
      type: "span",
      status: { code: 0 },
      resource: { attributes: { "service.name": "skillhost" }, schemaUrl: expect.stringContaining("https://opentelemetry.io/schemas/") },
      instrumentationScope: { name: "github.copilot", version: expect.any(String) },
      attributes: {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "m",
        "gen_ai.conversation.id": begun.sessionId,
        "gen_ai.response.finish_reasons": ["tool_calls"],
        "gen_ai.usage.input_tokens": expect.any(Number),
        "gen_ai.usage.output_tokens": expect.any(Number),
        "github.copilot.turn_id": "0",
        "github.copilot.initiator": "user",
      },
    });
    expect(chat.traceId).toMatch(/^[\da-f]{32}$/);
    expect(chat.spanId).toMatch(/^[\da-f]{16}$/);
    for (const [seconds, nanoseconds] of [chat.startTime, chat.endTime]) {
      expect(Math.abs(seconds - Date.now() / 1000)).toBeLessThan(600);
      expect(Number.isInteger(nanoseconds) && nanoseconds >= 0 && nanoseconds <= 1e9).toBe(true);
    }
    expect(chat.events.map(({ name }: Json) => name)).toContain("github.copilot.session.usage_info");
    expect(named("permission").attributes).toMatchObject({
      "github.copilot.permission.kind": "custom-tool",
      "github.copilot.permission.tool_name": "get_weather",
      "github.copilot.permission.result": "approved",
    });
    expect(named("invoke_agent").attributes).toMatchObject({
      "github.copilot.turn_count": 2,
      "github.copilot.agent.type": "builtin",
      "gen_ai.response.finish_reasons": ["stop"],
    });
  });

  test("contain no content unless they are to capture it", async () => {
    await converse(await begin({}, { tools }));
    await end();
    const text = readFileSync(file, "utf8");
    for (const secret of ["What is the weather?", "Oslo", "It is sunny", "Sun over"]) expect(text).not.toContain(secret);
    for (const span of spans()) {
      expect(Object.keys(span.attributes).filter((key) => /messages|instructions|arguments|result$/.test(key))).toEqual(
        span.name === "permission" ? ["github.copilot.permission.result"] : [],
      );
    }
  });

  test("contain messages, arguments and results if they are to capture content", async () => {
    await converse(await begin(capturing, { tools }));
    await end();
    const [first, second] = spans().filter(({ name }) => name === "chat m");
    const parsed = (span: Json, key: string): Json => JSON.parse(span.attributes[key]);
    expect(parsed(first, "gen_ai.input.messages")).toEqual([
      { role: "user", parts: [{ type: "text", content: expect.stringContaining("What is the weather?") }] },
    ]);
    const call = { type: "tool_call", id: "call-1", name: "get_weather", arguments: { city: "Oslo" } };
    expect(parsed(first, "gen_ai.output.messages")).toEqual([{ role: "assistant", parts: [call] }]);
    expect(parsed(first, "gen_ai.system_instructions")).toEqual([{ type: "text", content: expect.any(String) }]);
    expect(parsed(second, "gen_ai.input.messages")).toEqual([
      { role: "tool", parts: [{ type: "tool_call_response", id: "call-1", response: "Sun over Oslo." }] },
    ]);
    expect(named("execute_tool get_weather").attributes).toMatchObject({
      "gen_ai.tool.call.arguments": '{"city":"Oslo"}',
      "gen_ai.tool.call.result": "Sun over Oslo.",
    });
    expect(parsed(named("invoke_agent"), "gen_ai.output.messages")).toEqual([
      { role: "assistant", parts: [{ type: "text", content: "It is sunny." }] },
    ]);
    expect(named("external_tool get_weather").attributes).toMatchObject({ "github.copilot.external_tool.name": "get_weather" });
  });

  test("continue the trace of the program that sends a message, and have the name of its source", async () => {
    const begun = await begin({ COPILOT_OTEL_SOURCE_NAME: "my-app" }, { tools });
    await converse(begun, { traceparent, tracestate: "vendor=1" });
    const { data } = await begun.client.event("external_tool.requested");
    served.says("Hello.");
    await begun.client.say(begun.sessionId, "Hi.", { traceparent: "not one" });
    await end();
    const [first, second] = spans().filter(({ name }) => name === "invoke_agent");
    expect(first).toMatchObject({ traceId: traceparent.slice(3, 35), parentSpanId: traceparent.slice(36, 52) });
    expect(second).not.toHaveProperty("parentSpanId");
    expect(data).toMatchObject({ tracestate: "vendor=1" });
    expect(new Set(spans().map(({ instrumentationScope }) => instrumentationScope.name))).toEqual(new Set(["my-app"]));
  });

  test("name what failed, and its message only if they are to capture content", async () => {
    for (const variables of [{}, capturing]) {
      const { client, sessionId } = await begin(variables);
      served.model.answer(jsonAnswer({ error: { message: "hunter2", code: "bad" } }, { status: 400 }));
      await client.say(sessionId, "Go");
      await end();
      for (const name of ["chat m", "invoke_agent"]) {
        const { status, attributes, events } = named(name);
        expect(status).toEqual({ code: 2, message: expect.any(String) });
        expect(attributes["error.type"]).toBe("query");
        expect(events.at(-1)).toMatchObject({ name: "gen_ai.client.operation.exception", attributes: { "exception.type": "query" } });
      }
      expect(readFileSync(file, "utf8").includes("hunter2")).toBe(variables === capturing);
      await served[Symbol.asyncDispose]();
    }
  });

  test("a denied call has the answer to its question", async () => {
    const { client, sessionId } = await begin({}, { tools });
    served.says(calling("get_weather", { city: "Oslo" }), "Done.");
    const done = client.say(sessionId, "Weather?");
    const { data } = await client.event("permission.requested");
    const result = { kind: "reject" };
    await client.request("session.permissions.handlePendingPermissionRequest", { sessionId, requestId: data["requestId"], result });
    await done;
    await end();
    expect(named("permission").attributes["github.copilot.permission.result"]).toBe("denied-interactively-by-user");
    expect(named("execute_tool get_weather")).toMatchObject({
      status: { code: 2, message: "Tool failed" },
      attributes: { "error.type": "ToolError" },
      events: [{ attributes: { "github.copilot.error_code": "rejected" } }],
    });
  });

  test("a sub-agent's spans are below the call that started it", async () => {
    const { client, sessionId } = await begin({}, { customAgents: [{ name: "helper", description: "Helps.", prompt: "Help." }] });
    client.serve();
    const task = { agent_type: "helper", name: "one", description: "d", prompt: "Do it.", mode: "sync" };
    served.says(calling("task", task), "Sub done.", "Done.");
    await client.say(sessionId, "Go");
    await end();
    const agent = named("invoke_agent custom-agent");
    expect(parentOf(agent)).toBe("execute_tool task");
    expect(agent.attributes).toMatchObject({ "gen_ai.agent.name": "custom-agent", "github.copilot.agent.type": "custom" });
    expect(spans().map((span) => [span.name, parentOf(span)])).toEqual([
      ["chat m", "invoke_agent"],
      ["chat m", "invoke_agent custom-agent"],
      ["invoke_agent custom-agent", "execute_tool task"],
      ["execute_tool task", "invoke_agent"],
      ["chat m", "invoke_agent"],
      ["invoke_agent", undefined],
    ]);
  });

  test("what is open when the session ends is written as closed", async () => {
    const { client, sessionId } = await begin({}, { tools: [{ ...weather, skipPermission: true }] });
    served.says(calling("get_weather", { city: "Oslo" }));
    await client.request("session.send", { sessionId, prompt: "Go" });
    await client.event("external_tool.requested");
    await end();
    expect(named("invoke_agent").status.code).toBe(2);
    expect(named("execute_tool get_weather").status.code).toBe(2);
  });
});

describe("metrics in the file", () => {
  test("are written at the end, with the instruments of the official runtime", async () => {
    await converse(await begin({}, { tools }));
    await end();
    const metrics = records().filter(({ type }) => type === "metric");
    expect(metrics.map(({ name, unit }) => [name, unit])).toEqual([
      ["gen_ai.client.operation.duration", "s"],
      ["gen_ai.client.token.usage", "{token}"],
      ["gen_ai.invoke_agent.duration", "s"],
      ["gen_ai.invoke_agent.inference_calls", "{inference_call}"],
      ["gen_ai.invoke_agent.tool_calls", "{tool_call}"],
      ["gen_ai.execute_tool.duration", "s"],
      ["github.copilot.tool.call.count", "{call}"],
      ["github.copilot.tool.call.duration", "s"],
      ["github.copilot.agent.turn.count", "{turn}"],
    ]);
    const calls = metrics.find(({ name }) => name === "gen_ai.invoke_agent.inference_calls")!.dataPoints;
    expect(calls).toMatchObject([{ attributes: {}, value: { count: 1, sum: 2, min: 2, max: 2 } }]);
    expect(calls[0].value.buckets).toEqual({
      boundaries: [0, 1, 2, 4, 8, 16, 32, 64, 128, 256],
      counts: [0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0],
    });
    const counts = metrics.find(({ name }) => name === "github.copilot.tool.call.count")!.dataPoints;
    expect(counts).toMatchObject([{ attributes: { "gen_ai.tool.name": "get_weather", success: true }, value: 1 }]);
  });

  test("of any number of tools have a limited number of sets", () => {
    const metrics = new GenAiMetrics();
    for (let index = 0; index < 5_000; index++) metrics.record("github.copilot.tool.call.count", 1, { "gen_ai.tool.name": `t${index}` });
    const [{ dataPoints }] = metrics.collect() as [Json];
    expect(dataPoints.length).toBe(2_001);
    expect(dataPoints.at(-1)).toMatchObject({ attributes: { "otel.metric.overflow": true }, value: 3_000 });
    expect(metrics.collect()).toEqual([]);
  });
});

const settings: TelemetrySettings = { filePath: "", sourceName: "s", capturesContent: false, resource: {}, metricInterval: 60_000 };

describe("a file that cannot be written", () => {
  test.skipIf(process.platform !== "linux").each([
    ["on a full disk", "/dev/full"],
    ["in a folder that does not exist", "/proc/none/otel.jsonl"],
    ["that is a folder", "/proc"],
  ])("%s does not affect sessions, and is reported once", async (_where, path) => {
    const lines: Json[] = [];
    const begun = await begin({ COPILOT_OTEL_FILE_EXPORTER_PATH: path }, { tools }, lines);
    await converse(begun);
    await begun.client.event("assistant.message", ({ data }) => data["content"] === "It is sunny.");
    await end();
    const reports = lines.filter(({ message }) => message.includes("OpenTelemetry"));
    expect(reports).toMatchObject([{ level: "error", message: expect.stringContaining(path) }]);
  });

  test("is written again once that works, in whole lines", async () => {
    const folder = tempFolder();
    const lines: Json[] = [];
    const filePath = join(folder, "later", "otel.jsonl");
    const output = new TelemetryFile({ ...settings, filePath }, "1", recordingLogger(lines));
    onTestFinished(() => output.close());
    const written = async (record: object, fits: () => boolean): Promise<void> => {
      output.write(record);
      await expect.poll(fits).toBe(true);
    };
    await written({ lost: 1 }, () => lines.length === 1);
    mkdirSync(join(folder, "later"));
    await written({ kept: 1 }, () => lines.length === 2);
    expect(readFileSync(filePath, "utf8")).toBe('{"kept":1}\n');
    expect(lines).toMatchObject([{ level: "error" }, { level: "warning", message: expect.stringContaining("1 OpenTelemetry record") }]);
    rmSync(join(folder, "later"), { recursive: true });
  });

  test("takes no more memory than a limit, and reports what was dropped", async () => {
    const lines: Json[] = [];
    const output = new TelemetryFile({ ...settings, filePath: join(tempFolder(), "otel.jsonl") }, "1", recordingLogger(lines));
    const large = { text: "x".repeat(1024 * 1024) };
    for (let count = 0; count < 40; count++) output.write(large);
    output.write({ value: 1n });
    await output.close();
    expect(lines.map(({ message }) => message)).toEqual([
      "A span could not be converted to JSON.",
      expect.stringMatching(/^2\d OpenTelemetry records were dropped/),
    ]);
  });
});

describe("the variables that the SDK sets", () => {
  const path = { COPILOT_OTEL_FILE_EXPORTER_PATH: "/tmp/a.jsonl" };
  test.each([
    [path, { filePath: "/tmp/a.jsonl", sourceName: "github.copilot", capturesContent: false, metricInterval: 60_000 }],
    [{ ...path, COPILOT_OTEL_EXPORTER_TYPE: "file", OTEL_METRIC_EXPORT_INTERVAL: "500" }, { metricInterval: 500 }],
    [{ ...path, OTEL_METRIC_EXPORT_INTERVAL: "-1" }, { metricInterval: 60_000 }],
    [{ ...path, OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT: "TRUE" }, { capturesContent: true }],
    [
      { ...path, OTEL_SERVICE_NAME: "mine", OTEL_RESOURCE_ATTRIBUTES: "a=b%20c,bad,d=%ff,=x" },
      { resource: { a: "b c", "service.name": "mine", "service.version": "1" } },
    ],
  ])("%j are read", (environment, expected) => {
    expect(readTelemetrySettings(environment, "1")).toMatchObject(expected);
  });

  test.each([
    [{ COPILOT_OTEL_ENABLED: "true" }, 'the exporter type is "otlp-http"'],
    [{ ...path, COPILOT_OTEL_EXPORTER_TYPE: "otlp-http" }, 'the exporter type is "otlp-http"'],
    [{ COPILOT_OTEL_EXPORTER_TYPE: "file" }, "requires COPILOT_OTEL_FILE_EXPORTER_PATH"],
  ])("%j are reported", (environment, message) => {
    expect(readTelemetrySettings(environment, "1")).toContain(message);
  });

  test.each([
    { ...path, COPILOT_OTEL_ENABLED: "false" },
    { ...path, OTEL_SDK_DISABLED: "true" },
  ])("%j switch it off", (environment) => {
    expect(readTelemetrySettings(environment, "1")).toBeUndefined();
  });

  test("an exporter that does not exist is reported in the log, once", async () => {
    const lines: Json[] = [];
    const begun = await begin({ COPILOT_OTEL_FILE_EXPORTER_PATH: undefined, COPILOT_OTEL_ENABLED: "true" }, { tools }, lines);
    await converse(begun);
    const { data } = await begun.client.event("external_tool.requested");
    expect(data).not.toHaveProperty("traceparent");
    await end();
    expect(lines.filter(({ message }) => message.includes("OpenTelemetry"))).toMatchObject([{ level: "warning" }]);
  });
});
