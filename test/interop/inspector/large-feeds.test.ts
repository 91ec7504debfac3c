import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { hasBrowser, launchBrowser } from "./browser-kit.ts";
import { feedEvent, feedTool, openFeed } from "./hand-made-feed.ts";

const names = Array.from({ length: 2_000 }, (_, index) => `tool_${String(index).padStart(4, "0")}`);
/** More elements than a screen has rows would make the page slow, however fast this machine is. */
const mostRows = 120;

describe.skipIf(!hasBrowser)("the page in a browser (large feeds)", () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launchBrowser();
  });
  afterAll(() => browser?.close());

  test("2,000 tools are listed at once, scrolled, filtered and found", async () => {
    const { page, send, complaints } = await openFeed(browser);
    await page.getByText("Connected", { exact: true }).waitFor();
    send("catalog", { skills: [], tools: names.map((name) => feedTool(name)), removedSkills: [], removedTools: [] });
    const list = page.getByRole("list", { name: "Skills and tools" });
    await list.getByRole("link", { name: "tool_0000" }).waitFor();
    expect(await list.getByRole("listitem").count()).toBeLessThan(mostRows);
    await list.evaluate((element: { scrollTop: number; readonly scrollHeight: number }) => {
      element.scrollTop = element.scrollHeight;
    });
    await list.getByRole("link", { name: "tool_1999" }).waitFor();
    expect(await list.getByRole("listitem").count()).toBeLessThan(mostRows);
    await page.getByLabel("Filter").fill("tool_1234");
    await list.getByRole("link", { name: "tool_1234" }).waitFor();
    expect(await list.getByRole("listitem").count()).toBeLessThan(4);
    await page.keyboard.press("Control+k");
    await page.keyboard.type("tool_1777");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "tool_1777", level: 2 }).waitFor();
    expect(complaints).toEqual([]);
  });

  test("100,000 events stay scrollable while more come, and older ones are counted when they are dropped", async () => {
    const { page, send, complaints } = await openFeed(browser, {
      snapshot: { events: Array.from({ length: 95_000 }, (_, number) => feedEvent(number)) },
    });
    await page.getByRole("link", { name: "Events" }).click();
    const list = page.getByRole("list", { name: "Events" });
    await list.getByText("message 00094999").waitFor();
    for (let number = 95_000; number < 100_000; number++) send("event", feedEvent(number));
    // It follows the end.
    await list.getByText("message 00099999").waitFor();
    await page.getByText("Filter 100,000 events").waitFor();
    expect(await list.getByRole("listitem").count()).toBeLessThan(mostRows);
    await list.evaluate((element: { scrollTop: number }) => {
      element.scrollTop = 0;
    });
    await list.getByText("message 00000000").waitFor();
    send("event", feedEvent(100_000));
    await page.getByText("Filter 100,001 events").waitFor();
    // A user who scrolled away stays where they are.
    await list.getByText("message 00000000").waitFor();
    await page.getByLabel(/^Filter/).fill("00054321");
    await list.getByText("message 00054321").waitFor();
    expect(await list.getByRole("listitem").count()).toBe(1);
    await page.getByLabel(/^Filter/).fill("");
    for (let number = 100_001; number <= 110_000; number++) send("event", feedEvent(number));
    await page.getByText(/earlier events are not kept any more/).waitFor();
    await page.getByText("Filter 100,000 events").waitFor();
    expect(complaints).toEqual([]);
  });

  test("10,000 messages of a server and as many events of one session are drawn as far as they are in view", async () => {
    const numbers = Array.from({ length: 10_000 }, (_, number) => number);
    const events = numbers.map((number) => feedEvent(number));
    const { sessionId } = events[0]!;
    const { page, complaints } = await openFeed(browser, {
      snapshot: {
        servers: [{ name: "far", origin: { kind: "host" }, status: "connected", tools: [], held: [], diagnostics: [] }],
        traffic: numbers.map((id) => ({ id, at: id, server: "far", direction: "sent", method: `method ${id}`, message: {} })),
        sessions: [{ id: sessionId, client: "library", state: "idle", startTime: "2026-01-01T00:00:00Z", workingDirectory: "/" }],
        events,
      },
    });
    await page.getByText("Connected", { exact: true }).waitFor();
    for (const [hash, label, last] of [
      ["/servers/far", "Messages of far", "method 9999"],
      [`/sessions/${sessionId}/events`, "Events", "message 00009999"],
    ]) {
      await page.evaluate(`location.hash = ${JSON.stringify(hash)}`);
      const list = page.getByRole("list", { name: label as string });
      await list.getByText(last as string).waitFor();
      expect(await list.getByRole("listitem").count()).toBeLessThan(mostRows);
    }
    // What was chosen is in view beside the list.
    await page.getByText("message 00009999").click();
    await expect.poll(() => page.getByRole("region", { name: "The chosen event" }).isVisible()).toBe(true);
    const bottom = await page
      .getByRole("region", { name: "The chosen event" })
      .evaluate((element) => (element as unknown as { getBoundingClientRect(): { top: number } }).getBoundingClientRect().top);
    expect(bottom).toBeLessThan(800);
    expect(complaints).toEqual([]);
  });

  test("the list of tools is used with the arrow keys alone", async () => {
    const { page } = await openFeed(browser, { snapshot: { tools: names.map((name) => feedTool(name)) } });
    await page.getByRole("link", { name: "tool_0000" }).waitFor();
    await page.getByRole("list", { name: "Skills and tools" }).focus();
    await page.keyboard.press("ArrowDown");
    for (let press = 0; press < 60; press++) await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowUp");
    await expect.poll(() => page.evaluate("document.activeElement.textContent")).toBe("tool_0059");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "tool_0059", level: 2 }).waitFor();
    await page.getByRole("list", { name: "Skills and tools" }).focus();
    await page.keyboard.press("End");
    await expect.poll(() => page.evaluate("document.activeElement.textContent")).toBe("tool_1999");
  });
});
