import { expect, onTestFinished, test } from "vitest";
import { HostError } from "../../../src/base/errors.ts";
import type { SupervisedServer } from "../../../src/mcp/supervisor/server-lease.ts";
import { settled } from "../manual-clock.ts";
import { FakeServers, type Kit, localSpec, makeKit, neverAborted } from "../supervisor-kit.ts";

interface Started extends Kit {
  readonly server: SupervisedServer;
  /** How often changed lists were announced. */
  readonly heard: { count: number };
}

async function start(servers: FakeServers = new FakeServers()): Promise<Started> {
  const kit = makeKit(servers);
  const lease = kit.supervisor.acquire([localSpec("srv")]);
  const heard = { count: 0 };
  onTestFinished(lease.subscribe(({ kind }) => void (kind === "lists" && heard.count++))[Symbol.dispose]);
  await lease.ready(neverAborted);
  return { ...kit, server: lease.servers[0]!, heard };
}

const countOf = (kit: Started, list: string): number => kit.servers.last.asked.filter((text) => text === list).length;
const names = (server: SupervisedServer): unknown[] | undefined => server.lists?.tools.map(({ name }) => name);

test("announcements that come close to each other cause one refresh, and only of what changed", async () => {
  const kit = await start();
  kit.servers.last.answers["tools"] = () => [{ name: "fresh" }];
  for (let count = 0; count < 100; count++) kit.servers.last.announce("tools");
  await kit.clock.pass(1_000);
  expect(countOf(kit, "tools")).toBe(2);
  expect(countOf(kit, "prompts")).toBe(1);
  expect(names(kit.server)).toEqual(["fresh"]);
  expect(kit.heard.count).toBe(2);
});

test("there is one refresh at a time; a change during it causes one more", async () => {
  const kit = await start();
  const waiting: ((tools: { name: string }[]) => void)[] = [];
  kit.servers.last.answers["tools"] = () => new Promise((resolve) => waiting.push(resolve));
  kit.servers.last.announce("tools");
  await kit.clock.pass(100);
  for (let count = 0; count < 5; count++) kit.servers.last.announce("tools");
  await kit.clock.pass(1_000);
  expect(waiting).toHaveLength(1);
  waiting[0]?.([{ name: "stale" }]);
  await kit.clock.pass(1_000);
  expect(waiting).toHaveLength(2);
  expect(names(kit.server)).toEqual(["stale"]);
  waiting[1]?.([{ name: "newest" }]);
  await kit.clock.pass(60_000);
  expect(waiting).toHaveLength(2);
  expect(names(kit.server)).toEqual(["newest"]);
});

test("what did not change stays the same object, and is not announced", async () => {
  const kit = await start(new FakeServers({ tools: () => [{ name: "same", inputSchema: { type: "object" } }] }));
  const { lists } = kit.server;
  kit.servers.last.announce("tools");
  kit.servers.last.announce("resources");
  await kit.clock.pass(1_000);
  expect(countOf(kit, "tools")).toBe(2);
  expect(kit.server.lists).toBe(lists);
  kit.servers.last.answers["prompts"] = () => [{ name: "hello" }];
  kit.servers.last.announce("prompts");
  await kit.clock.pass(1_000);
  expect(kit.server.lists?.prompts).toEqual([{ name: "hello" }]);
  expect(kit.server.lists?.tools).toBe(lists?.tools);
  expect(kit.heard.count).toBe(2);
});

test("a server that keeps announcing changes without any is asked less and less often", async () => {
  const kit = await start();
  const before = countOf(kit, "tools");
  for (let round = 0; round < 6_000; round++) {
    kit.servers.last.announce("tools");
    if (round % 100 === 0) await kit.clock.pass(1_000);
  }
  expect(countOf(kit, "tools") - before).toBeLessThan(25);
  kit.servers.last.answers["tools"] = () => [{ name: "real" }];
  kit.servers.last.announce("tools");
  await kit.clock.pass(5_000);
  expect(names(kit.server)).toEqual(["real"]);
});

test("a refresh that fails keeps the old list, says so, and is tried again", async () => {
  const kit = await start(new FakeServers({ tools: () => [{ name: "old" }] }));
  kit.servers.last.answers["tools"] = () => Promise.reject(new HostError("MCP_TIMEOUT", "No answer within 60 s."));
  kit.servers.last.announce("tools");
  await kit.clock.pass(100);
  expect(names(kit.server)).toEqual(["old"]);
  expect(kit.server.lists?.diagnostics).toEqual([
    {
      severity: "warning",
      code: "MCP_LIST_FAILED",
      message: 'The tools of MCP server "srv" could not be listed, so the previous ones stay in use: No answer within 60 s.',
      source: "srv",
    },
  ]);
  expect(kit.server.state).toBe("ready");
  kit.servers.last.answers["tools"] = () => [{ name: "new" }];
  await kit.clock.pass(1_000);
  expect(names(kit.server)).toEqual(["new"]);
  expect(kit.server.lists?.diagnostics).toEqual([]);
});

test("a list that always fails is given up until the next announcement", async () => {
  const kit = await start(new FakeServers({ prompts: () => Promise.reject(new Error("broken")) }));
  await kit.clock.pass(10 * 60_000);
  expect(countOf(kit, "prompts")).toBe(4);
  expect(kit.clock.pending).toBe(0);
  kit.servers.last.announce("prompts");
  await kit.clock.pass(100);
  expect(countOf(kit, "prompts")).toBe(5);
});

test("one list that never comes does not keep the others back", async () => {
  const servers = new FakeServers({ tools: () => [{ name: "add" }], resources: () => new Promise(() => {}) });
  const kit = makeKit(servers);
  const server = kit.supervisor.acquire([localSpec("srv")]).servers[0]!;
  server.start();
  await settled();
  expect(server.lists).toBeUndefined();
  await kit.clock.pass(1_000);
  expect(server.state).toBe("ready");
  expect(names(server)).toEqual(["add"]);
});

test("without the tools a server is not ready, however long they take", async () => {
  let answer = (_tools: { name: string }[]): void => {};
  const servers = new FakeServers({
    tools: () =>
      new Promise((resolve) => {
        answer = resolve;
      }),
  });
  const kit = makeKit(servers);
  const server = kit.supervisor.acquire([localSpec("srv")]).servers[0]!;
  server.start();
  await kit.clock.pass(30_000);
  expect(server.state).toBe("starting");
  answer([{ name: "late" }]);
  await kit.clock.pass(0);
  expect([server.state, names(server)]).toEqual(["ready", ["late"]]);
});

test("the tools of a crashed server stay until the new ones are there, also when those cannot be listed", async () => {
  const kit = await start(new FakeServers({ tools: () => [{ name: "add" }] }));
  kit.servers.answers["tools"] = () => Promise.reject(new Error("not now"));
  kit.servers.last.crash();
  await kit.clock.pass(500);
  expect(kit.server.status).toMatchObject({ state: "ready", pid: 2 });
  expect(names(kit.server)).toEqual(["add"]);
  expect(kit.server.lists?.diagnostics).toMatchObject([{ code: "MCP_LIST_FAILED" }]);
  kit.servers.last.answers["tools"] = () => [];
  await kit.clock.pass(1_000);
  expect(names(kit.server)).toEqual([]);
});

test("what an old connection still answers is not taken for the new one's", async () => {
  const kit = await start();
  let answer = (_tools: { name: string }[]): void => {};
  kit.servers.last.answers["tools"] = () =>
    new Promise((resolve) => {
      answer = resolve;
    });
  const old = kit.servers.last;
  old.announce("tools");
  await kit.clock.pass(100);
  old.crash();
  await kit.clock.pass(500);
  answer([{ name: "ghost" }]);
  old.announce("tools");
  await kit.clock.pass(1_000);
  expect(names(kit.server)).toEqual([]);
  expect(old.asked.filter((text) => text === "tools")).toHaveLength(2);
});

test("with its connection ends what was asked of a server for its lists, and the listening to it", async () => {
  const kit = await start();
  const { last } = kit.servers;
  expect([last.listeners, last.listSignals.length, last.listSignals.some((signal) => signal?.aborted)]).toEqual([1, 4, false]);
  await kit.server.stop();
  expect([last.listeners, last.listSignals.every((signal) => signal?.aborted)]).toEqual([0, true]);
});

test("a session that the server forgot while it was listed is replaced, with pauses if that is repeated", async () => {
  const servers = new FakeServers({ tools: () => Promise.reject(new HostError("MCP_NOT_RUN", "The session is unknown.")) });
  const kit = makeKit(servers);
  const server = kit.supervisor.acquire([localSpec("srv")]).servers[0]!;
  server.start();
  await kit.clock.pass(60_000);
  expect(server.state).toBe("failed");
  expect(servers.tries).toHaveLength(5);
});

test("skills are listed page by page from a server that has them, and only from such a one", async () => {
  const pages: Record<string, object> = {
    "{}": { skills: [{ uri: "skill://a" }, null, "text"], nextCursor: "2" },
    '{"cursor":"2"}': { skills: [{ uri: "skill://b" }], nextCursor: "2" },
  };
  const servers = new FakeServers({}, false);
  const kit = makeKit(servers);
  const lease = kit.supervisor.acquire([localSpec("with"), localSpec("without")]);
  lease.start();
  await settled();
  const connection = servers.tries[0]!.accept();
  servers.tries[1]!.accept();
  connection.capabilities = { extensions: { "io.modelcontextprotocol/skills": {} } };
  connection.answers["skills/list"] = () => pages[connection.asked.at(-1)!.slice("skills/list ".length)] as Record<string, unknown>;
  await settled();
  expect(lease.servers.map((server) => server.lists?.skills)).toEqual([[{ uri: "skill://a" }, { uri: "skill://b" }], []]);
  expect(servers.last.asked).toEqual(["tools", "prompts", "resources", "resourceTemplates"]);
});

test("lists that are too long are cut, with a word about it", async () => {
  const tools = Array.from({ length: 10_001 }, (_, index) => ({ name: `t${index}` }));
  const kit = await start(new FakeServers({ tools: () => tools }));
  expect(kit.server.lists?.tools).toHaveLength(10_000);
  expect(kit.server.lists?.diagnostics).toMatchObject([{ code: "MCP_LIST_TOO_LONG", message: expect.stringContaining("10001") }]);
  await kit.clock.pass(60_000);
  expect(countOf(kit, "tools")).toBe(1);
});
