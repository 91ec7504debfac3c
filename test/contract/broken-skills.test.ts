import { join } from "node:path";
import { PassThrough } from "node:stream";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { describe, expect, onTestFinished, test } from "vitest";
import type { Diagnostic } from "../../src/base/diagnostic.ts";
import { createLogger } from "../../src/base/logger.ts";
import { createHost } from "../../src/host/create-host.ts";
import { serveMcp } from "../../src/servers/mcp/serve-mcp.ts";
import { type CliSetup, runCli, startCli, type Workplace, workplace } from "../cli/run-cli.ts";
import { Served } from "../servers/copilot/wire-kit.ts";
import { modernRequest, post } from "../servers/mcp/serving-kit.ts";

interface Defect {
  /** Files below `skills/`. Without any, the skills directory does not exist. */
  readonly files: Readonly<Record<string, string>>;
  readonly code: string;
  /** The file that the message must name, with the line if there is one. */
  readonly place: string;
  readonly line?: number;
  /** The advice in the message. */
  readonly fix: RegExp;
}

const document = "---\nname: broken\ndescription: Is broken for a test.\n---\nx\n";
// With a manifest, every module in tools/ must define tools.
const manifest = { "broken/SKILL.md": document, "broken/skill.json": '{ "name": "broken" }' };
const tool = (parameters: string): string =>
  `import { defineTool } from "skillhost";\nexport default defineTool("t", { description: "For a test of faults.", parameters: ${parameters}, handler: () => "" });\n`;

const defects: Readonly<Record<string, Defect>> = {
  "a module that does not parse": {
    files: { ...manifest, "broken/tools/t.ts": "export default {\n  a: (,\n};\n" },
    code: "MODULE_SYNTAX",
    place: "skills/broken/tools/t.ts",
    line: 2,
    fix: /does not parse/,
  },
  "a missing import": {
    files: { ...manifest, "broken/tools/t.ts": `// First.\nimport { x } from "./_gone.ts";\nexport default x;\n` },
    code: "MODULE_NOT_FOUND",
    place: "skills/broken/tools/t.ts",
    line: 2,
    fix: /Cannot find "\.\/_gone\.ts"/,
  },
  "a missing export": {
    files: {
      ...manifest,
      "broken/tools/_lib.mjs": "export const here = 1;\n",
      "broken/tools/t.mjs": `import {\n  here,\n  gone,\n} from "./_lib.mjs";\nexport default gone ?? here;\n`,
    },
    code: "MODULE_EXPORT_MISSING",
    place: "skills/broken/tools/t.mjs",
    line: 3,
    fix: /It exports here/,
  },
  "a module that throws": {
    files: { ...manifest, "broken/tools/t.mjs": 'throw new Error("no database");\n' },
    code: "MODULE_THREW",
    place: "skills/broken/tools/t.mjs",
    fix: /no database/,
  },
  "an invalid schema": {
    files: { ...manifest, "broken/tools/t.mjs": tool('{ type: "object", properties: { a: { type: "strng" } } }') },
    code: "SCHEMA_INVALID",
    place: "skills/broken/tools/t.mjs",
    fix: /parameters\.properties\.a\.type .* is not available/,
  },
  "properties instead of a schema": {
    files: { ...manifest, "broken/tools/t.mjs": tool('{ city: { type: "string" } }') },
    code: "SCHEMA_PROPERTIES",
    place: "skills/broken/tools/t.mjs",
    fix: /Use \{ "type": "object", "properties": \{ "city"/,
  },
  "a directory that does not exist": {
    files: {},
    code: "SKILLS_DIRECTORY_MISSING",
    place: "skills",
    fix: /Create it, or fix the configured path/,
  },
  "a file in the manifest that does not exist": {
    files: { "broken/skill.json": '{\n  "name": "broken",\n  "tools": ["tools/gone.ts"]\n}\n' },
    code: "TOOL_FILE_MISSING",
    place: "skills/broken/skill.json",
    line: 3,
    fix: /does not exist\. Add it, or remove it/,
  },
  "two tools with the same name": {
    files: {
      ...manifest,
      "broken/tools/one.mjs": tool('{ type: "object" }'),
      "broken/tools/two.mjs": tool('{ type: "object", properties: {} }'),
    },
    code: "TOOL_NAME_TWICE",
    place: "skills/broken/tools/two.mjs",
    fix: /Rename one/,
  },
};

/** Runs an entry point and returns its output as one text. */
type EntryPoint = (place: Workplace) => Promise<string>;

const skillsOf = (place: Workplace): string[] => ["--skills", place.at("skills")];
const unreachable = { env: { OPENAI_BASE_URL: "http://127.0.0.1:9/v1", OPENAI_MODEL: "none" } };

const command =
  (argv: readonly string[], setup: CliSetup = {}): EntryPoint =>
  async (place) => {
    const { stdout, stderr } = await runCli([...argv, ...skillsOf(place)], { cwd: place.path, ...setup });
    return stdout + stderr;
  };

/** Waits until the output contains what the test needs, before the command is interrupted. */
async function until(done: () => boolean): Promise<void> {
  await expect.poll(done, { interval: 20 }).toBe(true);
}

const entryPoints: Readonly<Record<string, EntryPoint>> = {
  "a program, by the log of its host": async (place) => {
    const lines: string[] = [];
    const logger = createLogger({ level: "error", write: (line) => void lines.push(line) });
    await using host = await createHost({ skillDirectories: [place.at("skills")], plugins: [], watch: false, logger });
    expect(lines.map((line) => JSON.parse(line).diagnostic.code)).toEqual(
      host.diagnostics.filter(({ severity }) => severity === "error").map(({ code }) => code),
    );
    return lines.join("\n");
  },
  dev: async (place) => {
    const cli = startCli(["dev", ...skillsOf(place)], { cwd: place.path });
    await until(() => cli.stdout.includes("loaded in"));
    cli.interrupt();
    return (await cli.done).stdout;
  },
  list: command(["list"]),
  "call, in a pipe": command(["call", "none", "--yes"]),
  "call, on a terminal": command(["call", "none", "--yes"], { isTTY: true, env: { NO_COLOR: "1" } }),
  run: command(["run", "Hello", "--no-stream"], unreachable),
  agent: command(["agent", "Hello", "--server", "no-such-program"]),
  "mcp over stdio, on stderr": async (place) => {
    const cli = startCli(["mcp", ...skillsOf(place)], { cwd: place.path, streams: { input: new PassThrough(), output: discarding() } });
    await until(() => cli.stderr.includes('"code"'));
    cli.interrupt();
    await cli.done;
    return cli.stderr;
  },
  "mcp over HTTP, on stderr": async (place) => {
    const cli = startCli(["mcp", "--http", "0", "--no-token", ...skillsOf(place)], { cwd: place.path });
    await until(() => cli.stderr.includes('"code"'));
    cli.interrupt();
    await cli.done;
    return cli.stderr;
  },
  "an MCP client up to 2025-11-25, by messages": async (place) => {
    const url = await servedOverHttp(place);
    const messages: unknown[] = [];
    const client = new Client({ name: "test", version: "1.0.0" }, { capabilities: {}, versionNegotiation: { mode: "legacy" } });
    client.setNotificationHandler("notifications/message", ({ params }) => void messages.push(params));
    await client.connect(new StreamableHTTPClientTransport(new URL(url)));
    await client.listTools();
    await client.listTools();
    await until(() => messages.length > 0);
    expect(new Set(messages.map((message) => JSON.stringify(message))).size).toBe(messages.length);
    await client.close();
    return JSON.stringify(messages);
  },
  "an MCP client of 2026-07-28, by messages": async (place) => {
    const url = await servedOverHttp(place);
    const { body, headers } = modernRequest("tools/list", {});
    const wanting = structuredClone(body) as { params: { _meta: Record<string, unknown> } };
    wanting.params._meta["io.modelcontextprotocol/logLevel"] = "error";
    const silent = await (await post(url, body, headers)).text();
    expect(silent).not.toContain("notifications/message");
    return (await post(url, wanting, headers)).text();
  },
  "an SDK client of Copilot, by events": async (place) => {
    const served = await Served.start({ host: { skillDirectories: [place.at("skills")] } });
    onTestFinished(() => served[Symbol.asyncDispose]());
    const client = await served.connect();
    await client.request("session.create", { sessionId: "s", model: "none" });
    const warnings = (): unknown[] =>
      client.events.filter(({ event: { type, data } }) => type === "session.warning" && data["warningType"] === "diagnostic");
    await until(() => warnings().length > 0);
    return JSON.stringify(warnings());
  },
};

async function servedOverHttp(place: Workplace): Promise<string> {
  const host = await createHost({
    skillDirectories: [place.at("skills")],
    plugins: [],
    watch: false,
    logger: createLogger({ level: "error", write() {} }),
  });
  const face = await serveMcp(host, { transport: "http", port: 0, token: false });
  onTestFinished(async () => {
    await face[Symbol.asyncDispose]();
    await host.close();
  });
  return face.url;
}

function discarding() {
  return { write() {}, pendingBytes: 0 };
}

describe.each(Object.entries(entryPoints))("%s", (_name, run) => {
  test.each(Object.entries(defects))(
    "the output names %s, its place, and how to fix it",
    async (_defect, { files, code, place, line, fix }) => {
      const at = workplace(Object.fromEntries(Object.entries(files).map(([path, text]) => [`skills/${path}`, text])));
      onTestFinished(() => at[Symbol.dispose]());
      // Quotes are escaped twice in JSON within JSON.
      const output = (await run(at)).replaceAll("\\\\", "\\").replaceAll('\\"', '"').replaceAll("\\\\", "\\");
      expect(output).toContain(code);
      expect(output).toContain(join(place));
      expect(output.replaceAll('\\"', '"')).toMatch(fix);
      if (line !== undefined) expect(output).toMatch(new RegExp(`:${line}:|"line":${line}\\b`));
    },
  );
});

test("a defect that a save introduces is reported once by event and log, and again only after it was fixed", async () => {
  const place = workplace({ "skills/broken/SKILL.md": document, "skills/broken/tools/t.mjs": tool('{ type: "object" }') });
  onTestFinished(() => place[Symbol.dispose]());
  const lines: string[] = [];
  const logger = createLogger({ level: "error", write: (text) => void lines.push(text) });
  await using host = await createHost({ skillDirectories: [place.at("skills")], plugins: [], watch: false, logger });
  const reported: Diagnostic[] = [];
  host.on("diagnostic", (diagnostic) => void reported.push(diagnostic));
  const save = async (text: string): Promise<void> => {
    place.write("skills/broken/tools/t.mjs", text);
    await host.reload();
    await new Promise(setImmediate);
    await new Promise(setImmediate);
  };
  await save("export default {");
  await expect.poll(() => reported.map(({ code }) => code)).toEqual(["MODULE_SYNTAX"]);
  expect(lines).toHaveLength(1);
  await save(tool('{ type: "object" }'));
  await save("export default {");
  await expect.poll(() => reported.map(({ code }) => code)).toEqual(["MODULE_SYNTAX", "MODULE_SYNTAX"]);
});

test("a terminal shows the lines of the file, with a mark below the position", async () => {
  const place = workplace({ "skills/broken/SKILL.md": document, "skills/broken/tools/t.ts": "export default {\n\ta: (,\n};\n" });
  onTestFinished(() => place[Symbol.dispose]());
  const { stderr } = await runCli(["call", "none", "--yes"], { cwd: place.path, isTTY: true, env: { NO_COLOR: "1" } });
  expect(stderr).toContain("skills/broken/tools/t.ts:2:6 error MODULE_SYNTAX");
  expect(stderr).toContain("  1 | export default {\n    > 2 |   a: (,\n        |       ^\n      3 | };");
});

test("the default skills directory need not exist", async () => {
  const place = workplace({});
  onTestFinished(() => place[Symbol.dispose]());
  const { code, stdout, stderr } = await runCli(["list"], { cwd: place.path });
  expect([code, stderr]).toEqual([0, expect.not.stringContaining("SKILLS_DIRECTORY_MISSING")]);
  expect(stdout).not.toContain("SKILLS_DIRECTORY_MISSING");
});
