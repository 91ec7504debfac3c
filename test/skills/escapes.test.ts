import { createSocket } from "node:dgram";
import { closeSync, openSync, symlinkSync } from "node:fs";
import { createServer as createHttp } from "node:http";
import type { AddressInfo } from "node:net";
import { createServer } from "node:net";
import os, { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, onTestFinished, test, vi } from "vitest";
import { findSandbox, type Sandbox } from "../../src/io/process/enclose-process.ts";
import type * as ChildTransports from "../../src/skills/isolation/child-transport.ts";
import { SkillChannel } from "../../src/skills/isolation/skill-channel.ts";
import type * as SkillLimits from "../../src/skills/isolation/skill-limits.ts";
import { buildPackage } from "../built-package.ts";
import { patience } from "../slowness.ts";
import { attemptModule, attempts, type Targets } from "./escape-attempts.ts";
import { hasSystemSandbox, openIsolated } from "./isolation-kit.ts";
import { skillMd, tempFolder } from "./kit.ts";

const built = buildPackage().folder;
// As built: a child runs the program of the package that starts it.
const isolation = join(built, "dist/skills/isolation");
const { openEnclosed } = (await import(/* @vite-ignore */ join(isolation, "child-transport.js"))) as typeof ChildTransports;
const { limitsOf } = (await import(/* @vite-ignore */ join(isolation, "skill-limits.js"))) as typeof SkillLimits;
const sandbox = await findSandbox();

type Tier = "off" | "worker" | "node" | "process";
const outcomes = new Map<string, Map<Tier, string>>();

afterAll(() => {
  const tiers: readonly Tier[] = ["off", "worker", "node", "process"];
  const rows = [...outcomes].map(
    ([name, row]) => `| ${name} | ${attempts[name]!.kind} | ${tiers.map((tier) => row.get(tier) ?? "–").join(" | ")} |`,
  );
  const head = `| attempt | kind | off | worker | permission model | ${sandbox.kind === "system" ? sandbox.by : "system sandbox"} |`;
  process.stdout.write(`${[head, "|---|---|---|---|---|---|", ...rows].join("\n")}\n`);
});

/** What the host sees of an attempt by itself. */
const seen = { tcp: 0, udp: 0, unix: 0 };

interface Place {
  readonly root: string;
  readonly targets: Targets;
}

/** The targets, with servers that count. */
async function createPlace(): Promise<Place> {
  const root = tempFolder({
    "skills/s/SKILL.md": skillMd("s"),
    "skills/s/skill.json": JSON.stringify({ name: "s", version: "1.0.0", description: "Tries to escape." }),
    "skills/s/tools/attempt.ts": attemptModule(),
    "victim.txt": "victim",
  });
  // Not beside the skill, and not in a folder that a sandbox replaces.
  const outside = tempFolder({
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
  const socket = join(tempFolder(), "s");
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

test("a process with the permission model of Node.js reaches only what it does not cover", { timeout: patience(60_000) }, async () => {
  const flag = process.allowedNodeEnvironmentFlags.has("--permission") ? "--permission" : "--experimental-permission";
  const node: Sandbox = { kind: "node", by: "Node.js", flag, why: "this is a test" };
  const place = await createPlace();
  vi.stubEnv("ESCAPE_TOKEN", "SECRET");
  onTestFinished(() => void vi.unstubAllEnvs());
  const { skill } = place.targets;
  const limits = () => limitsOf(undefined, { folder: skill, workingDirectory: place.root });
  const channel = await SkillChannel.open((at, listener) => openEnclosed(at, listener, node), { folder: skill, environment: [], limits });
  onTestFinished(() => channel.kill("the test has ended"));
  const file = join(skill, "tools/attempt.ts");
  await channel.request("load", { key: "k", file, target: { skill: { name: "s", folder: skill }, generation: 1 } });
  const run: Run = async (name) => {
    const data = { key: "k", index: 0, args: { name, targets: place.targets }, invocation: {} };
    return ((await channel.request("call", data)) as { textResultForLlm: string }).textResultForLlm;
  };
  const reached = await tryAll("node", run);
  expect(reached.filter((name) => attempts[name]!.node)).toEqual([]);
});
