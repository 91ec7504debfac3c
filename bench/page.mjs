// How fast the inspector's page shows things, in a real Chromium: at the start, after a save, with many tools and many events.
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { chromium } from "playwright-core";
import { built } from "./support/built.mjs";
import { quantile } from "./support/measure.mjs";
import { goal, table, title } from "./support/report.mjs";
import { tempFolder } from "./support/skills.mjs";

const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
const saves = 60;
const starts = 10;

const echoSkill = {
  "skills/echo/SKILL.md": "---\nname: echo\ndescription: Echoes.\n---\nEcho.\n",
  "skills/echo/tools/echo.ts": echo("answer 0"),
  "skills/echo/calls.json": JSON.stringify({ calls: { "says it": { tool: "echo", arguments: {} } } }),
};

title("The inspector's page in Chromium, ms");
if (!existsSync(executablePath)) {
  console.log(`skipped: there is no Chromium at ${executablePath}. Set CHROMIUM.`);
  process.exit(0);
}
const { createHost } = await built("index.js");
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
const rows = [];
rows.push(await measureStarts(), await measureSaves(), await measureTools(), await measureScrolling());
await browser.close();
table(
  rows.map(({ what, times }) => ({
    what,
    runs: times.length,
    median: quantile(times, 0.5),
    p95: quantile(times, 0.95),
    most: Math.max(...times),
  })),
);
goal("page ready after the host is, median", quantile(rows[0].times, 0.5), 400, "ms");
goal("save until the new result of a pinned call is visible, p95", quantile(rows[1].times, 0.95), 100, "ms");
goal("2,000 tools listed, median", quantile(rows[2].times, 0.5), 200, "ms");
goal("longest frame while 100,000 events scroll", Math.max(...rows[3].times), 50, "ms");

async function open(files, options = {}) {
  const place = tempFolder();
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(join(place.base, path, ".."), { recursive: true });
    writeFileSync(join(place.base, path), text);
  }
  const host = await createHost({ skillDirectories: [join(place.base, "skills")], plugins: [], workingDirectory: place.base, ...options });
  const inspector = await host.inspect();
  // For the measuring scripts alone: the tests run under the policy.
  const page = await browser.newPage({ bypassCSP: true });
  const close = async () => {
    await page.close();
    await inspector[Symbol.asyncDispose]();
    await host.close();
    place.remove();
  };
  return { host, inspector, page, place, close };
}

function echo(answer) {
  return `import { defineTool } from "skillhost/define";\nexport default defineTool("echo", { description: "Echoes.", annotations: { readOnlyHint: true }, skipPermission: true, handler: () => "${answer}" });\n`;
}

/** From the address until the list of skills is drawn. */
async function measureStarts() {
  const { inspector, page, close } = await open(echoSkill, { watch: false });
  const times = [];
  for (let start = 0; start < starts; start++) {
    await page.goto("about:blank");
    const begin = performance.now();
    await page.goto(inspector.url);
    await page.getByRole("list", { name: "Skills and tools" }).getByRole("listitem").first().waitFor();
    times.push(performance.now() - begin);
  }
  await close();
  return { what: "page ready", times };
}

/** From the write of the file until the page has drawn the new result, by the clocks of one machine. */
async function measureSaves() {
  const { inspector, page, place, close } = await open(echoSkill, { watch: true });
  await page.goto(`${inspector.url}&view=/pins`);
  await page.getByText("answer 0").first().waitFor({ state: "attached" });
  await page.evaluate(`
    window.seen = new Map();
    new MutationObserver(() => {
      const found = document.body.innerHTML.match(/answer \\d+/g) ?? [];
      for (const text of found) if (!window.seen.has(text)) requestAnimationFrame(() => window.seen.has(text) || window.seen.set(text, Date.now()));
    }).observe(document.body, { childList: true, subtree: true, characterData: true });
  `);
  const times = [];
  for (let save = 1; save <= saves; save++) {
    const begin = Date.now();
    writeFileSync(join(place.base, "skills/echo/tools/echo.ts"), echo(`answer ${save}`));
    await page.waitForFunction(`window.seen.has("answer ${save}")`);
    times.push((await page.evaluate(`window.seen.get("answer ${save}")`)) - begin);
    await new Promise((resolve) => setTimeout(resolve, 60));
  }
  await close();
  return { what: "save until the pinned call shows its new result", times };
}

async function measureTools() {
  const tool = (name) => JSON.stringify({ name, description: `Tool ${name}.`, parameters: { type: "object" }, command: ["true"] });
  const files = Object.fromEntries(Array.from({ length: 2_000 }, (_, n) => [`skills/many/tools/tool_${n}.json`, tool(`tool_${n}`)]));
  const { inspector, page, close } = await open(
    { "skills/many/SKILL.md": "---\nname: many\ndescription: Many.\n---\nx\n", ...files },
    { watch: false },
  );
  await page.goto(inspector.url);
  await page.getByRole("list", { name: "Skills and tools" }).getByRole("listitem").first().waitFor();
  const times = [];
  for (let run = 0; run < starts; run++) {
    times.push(
      await page.evaluate(`(async () => {
        location.hash = "/problems";
        await new Promise((resolve) => setTimeout(resolve, 100));
        const begin = performance.now();
        location.hash = "/skills";
        while (document.querySelector(".virtual-row") === null) await new Promise((resolve) => setTimeout(resolve, 0));
        await new Promise(requestAnimationFrame);
        return performance.now() - begin;
      })()`),
    );
  }
  await close();
  return { what: "2,000 tools listed", times };
}

/** The frames while the list of events scrolls from its end to its beginning. */
async function measureScrolling() {
  const { host, inspector, page, close } = await open(echoSkill, { watch: false });
  await page.goto(`${inspector.url}&view=/events`);
  // Of what was before, a page gets only the last events.
  await page.getByText("Connected", { exact: true }).waitFor();
  const session = await host.createSession();
  for (let piece = 0; piece < 50; piece++) {
    for (let call = 0; call < 1_000; call++) await session.callTool("echo", {});
    await page.waitForFunction(
      `Number((document.querySelector(".filter span")?.textContent ?? "").replaceAll(/\\D/g, "")) >= ${(piece + 1) * 2_000}`,
    );
  }
  const times = await page.evaluate(`(async () => {
    const list = document.querySelector(".virtual");
    const frames = [];
    let last = performance.now();
    for (let step = 0; step < 300; step++) {
      list.scrollTop = list.scrollHeight * (1 - step / 300);
      await new Promise(requestAnimationFrame);
      const now = performance.now();
      frames.push(now - last);
      last = now;
    }
    return frames;
  })()`);
  await close();
  return { what: "a frame while 100,000 events scroll", times };
}
