import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, test } from "vitest";
import { TurnProgress } from "../../../plugins/language-server/agent-turn.ts";
import { Documents } from "../../../plugins/language-server/documents.ts";
import { toSettings } from "../../../plugins/language-server/options.ts";

// biome-ignore lint/suspicious/noExplicitAny: what goes over the wire
type Json = any;

describe("documents", () => {
  test("are opened once with the language of their name, then replaced as a whole", () => {
    const reported: Json[] = [];
    const documents = new Documents("/work", (method, params) => void reported.push([method, params]));
    documents.sync("src/a.ts", "one");
    documents.sync("/work/src/a.ts", "two");
    documents.sync("untitled:1", "note", "markdown");
    documents.close("untitled:1");
    documents.close("untitled:1");
    const uri = "file:///work/src/a.ts";
    expect(reported).toEqual([
      ["textDocument/didOpen", { textDocument: { uri, languageId: "typescript", version: 1, text: "one" } }],
      ["textDocument/didChange", { textDocument: { uri, version: 2 }, contentChanges: [{ text: "two" }] }],
      ["textDocument/didOpen", { textDocument: { uri: "untitled:1", languageId: "markdown", version: 1, text: "note" } }],
      ["textDocument/didClose", { textDocument: { uri: "untitled:1" } }],
    ]);
  });

  test("follow the disk if they show a file, and stay as they are while a user edits them", async () => {
    const folder = mkdtempSync(join(tmpdir(), "skillhost-documents-"));
    const reported: string[] = [];
    const documents = new Documents(folder, (method, params: Json) => {
      reported.push(`${method} ${params.contentChanges?.[0].text ?? params.textDocument.text ?? ""}`);
    });
    writeFileSync(join(folder, "a.txt"), "on disk");
    documents.sync("a.txt", "written");
    documents.open(pathToFileURL(join(folder, "b.txt")).href, "plaintext", "typed");
    await documents.refresh();
    await documents.refresh();
    rmSync(folder, { recursive: true });
    await documents.refresh();
    expect(reported).toEqual([
      "textDocument/didOpen written",
      "textDocument/didOpen typed",
      "textDocument/didChange on disk",
      "textDocument/didClose ",
    ]);
  });

  test("are opened again on a new server", () => {
    const documents = new Documents("/work", () => {});
    documents.sync("a.ts", "one");
    documents.sync("a.ts", "two");
    const reported: Json[] = [];
    documents.moveTo((method, params) => void reported.push([method, params]));
    expect(reported).toMatchObject([["textDocument/didOpen", { textDocument: { version: 1, text: "two" } }]]);
  });
});

describe("the progress of a turn", () => {
  const report = (fields: object): object => ({ kind: "report", turnId: "t", ...fields });
  const hear = (
    ...values: readonly unknown[]
  ): { readonly turn: ReturnType<TurnProgress["finish"]>; readonly texts: readonly string[] } => {
    const texts: string[] = [];
    const progress = new TurnProgress({ onText: (text) => texts.push(text) }, () => {});
    for (const value of values) progress.hear(value);
    return { turn: progress.finish({ conversationId: "c", turnId: "t" }, false), texts };
  };

  test("is read from either of two places, never twice", () => {
    const { turn, texts } = hear(
      report({ reply: "Older servers " }),
      report({ reply: "say it here." }),
      report({ reply: "Once.", editAgentRounds: [{ roundId: 1, reply: "Once." }] }),
      report({
        editAgentRounds: [
          { roundId: 1, reply: " More." },
          { roundId: 2, reply: "Next." },
        ],
      }),
    );
    expect(turn.text).toBe("Older servers say it here.\n\nOnce. More.\n\nNext.");
    expect(texts.join("")).toBe(turn.text);
  });

  test("has one entry for each call, in whatever order its changes arrive", () => {
    const call = (id: string, status: string, more: object = {}): object =>
      report({ editAgentRounds: [{ roundId: 1, reply: "", toolCalls: [{ id, name: "n", status, ...more }] }] });
    const { turn } = hear(
      call("1", "running", { input: { a: 1 } }),
      call("2", "running"),
      call("2", "error", { error: "no" }),
      call("1", "completed", {
        result: [
          { type: "text", value: "yes" },
          { type: "data", value: {} },
        ],
      }),
      call("3", "strange"),
    );
    expect(turn.calls).toMatchObject([
      { id: "1", status: "completed", input: { a: 1 }, result: "yes", turnId: "t" },
      { id: "2", status: "error", error: "no" },
      { id: "3", status: "running" },
    ]);
  });

  test("ends with its last report and ignores invalid ones", () => {
    const error = { message: "Quota Exceeded", code: 402, retryAfter: 7 };
    const { turn } = hear(
      null,
      "x",
      { kind: "begin" },
      report({ editAgentRounds: [null, { reply: 3, toolCalls: [1] }] }),
      { kind: "end", error },
      report({ reply: "late" }),
    );
    expect(turn).toEqual({ outcome: "failed", text: "", calls: [], error, conversationId: "c", turnId: "t" });
    expect(hear({ kind: "end", error: {} }).turn.error?.message).toBe("The turn failed without giving a reason.");
    expect(hear({ kind: "end", cancellationReason: "CancelledByUser", error }).turn).not.toHaveProperty("error");
  });
});

test("the server asks about every call unless its own tools are approved", () => {
  const agentOf = (settings: Json): unknown => settings.github.copilot.agent;
  expect(agentOf(toSettings({}))).toEqual({
    editorHandlesAllConfirmation: true,
    toolConfirmAutoApprove: false,
    autoApproveYoloMode: false,
  });
  expect(agentOf(toSettings({ autoApproval: true }))).toEqual({
    editorHandlesAllConfirmation: false,
    toolConfirmAutoApprove: true,
    autoApproveYoloMode: true,
  });
  expect(toSettings({})).toMatchObject({ telemetry: { telemetryLevel: "off" } });
});
