import { createSocket } from "node:dgram";
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, realpathSync, rmSync, symlinkSync } from "node:fs";
import { createServer as createHttp } from "node:http";
import type { AddressInfo } from "node:net";
import { createServer } from "node:net";
import os, { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { SandboxManager } from "@anthropic-ai/sandbox-runtime";
import { afterAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { findRuntimeSandbox, findSandbox, type Sandbox } from "../../src/io/process/enclose-process.ts";
import type * as ChildTransports from "../../src/skills/isolation/child-transport.ts";
import { SkillChannel } from "../../src/skills/isolation/skill-channel.ts";
import type * as SkillLimits from "../../src/skills/isolation/skill-limits.ts";
import { buildPackage } from "../built-package.ts";
import { patience } from "../slowness.ts";
import { attemptModule, attempts, type Targets } from "./escape-attempts.ts";
import { hasSystemSandbox, openIsolated } from "./isolation-kit.ts";
import { type Files, putAll, skillMd, tempFolder } from "./kit.ts";

const built = buildPackage().folder;
// As built: a child runs the program of the package that starts it.
const isolation = join(built, "dist/skills/isolation");
const { openEnclosed } = (await import(/* @vite-ignore */ join(isolation, "child-transport.js"))) as typeof ChildTransports;
const { limitsOf } = (await import(/* @vite-ignore */ join(isolation, "skill-limits.js"))) as typeof SkillLimits;
const sandbox = await findSandbox();

const runtime = await findRuntimeSandbox("this is a test");

type Tier = "off" | "worker" | "node" | "process" | "runtime";
const outcomes = new Map<string, Map<Tier, string>>();

afterAll(async () => {
  // It has programs and sockets of its own.
  await SandboxManager.reset();
  const tiers: readonly Tier[] = ["off", "worker", "node", "process", "runtime"];
  const rows = [...outcomes].map(
    ([name, row]) => `| ${name} | ${attempts[name]!.kind} | ${tiers.map((tier) => row.get(tier) ?? "–").join(" | ")} |`,
  );
  const head = `| attempt | kind | off | worker | permission model | ${sandbox.kind === "system" ? sandbox.by : "system sandbox"} | ${typeof runtime === "string" ? "sandbox-runtime" : runtime.by} |`;
  process.stdout.write(`${[head, "|---|---|---|---|---|---|---|", ...rows].join("\n")}\n`);
});

/** What the host sees of an attempt by itself. */
const seen = { tcp: 0, udp: 0, unix: 0 };

interface Place {
  readonly root: string;
  readonly targets: Targets;
}

/** The targets, with servers that count. */
async function createPlace(folder = tempFolder): Promise<Place> {
  const root = folder({
    "skills/s/SKILL.md": skillMd("s"),
    "skills/s/skill.json": JSON.stringify({ name: "s", version: "1.0.0", description: "Tries to escape." }),
    "skills/s/tools/attempt.ts": attemptModule(),
    "victim.txt": "victim",
  });
  // Not beside the skill, and not in a folder that a sandbox replaces.
  const outside = folder({
    "secret.txt": "SECRET",
    "secret.mjs": `export const secret = "SECRET";`,
    "secret.json": `{ "secret": "SECRET" }`,
    "victim.txt": "victim",
    "fork.mjs": `process.send("SECRET");`,
  });
  const skill = join(root, "skills/s");
  symlinkSync(join(outside, "secret.txt"), join(skill, "link.txt"));
  symlinkSync(outside, join(skill, "linked"));
  symlinkSync(join(outside, "victim.txt"), join(skill, "victim-link"));
  // Names of files that modules are resolved with.
  for (const folder of [skill, join(root, "skills")]) symlinkSync(outside, join(folder, "node_modules"));
  for (const name of ["package.json", "tsconfig.base.json"]) symlinkSync(join(outside, "secret.json"), join(root, "skills", name));
  const fd = openSync(join(outside, "secret.txt"), "r");
  onTestFinished(() => closeSync(fd));
  const http = createHttp((_request, answer) => answer.end("SECRET"));
  http.on("connection", () => void seen.tcp++);
  const udp = createSocket("udp4");
  udp.on("message", () => void seen.udp++);
  const socket = join(folder(), "s");
  const abstract = `\0skillhost-escape-${process.pid}`;
  const locals = [socket, ...(process.platform === "linux" ? [abstract] : [])].map((path) => {
    const server = createServer((connection) => {
      seen.unix++;
      connection.on("error", () => {});
      connection.destroy();
    });
    return new Promise<typeof server>((done) => void server.listen(path, () => done(server)));
  });
  await new Promise<void>((done) => void http.listen(0, "127.0.0.1", done));
  await new Promise<void>((done) => void udp.bind(0, "127.0.0.1", done));
  const servers = await Promise.all(locals);
  onTestFinished(() => {
    http.closeAllConnections();
    for (const each of [http, udp, ...servers]) each.close();
  });
  return {
    root,
    targets: {
      secret: join(outside, "secret.txt"),
      outside,
      victim: join(outside, "victim.txt"),
      skill,
      host: join(built, "dist"),
      home: homedir(),
      temporary: tmpdir(),
      port: (http.address() as AddressInfo).port,
      udpPort: udp.address().port,
      socket,
      abstract,
      hostPid: process.pid,
    },
  };
}

type Run = (name: string) => Promise<string>;

/** Makes all attempts, and returns the names of those that reached their target. */
async function tryAll(tier: Tier, run: Run): Promise<readonly string[]> {
  const reached: string[] = [];
  for (const [name, { counts }] of Object.entries(attempts)) {
    const before = { ...seen };
    let answer = await run(name);
    if (counts !== undefined && seen[counts] > before[counts]) answer = "reached";
    if (leftInHost()) answer = "reached";
    outcomes.set(name, (outcomes.get(name) ?? new Map<Tier, string>()).set(tier, answer));
    if (answer === "reached") reached.push(name);
    expect(answer, name).toMatch(/^(?:reached|refused: .*|without effect)$/);
  }
  return reached;
}

/** Whether an attempt has changed this process, and undoes it. */
function leftInHost(): boolean {
  const objects: object[] = [globalThis, Object.prototype, process.env, os];
  const keys = ["escaped", "ESCAPE_CHANGED"];
  const found = objects.flatMap((object) => keys.filter((key) => Object.hasOwn(object, key)).map((key) => [object, key] as const));
  for (const [object, key] of found) Reflect.deleteProperty(object, key);
  return found.length > 0;
}

async function openHost(isolation: "off" | "worker" | "process", place: Place): Promise<Run> {
  vi.stubEnv("ESCAPE_TOKEN", "SECRET");
  onTestFinished(() => void vi.unstubAllEnvs());
  const { host, text } = await openIsolated(join(place.root, "skills"), { isolation });
  expect(host.diagnostics.filter(({ severity }) => severity === "error")).toEqual([]);
  return (name) => text("attempt", { name, targets: place.targets });
}

test("there are at least 40 attempts, and without isolation each of them succeeds", {
  timeout: patience(60_000),
}, async () => {
  expect(Object.keys(attempts).length).toBeGreaterThanOrEqual(40);
  const place = await createPlace();
  const reached = await tryAll("off", await openHost("off", place));
  expect(Object.keys(attempts).filter((name) => !reached.includes(name))).toEqual([]);
});

test("a worker thread keeps its globals to itself, and promises nothing else", { timeout: patience(60_000) }, async () => {
  const place = await createPlace();
  const reached = await tryAll("worker", await openHost("worker", place));
  expect(reached.filter((name) => attempts[name]!.kind === "memory")).toEqual([]);
  expect(reached).toContain("read a file by its absolute path");
});

test.skipIf(!hasSystemSandbox)("a process in a sandbox of the system reaches nothing", { timeout: patience(60_000) }, async () => {
  const place = await createPlace();
  expect(await tryAll("process", await openHost("process", place))).toEqual([]);
});

const flag = process.allowedNodeEnvironmentFlags.has("--permission") ? "--permission" : "--experimental-permission";
/** From Node.js 25 on. */
const limitsNetwork = process.allowedNodeEnvironmentFlags.has("--allow-net");
const node: Sandbox = { kind: "node", by: "Node.js", flag, limitsNetwork, why: "this is a test" };

/** A child in a sandbox that this machine would not choose, of a skill that declares these hosts. */
async function openChild(chosen: Sandbox, { root, targets }: Place, hosts: readonly string[] = []): Promise<Run> {
  vi.stubEnv("ESCAPE_TOKEN", "SECRET");
  onTestFinished(() => void vi.unstubAllEnvs());
  const { skill } = targets;
  const limits = () => limitsOf({ env: [], hosts }, { folder: skill, workingDirectory: root });
  const channel = await SkillChannel.open((at, listener) => openEnclosed(at, listener, chosen), { folder: skill, environment: [], limits });
  onTestFinished(() => channel.kill("the test has ended"));
  const file = join(skill, "tools/attempt.ts");
  await channel.request("load", { key: "k", file, target: { skill: { name: "s", folder: skill }, generation: 1 } });
  return async (name) => {
    const data = { key: "k", index: 0, args: { name, targets }, invocation: {} };
    return ((await channel.request("call", data)) as { textResultForLlm: string }).textResultForLlm;
  };
}

test("a process with the permission model of Node.js reaches only what it does not cover", { timeout: patience(60_000) }, async () => {
  const reached = await tryAll("node", await openChild(node, await createPlace()));
  const isCovered = (name: string): boolean => attempts[name]!.node === true || (limitsNetwork && attempts[name]!.kind === "network");
  expect(reached.filter(isCovered)).toEqual([]);
});

test("a process with the permission model of Node.js reaches the network if its skill declares hosts", {
  timeout: patience(60_000),
}, async () => {
  const run = await openChild(node, await createPlace(), ["localhost"]);
  expect(await run("fetch from a local port")).toBe("reached");
  expect(await run("connect to a local port by name")).toBe("reached");
});

/** The runtime shows nothing of the folder in which temporary folders of tests may lie. */
function folderOnDisk(files: Files = {}): string {
  const folder = realpathSync(mkdtempSync("/var/tmp/sh-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  putAll(folder, files);
  return folder;
}

const declared = `import { defineTool } from "skillhost";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
const attempt = (run: () => unknown) => { try { return run(); } catch (error: any) { return error.code; } };
const keep = (file: string, text: string) => attempt(() => { writeFileSync(file, text); return readFileSync(file, "utf8"); });
const fetched = (url: string) => fetch(url).then((answer) => answer.text(), (error) => error.cause.message);
export default defineTool("all", {
  description: "Reaches what it can.",
  parameters: { type: "object", properties: { root: { type: "string" }, port: { type: "number" } } },
  handler: async ({ root, port }: any) => ({
    in: attempt(() => readFileSync(join(root, "data/in.txt"), "utf8")),
    other: attempt(() => { writeFileSync(join(root, "beside.txt"), ""); return readFileSync(join(root, "other.txt"), "utf8"); }),
    out: keep(join(root, "out/a.txt"), "written"),
    temporary: keep(join(process.env.TMPDIR!, "t.txt"), "kept"),
    variables: Object.keys(process.env),
    declared: await fetched("http://localhost:" + port),
    undeclared: await fetched("http://example.com/"),
  }),
});
`;

describe.skipIf(typeof runtime === "string")("a process in the sandbox of an optional package", () => {
  test("reaches nothing", { timeout: patience(60_000) }, async () => {
    expect(await tryAll("runtime", await openChild(runtime as Sandbox, await createPlace(folderOnDisk)))).toEqual([]);
  });

  test("opens what is declared: files, folders to write to, and hosts through the host", { timeout: patience(60_000) }, async () => {
    const root = folderOnDisk({ "data/in.txt": "in", "other.txt": "other", "s/SKILL.md": skillMd("s"), "s/tools/all.ts": declared });
    const server = createHttp((_request, answer) => answer.end("answered"));
    await new Promise<void>((done) => void server.listen(0, "127.0.0.1", done));
    onTestFinished(() => void server.close());
    const { port } = server.address() as AddressInfo;
    vi.stubEnv("TMPDIR", folderOnDisk());
    onTestFinished(() => void vi.unstubAllEnvs());
    const folder = join(root, "s");
    const permissions = { env: [], read: [join(root, "data/in.txt")], write: [join(root, "out")], hosts: ["localhost"] };
    const limits = () => limitsOf(permissions, { folder, workingDirectory: root });
    const channel = await SkillChannel.open((at, listener) => openEnclosed(at, listener, runtime as Sandbox), {
      folder,
      environment: [],
      limits,
    });
    onTestFinished(() => channel.kill("the test has ended"));
    const file = join(folder, "tools/all.ts");
    await channel.request("load", { key: "k", file, target: { skill: { name: "s", folder }, generation: 1 } });
    const data = { key: "k", index: 0, args: { root, port }, invocation: {} };
    const { textResultForLlm } = (await channel.request("call", data)) as { textResultForLlm: string };
    expect(JSON.parse(textResultForLlm)).toEqual({
      in: "in",
      other: "ENOENT",
      out: "written",
      temporary: "kept",
      variables: expect.not.arrayContaining(["HTTP_PROXY", "SANDBOX_RUNTIME"]),
      declared: "answered",
      undeclared: expect.stringContaining('does not declare the host "example.com"'),
    });
    expect(readFileSync(join(root, "out/a.txt"), "utf8")).toBe("written");
    // Some of what it does not reach are folders in memory.
    expect(existsSync(join(root, "beside.txt"))).toBe(false);
  });
});
