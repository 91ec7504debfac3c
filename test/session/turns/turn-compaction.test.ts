import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createHost } from "skillhost";
import { expect, test } from "vitest";
import { silentLogger } from "../../../src/base/logger.ts";
import { ModelError } from "../../../src/models/model-error.ts";
import type { Session } from "../../../src/session/session.ts";
import type { SessionOptions } from "../../../src/session/session-config.ts";
import { type FakeAnswer, type FakeChat, fakeChat } from "../../doubles/fake-chat.ts";
import { emptyFolder } from "../../io/temp-folder.ts";
import { createTestEnvironment, openSession, recordEvents } from "../session-kit.ts";

const summary = "<overview>\nA story.\n</overview>\n<history>\n1. Read.\n</history>\n<checkpoint_title>Story</checkpoint_title>";
const tool = { name: "look", handler: () => "seen" };
const instruction = /^Please create a detailed summary of the conversation so far\. The history is being compacted/;

interface Talk {
  readonly chat: FakeChat;
  readonly session: Session;
}

/** A session in which the user said "First." and "Second.". */
async function talk(answers: readonly FakeAnswer[], options: SessionOptions = {}): Promise<Talk> {
  const chat = fakeChat("One.", { calls: [{ name: "look" }] }, "Two.", ...answers);
  const session = openSession(createTestEnvironment(), { chatModel: chat, tools: [tool], ...options });
  await session.sendAndWait("First.");
  await session.sendAndWait("Second.");
  return { chat, session };
}

test("a summary is requested at the end of the conversation as it was sent, so that prompt caches keep it", async () => {
  const { chat, session } = await talk([summary]);
  await session.conversation.compact({ instructions: "Keep the names." });
  const [before, asked] = chat.requests.slice(-2);
  expect(asked?.messages.slice(0, before?.messages.length)).toEqual(before?.messages);
  expect(asked?.tools).toEqual(before?.tools);
  expect(asked?.toolChoice).toBe("none");
  expect(asked?.messages.at(-2)).toMatchObject({ role: "assistant", content: "Two." });
  const { content } = asked?.messages.at(-1) ?? {};
  expect(content).toMatch(instruction);
  for (const section of ["<overview>", "<history>", "<checkpoint_title>", "The user adds: Keep the names."])
    expect(content).toContain(section);
});

test("a stored session keeps each summary as a checkpoint, and the event names its file", async () => {
  const folder = emptyFolder();
  await using host = await createHost({ skillDirectories: [], watch: false, logger: silentLogger, sessionsDirectory: folder });
  const chatModel = fakeChat("One.", summary, "Two.", "No sections here.");
  const session = await host.createSession({ chatModel });
  const ended = recordEvents(session, "session.compaction_complete");
  await session.sendAndWait("First.");
  await session.conversation.compact();
  await session.sendAndWait("Second.");
  await session.conversation.compact();
  expect(await session.workspace.listCheckpoints()).toEqual([
    { number: 1, title: "Story", filename: "001-story.md" },
    { number: 2, title: "Checkpoint 2", filename: "002-checkpoint-2.md" },
  ]);
  expect(await session.workspace.readCheckpoint(1)).toBe(summary);
  const paths = ended.map(({ data }) => [data["checkpointNumber"], readFileSync(String(data["checkpointPath"]), "utf8")]);
  expect(paths).toEqual([
    [1, summary],
    [2, "No sections here."],
  ]);
});

test("a session that is not stored, and a folder that cannot be written, have the summary in the conversation alone", async () => {
  const { session } = await talk([summary]);
  const ended = recordEvents(session, "session.compaction_complete");
  await session.conversation.compact();
  expect(ended[0]?.data).toMatchObject({ success: true, checkpointNumber: 1 });
  expect(ended[0]?.data).not.toHaveProperty("checkpointPath");
  expect(await session.workspace.listCheckpoints()).toEqual([]);

  const folder = emptyFolder();
  await using host = await createHost({ skillDirectories: [], watch: false, logger: silentLogger, sessionsDirectory: folder });
  const stored = await host.createSession({ chatModel: fakeChat("One.", summary) });
  const failed = recordEvents(stored, "session.compaction_complete");
  await stored.sendAndWait("First.");
  writeFileSync(join(stored.workspace.path, "checkpoints"), "A file is in the way.");
  await stored.conversation.compact();
  expect(failed[0]?.data).toMatchObject({ success: true, summaryContent: summary });
  expect(failed[0]?.data).not.toHaveProperty("checkpointPath");
});

test("the summary and the words of the user take the place of the conversation, also the second time", async () => {
  const { chat, session } = await talk([summary, "Three.", "<overview>Longer.</overview>", "Four."], { currentDateTime: true });
  const completed = recordEvents(session, "session.compaction_complete");
  await session.conversation.compact();
  await session.sendAndWait("Third.");
  expect(chat.requests.at(-1)?.messages[1]?.content).toBe(
    "Some of the conversation history has been summarized to free up context.\n\n" +
      "You were originally given instructions from a user over one or more turns. Here were the user messages:\n\n" +
      "<user_message>\nFirst.\n</user_message>\n<user_message>\nSecond.\n</user_message>\n\n" +
      `Here is a summary of the prior context:\n\n<summary>\n${summary}\n</summary>`,
  );
  await session.conversation.compact();
  await session.sendAndWait("Fourth.");
  const again = String(chat.requests.at(-1)?.messages[1]?.content);
  expect(again.match(/<user_message>\n(.*)\n<\/user_message>/g)).toHaveLength(3);
  expect(again).toContain("Third.");
  expect(again).not.toContain("A story.");
  expect(completed.map(({ data }) => [data.success, data.checkpointNumber])).toEqual([
    [true, 1],
    [true, 2],
  ]);
});

test("long messages of the user are shortened, and of many the first and the newest stay", async () => {
  const chat = fakeChat("ok");
  const session = openSession(createTestEnvironment(), { chatModel: chat, infiniteSessions: { enabled: false } });
  for (let index = 0; index < 15; index++) await session.sendAndWait(`${index}: ${"x".repeat(5_000)}`);
  chat.answer(summary);
  await session.conversation.compact();
  await session.sendAndWait("And now?");
  const content = String(chat.requests.at(-1)?.messages[1]?.content);
  expect(content.length).toBeLessThan(25_000);
  expect(content).toContain("<user_message>\n0: x");
  expect(content).toContain("<user_message>\n14: x");
  expect(content).not.toContain("<user_message>\n1: x");
});

test("a conversation that the endpoint finds too long is summarised from a transcript", async () => {
  const tooLong = (): never => {
    throw new ModelError("MODEL_CONTEXT_TOO_LONG", "Too long.", { retryable: false });
  };
  const { chat, session } = await talk([tooLong, summary]);
  expect(await session.conversation.compact()).toMatchObject({ kind: "done", summary });
  const messages = chat.requests.at(-1)?.messages ?? [];
  expect(messages).toHaveLength(1);
  expect(messages[0]?.content).toMatch(/<conversation>\nuser:\nFirst\.[\s\S]*\[calls look with [\s\S]*<\/conversation>$/);
});

test("a conversation that nearly fills the window is not sent once more", async () => {
  const small = { limits: { max_context_window_tokens: 700 } };
  const { chat, session } = await talk([summary], { modelCapabilities: small, infiniteSessions: { enabled: false } });
  expect((await session.conversation.compact()).kind).toBe("done");
  expect(chat.requests.at(-1)?.messages).toHaveLength(1);
});

test("another failure of the model is the failure of the compaction, and nothing is lost", async () => {
  const fail = (): never => {
    throw new ModelError("MODEL_HTTP", "Broken.", { retryable: false });
  };
  const { chat, session } = await talk([fail, "Still here."]);
  const requests = chat.requests.length;
  expect(await session.conversation.compact()).toMatchObject({ kind: "failed" });
  expect(chat.requests).toHaveLength(requests + 1);
  await session.sendAndWait("Third.");
  expect(JSON.stringify(chat.requests.at(-1)?.messages)).toContain("First.");
});
