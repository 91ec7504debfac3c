import { readFileSync } from "node:fs";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { put, skillMd } from "../../skills/kit.ts";
import { axeViolations, hasBrowser, launchBrowser, openShown, type ShownHost } from "./browser-kit.ts";

const tool = (name: string, result: string, isReadOnly = true): string => `import { defineTool } from "skillhost";
export default defineTool("${name}", { description: "Says it.", skipPermission: true, annotations: { readOnlyHint: ${isReadOnly} },
  parameters: { type: "object", properties: { city: { type: "string" } } }, handler: ({ city }) => ${result} });
`;

const files = {
  "skills/weather/SKILL.md": skillMd("weather"),
  "skills/weather/tools/forecast.ts": tool("forecast", "`sunny in ${city}`"),
  "skills/weather/tools/store.ts": tool("store", "'stored'", false),
};

const calls = ({ folder }: ShownHost): readonly Record<string, unknown>[] =>
  Object.values(JSON.parse(readFileSync(`${folder}/skills/weather/calls.json`, "utf8")).calls);

describe.skipIf(!hasBrowser)("the page in a browser (pinned calls)", () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launchBrowser();
  });
  afterAll(() => browser?.close());

  test("a call that is pinned shows its new result after a save, and passes or fails by what is expected of it", async () => {
    const shown = await openShown(browser, files);
    const { page, show, host, folder, complaints } = shown;
    await show("skills", "tool", "skill/weather/forecast");
    await page.getByLabel(/^city/).fill("Oslo");
    await page.getByRole("button", { name: "Pin", exact: true }).click();
    await page.getByText("The call is pinned.").waitFor();
    expect(calls(shown)).toEqual([{ tool: "forecast", arguments: { city: "Oslo" } }]);
    await show("pins");
    await page.getByText("first", { exact: true }).waitFor();
    await page.getByRole("button", { name: /^Expect this result/ }).click();
    await page.getByText("passed", { exact: true }).waitFor();
    expect(calls(shown)).toEqual([{ tool: "forecast", arguments: { city: "Oslo" }, expect: { text: "sunny in Oslo" } }]);
    put(`${folder}/skills/weather/tools/forecast.ts`, tool("forecast", "`<b>rain</b> in ${city}`"));
    await host.reload();
    await page.getByText("failed", { exact: true }).waitFor();
    const lines = await page.getByRole("group", { name: "What differs in the result" }).innerText();
    expect(lines.split("\n").filter((line) => line !== "")).toEqual(["-sunny in Oslo", "+<b>rain</b> in Oslo"]);
    expect(await axeViolations(page)).toEqual([]);
    await page.getByRole("button", { name: /^Expect nothing/ }).click();
    await page.getByText("same", { exact: true }).waitFor();
    await page.getByRole("button", { name: /^Remove/ }).click();
    await page.getByText("None. Call a tool of a skill").waitFor();
    expect(calls(shown)).toEqual([]);
    expect(complaints).toEqual([]);
  });

  test("a call of a tool that writes is made by itself only after it was marked, and a fault of the file is shown", async () => {
    const shown = await openShown(browser, {
      ...files,
      "skills/weather/calls.json": '{"calls": {"writes": {"tool": "store"}, "typo": {"tool": "store", "expect": {"contain": "x"}}}}',
    });
    const { page, show } = shown;
    await show("pins");
    await page.getByText("skipped", { exact: true }).waitFor();
    await page.getByText(/CALL_EXPECTATION "contain" is not an expectation/).waitFor();
    expect(await page.getByRole("button", { name: /^Expect/ }).count()).toBe(0);
    await page.getByRole("checkbox").check();
    await page.getByText("first", { exact: true }).waitFor();
    expect(calls(shown)[0]).toEqual({ tool: "store", arguments: {}, automatic: true });
    expect(await axeViolations(page)).toEqual([]);
  });

  test("an exported call is shown in every form", async () => {
    const { page, show } = await openShown(browser, files);
    await show("skills", "tool", "skill/weather/forecast");
    await page.getByLabel(/^city/).fill("Oslo's");
    await page.getByRole("button", { name: "Export", exact: true }).click();
    await page.getByText(`skillhost call forecast '{"city":"Oslo'\\''s"}'`).waitFor();
    await page.getByText(`'{"city":"Oslo''s"}' | skillhost call forecast -`).waitFor();
    await page.getByText("$SKILLHOST_INSPECTOR_TOKEN").waitFor();
    await page.getByText("await using skill = await testSkill").waitFor();
  });
});
