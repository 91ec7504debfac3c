// Which schemas the inspector's form can express, beside MCP Inspector: both show the tools of one MCP server in a real Chromium, and the
// server says what it got. Not a measurement of time, so `npm run bench` does not include it: `node bench/shapes.mjs`.
import { spawn } from "node:child_process";
import { existsSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { isDeepStrictEqual } from "node:util";
import { chromium } from "playwright-core";
import { built } from "./support/built.mjs";
import { table, title } from "./support/report.mjs";
import { tempFolder } from "./support/skills.mjs";

const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
const [major, minor] = process.versions.node.split(".").map(Number);
const peer = fileURLToPath(new URL("peers/inspector/node_modules/@modelcontextprotocol/inspector/", import.meta.url));
const lacking = [
  !existsSync(executablePath) && `there is no Chromium at ${executablePath}; set CHROMIUM`,
  (major < 22 || (major === 22 && minor < 19)) && "MCP Inspector needs Node 22.19 or later",
  !existsSync(peer) && "MCP Inspector is not installed (npm install --ignore-scripts --prefix bench/peers/inspector)",
].filter(Boolean);
title("Forms of twelve schemas");
if (lacking.length > 0) {
  console.log(`skipped: ${lacking.join("; ")}.`);
  process.exit(0);
}
const { shapes } = await import("../test/interop/inspector/schema-shapes.ts");
const { createHost } = await built("index.js");
const place = tempFolder();
const nameOf = (index) => `shape_${String(index + 1).padStart(2, "0")}`;
const tools = shapes.map(({ name, schema }, index) => ({ name: nameOf(index), description: name, inputSchema: schema }));
writeFileSync(join(place.base, "tools.json"), JSON.stringify(tools));
const server = {
  command: process.execPath,
  args: [fileURLToPath(new URL("peers/shapes-server.mjs", import.meta.url)), join(place.base, "tools.json")],
};

/** As a user would fill in its form: by fields, and as JSON where there are none. */
const theirFills = {
  async "anyOf at the root"(page) {
    await choose(page, "Variant", "By name");
    await page.getByLabel(/^name/).first().fill("Ada");
    return "fields";
  },
  "a type that may be null, with an enum that has null": async (page) =>
    (await choose(page, "level", "null")) ? "fields" : "not offered: null",
  "anyOf of an enum and null, null by default": async (page) => ((await choose(page, "level", "high")) ? "fields" : "not offered"),
  async "a list of objects with lists"(page) {
    const add = page.getByRole("button", { name: "Add item to people" });
    await add.click();
    await add.click();
    // There is nothing to move an item with: they are entered in the order that is wanted.
    await page.getByLabel(/^name/).nth(0).fill("Bob");
    await page.getByLabel(/^name/).nth(1).fill("Ada");
    const tags = page.getByRole("textbox", { name: /^tags/ }).nth(1);
    await tags.focus();
    await page.keyboard.insertText('["first"]');
    return "fields, lists inside as JSON, cannot be moved";
  },
  async "a schema that refers to itself"(page) {
    await page.getByLabel("label").first().fill("root");
    await asText(page, "children", [{ label: "leaf" }]);
    return "fields at first, then JSON";
  },
  async "allOf with properties"(page) {
    await page.getByLabel("a", { exact: true }).first().fill("x");
    await page.getByLabel(/^b/).first().fill("3");
    return "fields";
  },
  async "a map of additional properties"(page) {
    await asText(page, "labels", { colour: "blue" });
    return "JSON";
  },
  async "a tuple"(page) {
    await asText(page, "point", [1.5, 2]);
    return "JSON";
  },
  async "if, then and else"(page) {
    await asText(page, "kind", "post");
    const street = page.getByLabel(/^street/);
    if ((await street.count()) === 0) return "not offered: the fields of then; an enum without a type is JSON";
    await street.fill("Main St");
    return "JSON";
  },
  async "defaults, minimum and maximum"(page) {
    await page.getByLabel("city").first().fill("Oslo");
    return "fields";
  },
  "optional fields that are not touched": async () => "fields",
  async "200 properties, with a filter"(page) {
    await page.getByLabel("field_173", { exact: true }).first().fill("here");
    // Its two search fields are those of the tools and of the messages.
    return (await page.getByPlaceholder(/filter/i).count()) > 0 ? "fields" : "fields without a filter";
  },
};

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
const ours = await tryOurs();
const theirs = await tryTheirs();
await browser.close();
place.remove();
const { version } = createRequire(import.meta.url)(join(peer, "package.json"));
table(shapes.map(({ name }, index) => ({ schema: name, skillhost: ours[index], [`MCP Inspector ${version}`]: theirs[index] })));
const count = (outcomes) => outcomes.filter((outcome) => outcome === "fields").length;
console.log(`\nin fields alone: skillhost ${count(ours)} of ${shapes.length}, MCP Inspector ${count(theirs)} of ${shapes.length}`);
process.exitCode = count(ours) === shapes.length ? 0 : 1;

/** `how`: how far the form goes. What was sent decides whether that is true. */
function outcomeOf(how, text, expected) {
  const sent = /SENT (.*)/.exec(text)?.[1];
  if (sent === undefined) return `${how}; not sent`;
  return isDeepStrictEqual(JSON.parse(sent), expected) ? how : `${how}; sent ${sent.slice(0, 60)}`;
}

async function tryOurs() {
  await using host = await createHost({
    skillDirectories: [],
    plugins: [],
    watch: false,
    workingDirectory: place.base,
    mcpServers: { shapes: server },
  });
  await host.connectServers();
  await using inspector = await host.inspect();
  const outcomes = [];
  for (const [index, { fill, sent }] of shapes.entries()) {
    const page = await browser.newPage();
    await page.goto(inspector.url);
    await page.getByText("Connected", { exact: true }).waitFor();
    await page.evaluate(`location.hash = ${JSON.stringify(`/skills/tool/${encodeURIComponent(`mcp/shapes/${nameOf(index)}`)}`)}`);
    const button = page.getByRole("button", { name: /^Call / });
    await button.waitFor();
    await page.locator(".call .field, .call [id=arguments]").first().waitFor();
    await fill(page);
    await button.click();
    await page
      .getByRole("button", { name: /^Allow/ })
      .first()
      .click();
    await page.getByText("completed", { exact: true }).waitFor();
    outcomes.push(outcomeOf("fields", await page.getByRole("group", { name: "Text of the result" }).first().innerText(), sent));
    await page.close();
  }
  return outcomes;
}

/** Returns after the address was printed. */
async function startTheirs() {
  const launcher = join(peer, "clients/launcher/build/index.js");
  const env = { ...process.env, HOME: place.base, MCP_AUTO_OPEN_ENABLED: "false", BROWSER: "none" };
  const child = spawn(process.execPath, [launcher, "--web", server.command, ...server.args], { env, stdio: ["ignore", "pipe", "pipe"] });
  let text = "";
  const url = await new Promise((resolve, reject) => {
    const read = (data) => {
      text += data;
      const found = /http:\/\/\S+TOKEN=\S+/.exec(text);
      if (found !== null) resolve(found[0]);
    };
    child.stdout.on("data", read);
    child.stderr.on("data", read);
    child.once("exit", () => reject(new Error(`MCP Inspector has ended:\n${text}`)));
  });
  return { url, end: () => child.kill() };
}

async function tryTheirs() {
  const { url, end } = await startTheirs();
  const outcomes = [];
  try {
    for (const [index, { name, sent }] of shapes.entries()) {
      const page = await browser.newPage({ viewport: { width: 1700, height: 1100 } });
      page.setDefaultTimeout(10_000);
      await page.goto(url);
      const connect = page.getByRole("switch").first();
      await connect.waitFor();
      if (!(await connect.isChecked())) await connect.click({ force: true });
      await page.getByText(/^Connected \(/).waitFor();
      await page.getByText("Tools", { exact: true }).first().click();
      await page.getByText(nameOf(index), { exact: true }).first().click();
      const call = page.getByRole("button", { name: "Execute Tool" });
      await call.waitFor();
      const how = await theirFills[name](page);
      if (how.startsWith("not ")) outcomes.push(how);
      else {
        await call.click();
        await page
          .getByText(/^SENT /)
          .first()
          .waitFor();
        outcomes.push(outcomeOf(how, await page.locator("body").innerText(), sent));
      }
      await page.close();
    }
  } finally {
    end();
  }
  return outcomes;
}

async function choose(page, label, option) {
  await page.getByLabel(label).first().click();
  const found = page.getByRole("option", { name: option, exact: true });
  await page.getByRole("option").first().waitFor();
  if ((await found.count()) === 0) return false;
  await found.click();
  return true;
}

/** What its form offers for a value that it has no fields for. */
async function asText(page, name, value) {
  await page
    .getByRole("textbox", { name: new RegExp(`^${name}`) })
    .first()
    .focus();
  await page.keyboard.insertText(JSON.stringify(value));
}
