import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import { afterAll, expect, test } from "vitest";
import { randomFrom } from "../../scripts/random.mjs";
import { HostError } from "../../src/base/errors.ts";
import { parseAgentFile } from "../../src/formats/agents/agent-file.ts";
import { parseStoredCalls } from "../../src/formats/calls/stored-calls.ts";
import { parseMcpConfig } from "../../src/formats/mcp/mcp-config.ts";
import { parseHookConfig } from "../../src/formats/plugins/hook-config.ts";
import { parseMarketplace } from "../../src/formats/plugins/marketplace.ts";
import { parsePromptFile } from "../../src/formats/skills/prompt-file.ts";
import { parseSkillDocument } from "../../src/formats/skills/skill-document.ts";
import { parseSkillManifest } from "../../src/formats/skills/skill-manifest.ts";
import { parseToolJson } from "../../src/formats/skills/tool-json.ts";
import { readLogLines, toRecord } from "../../src/io/log/read-log.ts";
import { LineSplitter } from "../../src/mcp/connection/stdio-transport.ts";
import { inspectTarball } from "../../src/packages/inspect-tarball.ts";
import { lockFileName, readLock } from "../../src/packages/lock-file.ts";
import { hookAnswer } from "../../src/plugin-host/bundles/hooks/hook-answer.ts";
import { FrameReader } from "../../src/servers/copilot/connection/frames.ts";
import { FrameSplitter, parseFrame } from "../../src/skills/isolation/child-frames.ts";
import { parseUriTemplate } from "../../src/tools/define/uri-template.ts";
import { signatureFileName } from "../../src/trust/folder-digests.ts";
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
  /** The share of the rounds, of readers that take long for each input. Default: 1. */
  readonly share?: number;
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
    share: 0.1,
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
    share: 0.5,
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
        share: 0.34,
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
  async (name, { samples, read, share = 1 }) => {
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
    const inputs = Math.ceil(most * share);
    for (let count = 0; count < inputs; count++) await check(mutate(bytes, random));
    counts.set(name, { inputs, refused });
  },
);
