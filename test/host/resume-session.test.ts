import { appendFileSync, chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { Diagnostic } from "../../src/base/diagnostic.ts";
import { silentLogger } from "../../src/base/logger.ts";
import { createHost } from "../../src/host/create-host.ts";
import type { Host } from "../../src/host/host.ts";
import type { HostOptions } from "../../src/host/host-options.ts";
import type { ChatMessage, ChatModel, ModelReply } from "../../src/models/model.ts";
import { approveAll } from "../../src/tools/tool.ts";
import { emptyFolder } from "../io/temp-folder.ts";
import { answerData } from "../session/session-kit.ts";

const echo = { name: "echo", handler: ({ text }: { text?: string }) => `said ${text}` };
const shout = { name: "shout", handler: ({ text }: { text?: string }) => `SAID ${text}` };

async function hostIn(folder: string, options: HostOptions = {}): Promise<Host> {
  const base = {
    skillDirectories: [],
    plugins: [],
    watch: false,
    logger: silentLogger,
    workingDirectory: folder,
    sessionsDirectory: join(folder, "sessions"),
  };
  return createHost({ ...base, ...options });
}

const logOf = (folder: string, id: string): string => join(folder, "sessions", id, "events.jsonl");

describe("a session of a closed host", () => {
  test("a session resumes in another host with its history, options, parent chain and id", async () => {
    const folder = emptyFolder();
    const first = await hostIn(folder);
    const session = await first.createSession({
      tools: [echo, shout],
      excludedTools: ["shout"],
      model: "m1",
      onPermissionRequest: approveAll,
    });
    await session.callTool("echo", { text: "hi" });
    const before = await session.getMessages();
    await first.close();

    await using second = await hostIn(folder);
    const again = await second.resumeSession(session.id, { tools: [echo, shout], onPermissionRequest: approveAll });
    expect(again.id).toBe(session.id);
    expect(again.tools.map(({ name }) => name)).toEqual(["echo"]);
    expect(again.config.view.model).toBe("m1");
    expect((await again.callTool("echo", { text: "again" })).textResultForLlm).toBe("said again");
    const events = await again.getMessages();
    expect(events.slice(0, before.length)).toEqual(before);
    expect(events.map(({ parentId }) => parentId)).toEqual([null, ...events.slice(0, -1).map(({ id }) => id)]);
    expect(events[before.length + 1]).toMatchObject({
      type: "session.resume",
      data: { eventCount: before.length + 1, sessionWasActive: false },
    });
  });

  test("a session takes changed options and stores them, and undefined changes nothing", async () => {
    const folder = emptyFolder();
    await using host = await hostIn(folder);
    const session = await host.createSession({ tools: [echo], availableTools: ["echo"], model: "m1" });
    await session.disconnect();
    const second = await host.resumeSession(session.id, { model: "m2", availableTools: undefined, tools: [echo, shout] });
    expect([second.config.view.model, second.tools.length]).toEqual(["m2", 1]);
    await second.disconnect();
    const third = await host.resumeSession(session.id, { tools: [shout], availableTools: ["shout"] });
    expect([third.config.view.model, third.tools.map(({ name }) => name)]).toEqual(["m2", ["shout"]]);
  });

  test("a session loses the functions of the closed program, and its calls are denied without a handler", async () => {
    await using host = await hostIn(emptyFolder());
    const session = await host.createSession({ tools: [echo], onPermissionRequest: approveAll });
    await session.disconnect();
    const again = await host.resumeSession(session.id, { tools: [echo] });
    expect(await again.callTool("echo")).toMatchObject({ resultType: "denied" });
  });

  test("a session gets options that may contain secrets only from the host that had them", async () => {
    const folder = emptyFolder();
    const provider = { type: "openai", baseUrl: "http://localhost:1/v1", apiKey: "s3cret" } as const;
    const customAgents = [{ name: "a", mcpServers: { db: { command: "x", env: { TOKEN: "s3cret" } } } }];
    await using host = await hostIn(folder);
    const session = await host.createSession({ provider, customAgents, model: "m" });
    await session.disconnect();
    expect(readFileSync(logOf(folder, session.id), "utf8")).not.toContain("s3cret");
    const again = await host.resumeSession(session.id);
    expect(again.config.options).toMatchObject({ provider, customAgents });
    await again.disconnect();
    await using other = await hostIn(folder);
    const elsewhere = await other.resumeSession(session.id, { customAgents: [{ name: "b" }] });
    expect(elsewhere.config.options).not.toHaveProperty("provider");
    await elsewhere.disconnect();
    expect((await host.resumeSession(session.id)).config.options.customAgents).toEqual([{ name: "b" }]);
  });

  test("a session with persist: false is not stored", async () => {
    const folder = emptyFolder();
    await using host = await hostIn(folder);
    const session = await host.createSession({ persist: false, sessionId: "fleeting" });
    await session.disconnect();
    expect(existsSync(join(folder, "sessions"))).toBe(false);
    await expect(host.resumeSession("fleeting")).rejects.toMatchObject({ code: "SESSION_NOT_FOUND" });
  });

  test("a stored session can be read only by its owner", async () => {
    if (process.platform === "win32") return;
    const folder = emptyFolder();
    await using host = await hostIn(folder);
    const { id } = await host.createSession();
    expect([statSync(join(logOf(folder, id), "..")).mode & 0o777, statSync(logOf(folder, id)).mode & 0o777]).toEqual([0o700, 0o600]);
  });

  test("a session is stored as soon as it is created", async () => {
    const folder = emptyFolder();
    await using host = await hostIn(folder);
    const { id } = await host.createSession();
    expect(JSON.parse(readFileSync(logOf(folder, id), "utf8"))).toMatchObject({ type: "session.start", parentId: null });
  });
});

/** A model that gives scripted answers and records its requests. */
function scriptedModel(...replies: (Partial<ModelReply> | "never")[]): ChatModel & { readonly asked: (readonly ChatMessage[])[] } {
  const asked: (readonly ChatMessage[])[] = [];
  return {
    id: "scripted",
    address: "nowhere",
    asked,
    complete({ messages }) {
      asked.push(messages);
      const reply = replies.shift() ?? {};
      if (reply === "never") return new Promise(() => {});
      const rest = {
        content: "",
        toolCalls: [],
        finishReason: "stop",
        model: "scripted",
        chunkCount: 1,
        attempts: 1,
        duration: 1,
      } as const;
      return Promise.resolve({ ...rest, ...reply });
    },
  };
}

const callOf = (id: string, name: string) => ({ id, name, arguments: {}, argumentsText: "{ }" });
const spoken = (messages: readonly ChatMessage[] = []): string[] =>
  messages
    .filter(({ role }) => role !== "system")
    .map(({ role, content }) => `${role}: ${typeof content === "string" ? content.replace(/<current_datetime>.*\n\n/, "") : "…"}`);

describe("the conversation of a resumed session", () => {
  test("the model receives the stored conversation", async () => {
    const folder = emptyFolder();
    await using first = await hostIn(folder);
    const before = scriptedModel({ content: "Hello.", toolCalls: [callOf("c1", "echo")] }, { content: "Done." });
    const session = await first.createSession({ tools: [echo], chatModel: before, onPermissionRequest: approveAll });
    await session.sendAndWait("Hi");
    await first.close();
    await using second = await hostIn(folder);
    const model = scriptedModel({ content: "Still here." });
    const again = await second.resumeSession(session.id, { tools: [echo], chatModel: model });
    const reply = await again.sendAndWait("And now?");
    expect(reply.content).toBe("Still here.");
    expect(spoken(model.asked[0])).toEqual([...spoken(before.asked[1]), "assistant: Done.", "user: And now?"]);
    expect(model.asked[0]?.find(({ role }) => role === "assistant")).toMatchObject({ toolCalls: [callOf("c1", "echo")] });
  });

  test("the conversation is complete after a crash in the middle of a turn: calls without a result get one that reports the crash", async () => {
    const folder = emptyFolder();
    await using host = await hostIn(folder);
    const hangs = { name: "hangs", skipPermission: true, handler: () => new Promise(() => {}) };
    const chatModel = scriptedModel({ toolCalls: [callOf("c1", "hangs"), callOf("c2", "hangs")] });
    const session = await host.createSession({ tools: [hangs], chatModel });
    const started = new Promise<void>(
      (resolve) => void session.on("tool.execution_start", ({ data }) => data["toolCallId"] === "c2" && resolve()),
    );
    await session.send("Go");
    await started;
    await session.flush();
    // A process that is killed now leaves this log.
    mkdirSync(join(folder, "sessions/copy"));
    writeFileSync(logOf(folder, "copy"), readFileSync(logOf(folder, session.id)));
    const model = scriptedModel({ content: "I see." });
    const again = await host.resumeSession("copy", { tools: [hangs], chatModel: model });
    await again.sendAndWait("What now?");
    const unknown = "tool: The execution of this tool, or a previous tool was interrupted.";
    expect(spoken(model.asked[0])).toEqual(["user: Go", "assistant: ", unknown, unknown, "user: What now?"]);
  });
});

describe("an open session", () => {
  test("resuming an open session changes it and returns the same session", async () => {
    await using host = await hostIn(emptyFolder());
    const session = await host.createSession({ tools: [echo], onPermissionRequest: approveAll });
    const same = await host.resumeSession(session.id, {
      excludedTools: ["echo"],
      tools: [echo, shout],
      workingDirectory: session.config.workingDirectory,
    });
    expect(same).toBe(session);
    expect(session.tools.map(({ name }) => name)).toEqual(["shout"]);
    await host.resumeSession(session.id);
    expect(session.tools.map(({ name }) => name)).toEqual(["shout"]);
    expect((await session.getMessages()).filter(({ type }) => type === "session.resume")).toMatchObject([
      { data: { sessionWasActive: true } },
      { data: { sessionWasActive: true } },
    ]);
  });

  test("resuming an open session with partly invalid changes leaves it unchanged", async () => {
    await using host = await hostIn(emptyFolder());
    const session = await host.createSession({ tools: [echo] });
    for (const changes of [
      { tools: [shout], availableTools: "shout" },
      { tools: [shout], workingDirectory: "/elsewhere" },
      { tools: [{ name: "not legal" }], model: "m2" },
      { tools: [shout], surprise: 1 },
      { sessionId: "other" },
      { persist: false },
      null,
    ]) {
      await expect(host.resumeSession(session.id, changes as never)).rejects.toMatchObject({
        code: expect.stringMatching(/SESSION_OPTIONS|TOOL_NAME/),
      });
    }
    expect([session.tools.map(({ name }) => name), session.config.view.model]).toEqual([["echo"], undefined]);
  });

  test("concurrent requests get one session, even while it closes", async () => {
    await using host = await hostIn(emptyFolder());
    const session = await host.createSession();
    const closing = session.disconnect();
    const [a, b, c] = await Promise.all([1, 2, 3].map(() => host.resumeSession(session.id)));
    await closing;
    expect(a).not.toBe(session);
    expect([b, c]).toEqual([a, a]);
    expect(a!.isOpen).toBe(true);
  });

  test("a session keeps its id while it is open", async () => {
    const folder = emptyFolder();
    await using host = await hostIn(folder);
    const session = await host.createSession({ sessionId: "mine" });
    await expect(host.createSession({ sessionId: "mine" })).rejects.toMatchObject({ code: "SESSION_EXISTS" });
    await session.disconnect();
    await expect(host.createSession({ sessionId: "mine" })).rejects.toMatchObject({ code: "SESSION_EXISTS" });
    const pair = await Promise.allSettled(["new", "new"].map((sessionId) => host.createSession({ sessionId })));
    expect(pair.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
    await using other = await hostIn(folder);
    await expect(other.resumeSession("new")).rejects.toMatchObject({
      code: "SESSION_IN_USE",
      message: expect.stringContaining(`${process.pid}`),
    });
    await expect(other.createSession({ sessionId: "new" })).rejects.toMatchObject({ code: "SESSION_IN_USE" });
    await expect(other.deleteSession("new")).rejects.toMatchObject({ code: "SESSION_IN_USE" });
  });
});

describe("sessions that cannot be resumed", () => {
  test.each(["unknown", "../sessions", "", ".", "a/b", "x".repeat(200)])(
    "the error for an unknown id (%s) names the id and a remedy",
    async (id) => {
      await using host = await hostIn(emptyFolder());
      await host.createSession();
      await expect(host.resumeSession(id)).rejects.toMatchObject({
        code: "SESSION_NOT_FOUND",
        message: expect.stringContaining(`"${id}"`),
      });
      await expect(host.deleteSession(id)).rejects.toMatchObject({ code: "SESSION_NOT_FOUND" });
      await expect(host.exportSession(id)).rejects.toMatchObject({ code: "SESSION_NOT_FOUND" });
    },
  );

  test("a log with invalid options is refused until valid ones are given, and a log with a damaged first line is always refused", async () => {
    const folder = emptyFolder();
    await using host = await hostIn(folder);
    const session = await host.createSession({ model: "m1" });
    await session.disconnect();
    const text = readFileSync(logOf(folder, session.id), "utf8");
    writeFileSync(logOf(folder, session.id), text.replace('"model":"m1"', '"availableTools":"all","model":"m1"'));
    await expect(host.resumeSession(session.id)).rejects.toMatchObject({
      code: "SESSION_LOG_DAMAGED",
      message: expect.stringContaining("availableTools"),
    });
    const again = await host.resumeSession(session.id, { availableTools: [] });
    await again.disconnect();
    writeFileSync(logOf(folder, session.id), `garbage${text.slice(text.indexOf("\n"))}`);
    await expect(host.resumeSession(session.id)).rejects.toMatchObject({ code: "SESSION_LOG_DAMAGED" });
    // The failed attempts released the lock.
    writeFileSync(logOf(folder, session.id), text);
    expect((await host.resumeSession(session.id)).id).toBe(session.id);
  });

  test("a session that fails to open leaves nothing behind", async () => {
    const folder = emptyFolder();
    await using host = await hostIn(folder);
    await expect(host.createSession({ tools: [{ name: "not legal" }] })).rejects.toMatchObject({ code: "TOOL_NAME_ILLEGAL" });
    await expect(host.createSession({ availableTools: ["*"] })).rejects.toMatchObject({ code: "SESSION_OPTIONS" });
    expect(readdirSync(join(folder, "sessions"))).toEqual([]);
  });
});

test("an incomplete last line is repaired and reported, and damage before it is reported without losing other lines", async () => {
  const folder = emptyFolder();
  await using host = await hostIn(folder);
  const session = await host.createSession();
  session.events.append("user.message", { content: "one" });
  await session.disconnect();
  appendFileSync(logOf(folder, session.id), 'damage\n{"type":"user.message","id":"cut');
  const again = await host.resumeSession(session.id);
  expect(again.history.messages()).toEqual([{ role: "user", content: "one" }]);
  expect(host.diagnostics.map(({ code }) => code)).toContain("LOG_TORN_LINE");
  expect(readFileSync(`${logOf(folder, session.id)}.torn`, "utf8")).toContain('"id":"cut');
});

describe("an unwritable folder for sessions", () => {
  const unwritable = (): string => {
    const folder = emptyFolder();
    writeFileSync(join(folder, "sessions"), "a file where a folder should be");
    return folder;
  };

  test("a session works without storage, and the host reports it", async () => {
    await using host = await hostIn(unwritable());
    const seen: Diagnostic[] = [];
    host.on("diagnostic", (diagnostic) => seen.push(diagnostic));
    const session = await host.createSession({ tools: [echo], onPermissionRequest: approveAll });
    expect(await session.callTool("echo", { text: "hi" })).toMatchObject({ resultType: "success" });
    expect(seen).toMatchObject([
      { code: "SESSION_NOT_PERSISTED", severity: "warning", message: expect.stringContaining("sessionsDirectory") },
    ]);
  });

  test("a session that must be stored is refused", async () => {
    await using host = await hostIn(unwritable());
    await expect(host.createSession({ persist: true })).rejects.toMatchObject({ code: "SESSION_STORE" });
    await expect(host.listSessions()).rejects.toMatchObject({ code: "SESSION_STORE" });
  });
});

describe("the stored sessions of a host", () => {
  test("sessions are listed with their details, the last changed first, and other folders are omitted", async () => {
    const folder = emptyFolder();
    await using host = await hostIn(folder);
    expect(await host.listSessions()).toEqual([]);
    const one = await host.createSession({ sessionId: "one" });
    one.events.append("user.message", { content: "<context>", source: "skill" });
    one.events.append("user.message", { content: `  Fix\n the ${"very ".repeat(50)}long bug` });
    await one.disconnect();
    // The clock of a file system may be too coarse to distinguish the sessions.
    const before = new Date(Date.now() - 60_000);
    utimesSync(join(folder, "sessions/one/events.jsonl"), before, before);
    await host.createSession({ sessionId: "two" });
    await host.createSession({ sessionId: "fleeting", persist: false });
    mkdirSync(join(folder, "sessions/not-a-session"));
    writeFileSync(join(folder, "sessions/a-file"), "");
    const sessions = await host.listSessions();
    expect(sessions).toMatchObject([
      { sessionId: "fleeting", isOpen: true, isInUse: true },
      { sessionId: "two", isOpen: true, isInUse: true, workingDirectory: folder },
      {
        sessionId: "one",
        isOpen: false,
        isInUse: false,
        startTime: expect.stringMatching(/^\d{4}-/),
        modifiedTime: expect.stringMatching(/^\d{4}-/),
      },
    ]);
    expect(sessions[2]?.summary).toMatch(/^Fix the very very .{50,90}…$/);
    await using other = await hostIn(folder);
    expect(await other.listSessions()).toMatchObject([{ sessionId: "two", isOpen: false, isInUse: true }, { sessionId: "one" }]);
  });

  test("deleting a session deletes all its files, even if it is open", async () => {
    const folder = emptyFolder();
    await using host = await hostIn(folder);
    const session = await host.createSession({
      tools: [{ name: "long", handler: () => "x".repeat(100_000) }],
      onPermissionRequest: approveAll,
    });
    await session.callTool("long");
    expect(existsSync(join(folder, "sessions", session.id, "outputs"))).toBe(true);
    await host.deleteSession(session.id);
    expect(session.isOpen).toBe(false);
    expect(readdirSync(join(folder, "sessions"))).toEqual([]);
    const { id } = await host.createSession({ persist: false });
    await host.deleteSession(id);
    expect(await host.listSessions()).toEqual([]);
  });

  test("an open or closed session is exported as it is, or as a readable page", async () => {
    const folder = emptyFolder();
    await using host = await hostIn(folder);
    const session = await host.createSession({ tools: [echo], onPermissionRequest: approveAll });
    session.events.append("user.message", { content: "Say ```hi```" });
    session.events.append("assistant.message", answerData("I will."));
    await session.callTool("echo", { text: "````" });
    const open = await host.exportSession(session.id);
    const lines = open.trimEnd().split("\n");
    expect(lines.map((line) => JSON.parse(line))).toEqual(await session.getMessages());
    await session.disconnect();
    expect((await host.exportSession(session.id, { format: "jsonl" })).startsWith(open)).toBe(true);
    const page = await host.exportSession(session.id, { format: "markdown" });
    for (const part of [
      `# Session ${session.id}`,
      "## User",
      "Say ```hi```",
      "## Assistant",
      "I will.",
      "### Call of `echo`",
      "`````\nsaid ````\n`````",
    ])
      expect(page).toContain(part);
    await expect(host.exportSession(session.id, { format: "pdf" as never })).rejects.toMatchObject({ code: "EXPORT_FORMAT" });
  });
});

test("a closed host rejects resuming, listing, deleting and exporting", async () => {
  const host = await hostIn(emptyFolder());
  const { id } = await host.createSession();
  await host.close();
  for (const ask of [() => host.resumeSession(id), () => host.listSessions(), () => host.deleteSession(id), () => host.exportSession(id)])
    await expect(ask()).rejects.toMatchObject({ code: "HOST_CLOSED" });
});

test("a session of 10,000 events is resumed with all of them", async () => {
  const folder = emptyFolder();
  await using host = await hostIn(folder);
  const session = await host.createSession();
  for (let i = 0; i < 5000; i++) {
    session.events.append("user.message", { content: `question ${i}` });
    session.events.append("assistant.message", answerData(`answer ${i} ${"x".repeat(500)}`, { messageId: `${i}` }));
  }
  await session.disconnect();
  const again = await host.resumeSession(session.id);
  expect(again.history.messages()).toHaveLength(10_000);
});

test.runIf(process.platform !== "win32" && process.getuid?.() !== 0)(
  "a folder without access rights is not listed as a session",
  async () => {
    const folder = emptyFolder();
    await using host = await hostIn(folder);
    const session = await host.createSession();
    await session.disconnect();
    chmodSync(join(folder, "sessions", session.id), 0);
    await expect(host.resumeSession(session.id)).rejects.toMatchObject({ code: "SESSION_NOT_FOUND" });
    chmodSync(join(folder, "sessions", session.id), 0o700);
  },
);
