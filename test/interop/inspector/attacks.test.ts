import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { scriptedModel } from "../../../src/models/scripted-model.ts";
import { skillMd } from "../../skills/kit.ts";
import { echoTool, hasBrowser, launchBrowser, openPage, openShown } from "./browser-kit.ts";

const counted = `import { defineTool } from "skillhost";
export default defineTool("counted", { description: "Counts.", skipPermission: true, handler: () => { globalThis.callsOfCounted = (globalThis.callsOfCounted ?? 0) + 1; return "x"; } });
`;
const callsOfCounted = (): number => (globalThis as { callsOfCounted?: number }).callsOfCounted ?? 0;

/** A page of another origin, as a server on another port of this machine. */
async function serveStranger(): Promise<string> {
  const server = createServer((_request, response) =>
    response.setHeader("Content-Type", "text/html").end("<!doctype html><title>stranger</title>"),
  );
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

describe.skipIf(!hasBrowser)("the page in a browser (attacks)", () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launchBrowser();
  });
  afterAll(() => browser?.close());

  test("a page of another origin in the same browser can neither read nor call", async () => {
    const { page, inspector, complaints } = await openShown(browser, {
      "skills/a/SKILL.md": skillMd("a"),
      "skills/a/tools/counted.ts": counted,
    });
    const stranger = await page.context().newPage();
    await stranger.goto(await serveStranger());
    const results = await stranger.evaluate(async (base: string) => {
      type Outcome = string;
      const outcomes: Outcome[] = [];
      const attempt = async (name: string, run: () => Promise<unknown>): Promise<void> => {
        outcomes.push(`${name}: ${await run().then(String, () => "refused")}`);
      };
      const body = JSON.stringify({ method: "call", params: { tool: "counted", arguments: {} } });
      // biome-ignore lint/suspicious/noExplicitAny: the types of a browser are not those of this project
      const g = globalThis as any;
      await attempt("read with the cookie", async () => (await fetch(`${base}feed?poll=1`, { credentials: "include" })).status);
      await attempt("read without CORS", async () => (await fetch(`${base}feed?poll=1`, { credentials: "include", mode: "no-cors" })).type);
      await attempt(
        "call",
        async () =>
          (await fetch(`${base}request`, { method: "POST", credentials: "include", headers: { "Content-Type": "application/json" }, body }))
            .status,
      );
      await attempt("call as a form", async () => {
        await fetch(`${base}request`, { method: "POST", credentials: "include", mode: "no-cors", body });
        return "sent";
      });
      await attempt(
        "script",
        () =>
          new Promise((resolve, reject) => {
            const script = g.document.createElement("script");
            script.onload = () => resolve("loaded");
            script.onerror = reject;
            script.src = `${base}feed?poll=1`;
            g.document.body.append(script);
          }),
      );
      await attempt(
        "picture",
        () =>
          new Promise((resolve, reject) => {
            const image = g.document.createElement("img");
            image.onload = () => resolve("loaded");
            image.onerror = reject;
            image.src = `${base}blob/x`;
            g.document.body.append(image);
          }),
      );
      await attempt(
        "event stream",
        () =>
          new Promise((resolve, reject) => {
            const stream = new g.EventSource(`${base}feed`, { withCredentials: true });
            stream.onmessage = () => resolve("read");
            stream.onerror = reject;
          }),
      );
      await attempt(
        "frame",
        () =>
          new Promise((resolve) => {
            const frame = g.document.createElement("iframe");
            frame.onload = () => resolve(frame.contentDocument === null ? "closed" : "open");
            frame.src = base;
            g.document.body.append(frame);
          }),
      );
      return outcomes;
    }, `http://127.0.0.1:${inspector.port}/`);
    expect(results).toEqual([
      "read with the cookie: refused",
      "read without CORS: refused",
      "call: refused",
      "call as a form: refused",
      "script: refused",
      "picture: refused",
      "event stream: refused",
      "frame: closed",
    ]);
    expect(callsOfCounted()).toBe(0);
    expect(complaints).toEqual([]);
  });

  test("markup in every text of a stranger stays text", async () => {
    const evil = `<img src=x onerror="window.attacked=1"><script>window.attacked=1</script>`;
    const json = JSON.stringify(evil);
    const { page, show, host, complaints, folder } = await openShown(browser, {
      "skills/a/SKILL.md": `---\nname: a\ndescription: ${json}\n---\n${evil}`,
      "skills/a/prompts/evil.md": evil,
      "skills/a/tools/evil.ts": echoTool(
        "evil",
        {
          type: "object",
          title: evil,
          description: evil,
          properties: { [evil]: { type: "string", title: evil, description: evil, default: evil } },
        },
        { title: evil, description: evil },
      ),
      "skills/a/tools/broken.ts": `${evil}\n`,
    });
    await show("skills", "skill", `${folder}/skills/a`);
    await page.locator("main h2").waitFor();
    await page.getByText("prompts/evil.md").click();
    await show("skills", "tool", "skill/a/evil");
    await page.getByRole("button", { name: "Call evil" }).click();
    await page.getByText("completed", { exact: true }).waitFor();
    await page.getByRole("button", { name: "JSON", exact: true }).click();
    await page.getByRole("textbox", { name: "Arguments as JSON" }).waitFor();
    const session = await host.createSession({
      chatModel: scriptedModel({ text: evil, calls: [{ name: "evil", args: { x: evil } }] }, evil),
    });
    await session.sendAndWait(evil);
    for (const part of ["conversation", "timeline", "events"]) {
      await show("sessions", session.id, part);
      await page.locator("main h2").last().waitFor();
    }
    for (const view of ["events", "problems", "calls"]) {
      await show(view);
      await page.locator("main h2").waitFor();
    }
    expect(await page.evaluate("window.attacked")).toBeUndefined();
    expect(await page.locator("main img, main script").count()).toBe(0);
    expect(complaints).toEqual([]);
  });

  test("a page without the token shows nothing of the host", async () => {
    const { inspector } = await openShown(browser, { "skills/hidden/SKILL.md": skillMd("hidden") });
    const { page } = await openPage(browser);
    await page.goto(`http://127.0.0.1:${inspector.port}/`);
    await page.getByText("The host does not accept this page").waitFor();
    expect(await page.content()).not.toContain("hidden");
  });

  test("a result of 50 MB and 10,000 results leave the page usable", async () => {
    const { page, show, host, complaints } = await openShown(browser, {
      "skills/a/SKILL.md": skillMd("a"),
      "skills/a/tools/big.ts": `import { defineTool } from "skillhost";\nexport default defineTool("big", { description: "Big.", skipPermission: true, handler: () => "x".repeat(50 * 1024 * 1024) });\n`,
      "skills/a/tools/quick.ts": echoTool("quick", { type: "object", properties: { n: { type: "integer" } } }),
    });
    await show("skills", "tool", "skill/a/big");
    await page.getByRole("button", { name: "Call big" }).click();
    await page.getByText("completed", { exact: true }).waitFor();
    expect((await page.getByRole("group", { name: "Text of the result" }).innerText()).length).toBeLessThan(1_000);
    const session = await host.createSession();
    for (let n = 0; n < 10_000; n++) await session.callTool("quick", { n });
    await show("events");
    await page.getByRole("list", { name: "Events" }).getByText('quick {"n":9999}').waitFor();
    expect(complaints).toEqual([]);
  });
});
