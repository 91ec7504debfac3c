import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { gunzipSync, gzipSync } from "node:zlib";
import { afterAll, expect, test } from "vitest";
import { readCall, readControl, readOffers, readPresence, readWorkerMessage } from "../../plugins/nats/call-messages.ts";
import { FrameReader as FleetReader } from "../../plugins/nats/frames.ts";
import { randomFrom } from "../../scripts/random.mjs";
import { HostError } from "../../src/base/errors.ts";
import { silentLogger } from "../../src/base/logger.ts";
import { parseAgentFile } from "../../src/formats/agents/agent-file.ts";
import { parseStoredCalls } from "../../src/formats/calls/stored-calls.ts";
import { parseMcpConfig } from "../../src/formats/mcp/mcp-config.ts";
import { parseMarkdownCommand, parseTomlCommand } from "../../src/formats/plugins/command-file.ts";
import { parseHookConfig } from "../../src/formats/plugins/hook-config.ts";
import { parseMarketplace } from "../../src/formats/plugins/marketplace.ts";
import { parsePluginManifest } from "../../src/formats/plugins/plugin-manifest.ts";
import { readForeignPermissions } from "../../src/formats/skills/foreign-permissions.ts";
import { parsePromptFile } from "../../src/formats/skills/prompt-file.ts";
import { parseSkillDocument } from "../../src/formats/skills/skill-document.ts";
import { parseSkillManifest } from "../../src/formats/skills/skill-manifest.ts";
import { parseToolJson } from "../../src/formats/skills/tool-json.ts";
import { readLogLines, toRecord } from "../../src/io/log/read-log.ts";
import type { ManagedProcess } from "../../src/io/process/child-process.ts";
import { readElicitation } from "../../src/mcp/connection/server-requests.ts";
import { LineSplitter, StdioTransport } from "../../src/mcp/connection/stdio-transport.ts";
import { readSkillEntry } from "../../src/mcp/views/remote-skill.ts";
import { inspectTarball } from "../../src/packages/inspect-tarball.ts";
import { lockFileName, readLock } from "../../src/packages/lock-file.ts";
import { parseSkillIndex } from "../../src/packages/sources/skill-index.ts";
import { hookAnswer } from "../../src/plugin-host/bundles/hooks/hook-answer.ts";
import { FrameReader } from "../../src/servers/copilot/connection/frames.ts";
import { FrameSplitter, parseFrame } from "../../src/skills/isolation/child-frames.ts";
import type { ChildListener } from "../../src/skills/isolation/child-transport.ts";
import { SkillChannel } from "../../src/skills/isolation/skill-channel.ts";
import { parseUriTemplate } from "../../src/tools/define/uri-template.ts";
import type { ToolContext } from "../../src/tools/tool.ts";
import { normalizeResult } from "../../src/tools/tool-result.ts";
import { readApprovalLog } from "../../src/trust/approval-log.ts";
import { signatureFileName } from "../../src/trust/folder-digests.ts";
import { parseGitIndex } from "../../src/trust/installed-packages.ts";
import { parseSignature } from "../../src/trust/skill-signature.ts";
import { readTrustFile } from "../../src/trust/trust-file.ts";
import { fetchSaying, listen } from "../models/models-kit.ts";
import { apiModel, wireApis } from "../models/wire-apis.ts";
import { tarball } from "../packages/tar-kit.ts";
import { generated, seed } from "../rounds.ts";
import { putAll, tempFolder } from "../skills/kit.ts";
import { patience } from "../slowness.ts";
import { makeKey, resign } from "../trust/signatures/signing-kit.ts";
import { mutate } from "./mutate-input.ts";

/** What reads input from outside: it returns, or throws an error of this project. */
interface Reader {
  readonly samples: readonly (string | Buffer)[];
  /** Returns how much it made of the input, for the limit of what an input may grow to. */
  read(input: Buffer, folder: string): unknown;
}

const json = (value: unknown): string => JSON.stringify(value);
const frame = (text: string): string => `Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`;
const text = (input: Buffer): string => input.toString("utf8");
const inFile =
  (name: string, read: (file: string, folder: string) => unknown) =>
  (input: Buffer, folder: string): unknown => {
    writeFileSync(join(folder, name), input);
    return read(join(folder, name), folder);
  };
const skillText =
  "---\nname: tidy\ndescription: |\n  Use when: asked\n  - or not\nallowed-tools: Bash(git:*) Read\nmetadata:\n  a: b\n---\n# Tidy\n\n$1 {baseDir}\n";
const manifest = {
  name: "tidy",
  version: "1.0.0",
  prompts: ["a.md"],
  tools: ["b.json", { name: "x" }],
  author: { name: "A" },
  engines: { skillhost: "^1" },
  permissions: { env: ["A"], hosts: ["*.example.org"], programs: ["git"], read: ["../x"], write: ["~/y"], tools: ["github/*"] },
  requires: { other: "^2" },
};
const toolSamples = [
  json({
    name: "lint",
    parameters: { type: "object", properties: { p: {} } },
    timeout: 5,
    handler: { command: "x", args: ["${p}"], env: { A: "b" } },
  }),
  json({
    name: "get",
    handler: { http: { method: "POST", url: "https://a.b/${p}?q=${env:X:-y}", headers: { A: "b" }, body: { c: "${p}" } } },
  }),
];
const rpc = [
  json({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "x", arguments: { a: [1, { b: null }] } } }),
  json({ jsonrpc: "2.0", id: "a", result: { content: [{ type: "text", text: "t" }] } }),
  json({ jsonrpc: "2.0", method: "notifications/progress", params: { progressToken: 1, progress: 0.5 } }),
];
const hookCommand = parseHookConfig(json({ hooks: { PreToolUse: [{ hooks: [{ type: "command", command: "x" }] }] } }), {
  file: "/p/hooks.json",
  dialect: "claude",
}).hooks[0]!;

/** Undefined: the input is not JSON, which its reader is not given. */
function jsonOf(input: Buffer): unknown {
  try {
    return JSON.parse(text(input));
  } catch {
    return undefined;
  }
}

/** A channel whose child says these lines while one call runs. Returns how much was said to the child. */
async function hearChild(input: Buffer): Promise<number> {
  let child: ChildListener | undefined;
  let sent = 0;
  const channel = await SkillChannel.open(
    async (_place, listener) => {
      child = listener;
      const send = (frame: string): void => {
        sent += frame.length;
      };
      return { send, kill: async () => listener.ended("it was ended"), suits: () => true };
    },
    { folder: "/", environment: [], tools: ["github/*"] },
  );
  const nothing = (): void => {};
  const answers = { ask: async () => ({}), callTool: async () => ({}) };
  const context = { progress: nothing, fileChanged: nothing, background: nothing, ...answers } as unknown as ToolContext;
  const call = channel.request("call", {}, { context }).catch(nothing);
  for (const line of text(input).split("\n")) child?.received(line);
  await channel.kill("the input has ended");
  await call;
  return sent;
}

/** The transport of an MCP server that writes this. Returns how many messages it made of it. */
async function hearServer(input: Buffer): Promise<number> {
  const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()];
  const exit = { code: 0, signal: null };
  const ended = new Promise<typeof exit>((resolve) => void stdin.once("finish", () => resolve(exit)));
  const process = { pid: 1, stdin, stdout, stderr, ended, stop: async () => exit } as unknown as ManagedProcess;
  const transport = new StdioTransport(process, { serverName: "fuzzed", maxMessageBytes: 500, log: silentLogger });
  let heard = 0;
  transport.onmessage = () => heard++;
  await transport.start();
  stdout.write(input.subarray(0, input.length >> 1));
  stdout.write(input.subarray(input.length >> 1));
  await new Promise(setImmediate);
  await transport.close();
  return heard;
}

/** An index of Git, version 2, with one entry. */
function gitIndex(path: string): Buffer {
  const header = Buffer.alloc(12);
  header.write("DIRC");
  header.writeUInt32BE(2, 4);
  header.writeUInt32BE(1, 8);
  const entry = Buffer.alloc(Math.ceil((62 + path.length + 1) / 8) * 8);
  entry.writeUInt16BE(path.length, 60);
  entry.write(path, 62);
  return Buffer.concat([header, entry, Buffer.alloc(20)]);
}

const key = makeKey();
const signature = await sampleSignature();

async function sampleSignature(): Promise<Buffer> {
  const folder = mkdtempSync(join(tmpdir(), "signed-"));
  putAll(folder, { "SKILL.md": skillText });
  await resign(folder, key, { skill: "tidy", version: undefined, tools: new Map() });
  const bytes = readFileSync(join(folder, signatureFileName));
  rmSync(folder, { recursive: true });
  return bytes;
}

const forms = ["handler", "execute", "wire"] as const;
const dialects = ["agent-plugins", "claude", "copilot", "codex", "gemini", "cursor", "openclaw"] as const;

const readers: Readonly<Record<string, Reader>> = {
  "frames with Content-Length": {
    samples: [frame(rpc[0]!), frame(rpc[0]!) + frame(rpc[1]!), `content-length: 2\r\nX: y\r\n\r\n{}`],
    read(input) {
      let seen = 0;
      const reader = new FrameReader({ message: () => seen++, unreadable: () => seen++, lost: () => seen++ });
      const cut = input.length >> 1;
      reader.push(input.subarray(0, cut));
      reader.push(input.subarray(cut));
      return seen;
    },
  },
  "frames of isolated skills": {
    samples: [
      `${json({ kind: "result", id: 1, value: { a: [1] } })}\n`,
      `${json({ kind: "connect", connection: 1, host: "a", port: 80 })}\n{}\n`,
    ],
    read(input) {
      let seen = 0;
      const splitter = new FrameSplitter(
        (line) => (seen += parseFrame(line) === undefined ? 0 : 1),
        () => {},
      );
      splitter.add(input.subarray(0, input.length >> 1));
      splitter.add(input.subarray(input.length >> 1));
      return seen;
    },
  },
  "messages of isolated skills": {
    samples: [
      [
        { kind: "progress", id: 1, update: { message: "half", progress: 1 } },
        { kind: "file", id: 1, path: "a.md", content: "x", options: { beforeBase64: "eA==" } },
        { kind: "background", id: 1, work: 1 },
        { kind: "settled", id: 1, work: 1 },
        { kind: "result", id: 1, value: { resultType: "success", textResultForLlm: "x" } },
      ],
      [{ kind: "callTool", id: 1, ask: 1, ref: "github/issues", args: { a: 1 } }],
      [{ kind: "ask", id: 1, ask: 2, what: "userInput", data: { question: "Which?" }, options: { timeout: 5 } }],
      [{ kind: "error", id: 1, error: { name: "E", message: "m", stack: "s", code: "MODULE_THREW", position: { line: 1, column: 1 } } }],
      [{ kind: "changed", id: 1, listener: 1 }],
    ].map((frames) => frames.map(json).join("\n")),
    read: hearChild,
  },
  "messages of MCP servers": { samples: rpc.map((each) => `${each}\n`), read: hearServer },
  "what MCP servers ask and list": {
    samples: [
      json({ message: "Who?", mode: "form", requestedSchema: { type: "object", properties: { name: { type: "string", default: "x" } } } }),
      json({
        uri: "skill://house/tidy/SKILL.md",
        frontmatter: { name: "tidy", description: "Tidies." },
        resources: [{ uri: "skill://house/tidy/SKILL.md", digest: `sha256:${"0".repeat(64)}`, size: 5 }],
      }),
    ],
    read: (input) => json([readElicitation(jsonOf(input)), readSkillEntry(jsonOf(input))]).length,
  },
  "answers of tools": {
    samples: [
      json({
        resultType: "failure",
        textResultForLlm: "x",
        binaryResultsForLlm: [{ data: "eA==", mimeType: "image/png" }],
        meta: { a: 1 },
      }),
      json({
        content: [
          { type: "text", text: "t" },
          { type: "resource", resource: { uri: "a:b", blob: "eA==" } },
        ],
        structuredContent: { a: [1] },
        isError: false,
      }),
    ],
    read: (input) => forms.reduce((sum, form) => sum + json(normalizeResult(jsonOf(input), { form })).length, 0),
  },
  "messages of a fleet": {
    samples: [
      json({ v: 1, call: "call-0001", session: "s", toolCall: "t", args: { a: 1 }, traceparent: "00-0-0-00" }),
      json({ worker: "worker-01", type: "ask", id: 1, kind: "userInput", data: {} }),
      json({ call: "call-0001", type: "answer", id: 1, value: {} }),
      json({ v: 1, type: "here", worker: "worker-01", tools: "x" }),
      json({ tools: [{ signature: "x", definition: { name: "a" } }] }),
      "part-1 0 2 {",
    ],
    read(input) {
      const reader = new FleetReader(1_000);
      const [, part = "", rest = ""] = /^(part-\S* \S* \S*)? ?(.*)$/s.exec(text(input)) ?? [];
      const headers = { get: () => part } as never;
      const frames = [rest, rest].map((data) => reader.read({ data: Buffer.from(data), ...(part !== "" && { headers }) }));
      const values = frames.flatMap((each) => (each.kind === "whole" ? [each.value] : []));
      return json(values.map((each) => [readCall(each), readWorkerMessage(each), readControl(each), readPresence(each), readOffers(each)]))
        .length;
    },
  },
  "lines of MCP servers": {
    samples: rpc.map((each) => `${each}\n`),
    read(input) {
      let seen = 0;
      const splitter = new LineSplitter(
        500,
        () => seen++,
        () => seen++,
      );
      splitter.push(input.subarray(0, input.length >> 1));
      splitter.push(input.subarray(input.length >> 1));
      return seen;
    },
  },
  "skill.json": { samples: [json(manifest)], read: (input) => parseSkillManifest(text(input), "skill.json").diagnostics.length },
  "SKILL.md": {
    samples: [skillText, "# Title\n\nA paragraph.\n", "---\nname: &a t\ndescription: *a\nx: {y: [1, 'z']}\n---\nB"],
    read: (input) => parseSkillDocument(text(input), { file: "/s/tidy/SKILL.md", directoryName: "tidy" }).diagnostics.length,
  },
  "prompt files": { samples: [skillText], read: (input) => parsePromptFile(text(input), "p.md").diagnostics.length },
  "tool JSON": { samples: toolSamples, read: (input) => parseToolJson(text(input), "t.json").diagnostics.length },
  "agent files": {
    samples: ["---\nname: reviewer\ndescription: Reviews.\ntools: [read, search]\nmodel: x\n---\nReview.\n"],
    read: (input) => parseAgentFile(text(input), "a.md").diagnostics.length,
  },
  "plugin manifests": {
    samples: [
      json({
        $schema: "https://agent-plugins.org/schemas/v1/plugin.json",
        name: "house",
        version: "1.0.0",
        author: { name: "A" },
        keywords: ["a"],
        skills: ["./skills"],
        hooks: { PreToolUse: [] },
        mcpServers: { a: { command: "x" } },
        settings: [{ name: "A", envVar: "A" }],
      }),
    ],
    read: (input) =>
      dialects.reduce(
        (sum, dialect) => sum + parsePluginManifest(text(input), { file: "/p/plugin.json", dialect, folderName: "p" }).diagnostics.length,
        0,
      ),
  },
  "commands of plugins": {
    samples: [
      "---\ndescription: Reviews.\nargument-hint: <file>\n---\nReview $ARGUMENTS and $1 in ${CLAUDE_PLUGIN_ROOT}.\n",
      'description = "Reviews."\nprompt = """\nReview {{args}}.\n!{ls}\n"""\n[more]\na = [1, 2.5, 1979-05-27T07:32:00Z]\n',
    ],
    read(input) {
      const places = { CLAUDE_PLUGIN_ROOT: "/p" };
      const parsed = [parseMarkdownCommand(text(input), "c.md", places), parseTomlCommand(text(input), "c.toml", places)];
      return parsed.reduce((sum, { command, diagnostics }) => sum + diagnostics.length + (command?.expand("a b").length ?? 0), 0);
    },
  },
  "agents/openai.yaml": {
    samples: [
      'permissions:\n  network:\n    enabled: true\n  file_system:\n    read: ["/a"]\n    write: [~/b]\ndependencies:\n  tools:\n    - type: mcp\n      value: github\n    - {type: env_var, value: TOKEN}\n',
    ],
    read: (input) =>
      json(readForeignPermissions({ document: "SKILL.md", allowedTools: ["Read"], sidecar: { file: "openai.yaml", text: text(input) } }))
        .length,
  },
  "indexes of skills": {
    samples: [
      json({ skills: [{ name: "a", description: "d", files: ["SKILL.md", "x/y.md"] }] }),
      json({ skills: [{ name: "b", type: "archive", url: "b.tgz", digest: `sha256:${"0".repeat(64)}` }] }),
    ],
    read: (input) => json(parseSkillIndex(text(input), "https://a.example/.well-known/skills/index.json") ?? null).length,
  },
  "indexes of Git": {
    samples: [gitIndex("node_modules/a/b.js")],
    read: (input) => json(parseGitIndex(input) ?? null).length,
  },
  "MCP configurations": {
    samples: [
      json({ mcpServers: { a: { command: "x", args: ["${A}"], env: { B: "c" } }, b: { url: "https://a.example/", headers: { A: "b" } } } }),
    ],
    read: (input) => parseMcpConfig(text(input), { file: "/p/mcp.json" }).diagnostics.length,
  },
  "hook configurations": {
    samples: [json({ hooks: { PreToolUse: [{ matcher: "Edit|Write", hooks: [{ type: "command", command: "x", timeout: 5 }] }] } })],
    read: (input) => parseHookConfig(text(input), { file: "/p/hooks.json", dialect: "claude" }).diagnostics.length,
  },
  "output of hooks": {
    samples: [
      json({ hookSpecificOutput: { permissionDecision: "deny", permissionDecisionReason: "r", updatedInput: { a: 1 } }, continue: false }),
      json({ decision: "block", reason: "why" }),
    ],
    read: (input) =>
      json(hookAnswer(hookCommand, { toolName: "bash", toolArgs: { command: "x" } }, { code: 0, stdout: text(input), stderr: "" }) ?? null)
        .length,
  },
  marketplaces: {
    samples: [json({ name: "m", owner: { name: "o" }, plugins: [{ name: "p", source: "./p", version: "1.0.0", strict: false }] })],
    read: (input) => parseMarketplace(text(input), "marketplace.json").diagnostics.length,
  },
  "calls.json": {
    samples: [
      json({ calls: { first: { tool: "x", arguments: { a: 1 }, expect: { text: "y", data: { b: [1] } } } } }),
      json([{ name: "a", tool: "b" }]),
    ],
    read: (input) => parseStoredCalls(text(input), "calls.json"),
  },
  "URI templates": {
    samples: ["notes://{year}/{name}", "a:{+path}{?q,r*}"],
    read: (input) => parseUriTemplate(text(input)).match("notes://2020/x"),
  },
  signatures: {
    samples: [signature],
    read: (input) => parseSignature(text(input)).ok,
  },
  "lock files": {
    samples: [
      json({
        lockfileVersion: 1,
        packages: {
          a: {
            version: "1.0.0",
            files: { "a.md": "sha256:0" },
            skills: { s: { name: "s", tools: { t: { signature: "x" } }, permissions: { env: ["A"] } } },
          },
        },
        skills: {},
      }),
    ],
    read: inFile(lockFileName, (_file, folder) => json(readLock(folder)).length),
  },
  "trust.json": {
    samples: [
      json({
        folders: [{ path: "/p", identity: "a", trustedAt: "2026-01-01T00:00:00.000Z" }],
        keys: [{ key: key.text, id: key.publicKey.id }],
        policy: { package: "require" },
        packages: ["@acme/*"],
      }),
    ],
    read: inFile("trust.json", (file) => json(readTrustFile(file)).length),
  },
  "recorded logs": {
    samples: [`${json({ type: "a", id: 1, data: { x: [1] } })}\n${json({ type: "b" })}\n`],
    read: inFile("log.jsonl", async (file) => (await readLogLines(file)).records.length),
  },
  "logs of approvals": {
    samples: [`${json({ time: "2026-01-01T00:00:00.000Z", user: "u", action: "approved", kind: "tool", id: "a", by: "b", scope: {} })}\n`],
    read: inFile("approvals.log", (file) => json(readApprovalLog(file)).length),
  },
  "records of logs": {
    samples: [json({ type: "a", id: 1, data: { x: [1] } })],
    read: (input) => Object.keys(toRecord(input) ?? {}).length,
  },
  tarballs: {
    samples: [
      gunzipSync(
        tarball([
          { path: "package/package.json", data: "{}" },
          { path: "package/skills/a/SKILL.md", data: skillText },
        ]),
      ),
    ],
    read: async (input) => (await inspectTarball([gzipSync(input, { level: 1 })])).files,
  },
  ...Object.fromEntries(
    wireApis.slice(0, 3).map((api) => [
      `streams of models (${api.name})`,
      {
        samples: [
          api.events({ content: "Grüße 🤔", reasoning: "Hm.", toolCalls: [{ id: "a", name: "f", arguments: { a: [1, "\\"] } }] }).join(""),
        ],
        read: async (input: Buffer) => {
          const { reply, deltas } = await listen(apiModel(api, "http://model.test", { fetch: fetchSaying([input]), retries: 0 }));
          return deltas.length + (reply?.content.length ?? 0);
        },
      } satisfies Reader,
    ]),
  ),
};

/** Inputs that a reader once failed for: they are read first. */
const failures = JSON.parse(readFileSync(new URL("input-failures.json", import.meta.url), "utf8")) as Readonly<
  Record<string, readonly string[]>
>;
const most = generated(300, 100_000);
const counts = new Map<string, { inputs: number; refused: number }>();

afterAll(() => {
  if (most > 10_000)
    process.stdout.write(
      `Inputs read, seed ${seed}:\n${[...counts].map(([name, { inputs, refused }]) => `  ${name}: ${inputs}, of which ${refused} were refused with an error`).join("\n")}\n`,
    );
});

test.each(Object.entries(readers))(
  "%s: every input is read or refused, and none is taken for another",
  { timeout: patience(600_000) },
  async (name, { samples, read }) => {
    const folder = join(tempFolder(), "f");
    mkdirSync(folder);
    const random = randomFrom(seed ^ name.length);
    const bytes = samples.map((sample) => Buffer.from(sample));
    const before = Reflect.ownKeys(Object.prototype).length;
    let refused = 0;
    const check = async (input: Buffer): Promise<void> => {
      try {
        const made = read(input, folder);
        const size = made instanceof Promise ? ((await made) as unknown) : made;
        if (typeof size === "number" && size > 100_000 + 100 * input.length) expect.fail(`it made ${size} of ${input.length} bytes`);
      } catch (error) {
        if (!(error instanceof HostError) || !/^[A-Z][A-Z_]+$/.test(error.code) || error.message === "")
          throw new Error(`Fails for ${json(input.toString("base64"))}: ${(error as Error).stack}`, { cause: error });
        refused++;
      }
      if (Reflect.ownKeys(Object.prototype).length !== before)
        throw new Error(`Changes Object.prototype for ${json(input.toString("base64"))}`);
    };
    const known = failures[name] ?? [];
    for (const sample of bytes) await check(sample);
    expect(refused, "the samples are valid").toBe(0);
    for (const each of known) await check(Buffer.from(each, "base64"));
    for (let count = 0; count < most; count++) await check(mutate(bytes, random));
    counts.set(name, { inputs: most, refused });
  },
);
