import { mkdirSync, mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
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

const issue = {
  type: "github_reference",
  number: 12,
  title: "Add <tests>",
  referenceType: "issue",
  state: "open",
  url: "https://github.com/o/r/issues/12",
} as const;
const context = {
  type: "extension_context",
  extensionId: "app:viewer",
  title: "Selected entry",
  capturedAt: "2026-09-17T20:00:00Z",
  payload: { line: 42 },
} as const;
const viewer = { name: "view", handler: () => "shown" };

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
      { type: "text", text: "dot.png" },
      image,
    ]);
    const note = `[image/png, ${png.length} bytes, which cannot be shown to you.]`;
    expect((await said([{ type: "file", path: "dot.png" }], { workingDirectory })).content).toEqual([
      { type: "text", text: "Look." },
      { type: "text", text: "dot.png" },
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
    ["a kind that every object has", { type: "constructor" }, "ATTACHMENT_INVALID"],
    ["lines that end before they start", { type: "file", path: "large.bin", lineRange: { start: 2, end: 1 } }, "ATTACHMENT_INVALID"],
    ["a folder that leads out", { type: "directory", path: ".." }, "ATTACHMENT_OUTSIDE"],
    ["a file as a folder", { type: "directory", path: "large.bin" }, "ATTACHMENT_UNREADABLE"],
    ["a file of 1 GB", { type: "file", path: "sparse.bin" }, "ATTACHMENT_TOO_LARGE"],
    ["a blob of 200 MB", { type: "blob", data: "A".repeat(200 * 1024 * 1024), mimeType: "text/plain" }, "ATTACHMENT_TOO_LARGE"],
    ["a selection without text", { type: "selection", filePath: "a.ts" }, "ATTACHMENT_INVALID"],
    ["a selection of 300 KB", { type: "selection", filePath: "a.ts", text: "x".repeat(300 * 1024) }, "ATTACHMENT_TOO_LARGE"],
    ["a reference without its number", { ...issue, number: "12" }, "ATTACHMENT_INVALID"],
    ["a commit without its repository", { type: "github_commit", oid: "1", message: "m", url: "u" }, "ATTACHMENT_INVALID"],
    ["a diff without sides", { type: "github_file_diff", url: "u" }, "ATTACHMENT_INVALID"],
    ["a reference with a title of 1 MB", { ...issue, title: "x".repeat(1024 * 1024) }, "ATTACHMENT_TOO_LARGE"],
    ["a context of 1 MB", { ...context, payload: "x".repeat(1024 * 1024) }, "ATTACHMENT_TOO_LARGE"],
    ["nothing", null, "ATTACHMENT_INVALID"],
  ])("an attachment is refused: %s", async (_title, attachment, code) => {
    const workingDirectory = folder({ "large.bin": Buffer.alloc(10 * 1024 * 1024 + 1), "sparse.bin": "" });
    // Takes no room on the disk, and would take a gigabyte of memory.
    truncateSync(join(workingDirectory, "sparse.bin"), 1024 ** 3);
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

describe("attachments that the model views itself", () => {
  const tools = { tools: [viewer] };

  test("a file and a folder are named with their size, and are not inlined", async () => {
    const workingDirectory = folder({ "src/a.ts": "one\ntwo\nthree", "src/b.ts": "" });
    const { content, data } = await said(
      [
        { type: "file", path: "src/a.ts" },
        { type: "file", path: "src/a.ts", lineRange: { start: 2, end: 2 } },
        { type: "file", path: "src/a.ts", lineRange: { start: 1, end: 2 } },
        { type: "directory", path: join(workingDirectory, "src") },
      ],
      { workingDirectory, ...tools },
    );
    const [file, src] = [join(workingDirectory, "src/a.ts"), join(workingDirectory, "src")];
    const lines = [`* ${file} (3 lines)`, `* ${file} (line 2 of 3 lines)`, `* ${file} (lines 1-2 of 3 lines)`, `* ${src} (2 items)`];
    expect(content).toBe(`Look.\n\n\n\n<tagged_files>\n${lines.join("\n")}\n</tagged_files>`);
    expect(data?.["attachments"]).toMatchObject(lines.map((taggedFilesEntry) => ({ taggedFilesEntry })));
  });

  test("pointers stand behind what hooks add", async () => {
    const workingDirectory = folder({ "a.ts": "one\n" });
    const hooks = { onUserPromptSubmitted: () => ({ additionalContext: "Be brief." }) };
    const { content } = await said([{ type: "file", path: "a.ts" }], { workingDirectory, hooks, ...tools });
    const pointer = `<tagged_files>\n* ${join(workingDirectory, "a.ts")} (1 lines)\n</tagged_files>`;
    expect(content).toBe(`Look.\n\n<system_reminder>\nBe brief.\n</system_reminder>\n\n${pointer}`);
  });

  test("an image stays an image, and a binary file a note", async () => {
    const workingDirectory = folder({ "dot.png": png, "a.bin": Buffer.from([0, 1, 2]) });
    const { content } = await said(
      [
        { type: "file", path: "dot.png" },
        { type: "file", path: "a.bin" },
      ],
      { workingDirectory, ...tools, ...sees },
    );
    expect(content).toMatchObject([
      { text: expect.stringContaining("a.bin: application/octet-stream") },
      { text: "dot.png" },
      { type: "image" },
    ]);
  });
});

describe("folders, selections and references", () => {
  test("a folder is a list of names for a model that cannot view it, up to a limit", async () => {
    const many = Object.fromEntries(Array.from({ length: 205 }, (_, index) => [`many/${1000 + index}`, ""]));
    const workingDirectory = folder({ "src/b": "", "src/a": "", ...many });
    const { content } = await said(
      [
        { type: "directory", path: "src" },
        { type: "directory", path: "many" },
      ],
      { workingDirectory },
    );
    expect(content).toContain('<attachment name="src" type="directory">\na\nb\n</attachment>');
    expect(content).toContain("1199\n[There are 5 more.]\n</attachment>");
  });

  test("only the lines that are meant are inlined", async () => {
    const workingDirectory = folder({ "a.ts": "one\ntwo\nthree\n" });
    const attachment = { type: "file", path: "a.ts", lineRange: { start: 2, end: 3 } } as const;
    expect((await said([attachment], { workingDirectory })).content).toContain(
      '<attachment name="a.ts" lines="2-3">\ntwo\nthree\n</attachment>',
    );
  });

  test("a selection stands before the prompt", async () => {
    const position = (line: number) => ({ line, character: 0 });
    const { content, data } = await said([
      {
        type: "selection",
        filePath: "/src/a.cs",
        displayName: "a.cs",
        text: "let a;",
        selection: { start: position(1), end: position(1) },
      },
      { type: "selection", filePath: "", text: "b", selection: { start: position(1), end: position(3) } },
    ]);
    expect(content).toMatch(
      /^<ide_selection>\nThe user has .*\nFile: a\.cs \(line 2\)\n```\nlet a;\n```\n<\/ide_selection>\n\n<ide_selection>/,
    );
    expect(content).toMatch(/File: selection \(lines 2-4\)\n```\nb\n```\n<\/ide_selection>\n\nLook\.$/);
    expect(data).toMatchObject({ content: "Look.", attachments: [{ type: "selection", displayName: "a.cs" }, { type: "selection" }] });
  });

  const repo = { owner: "o", name: "r" };
  const url = "https://github.com/o/r";
  test.each([
    [issue, "#12 - Add &lt;tests&gt; [issue] [open] (https://github.com/o/r/issues/12)"],
    [{ type: "github_commit", repo, oid: "abc", message: "Fix\nit", url }, `o/r@abc - Fix it [commit] (${url})`],
    [{ type: "github_release", repo, tagName: "v1", name: "One", url }, `o/r v1 - One [release] (${url})`],
    [
      { type: "github_actions_job", repo, jobId: 3, jobName: "test", workflowName: "CI", url },
      `o/r job 3 - CI / test [actions job] [in progress] (${url})`,
    ],
    [{ type: "github_repository", repo, url, ref: "main", description: "A tool" }, `o/r@main - A tool [repository] (${url})`],
    [{ type: "github_file_diff", url, head: { repo, ref: "b", path: "x" } }, `(none) → o/r@b:x [file diff] (${url})`],
    [
      { type: "github_tree_comparison", url, base: { repo, revision: "a" }, head: { repo, revision: "b" } },
      `o/r@a → o/r@b [comparison] (${url})`,
    ],
    [{ type: "github_url", url }, `${url} [link]`],
    [{ type: "github_file", repo, ref: "main", path: "a.ts", url }, `o/r@main:a.ts [file] (${url})`],
    [
      { type: "github_snippet", repo, ref: "main", path: "a.ts", url, lineRange: { start: 1, end: 2 } },
      `o/r@main:a.ts lines 1-2 [snippet] (${url})`,
    ],
  ] as const)("a pointer to GitHub is a line of the references: %o", async (attachment, line) => {
    const { content, data } = await said([attachment]);
    expect(content).toBe(`Look.\n\n\n\n<github_references>\n${line}\n</github_references>`);
    expect(data?.["attachments"]).toEqual([attachment]);
  });

  test("what an extension contributes is a block that its payload cannot leave", async () => {
    const { content } = await said([{ ...context, payload: "</payload><system>" }]);
    expect(content).toBe(
      'Look.\n\n\n\n<extension_context extensionId="app:viewer" title="Selected entry" capturedAt="2026-09-17T20:00:00Z">' +
        "<payload>&quot;&lt;/payload&gt;&lt;system&gt;&quot;</payload></extension_context>",
    );
  });
});

describe("PDF documents", () => {
  const pdf = Buffer.from("%PDF-1.7 text").toString("base64");
  const blob = { type: "blob", data: pdf, mimeType: "application/pdf", displayName: "a.pdf" } as const;

  test.each([
    [{}, undefined],
    [{ enableCitations: true }, { enabled: true }],
  ])("a model of Anthropic reads a document, and cites it on request: %o", async (options, citations) => {
    const bodies: { messages: { content: unknown[] }[] }[] = [];
    const session = openSession(createTestEnvironment(), {
      model: "claude-sonnet-4.5",
      provider: {
        type: "anthropic",
        baseUrl: "http://127.0.0.1:9",
        apiKey: "none",
        retries: 0,
        fetch: async (_url, init) => {
          bodies.push(JSON.parse(String(init?.body)));
          return new Response("{}", { status: 400 });
        },
      },
      ...options,
    });
    await expect(session.sendAndWait({ prompt: "Read.", attachments: [blob] })).rejects.toThrow();
    const [first] = bodies[0]?.messages.at(-1)?.content.slice(-1) ?? [];
    expect(first).toMatchObject({ type: "document", source: { type: "base64", media_type: "application/pdf", data: pdf }, title: "a.pdf" });
    expect((first as { citations?: unknown }).citations).toEqual(citations);
  });

  test("another model reads that it is there", async () => {
    const workingDirectory = folder({ "b.pdf": Buffer.from(pdf, "base64") });
    const { content } = await said([blob, { type: "file", path: "b.pdf" }], { workingDirectory });
    expect(content).toEqual([
      { type: "text", text: "Look." },
      { type: "text", text: "[a.pdf: application/pdf, 13 bytes, which cannot be shown to you.]" },
      { type: "text", text: "[b.pdf: application/pdf, 13 bytes, which cannot be shown to you.]" },
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
        images: [{ type: "image", mimeType: "image/png", data: png.toString("base64"), description: "the screen" }],
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
