import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { ToolResult } from "skillhost";
import { createTestHost, type TestHost } from "skillhost/testing";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { readSamples } from "./markdown-samples.ts";
import { runCommands } from "./sample-project.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));
const examples = join(root, "examples");
const called = new Set<string>();
const written: string[] = [];

let workingDirectory: string;
let service: Server;
let running: TestHost;

beforeAll(async () => {
  workingDirectory = mkdtempSync(join(tmpdir(), "skillhost-examples-"));
  writeFileSync(join(workingDirectory, "settings.json"), '{ "theme": "dark" }');
  service = createServer(({ url = "" }, response) => {
    if (!url.startsWith("/Oslo?")) return void response.writeHead(url.startsWith("/Nowhere") ? 404 : 503).end();
    response.end(JSON.stringify({ current_condition: [{ temp_C: "4", temp_F: "39", weatherDesc: [{ value: "Light rain" }] }] }));
  });
  await new Promise<void>((resolve) => service.listen(0, "127.0.0.1", resolve));
  vi.stubEnv("WEATHER_URL", `http://127.0.0.1:${(service.address() as AddressInfo).port}`);
  running = await createTestHost({ skillDirectories: [examples], workingDirectory, watch: false });
  running.session.onFileChanged(({ content }) => written.push(content));
});

afterAll(async () => {
  await running.close();
  vi.unstubAllEnvs();
  service.close();
  rmSync(workingDirectory, { recursive: true });
});

function call(tool: string, args: object = {}): Promise<ToolResult> {
  called.add(tool);
  return running.call(tool, args);
}

const threw = "Invoking this tool produced an error. Detailed information is not available.";

test("the examples load without a diagnostic", () => {
  expect(running.host.diagnostics).toEqual([]);
});

test.each<[tool: string, args: object, type: ToolResult["resultType"], text: string | RegExp]>([
  ["get_weather", { city: "Oslo" }, "success", '{"city":"Oslo","temperature":4,"unit":"celsius","sky":"Light rain"}'],
  ["get_weather", { city: "Oslo", unit: "fahrenheit" }, "success", /"temperature":39,/],
  ["get_weather", { city: "Nowhere" }, "failure", "No weather found for Nowhere. Check the spelling or try a larger city."],
  ["get_weather", { city: "Broken" }, "failure", threw],
  ["get_weather", { city: " " }, "failure", /^Invalid arguments for tool 'get_weather': city: /],
  [
    "query_users",
    { search: "AD", limit: 1 },
    "success",
    "123: Ada Lovelace <ada@example.com>, admin\n… and 1 more. Use a longer search text.",
  ],
  ["query_users", { search: "ad", role: "designer" }, "success", "126: Adele Goldberg <adele@example.com>, designer"],
  ["query_users", { search: "zed" }, "success", 'No user matches "zed".'],
  ["get_user", { id: 125 }, "success", '{"id":125,"name":"Alan Turing","email":"alan@example.com","role":"developer"}'],
  ["get_user", { id: 1 }, "failure", "User 1 was not found. Use query_users to find the id."],
  ["get_time", {}, "success", /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/],
  ["search_files", { pattern: "*.json" }, "success", "settings.json"],
  ["search_files", { pattern: "**/*.ts" }, "success", "No file matches **/*.ts."],
  ["search_files", { pattern: "../*" }, "failure", /must be relative to the working directory/],
  ["search_lines", { path: "settings.json", text: "theme" }, "success", '1: { "theme": "dark" }'],
  ["search_lines", { path: "../x", text: "theme" }, "failure", "The file ../x does not exist."],
  ["count_words", { text: "one two" }, "success", "2"],
  ["read_setting", { name: "theme" }, "success", '{"name":"theme","value":"dark"}'],
  ["read_setting", { name: "color" }, "failure", 'Unknown setting "color". Available settings: theme.'],
])("%s %j is a %s", async (tool, args, type, text) => {
  const result = await call(tool, args);
  const expected = typeof text === "string" ? text : expect.stringMatching(text);
  expect(result).toMatchObject({ resultType: type, textResultForLlm: expected });
});

test("the user search writes telemetry to the log and not to the text for the model", async () => {
  const result = await call("query_users", { search: "a", limit: 2 });
  expect(result.sessionLog).toBe("query_users: 4 of 4 users match");
  expect(result.toolTelemetry).toEqual({ matches: 4, searched: 4, milliseconds: expect.any(Number) });
});

test("the settings example keeps the details of failures and thrown errors from the model", async () => {
  expect((await call("read_setting", { name: "color" })).error).toBe("read_setting: unknown setting color");
  const elsewhere = await createTestHost({ skillDirectories: [examples], workingDirectory: tmpdir(), watch: false });
  const result = await elsewhere.call("read_setting", { name: "theme" });
  expect(result.textResultForLlm).toBe(threw);
  expect(result.error).toContain("ENOENT");
  await elsewhere.close();
});

test("notifications are sent and listed, and emit an event", async () => {
  expect((await call("list_notifications")).textResultForLlm).toBe("No notifications sent yet.");
  expect((await call("send_notification", { userId: 123, message: "Hello" })).textResultForLlm).toMatch(/is number 1 in the outbox/);
  expect((await call("send_notification", { userId: 124, message: "Hi" })).textResultForLlm).toMatch(/is number 2 in the outbox/);
  const listed = (await call("list_notifications")).textResultForLlm.split("\n").map((line) => JSON.parse(line) as object);
  expect(listed).toMatchObject([
    { userId: 123, message: "Hello" },
    { userId: 124, message: "Hi" },
  ]);
  expect(written.at(-1)).toBe(readFileSync(join(workingDirectory, "notifications.jsonl"), "utf8"));
});

test("a swatch is a PNG of the requested size", async () => {
  const { binaryResultsForLlm = [], textResultForLlm } = await call("draw_swatch", { colour: "#3366cc", size: 5 });
  expect(textResultForLlm).toBe("A square of #3366cc, 5 by 5 pixels.");
  expect(binaryResultsForLlm).toMatchObject([{ type: "image", mimeType: "image/png" }]);
  const png = Buffer.from(binaryResultsForLlm[0]!.data, "base64");
  expect(png.subarray(1, 4).toString()).toBe("PNG");
  expect([png.readUInt32BE(16), png.readUInt32BE(20)]).toEqual([5, 5]);
});

test("a handler receives the ids of its session and call", async () => {
  called.add("describe_call");
  const { session } = running;
  const result = await session.callTool("describe_call", {}, { toolCallId: "call-1" });
  const details = { sessionId: session.id, toolCallId: "call-1", toolName: "describe_call", cancelled: false };
  expect(JSON.parse(result.textResultForLlm)).toEqual(details);
});

test("the conversation looks up a user and then welcomes them", async () => {
  const log = vi.spyOn(console, "log").mockImplementation(() => {});
  await import(/* @vite-ignore */ new URL("../../examples/conversation.mjs", import.meta.url).href);
  const lines = log.mock.calls.map(([line]) => String(line));
  log.mockRestore();
  expect(lines).toEqual([
    'get_user: {"id":123,"name":"Ada Lovelace","email":"ada@example.com","role":"admin"}',
    "allowed: Notify user 123: Welcome, Ada Lovelace!",
    "send_notification: The notification for user 123 is number 1 in the outbox.",
  ]);
});

test("the commands in the examples' README work", async () => {
  const samples = readSamples(join(examples, "README.md"), "examples/README.md").filter(({ language }) => language === "sh");
  expect(samples).toHaveLength(1);
  for (const sample of samples) expect(await runCommands(root, sample)).toEqual([]);
});

test("these tests call every tool of the examples", () => {
  expect(
    running.session
      .listTools()
      .map(({ name }) => name)
      .filter((name) => !called.has(name)),
  ).toEqual([]);
});
