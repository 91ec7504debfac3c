import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { hasBrowser, launchBrowser, openPage } from "./browser-kit.ts";
import { BetweenProxy, feedTool, openFeed } from "./hand-made-feed.ts";

async function openBehindProxy(browser: Browser, parts: { readonly mode?: BetweenProxy["mode"]; readonly hasClock?: boolean } = {}) {
  let between: BetweenProxy | undefined;
  const shown = await openFeed(browser, {
    snapshot: { tools: [feedTool("first")] },
    async through(inspector) {
      const { proxy, url } = await BetweenProxy.open(inspector);
      proxy.mode = parts.mode ?? "passes";
      between = proxy;
      return url;
    },
    ...(parts.hasClock ? { prepare: (page) => page.clock.install() } : {}),
  });
  return { ...shown, send: shown.send, proxy: between! };
}

const toolRow = (name: string) => ({ name: new RegExp(`^${name}`) });

describe.skipIf(!hasBrowser)("the page in a browser (connections that end)", () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launchBrowser();
  });
  afterAll(() => browser?.close());

  test("a page whose connection is cut says so, and then asks for what it missed only", async () => {
    const { page, proxy, log, send } = await openBehindProxy(browser);
    await page.getByText("Connected", { exact: true }).waitFor();
    proxy.mode = "is down";
    proxy.cut();
    await page.getByText("The host does not answer").waitFor();
    // What was there stays readable.
    await page.getByRole("link", toolRow("first")).waitFor();
    const since = log.last;
    send("catalog", { skills: [], tools: [feedTool("second")], removedSkills: [], removedTools: ["plugin/many/first"] });
    proxy.mode = "passes";
    await page.getByText("Connected again", { exact: true }).waitFor();
    await page.getByRole("link", toolRow("second")).waitFor();
    expect(await page.getByRole("link", toolRow("first")).count()).toBe(0);
    expect(proxy.queries.at(-1)).toBe(`/feed?feed=${log.feedId}&since=${since}`);
  });

  test("behind a proxy that holds streams back, the page asks at intervals", async () => {
    const { page, proxy, send } = await openBehindProxy(browser, { mode: "holds streams back", hasClock: true });
    await page.getByText("Connecting to the host…").waitFor();
    await expect.poll(() => proxy.queries.length).toBe(1);
    await page.clock.fastForward(13_500);
    await expect.poll(() => proxy.queries.length).toBe(2);
    await page.clock.fastForward(13_500);
    await page.getByText("a proxy holds the stream back").waitFor();
    await page.getByRole("link", toolRow("first")).waitFor();
    send("catalog", { skills: [], tools: [feedTool("second")], removedSkills: [], removedTools: [] });
    await page.clock.fastForward(1_500);
    await page.getByRole("link", toolRow("second")).waitFor();
    expect(proxy.queries.some((query) => query.includes("poll=1") && query.includes("since="))).toBe(true);
  });

  test("a host that takes requests and does not answer is asked again", async () => {
    const { page, proxy } = await openBehindProxy(browser, { hasClock: true });
    await page.getByText("Connected", { exact: true }).waitFor();
    const { asked } = proxy;
    proxy.mode = "does not answer";
    proxy.cut();
    await page.getByText("The host does not answer").waitFor();
    await page.clock.fastForward(1_000);
    await expect.poll(() => proxy.asked).toBe(asked + 1);
    proxy.mode = "passes";
    await page.clock.fastForward(13_000);
    await page.getByText("Connected again", { exact: true }).waitFor();
  });

  test("a clock that jumps by a day does not end the connection", async () => {
    const { page, proxy, send } = await openBehindProxy(browser, { hasClock: true });
    await page.getByText("Connected", { exact: true }).waitFor();
    await page.clock.setSystemTime(Date.now() + 86_400_000);
    send("catalog", { skills: [], tools: [feedTool("second")], removedSkills: [], removedTools: [] });
    await page.clock.runFor(1_000);
    await page.getByRole("link", toolRow("second")).waitFor();
    expect(proxy.queries).toHaveLength(1);
  });

  test("another run of the host replaces everything that the page knew", async () => {
    const shown = await openFeed(browser, { snapshot: { tools: [feedTool("first")] } });
    const { page, log } = shown;
    await page.getByRole("link", toolRow("first")).waitFor();
    const next = { ...shown.snapshot, feed: "another run", tools: [feedTool("second")] };
    log.append("snapshot", () => next);
    await page.getByRole("link", toolRow("second")).waitFor();
    expect(await page.getByRole("link", toolRow("first")).count()).toBe(0);
  });

  test("messages of types and with members that the page does not know are ignored", async () => {
    const { page, log, send, complaints } = await openFeed(browser);
    await page.getByText("Connected", { exact: true }).waitFor();
    log.append("weather", () => ({ isSunny: true }));
    send("catalog", { skills: [], tools: [feedTool("first")], removedSkills: [], removedTools: [], mood: "good" });
    await page.getByRole("link", toolRow("first")).waitFor();
    expect(complaints).toEqual([]);
  });

  test("two tabs show the same", async () => {
    const { page, inspector, send } = await openFeed(browser, { snapshot: { tools: [feedTool("first")] } });
    const { page: other } = await openPage(browser);
    await other.goto(inspector.url);
    for (const tab of [page, other]) await tab.getByText("Connected", { exact: true }).waitFor();
    send("catalog", { skills: [], tools: [feedTool("second")], removedSkills: [], removedTools: [] });
    for (const tab of [page, other]) {
      await tab.getByRole("link", toolRow("first")).waitFor();
      await tab.getByRole("link", toolRow("second")).waitFor();
    }
  });
});
