import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import type { SessionOptions } from "../../../src/session/session-config.ts";
import type { UserAttachment } from "../../../src/session/turns/user-attachments.ts";
import { fakeChat } from "../../doubles/fake-chat.ts";
import { createTestEnvironment, openSession, recordEvents } from "../session-kit.ts";

const png = Buffer.from("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==", "base64");
const sees = { modelCapabilities: { supports: { vision: true } } };

function folder(files: Readonly<Record<string, string | Buffer>> = {}): string {
  const path = mkdtempSync(join(tmpdir(), "attachments-"));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(join(path, name, ".."), { recursive: true });
    writeFileSync(join(path, name), content);
  }
  return path;
}

async function said(attachments: readonly UserAttachment[], options: SessionOptions = {}) {
  const chat = fakeChat("ok");
  const session = openSession(createTestEnvironment(), { chatModel: chat, ...options });
  const events = recordEvents(session, "user.message");
  await session.sendAndWait({ prompt: "Look.", attachments });
  return { content: chat.requests[0]?.messages.at(-1)?.content, data: events[0]?.data };
}

describe("files attached to a message", () => {
  test("text files become part of the message", async () => {
    const workingDirectory = folder({ "src/a.ts": "const a = 1;\n" });
    const { content, data } = await said([{ type: "file", path: join(workingDirectory, "src/a.ts") }], { workingDirectory });
    expect(content).toBe('Look.\n\n<attachment name="src/a.ts">\nconst a = 1;\n\n</attachment>');
    expect(data).toMatchObject({ content: "Look.", transformedContent: content, attachments: [{ type: "file", displayName: "src/a.ts" }] });
  });

  test("image files are images for a vision model and a note for others", async () => {
    const workingDirectory = folder({ "dot.png": png });
    const image = { type: "image", mimeType: "image/png", data: png.toString("base64") };
    expect((await said([{ type: "file", path: "dot.png" }], { workingDirectory, ...sees })).content).toEqual([
      { type: "text", text: "Look." },
      image,
    ]);
    const note = `[image/png, ${png.length} bytes, which cannot be shown to you.]`;
    expect((await said([{ type: "file", path: "dot.png" }], { workingDirectory })).content).toEqual([
      { type: "text", text: "Look." },
      { type: "text", text: note },
    ]);
  });

  test("attached files are read when the message is sent, not when the model is asked", async () => {
    const workingDirectory = folder({ "a.txt": "before" });
    const chat = fakeChat("ok");
    const session = openSession(createTestEnvironment(), { chatModel: chat, workingDirectory });
    const reply = session.sendAndWait({ prompt: "Look.", attachments: [{ type: "file", path: "a.txt" }] });
    writeFileSync(join(workingDirectory, "a.txt"), "after");
    await reply;
    expect(chat.requests[0]?.messages.at(-1)?.content).toContain("before");
  });

  test("very large files and files of unknown type are only mentioned", async () => {
    const workingDirectory = folder({ "long.txt": "x".repeat(300_000), "data.bin": Buffer.from([0, 1, 2, 255]) });
    const { content } = await said(
      [
        { type: "file", path: "long.txt" },
        { type: "file", path: "data.bin" },
      ],
      { workingDirectory },
    );
    expect(content).toBe(
      'Look.\n\n<attachment name="long.txt">\n[300000 bytes, too long to show. Read it in parts.]\n</attachment>\n\n[data.bin: application/octet-stream, 4 bytes, which cannot be shown to you.]',
    );
  });

  test("attached files outside the working directory must be in named folders", async () => {
    const [workingDirectory, other] = [folder(), folder({ "b.txt": "b" })];
    const attachments: UserAttachment[] = [{ type: "file", path: join(other, "b.txt") }];
    await expect(said(attachments, { workingDirectory })).rejects.toMatchObject({ code: "ATTACHMENT_OUTSIDE" });
    expect((await said(attachments, { workingDirectory, additionalDirectories: [other] })).content).toContain("\nb\n");
  });
});

describe("attachments that are refused before anything is sent", () => {
  test.each<[string, unknown, string]>([
    ["a path that leads out", { type: "file", path: "../../etc/passwd" }, "ATTACHMENT_OUTSIDE"],
    ["an absolute one outside", { type: "file", path: "/etc/passwd" }, "ATTACHMENT_OUTSIDE"],
    ["a link that leads out", { type: "file", path: "link.txt" }, "ATTACHMENT_OUTSIDE"],
    ["a NUL", { type: "file", path: "a\0.txt" }, "ATTACHMENT_OUTSIDE"],
    ["a file that is not there", { type: "file", path: "missing.txt" }, "ATTACHMENT_UNREADABLE"],
    ["a folder", { type: "file", path: "." }, "ATTACHMENT_UNREADABLE"],
    ["a file that is too large", { type: "file", path: "large.bin" }, "ATTACHMENT_TOO_LARGE"],
    ["no path", { type: "file" }, "ATTACHMENT_INVALID"],
    ["no base64", { type: "blob", data: "?!", mimeType: "image/png" }, "ATTACHMENT_INVALID"],
    ["no MIME type", { type: "blob", data: "QQ==", mimeType: "picture" }, "ATTACHMENT_INVALID"],
    ["another kind", { type: "ghost" }, "ATTACHMENT_INVALID"],
    ["nothing", null, "ATTACHMENT_INVALID"],
  ])("an attachment is refused: %s", async (_title, attachment, code) => {
    const workingDirectory = folder({ "large.bin": Buffer.alloc(10 * 1024 * 1024 + 1) });
    symlinkSync(join(folder({ "secret.txt": "secret" }), "secret.txt"), join(workingDirectory, "link.txt"));
    const chat = fakeChat("ok");
    const session = openSession(createTestEnvironment(), { chatModel: chat, workingDirectory });
    const events = recordEvents(session, "user.message");
    await expect(session.send({ prompt: "Look.", attachments: [attachment as UserAttachment] })).rejects.toMatchObject({ code });
    expect([events, chat.requests]).toEqual([[], []]);
  });
});

describe("blobs attached to a message", () => {
  test("attached blobs are images or text according to their type", async () => {
    const text = Buffer.from('{"a":1}').toString("base64");
    const { content } = await said(
      [
        { type: "blob", data: png.toString("base64"), mimeType: "image/png" },
        { type: "blob", data: text, mimeType: "application/json", displayName: "a.json" },
        { type: "blob", data: text, mimeType: "application/zip", displayName: "a.zip" },
      ],
      sees,
    );
    expect(content).toEqual([
      {
        type: "text",
        text: 'Look.\n\n<attachment name="a.json">\n{"a":1}\n</attachment>\n\n[a.zip: application/zip, 7 bytes, which cannot be shown to you.]',
      },
      { type: "image", mimeType: "image/png", data: png.toString("base64") },
    ]);
  });
});

describe("binary results of tools", () => {
  const shot = {
    name: "shot",
    handler: () => ({
      textResultForLlm: "Taken.",
      resultType: "success",
      binaryResultsForLlm: [
        { data: png.toString("base64"), mimeType: "image/png", type: "image", description: "the screen" },
        { data: "QUJD", mimeType: "audio/wav", type: "audio" },
      ],
      toolTelemetry: { hidden: "telemetry" },
      sessionLog: "hidden log",
    }),
  };

  test.each([true, false])("binary results are images for a vision model and notes for others (vision: %s)", async (vision) => {
    const chat = fakeChat({ calls: [{ id: "c1", name: "shot" }] }, "Done.");
    const session = openSession(createTestEnvironment(), { tools: [shot], chatModel: chat, modelCapabilities: { supports: { vision } } });
    await session.sendAndWait("Go.");
    const result = chat.requests[1]?.messages.at(-1);
    const audio = "[audio/wav, 3 bytes, which cannot be shown to you.]";
    if (vision)
      expect(result).toEqual({
        role: "tool",
        toolCallId: "c1",
        content: `Taken.\n${audio}`,
        images: [{ type: "image", mimeType: "image/png", data: png.toString("base64") }],
      });
    else
      expect(result).toEqual({
        role: "tool",
        toolCallId: "c1",
        content: `Taken.\n${audio}\n[image/png, ${png.length} bytes, which cannot be shown to you.]`,
      });
    expect(JSON.stringify(chat.requests)).not.toContain("hidden");
  });

  test.each([
    ["gpt-4o-mini", true],
    ["claude-sonnet-4.5", true],
    ["qwen2.5-vl-7b", true],
    ["gpt-3.5-turbo", false],
    ["llama-3.1-8b", false],
  ])("the model's name indicates vision if nothing else does: %s", async (id, expected) => {
    const chat = { ...fakeChat({ calls: [{ id: "c1", name: "shot" }] }, "Done."), id };
    const session = openSession(createTestEnvironment(), { tools: [shot], chatModel: chat });
    await session.sendAndWait("Go.");
    expect("images" in (chat.requests[1]?.messages.at(-1) ?? {})).toBe(expected);
  });
});
