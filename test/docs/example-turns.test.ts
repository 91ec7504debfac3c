import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createHost, type Host, type Session, type SessionOptions } from "skillhost";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { chatAnswer, type ScriptedModel, type ScriptedReply, startScriptedModel } from "../doubles/scripted-model.ts";

const examples = fileURLToPath(new URL("../../examples", import.meta.url));
const called = new Set<string>();

let workingDirectory: string;
let service: Server;
let model: ScriptedModel;
let host: Host;

beforeAll(async () => {
  workingDirectory = mkdtempSync(join(tmpdir(), "skillhost-example-turns-"));
  writeFileSync(join(workingDirectory, "settings.json"), '{ "theme": "dark" }');
  service = createServer((_request, response) => {
    response.end(JSON.stringify({ current_condition: [{ temp_C: "4", temp_F: "39", weatherDesc: [{ value: "Light rain" }] }] }));
  });
  await new Promise<void>((resolve) => service.listen(0, "127.0.0.1", resolve));
  vi.stubEnv("WEATHER_URL", `http://127.0.0.1:${(service.address() as AddressInfo).port}`);
  model = await startScriptedModel();
  host = await createHost({ skillDirectories: [examples], plugins: [], workingDirectory, watch: false });
});

afterAll(async () => {
  await host.close();
  await model.close();
  vi.unstubAllEnvs();
  service.close();
  rmSync(workingDirectory, { recursive: true });
});

function openSession(options: SessionOptions = {}): Promise<Session> {
  const provider = { baseUrl: `${model.url}/v1` };
  return host.createSession({ model: "scripted-model", provider, persist: false, currentDateTime: false, ...options });
}

function calls(id: string, name: string, args: object): ScriptedReply {
  called.add(name);
  return { toolCalls: [{ id, name, arguments: args }] };
}

interface SentMessage {
  readonly role: string;
  readonly content: unknown;
  readonly tool_call_id?: string;
}

/** The messages of the newest request to the model, without the system message. */
function lastMessages(): readonly SentMessage[] {
  const { messages } = model.requests.at(-1)!.body as { readonly messages: readonly SentMessage[] };
  return messages.filter(({ role }) => role !== "system");
}

test("a model looks up a user, welcomes them with the result, and reports it", async () => {
  const allowed: unknown[] = [];
  await using session = await openSession({
    availableTools: ["users/get_user", "skill:notifications"],
    onPermissionRequest({ toolName, kind, intention }) {
      allowed.push([toolName, kind, intention]);
      return { kind: "approve-once" };
    },
  });
  model.answer(
    chatAnswer(calls("look", "get_user", { id: 123 })),
    chatAnswer(calls("send", "send_notification", { userId: 123, message: "Welcome, Ada Lovelace!" })),
    chatAnswer({ content: "I have welcomed Ada Lovelace." }),
  );
  const before = model.requests.length;

  const reply = await session.sendAndWait("Get the details of user 123 and welcome them.");

  expect(reply.content).toBe("I have welcomed Ada Lovelace.");
  expect(model.requests).toHaveLength(before + 3);
  expect(lastMessages()).toMatchObject([
    { role: "user", content: "Get the details of user 123 and welcome them." },
    { role: "assistant" },
    { role: "tool", tool_call_id: "look", content: '{"id":123,"name":"Ada Lovelace","email":"ada@example.com","role":"admin"}' },
    { role: "assistant" },
    { role: "tool", tool_call_id: "send", content: "The notification for user 123 is number 1 in the outbox." },
  ]);
  expect(allowed.at(-1)).toEqual(["send_notification", "write", "Notify user 123: Welcome, Ada Lovelace!"]);
  const outbox = readFileSync(join(workingDirectory, "notifications.jsonl"), "utf8");
  expect(JSON.parse(outbox)).toMatchObject({ userId: 123, message: "Welcome, Ada Lovelace!" });
});

test("each tool of the examples works in a turn of a model", async () => {
  await using session = await openSession({ permissions: { allow: ["*"] }, toolSearch: { enabled: false } });
  const wanted: readonly [tool: string, args: object, text: string | RegExp][] = [
    ["query_users", { search: "ad", role: "designer" }, "126: Adele Goldberg <adele@example.com>, designer"],
    ["list_notifications", {}, /"message":"Welcome, Ada Lovelace!"|^No notifications sent yet\.$/],
    ["get_weather", { city: "Oslo" }, '{"city":"Oslo","temperature":4,"unit":"celsius","sky":"Light rain"}'],
    ["get_time", {}, /^\d{4}-\d\d-\d\dT/],
    ["search_files", { pattern: "settings.*" }, "settings.json"],
    ["search_lines", { path: "settings.json", text: "theme" }, '1: { "theme": "dark" }'],
    ["count_words", { text: "one two" }, "2"],
    ["read_setting", { name: "theme" }, '{"name":"theme","value":"dark"}'],
    ["draw_swatch", { colour: "#3366cc", size: 5 }, /^A square of #3366cc, 5 by 5 pixels\./],
    ["describe_call", {}, /"toolCallId":"call-describe_call"/],
  ];
  for (const [tool, args, text] of wanted) {
    model.answer(chatAnswer(calls(`call-${tool}`, tool, args)), chatAnswer({ content: `${tool} is done.` }));
    const reply = await session.sendAndWait(`Try ${tool}.`);
    expect(reply.content).toBe(`${tool} is done.`);
    const result = lastMessages().find(({ tool_call_id: id }) => id === `call-${tool}`);
    expect(result?.content, tool).toEqual(typeof text === "string" ? text : expect.stringMatching(text));
  }
});

test("the turns call every tool of the examples", async () => {
  await using session = await host.createSession({ persist: false });
  expect(
    session
      .listTools()
      .map(({ name }) => name)
      .filter((name) => !called.has(name)),
  ).toEqual([]);
});
