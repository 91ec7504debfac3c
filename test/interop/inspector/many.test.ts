import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { defineTool } from "../../../src/tools/define/define-tool.ts";
import { skillMd } from "../../skills/kit.ts";
import { echoTool, hasBrowser, launchBrowser, openShown } from "./browser-kit.ts";

const toolJson = (name: string): string =>
  JSON.stringify({ name, description: `Tool ${name}.`, parameters: { type: "object" }, command: ["true"] });

describe.skipIf(!hasBrowser)("the page in a browser (many things)", () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launchBrowser();
  });
  afterAll(() => browser?.close());

  test("of 2,000 tools only those in view are elements, and the filter finds one", async () => {
    const tools = Array.from({ length: 2_000 }, (_, index) => [`skills/many/tools/tool_${index}.json`, toolJson(`tool_${index}`)] as const);
    const { page, host } = await openShown(browser, { "skills/many/SKILL.md": skillMd("many"), ...Object.fromEntries(tools) });
    expect(host.tools).toHaveLength(2_000);
    const list = page.getByRole("list", { name: "Skills and tools" });
    await list.getByRole("listitem").first().waitFor();
    expect(await list.getByRole("listitem").count()).toBeLessThan(100);
    expect(await list.getByRole("listitem").first().getAttribute("aria-setsize")).toBe("2001");
    await page.getByLabel("Filter").fill("tool_1733");
    await list.getByText("tool_1733").click();
    await page.getByRole("heading", { name: "tool_1733", level: 2 }).waitFor();
  });

  test("100,000 events are a list of some rows, which scrolls to both ends and follows new ones", async () => {
    const { page, show, host, complaints } = await openShown(browser, {
      "skills/a/SKILL.md": skillMd("a"),
      "skills/a/tools/quick.ts": echoTool("quick", { type: "object", properties: { n: { type: "integer" } } }),
    });
    const own = defineTool("own", { description: "x", skipPermission: true, handler: () => "x" });
    const session = await host.createSession({ tools: [own] });
    await show("events");
    const list = page.getByRole("list", { name: "Events" });
    // In pieces, so that the page is sent all of them: what one turn of the event loop brings beyond 20,000 is left out.
    for (let piece = 0; piece < 26; piece++) {
      for (let n = 0; n < 2_000; n++) await session.callTool("own", {});
      const count = (piece + 1) * 4_000;
      await expect
        .poll(async () => Number((await page.getByText(/^Filter [\d,]+ events$/).innerText()).replaceAll(/\D/g, "")))
        .toBeGreaterThanOrEqual(Math.min(count, 100_000));
    }
    expect(await list.getByRole("listitem").count()).toBeLessThan(100);
    await session.callTool("quick", { n: 77 });
    await list.getByText('quick {"n":77}').waitFor();
    await list.evaluate((element) => {
      (element as unknown as { scrollTop: number }).scrollTop = 0;
    });
    await expect.poll(() => list.getByRole("listitem").first().getAttribute("aria-posinset")).toBe("1");
    await session.callTool("quick", { n: 78 });
    await expect.poll(() => list.getByRole("listitem").first().getAttribute("aria-posinset")).toBe("1");
    expect(complaints).toEqual([]);
  }, 240_000);
});
