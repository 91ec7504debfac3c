import { mkdirSync, readdirSync, readFileSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { emptyFolder } from "../../io/temp-folder.ts";
import { settled } from "../manual-clock.ts";
import { FakeServers, type Kit, keepingLog, localSpec, makeKit, neverAborted, remoteSpec } from "../supervisor-kit.ts";

const offering = (name: string): FakeServers => new FakeServers({ tools: () => [{ name }] });

/** One run of the program: starts a server, and ends when what it offered has been kept. */
async function run(kit: Kit, name = "srv"): Promise<void> {
  await kit.supervisor.acquire([localSpec(name)]).ready(neverAborted, { fresh: true });
  await kit.supervisor[Symbol.asyncDispose]();
}

test("the next start offers at once what a server offered the last time, and replaces it when it is up", async () => {
  const cacheDirectory = join(emptyFolder(), "not", "there", "yet");
  await run(makeKit(offering("old"), { cacheDirectory }));
  const servers = new FakeServers({ tools: () => [{ name: "new" }] }, false);
  const { supervisor } = makeKit(servers, { cacheDirectory });
  const lease = supervisor.acquire([localSpec("srv")]);
  expect(lease.servers[0]?.lists).toMatchObject({ from: "cache", tools: [{ name: "old" }], instructions: "Use it well." });
  expect(Object.isFrozen(lease.servers[0]?.lists)).toBe(true);
  expect(lease.servers[0]?.status).toMatchObject({ state: "idle", serverInfo: { name: "fake", version: "1" } });
  // Cached lists are available at once.
  await lease.ready(neverAborted);
  expect(lease.servers[0]?.state).toBe("starting");
  await settled();
  expect(servers.lastTry.request.prior).toEqual({ era: "legacy", protocolVersion: "2025-11-25" });
  servers.lastTry.accept();
  await settled();
  expect(lease.servers[0]?.lists).toMatchObject({ from: "server", tools: [{ name: "new" }] });
});

test("who wants fresh lists waits for them", async () => {
  const cacheDirectory = emptyFolder();
  await run(makeKit(offering("old"), { cacheDirectory }));
  const { supervisor } = makeKit(offering("new"), { cacheDirectory });
  const lease = supervisor.acquire([localSpec("srv")]);
  await lease.ready(neverAborted, { fresh: true });
  expect(lease.servers[0]?.lists?.tools).toEqual([{ name: "new" }]);
});

test("it is private, and holds nothing of how a server is reached", async () => {
  const cacheDirectory = join(emptyFolder(), "lists");
  const { supervisor } = makeKit(offering("add"), { cacheDirectory });
  await supervisor
    .acquire([
      localSpec("one", { args: ["--key=planted-a"], env: { TOKEN: "planted-b" }, cwd: "/planted-c" }),
      remoteSpec("two", { headers: { Authorization: "Bearer planted-d" }, url: "https://planted-e.test/" }),
    ])
    .ready(neverAborted);
  await supervisor[Symbol.asyncDispose]();
  const files = readdirSync(cacheDirectory);
  expect(files).toHaveLength(2);
  for (const file of files) {
    expect(file).toMatch(/^[0-9a-f]{64}\.json$/);
    expect(readFileSync(join(cacheDirectory, file), "utf8")).not.toContain("planted");
    if (process.platform !== "win32") expect(statSync(join(cacheDirectory, file)).mode & 0o777).toBe(0o600);
  }
  if (process.platform !== "win32") expect(statSync(cacheDirectory).mode & 0o777).toBe(0o700);
});

test("what did not change is not written again", async () => {
  const cacheDirectory = emptyFolder();
  await run(makeKit(offering("add"), { cacheDirectory }));
  const file = join(cacheDirectory, readdirSync(cacheDirectory)[0]!);
  const before = statSync(file, { bigint: true });
  await run(makeKit(offering("add"), { cacheDirectory }));
  expect(statSync(file, { bigint: true }).ino).toBe(before.ino);
  await run(makeKit(offering("other"), { cacheDirectory }));
  expect(readFileSync(file, "utf8")).toContain('"other"');
});

test.each([
  ["no JSON", "{"],
  ["another version", '{"version":0,"savedAt":1}'],
  ["an invalid list", (text: string) => text.replace('"tools":[', '"tools":["x",')],
  ["an invalid verdict", (text: string) => text.replace('"legacy"', '"medieval"')],
  ["not an object", "[]"],
  ["prototypes", '{"__proto__":{"version":1,"savedAt":1}}'],
  ["nothing", ""],
])("a file with %s is as good as none, and is replaced", async (_what, content) => {
  const cacheDirectory = emptyFolder();
  await run(makeKit(offering("add"), { cacheDirectory }));
  const file = join(cacheDirectory, readdirSync(cacheDirectory)[0]!);
  const good = readFileSync(file, "utf8");
  const bad = typeof content === "string" ? content : content(good);
  expect(bad).not.toBe(good);
  writeFileSync(file, bad);
  const kit = makeKit(offering("add"), { cacheDirectory });
  expect(kit.supervisor.acquire([localSpec("srv")]).servers[0]?.lists).toBeUndefined();
  await run(kit);
  expect(JSON.parse(readFileSync(file, "utf8"))).toMatchObject({ version: 1, lists: { tools: [{ name: "add" }] } });
});

test("what is older than a month is not offered", async () => {
  const cacheDirectory = emptyFolder();
  await run(makeKit(offering("add"), { cacheDirectory }));
  const { supervisor, clock } = makeKit(offering("add"), { cacheDirectory });
  await clock.pass(31 * 24 * 60 * 60 * 1000);
  expect(supervisor.acquire([localSpec("srv")]).servers[0]?.lists).toBeUndefined();
});

test("incomplete lists are not cached, nor are huge ones", async () => {
  const cacheDirectory = emptyFolder();
  await run(
    makeKit(new FakeServers({ tools: () => [{ name: "add" }], prompts: () => Promise.reject(new Error("no")) }), { cacheDirectory }),
  );
  expect(readdirSync(cacheDirectory)).toEqual([]);
  await run(makeKit(new FakeServers({ tools: () => [{ name: "big", description: "x".repeat(5_000_000) }] }), { cacheDirectory }));
  expect(readdirSync(cacheDirectory)).toEqual([]);
});

test("a folder that cannot be written to is reported, and affects nothing else", async () => {
  const log = keepingLog();
  const cacheDirectory = join(emptyFolder(), "file");
  writeFileSync(cacheDirectory, "in the way");
  const kit = makeKit(offering("add"), { cacheDirectory, log });
  const lease = kit.supervisor.acquire([localSpec("srv")]);
  await lease.ready(neverAborted);
  expect(lease.servers[0]?.state).toBe("ready");
  await kit.supervisor[Symbol.asyncDispose]();
  expect(log.lines).toContainEqual(
    expect.objectContaining({ level: "warning", data: expect.objectContaining({ directory: cacheDirectory }) }),
  );
});

test("only so many files are kept: the oldest go, and what is not ours stays", async () => {
  const cacheDirectory = join(emptyFolder(), "lists");
  mkdirSync(cacheDirectory);
  const { clock } = makeKit();
  for (let index = 0; index < 250; index++) {
    const file = join(cacheDirectory, `${index.toString(16).padStart(64, "0")}.json`);
    writeFileSync(file, "{}");
    const seconds = clock.now() / 1000 - 1_000 - index;
    utimesSync(file, seconds, seconds);
  }
  writeFileSync(join(cacheDirectory, "notes.txt"), "mine");
  await run(makeKit(offering("add"), { cacheDirectory }));
  const left = readdirSync(cacheDirectory);
  expect(left).toHaveLength(201);
  expect(left).toContain("notes.txt");
  expect(left).toContain(`${"0".padStart(64, "0")}.json`);
  expect(left).not.toContain(`${(249).toString(16).padStart(64, "0")}.json`);
});
