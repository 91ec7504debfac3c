// Writes the pictures of the inspector in docs/images: it opens the built page of a real host in Chromium, light and dark.
//
//   npm run build && node scripts/inspector-images.mjs [--out <dir>]
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { chromium } from "playwright-core";

const root = fileURLToPath(new URL("..", import.meta.url));
const { values: given } = parseArgs({ options: { out: { type: "string" } } });
const out = given.out ?? join(root, "docs/images");
const executablePath = process.env["CHROMIUM"] ?? "/usr/bin/chromium";
for (const [needed, remedy] of [
  [executablePath, "Install Chromium, or name one in CHROMIUM."],
  [join(root, "dist/inspector/index.html"), "Run npm run build."],
]) {
  if (existsSync(needed)) continue;
  console.error(`${needed} does not exist. ${remedy}`);
  process.exit(2);
}
const scratch = mkdtempSync(join(tmpdir(), "skillhost-images-"));
// Approvals and caches of the pictures are not the user's.
process.env["SKILLHOST_HOME"] = join(scratch, "home");
const { createHost } = await import("../dist/index.js");

const project = join(scratch, "my-project");
const forecast = (text) => `import { defineTool } from "skillhost";

export default defineTool("get_forecast", {
  title: "Forecast",
  description: "The weather of the next days at a place.",
  annotations: { readOnlyHint: true },
  skipPermission: true,
  parameters: {
    type: "object",
    required: ["city"],
    properties: {
      city: { type: "string", description: "Name of the place." },
      days: { type: "integer", minimum: 1, maximum: 14, default: 3 },
      unit: { enum: ["celsius", "fahrenheit"], description: "Unit of temperatures." },
      alerts: { type: "array", description: "Warnings to look for.", items: { enum: ["storm", "frost", "heat"] } },
    },
  },
  handler: ({ city, days = 3 }) => Array.from({ length: days }, (_, day) => \`Day \${day + 1} in \${city}: ${text}, \${18 + day} °C\`).join("\\n"),
});
`;
const files = {
  "skills/weather/SKILL.md":
    "---\nname: weather\ndescription: Reports the weather and plans around it.\n---\nAnswer with the temperature first.\n",
  "skills/weather/prompts/tone.md": "Speak calmly of storms.\n",
  "skills/weather/tools/get_forecast.ts": forecast("sunny"),
  "skills/weather/tools/send_warning.ts": `import { defineTool } from "skillhost";

export default defineTool("send_warning", {
  description: "Sends a warning to all guests at a place.",
  parameters: { type: "object", required: ["city"], properties: { city: { type: "string" } } },
  handler: ({ city }) => \`Sent to \${city}.\`,
});
`,
  "skills/travel/SKILL.md": "---\nname: travel\ndescription: Finds connections and places to stay.\n---\nPrefer trains.\n",
  "skills/travel/tools/find_trains.ts": `import { defineTool } from "skillhost";

export default defineTool("find_trains", {
  description: "Finds trains between two places.",
  skipPermission: true,
  parameters: { type: "object", properties: { from: { type: "string" }, to: { type: "string" } } },
  handler: ({ from, to }) => ({ trains: [{ from, to, leaves: "09:12" }] }),
});
`,
};
const put = (file, text) => {
  mkdirSync(dirname(join(project, file)), { recursive: true });
  writeFileSync(join(project, file), text);
};

try {
  for (const [file, text] of Object.entries(files)) put(file, text);
  mkdirSync(out, { recursive: true });
  await takePictures();
} finally {
  rmSync(scratch, { recursive: true, force: true });
}

async function takePictures() {
  const server = join(root, "node_modules/@modelcontextprotocol/server-everything/dist/index.js");
  const host = await createHost({
    skillDirectories: [join(project, "skills")],
    plugins: [],
    watch: false,
    workingDirectory: project,
    mcpServers: { everything: { type: "local", command: process.execPath, args: [server, "stdio"], tools: ["*"] } },
  });
  const inspector = await host.inspect();
  const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
  try {
    await host.connectServers();
    const prepared = await prepare(host, inspector);
    for (const colorScheme of ["light", "dark"]) await pictureEach({ inspector, browser, colorScheme, ...prepared });
  } finally {
    await browser.close();
    await inspector[Symbol.asyncDispose]();
    await host.close();
  }
}

/** A session with a talk, a stored call with a difference, a file that does not parse, and a question that waits. */
async function prepare(host, { port, token }) {
  const ask = async (method, params) => {
    const response = await fetch(`http://127.0.0.1:${port}/request`, {
      method: "POST",
      headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
      body: JSON.stringify({ method, params }),
    });
    const { result, error } = await response.json();
    if (error !== undefined) throw new Error(`${method}: ${error.code} ${error.message}`);
    return result;
  };
  const idle = (id) =>
    new Promise((resolve, reject) => {
      const { session } = host.openSessions.find((open) => open.session.id === id);
      session.on("session.idle", resolve);
      session.on("session.error", ({ data }) => reject(new Error(data.message)));
    });
  const script = [
    { text: "I look at the weather and the trains.", calls: [{ name: "get_forecast", args: { city: "Oslo", days: 2 } }] },
    { calls: [{ name: "find_trains", args: { from: "Bergen", to: "Oslo" } }] },
    "It stays dry in Oslo until Friday. The train at 09:12 fits.",
  ];
  const { sessionId } = await ask("session.create", { script });
  const ended = idle(sessionId);
  await ask("session.send", { sessionId, prompt: "Can I go to Oslo by train tomorrow?" });
  await ended;
  const { pinId } = await ask("pin.save", {
    pin: { name: "Oslo for two days", tool: "get_forecast", arguments: { city: "Oslo", days: 2 }, isAutomatic: true },
  });
  await ask("pin.run", { pinId });
  put("skills/weather/tools/get_forecast.ts", forecast("cloudy"));
  put("skills/travel/tools/find_trains.ts", `${files["skills/travel/tools/find_trains.ts"]}export const broken = {;\n`);
  await host.reload();
  return { ask, sessionId };
}

async function pictureEach({ inspector, browser, colorScheme, sessionId, ask }) {
  const context = await browser.newContext({ viewport: { width: 1200, height: 760 }, colorScheme, reducedMotion: "reduce" });
  const page = await context.newPage();
  const complaints = [];
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("console", (message) => (message.type() === "error" ? complaints.push(message.text()) : undefined));
  await page.goto(inspector.url);
  await page.getByText("Connected", { exact: true }).waitFor();
  const show = (...parts) => page.evaluate((hash) => (location.hash = hash), `/${parts.map(encodeURIComponent).join("/")}`);
  const picture = async (name) => {
    await page.screenshot({ path: join(out, `inspector-${name}-${colorScheme}.png`) });
    console.log(`inspector-${name}-${colorScheme}.png`);
  };
  const toolId = (name) => page.getByRole("list", { name: "Skills and tools" }).getByRole("link", { name, exact: true });

  await show("skills", "skill", join(project, "skills/weather"));
  await page.getByRole("heading", { name: "weather", level: 2 }).waitFor();
  await picture("skill");
  await toolId("get_forecast").click();
  await page.getByLabel(/^city/).fill("Oslo");
  await page.getByRole("button", { name: "Call get_forecast", exact: true }).click();
  await page.getByText("completed", { exact: true }).waitFor();
  await picture("call");
  await page.getByRole("button", { name: "JSON", exact: true }).click();
  await page.getByRole("textbox", { name: "Arguments as JSON" }).waitFor();
  await picture("call-json");
  for (const [part, name] of [
    ["conversation", "session"],
    ["timeline", "timeline"],
    ["model", "model-view"],
  ]) {
    await show("sessions", sessionId, part);
    if (part === "model") {
      await page.getByRole("button", { name: /^Show what the model got/ }).click();
      await page.getByRole("group", { name: "System message" }).waitFor();
    } else await page.locator("main h2").waitFor();
    await picture(name);
  }
  await show("servers", "everything");
  await page.getByRole("heading", { name: "everything", level: 2 }).waitFor();
  await ask("call", { tool: "everything-get-sum", arguments: { a: 19, b: 23 } });
  await answerQuestion(page);
  await page
    .getByRole("button", { name: /received.*answer to/ })
    .last()
    .click();
  await page.getByRole("heading", { name: "everything", level: 2 }).scrollIntoViewIfNeeded();
  await picture("servers");
  for (const [view, name] of [
    ["events", "events"],
    ["problems", "problems"],
    ["pins", "pinned-calls"],
    ["calls", "calls"],
  ]) {
    await show(view);
    await page.locator("main h2").waitFor();
    // The host makes the call again after the load.
    if (view === "pins") await page.getByText("changed", { exact: true }).waitFor();
    await picture(name);
  }
  await ask("call", { tool: "send_warning", arguments: { city: "Oslo" } });
  await page.getByRole("button", { name: "Allow once" }).waitFor();
  await picture("question");
  await answerQuestion(page);
  await page.keyboard.press("Control+k");
  await page.keyboard.type("fore");
  await page.getByRole("dialog").getByRole("option").first().waitFor();
  await picture("search");
  await context.close();
  if (complaints.length > 0) throw new Error(`The page reported errors: ${complaints.join("; ")}`);
}

async function answerQuestion(page) {
  const allow = page.getByRole("button", { name: "Allow once" });
  await allow.click();
  await allow.waitFor({ state: "detached" });
}
