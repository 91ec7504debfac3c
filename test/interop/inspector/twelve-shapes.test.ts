import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { skillMd } from "../../skills/kit.ts";
import { echoTool, hasBrowser, launchBrowser, openShown } from "./browser-kit.ts";
import { shapes } from "./schema-shapes.ts";

describe.skipIf(!hasBrowser)("the page in a browser (the form of a tool)", () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launchBrowser();
  });
  afterAll(() => browser?.close());

  test.each(shapes.map((shape) => [shape.name, shape] as const))("%s", async (_name, { schema, fill, sent }) => {
    const { page, complaints, show } = await openShown(browser, {
      "skills/shapes/SKILL.md": skillMd("shapes"),
      "skills/shapes/tools/shape.ts": echoTool("shape", schema),
    });
    await show("skills", "tool", "skill/shapes/shape");
    await page.locator(".call .field, .call [id=arguments]").first().waitFor();
    await fill(page);
    await page.getByRole("button", { name: "Call shape", exact: true }).click();
    await page.getByText("completed", { exact: true }).waitFor();
    const result = await page.getByRole("group", { name: "Text of the result" }).first().innerText();
    expect(JSON.parse(result)).toEqual(sent);
    expect(complaints).toEqual([]);
  });
});
