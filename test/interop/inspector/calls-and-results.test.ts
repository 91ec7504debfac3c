import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { scriptedModel } from "../../../src/models/scripted-model.ts";
import { serveExport } from "../../../src/servers/inspector/exported-session.ts";
import { emptyFolder } from "../../io/temp-folder.ts";
import { skillMd } from "../../skills/kit.ts";
import { builtPage, echoTool, hasBrowser, launchBrowser, openPage, openShown } from "./browser-kit.ts";

/** A tool whose handler is a JavaScript function. */
const toolOf = (name: string, handler: string, more: object = {}): string =>
  `import { defineTool } from "skillhost";\nexport default defineTool("${name}", { ...${JSON.stringify({
    description: `Makes a ${name}.`,
    skipPermission: true,
    ...more,
  })}, handler: ${handler} });\n`;

const redDot = "iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACNbyblAAAAHElEQVQI12P4//8/w38GIAXDIBKE0DHxgljNBAAO9TXL0Y4OHwAAAABJRU5ErkJggg==";
const silence = "UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA=";
const drawing = Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" onload="window.attacked=1"/>').toString("base64");

async function callTool(page: Page, name: string): Promise<void> {
  await page.getByRole("button", { name: `Call ${name}`, exact: true }).click();
}

describe.skipIf(!hasBrowser)("the page in a browser (calls and results)", () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launchBrowser();
  });
  afterAll(() => browser?.close());

  test("a result is shown as text, data, images, audio and resources, and a drawing that could run scripts as data", async () => {
    const content = [
      { type: "text", text: "Look:" },
      { type: "image", data: redDot, mimeType: "image/png" },
      { type: "audio", data: silence, mimeType: "audio/wav" },
      { type: "image", data: drawing, mimeType: "image/svg+xml" },
      { type: "resource", resource: { uri: "note://one", mimeType: "text/plain", text: "A note." } },
      { type: "resource_link", uri: "note://two", name: "Another note" },
    ];
    const { page, show, complaints } = await openShown(browser, {
      "skills/a/SKILL.md": skillMd("a"),
      "skills/a/tools/mixed.ts": toolOf("mixed", `() => (${JSON.stringify({ content, structuredContent: { answer: 42 } })})`),
    });
    await show("skills", "tool", "skill/a/mixed");
    await callTool(page, "mixed");
    await page.getByRole("group", { name: "Structured result" }).getByText('"answer": 42').waitFor();
    const image = page.getByRole("img", { name: "Content 2, image" });
    await expect.poll(() => image.evaluate((element) => (element as unknown as { naturalWidth: number }).naturalWidth)).toBe(5);
    await page.locator('audio[aria-label="Content 3, audio"]').waitFor();
    await page.getByRole("group", { name: "Content 4, image" }).getByText("image/svg+xml").waitFor();
    await page.getByRole("group", { name: "Content 5, resource" }).getByText("A note.").waitFor();
    await page.getByRole("group", { name: "Content 6, resource_link" }).getByText("Another note").waitFor();
    expect(await page.evaluate("window.attacked")).toBeUndefined();
    expect(complaints).toEqual([]);
  });

  test("a running call shows its progress and its log, and can be cancelled", async () => {
    const { page, show } = await openShown(browser, {
      "skills/a/SKILL.md": skillMd("a"),
      "skills/a/tools/slow.ts": toolOf(
        "slow",
        `(_args, { signal }, { progress }) => {
          progress({ message: "half", progress: 1, total: 2 });
          progress({ level: "info", message: "a line of the log" });
          return new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
        }`,
      ),
    });
    await show("skills", "tool", "skill/a/slow");
    await callTool(page, "slow");
    await page.getByText("half").waitFor();
    expect(await page.getByRole("progressbar", { name: "Progress" }).getAttribute("value")).toBe("1");
    await page.getByRole("group", { name: "Log of the call" }).getByText("a line of the log").waitFor();
    await page.getByRole("button", { name: "Cancel", exact: true }).click();
    await page.getByText("cancelled", { exact: true }).first().waitFor();
    expect(await page.getByRole("button", { name: "Cancel", exact: true }).count()).toBe(0);
  });

  test("a form that a tool asks for is filled in the page", async () => {
    const { page, show } = await openShown(browser, {
      "skills/a/SKILL.md": skillMd("a"),
      "skills/a/tools/book.ts": toolOf(
        "book",
        `async (_args, _invocation, { ask }) => {
          const requestedSchema = { type: "object", properties: { seats: { type: "integer", minimum: 1 } }, required: ["seats"] };
          return JSON.stringify(await ask("elicitation", { message: "How many seats?", requestedSchema }));
        }`,
      ),
    });
    await show("skills", "tool", "skill/a/book");
    await callTool(page, "book");
    const question = page.getByRole("region", { name: /^A server or tool asks/ });
    await question.getByText("How many seats?").waitFor();
    await question.getByLabel(/^seats/).fill("3");
    await question.getByRole("button", { name: "Accept" }).click();
    await page.getByRole("group", { name: "Text of the result" }).getByText('{"action":"accept","content":{"seats":3}}').waitFor();
    expect(await question.count()).toBe(0);
  });

  test("in a read-only inspector, nothing can be called or changed", async () => {
    const { page, show } = await openShown(
      browser,
      { "skills/a/SKILL.md": skillMd("a"), "skills/a/tools/echo.ts": echoTool("echo", { type: "object" }) },
      { inspector: { readOnly: true } },
    );
    await page.getByText("read only", { exact: true }).waitFor();
    await show("skills", "tool", "skill/a/echo");
    expect(await page.getByRole("button", { name: "Call echo", exact: true }).isDisabled()).toBe(true);
    expect(await page.getByRole("button", { name: "Pin", exact: true }).isDisabled()).toBe(true);
    await show("sessions", "new");
    expect(await page.getByRole("button", { name: "Open", exact: true }).isDisabled()).toBe(true);
    await page.keyboard.press("Control+k");
    await page.keyboard.type("reload");
    await page.getByText("Nothing has this name.").waitFor();
  });

  test("the export of a session is shown without its host", async () => {
    const { host, page: ofHost, show } = await openShown(browser, { "skills/a/SKILL.md": skillMd("a") });
    const session = await host.createSession({ chatModel: scriptedModel("It is noon.") });
    await session.sendAndWait("What time is it?");
    await show("sessions", session.id);
    const downloading = ofHost.waitForEvent("download");
    await ofHost.getByRole("button", { name: "Export", exact: true }).click();
    const file = join(emptyFolder(), "talk.jsonl");
    await (await downloading).saveAs(file);
    const inspector = await serveExport(file, { pageFolder: builtPage() });
    onTestFinished(() => inspector[Symbol.asyncDispose]());
    const { page, complaints } = await openPage(browser);
    await page.goto(inspector.url);
    await page.getByText("export", { exact: true }).waitFor();
    await page.getByRole("link", { name: /^Sessions/ }).click();
    await page.getByRole("list", { name: "Sessions" }).getByRole("link").first().click();
    await page.getByRole("group", { name: "assistant.message" }).getByText("It is noon.").waitFor();
    expect(await page.getByRole("textbox", { name: "Message" }).count()).toBe(0);
    // What needs a host is not offered.
    for (const name of ["What the model gets", "Open a session…"]) expect(await page.getByRole("link", { name }).count()).toBe(0);
    expect(complaints).toEqual([]);
  });
});
