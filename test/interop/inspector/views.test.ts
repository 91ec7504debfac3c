import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openFileLog } from "../../../src/io/log/append-log.ts";
import { scriptedModel } from "../../../src/models/scripted-model.ts";
import type { SqlTodos } from "../../../src/session/database/sql-database.ts";
import { LocalFiles } from "../../../src/session/workspace/workspace-files.ts";
import { approveAll, type ToolContext } from "../../../src/tools/tool.ts";
import { serverNamed } from "../../host/servers-kit.ts";
import { emptyFolder } from "../../io/temp-folder.ts";
import { todoDatabase } from "../../servers/inspector/todo-database.ts";
import { put, skillMd } from "../../skills/kit.ts";
import { axeViolations, echoTool, hasBrowser, launchBrowser, openShown } from "./browser-kit.ts";

const city = { type: "object", properties: { city: { type: "string", description: "Where." } }, required: ["city"] };
const files = {
  "skills/weather/SKILL.md": skillMd("weather"),
  "skills/weather/prompts/tone.md": "Speak of the weather.",
  "skills/weather/tools/forecast.ts": echoTool("forecast", city, { annotations: { readOnlyHint: true } }),
  "skills/weather/tools/ask.ts": `import { defineTool } from "skillhost";\nexport default defineTool("ask", { description: "Asks first.", handler: () => "allowed" });\n`,
  "skills/other/SKILL.md": skillMd("other"),
  "skills/other/tools/forecast.ts": echoTool("forecast", city),
};

describe.skipIf(!hasBrowser)("the page in a browser (its views)", () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launchBrowser();
  });
  afterAll(() => browser?.close());

  test("the token leaves the address, and a deep link opens its view after a reload", async () => {
    const { page, show, inspector } = await openShown(browser, files);
    expect(page.url()).toBe(`http://127.0.0.1:${inspector.port}/#/skills`);
    await show("skills", "tool", "skill/weather/ask");
    await page.reload();
    await page.getByRole("heading", { name: "ask", level: 2 }).waitFor();
    await page.goto("about:blank");
    await page.goto(`${inspector.url}&view=/problems`);
    await page.getByRole("heading", { name: "Problems", level: 2 }).waitFor();
    expect(page.url()).toBe(`http://127.0.0.1:${inspector.port}/#/problems`);
  });

  test("a pinned call is made again when its tool is saved, with the difference of its result", async () => {
    const { page, show, host, folder, complaints } = await openShown(browser, files);
    await show("skills", "tool", "skill/weather/forecast");
    await page.getByLabel(/^city/).fill("Oslo");
    await page.getByRole("button", { name: "Pin", exact: true }).click();
    await page.getByText("The call is pinned.").waitFor();
    await page.getByRole("link", { name: /^Pinned calls/ }).click();
    await page.getByText("first", { exact: true }).waitFor();
    put(
      `${folder}/skills/weather/tools/forecast.ts`,
      files["skills/weather/tools/forecast.ts"].replace("JSON.stringify(args)", "`${JSON.stringify(args)} or so`"),
    );
    await host.reload();
    await page.getByText("changed", { exact: true }).waitFor();
    expect(await page.getByRole("group", { name: "What differs in the result" }).innerText()).toContain("or so");
    await page.getByRole("button", { name: /^Remove / }).click();
    await page.getByText(/^None\. Call a tool/).waitFor();
    expect(complaints).toEqual([]);
  });

  test("a saved tool shows its new definition, its loads and the chain of its name", async () => {
    const { page, show, host, folder, complaints } = await openShown(browser, files);
    await show("skills", "tool", "skill/other/forecast");
    await page.getByRole("heading", { name: "All tools with this name" }).waitFor();
    put(`${folder}/skills/other/tools/forecast.ts`, echoTool("forecast", city, { title: "Other forecast" }));
    await host.reload();
    await page.getByRole("heading", { name: "Other forecast" }).waitFor();
    await show("skills", "skill", `${folder}/skills/other`);
    await page.getByText("Updated. ~forecast").waitFor();
    put(`${folder}/skills/other/tools/forecast.ts`, "export default defineTool(;\n");
    await host.reload();
    await page.getByText("last good version", { exact: true }).waitFor();
    await page.getByRole("link", { name: /^Problems/ }).click();
    await page.getByRole("group", { name: /^Lines around the problem/ }).waitFor();
    expect(await page.getByRole("link", { name: /forecast\.ts:1:/ }).getAttribute("href")).toMatch(
      /^vscode:\/\/file\/.*forecast\.ts:1:\d+$/,
    );
    expect(complaints).toEqual([]);
  });

  test("arguments that do not fit are shown at their field and in the JSON view, which stay in step", async () => {
    const { page, show } = await openShown(browser, files);
    await show("skills", "tool", "skill/weather/forecast");
    await page.getByRole("button", { name: "Call forecast", exact: true }).click();
    await page
      .getByText(/city is required|required/)
      .first()
      .waitFor();
    await page.getByLabel(/^city/).fill("Oslo");
    await page.getByRole("button", { name: "JSON", exact: true }).click();
    const editor = page.getByRole("textbox", { name: "Arguments as JSON" });
    await editor.waitFor();
    expect(await editor.innerText()).toContain('"city": "Oslo"');
    await editor.fill('{"city": 5}');
    await page.getByRole("button", { name: "Call forecast", exact: true }).click();
    await page.getByRole("button", { name: "Call it anyway" }).waitFor();
    await editor.fill('{"name": "forecast", "arguments": {"city": "Rome"}}');
    await page.getByRole("button", { name: "Form", exact: true }).click();
    expect(await page.getByLabel(/^city/).inputValue()).toBe("Rome");
    await page.getByRole("button", { name: "Call forecast", exact: true }).click();
    await page.getByText("completed", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Repeat" }).first().click();
    await expect.poll(() => page.getByRole("button", { name: "Repeat" }).count()).toBe(2);
  });

  test("a question is answered in the page", async () => {
    const { page, show } = await openShown(browser, files);
    await show("skills", "tool", "skill/weather/ask");
    await page.getByRole("button", { name: "Call ask", exact: true }).click();
    await page.getByRole("button", { name: "Allow once" }).click();
    await page.getByRole("group", { name: "Text of the result" }).getByText("allowed").waitFor();
    await page.getByRole("button", { name: "Call ask", exact: true }).click();
    await page.getByRole("button", { name: "Deny" }).click();
    await page.locator(".result .badge", { hasText: /rejected|denied/ }).waitFor();
  });

  test("a session can be opened, talked to, followed and exported", async () => {
    const { page, show, complaints } = await openShown(browser, files);
    await show("sessions", "new");
    await page
      .getByLabel(/^Answers, as JSON/)
      .fill('[{"text": "Let me look.", "calls": [{"name": "forecast", "args": {"city": "Rome"}}]}, "It is sunny."]');
    await page.getByRole("button", { name: "Open", exact: true }).click();
    await page.getByLabel("Message").fill("How is Rome?");
    await page.getByLabel("Message").press("Enter");
    await page.getByRole("group", { name: "assistant.message" }).getByText("It is sunny.").waitFor();
    await page.getByRole("link", { name: "Time line" }).click();
    await page
      .getByRole("list", { name: /^Time line of/ })
      .getByText("forecast")
      .waitFor();
    await page.getByRole("link", { name: "What the model gets" }).click();
    await page.getByRole("button", { name: /^Show what the model got/ }).click();
    await page.getByRole("group", { name: "System message" }).waitFor();
    expect(await page.getByRole("group", { name: "Messages" }).innerText()).toContain("How is Rome?");
    const downloading = page.waitForEvent("download");
    await page.getByRole("button", { name: "Export", exact: true }).click();
    expect((await downloading).suggestedFilename()).toMatch(/\.jsonl$/);
    expect(complaints).toEqual([]);
  });

  test("a message is taken back after a confirmation, with the files that tools changed, and a session is copied", async () => {
    const { page, show, host, folder, complaints } = await openShown(browser, files, { host: { sessionsDirectory: emptyFolder() } });
    const file = join(folder, "note.txt");
    put(file, "old\n");
    const session = await host.createSession({
      chatModel: scriptedModel("One.", { calls: [{ name: "write" }] }, "Two.", "Three."),
      onPermissionRequest: approveAll,
      fileChangeTracking: true,
      tools: [
        {
          name: "write",
          handler: (_args: unknown, _: unknown, context: ToolContext) => {
            put(file, "new\n");
            context.fileChanged(file, "new\n", { before: "old\n" });
            return "written";
          },
        },
      ],
    });
    for (const prompt of ["First?", "Second?", "Third?"]) await session.sendAndWait(prompt);
    await session.workspace.addCheckpoint("What was done", "We wrote a note.");
    await show("sessions", session.id, "history");
    const messages = page.getByRole("list", { name: "Messages" });
    await messages.getByText("Third?").waitFor();
    expect(await axeViolations(page)).toEqual([]);
    await page.getByRole("button", { name: "Show checkpoint 1" }).click();
    await page.getByRole("group", { name: "Checkpoint 1" }).getByText("We wrote a note.").waitFor();
    await page.getByRole("button", { name: "Copy what is before message 3" }).click();
    await page.getByText(/Stored as [\w-]+\./).waitFor();
    const [copy] = (await host.listSessions()).filter(({ forkedFrom }) => forkedFrom === session.id);
    await using copied = await host.resumeSession(copy!.sessionId, { chatModel: scriptedModel() });
    expect((await copied.conversation.rewindPoints()).map(({ prompt }) => prompt)).toEqual(["First?", "Second?"]);

    await page.getByRole("button", { name: "Take back to here: message 2" }).click();
    const confirmation = page.getByRole("region", { name: "Take back message 2" });
    await confirmation.getByText(/^This message and the 1 after it/).waitFor();
    await confirmation.getByText(file).waitFor();
    expect(await axeViolations(page)).toEqual([]);
    // The button that has the focus takes nothing back.
    await page.keyboard.press("Enter");
    await confirmation.waitFor({ state: "detached" });
    expect(await messages.getByRole("listitem").count()).toBe(3);
    await page.getByRole("button", { name: "Take back to here: message 2" }).click();
    await confirmation.getByRole("checkbox", { name: "Restore the file that tools changed" }).check();
    await confirmation.getByRole("button", { name: "Take back", exact: true }).click();
    await page.getByText(/^Message 2 and what followed it are taken back\. Restored: /).waitFor();
    await expect.poll(() => messages.getByRole("listitem").count()).toBe(1);
    expect(readFileSync(file, "utf8")).toBe("old\n");
    await page.getByRole("link", { name: "Conversation" }).click();
    await page.getByRole("group", { name: "assistant.message" }).getByText("One.").waitFor();
    expect(await page.getByText("Second?").count()).toBe(0);
    await page.getByRole("link", { name: "History" }).click();
    // The page has read the history: a session that ends meanwhile refuses that.
    await messages.getByText("First?").waitFor();
    await session.disconnect();
    await page.getByText(/^The session has ended/).waitFor();
    expect(complaints).toEqual([]);
  });

  test("the todos of a session are shown, and again when the model has changed them", async () => {
    let todos: SqlTodos = {
      rows: [
        { id: "a", title: "Read the log", description: "All of it.", status: "in_progress" },
        { id: "b", title: "Fix the fault", status: "blocked" },
      ],
      dependencies: [{ todoId: "b", dependsOn: "a" }],
    };
    const { page, show, host, folder, complaints } = await openShown(browser, files);
    const storage = {
      log: openFileLog(join(folder, "events.jsonl"), { onDiagnostic: () => {} }),
      files: new LocalFiles(folder),
      database: todoDatabase(() => todos),
    };
    const session = await host.createSession({ chatModel: scriptedModel(), sessionDatabase: true }, { storage });
    await show("sessions", session.id, "todos");
    const row = page.getByRole("row", { name: /Fix the fault/ });
    await row.getByText("blocked").waitFor();
    expect(await row.getByRole("cell").allInnerTexts()).toEqual(["blocked", "Fix the fault", "a"]);
    await page.getByText("1 in progress, 1 blocked").waitFor();
    await page.getByText("All of it.").waitFor();
    expect(await axeViolations(page)).toEqual([]);
    todos = { rows: [{ id: "a", title: "Read the log", status: "done" }], dependencies: [] };
    await session.callTool("sql", { description: "Changes", query: "UPDATE todos SET status = 'done'" });
    await page.getByText("1 done", { exact: true }).waitFor();
    expect(await row.count()).toBe(0);
    expect(complaints).toEqual([]);
  });

  test("the palette finds everything with the keyboard alone", async () => {
    const { page } = await openShown(browser, files);
    await page.keyboard.press("Control+k");
    await page.getByRole("dialog", { name: "Search" }).waitFor();
    await page.keyboard.type("tool ask");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "ask", level: 2 }).waitFor();
    await page.keyboard.press("Control+k");
    await page.getByRole("dialog", { name: "Search" }).waitFor();
    await page.keyboard.press("Escape");
    await expect.poll(() => page.getByRole("dialog").count()).toBe(0);
  });

  test("a host that dies and returns is shown, and so is its state when it is back", async () => {
    const shown = await openShown(browser, files, { inspector: {} });
    const { page, inspector, host } = shown;
    await inspector[Symbol.asyncDispose]();
    await page.getByText("The host does not answer").waitFor();
    const { serveHost } = await import("../../../src/servers/inspector/inspect-host.ts");
    const { builtPage } = await import("./browser-kit.ts");
    await using again = await serveHost(host, { port: inspector.port }, builtPage());
    // The token is another one: the page says so instead of trying forever.
    await page.getByText("The host does not accept this page").waitFor();
    await page.goto(again.url);
    await page.getByText("Connected", { exact: true }).waitFor();
  });

  test.each(["light", "dark"] as const)("no view has a violation that axe finds, %s", async (colorScheme) => {
    const { page, show, host, folder } = await openShown(browser, files, {
      host: { mcpServers: { notes: serverNamed("n") } },
      context: { colorScheme },
    });
    await host.connectServers();
    put(`${folder}/skills/other/tools/broken.ts`, "export default defineTool(;\n");
    await host.reload();
    const chatModel = scriptedModel({ text: "Let me look.", calls: [{ name: "forecast", args: { city: "Rome" } }] }, "Sunny.");
    const session = await host.createSession({ chatModel, onPermissionRequest: approveAll });
    await session.sendAndWait("How is Rome?");
    await session.callTool("notes/echo", { text: "hello" });
    const waiting = await host.createSession({ onPermissionRequest: () => new Promise(() => {}) });
    void waiting.callTool("ask", {});
    await page.getByRole("button", { name: "Allow once" }).waitFor();
    const found: string[] = [];
    const check = async (name: string): Promise<void> => {
      for (const violation of await axeViolations(page)) found.push(`${name}: ${violation}`);
    };
    await show("skills", "skill", `${folder}/skills/other`);
    await page.getByRole("heading", { name: "other", level: 2 }).waitFor();
    await check("skill");
    await show("skills", "tool", "skill/weather/forecast");
    await page.getByLabel(/^city/).fill("Oslo");
    await page.getByRole("button", { name: "Call forecast", exact: true }).click();
    await page.getByText("completed", { exact: true }).waitFor();
    await check("tool");
    await page.getByRole("button", { name: "JSON", exact: true }).click();
    await page.getByRole("textbox", { name: "Arguments as JSON" }).waitFor();
    await check("JSON view");
    for (const part of ["conversation", "timeline", "events", "model"]) {
      await show("sessions", session.id, part);
      await page.getByRole("heading", { name: "How is Rome?", level: 2 }).waitFor();
      await check(`session, ${part}`);
    }
    await show("sessions", "new");
    await check("new session");
    await show("servers", "notes");
    await page.getByRole("heading", { name: "notes", level: 2 }).waitFor();
    await check("server");
    for (const view of ["calls", "events", "problems", "pins"]) {
      await show(view);
      await page.locator("main h2").waitFor();
      await check(view);
    }
    await page.keyboard.press("Control+k");
    await page.getByRole("dialog").waitFor();
    await check("palette");
    expect(found).toEqual([]);
  });
});
