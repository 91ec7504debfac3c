import { join } from "node:path";
import { createSessionStore, openSkillCatalog } from "skillhost/plugins/nats";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { type AttachedOwner, keepingOwner } from "../../contract/session-store-contract.ts";
import { put, toolSource } from "../../skills/kit.ts";
import { FaultyNetwork } from "./faulty-network.ts";
import { callingHost, skillFolder, startServer, startWorker, startWorkerProcess } from "./fleet-kit.ts";
import { findNatsServer, type NatsServer, until } from "./nats-server.ts";
import { OwnerProcess, recordsOf, shiftedClock } from "./session-owners.ts";

const { path, reason } = findNatsServer();
if (path === "") process.stderr.write(`skipped: ${reason}\n`);

function openStore(
  { address }: NatsServer,
  lease = 500,
): { readonly store: ReturnType<typeof createSessionStore>; readonly owner: AttachedOwner } {
  const store = createSessionStore({ servers: address, lease });
  const owner = keepingOwner();
  store.attach(owner);
  onTestFinished(() => store[Symbol.asyncDispose]());
  return { store, owner };
}

async function loseDisk(server: NatsServer): Promise<void> {
  await server.kill();
  server.loseDisk();
  await server.start();
}

// .ci/allowed-skips.json lists this title with the reason.
describe.skipIf(path === "")("a real nats-server (faults)", () => {
  test("a server that loses its disk: hosts run what they have and say so, and get what is pushed next", async () => {
    const server = await startServer();
    const skill = join(skillFolder({ "tools/answer.ts": toolSource("answer", '"one"') }), "far");
    const push = async (): Promise<void> => {
      await using catalog = await openSkillCatalog({ servers: server.address });
      await catalog.push({ name: "far", folder: skill, files: ["SKILL.md", "tools/answer.ts"] });
    };
    await push();
    const { session, host } = await callingHost(server, { follow: "pushed", startupWait: 30_000 });
    const answer = async (): Promise<string> => (await session.callTool("answer")).text;
    expect(await answer()).toBe("one");
    const isReported = (): boolean => host.diagnostics.some(({ code }) => code === "FLEET_STORE");
    await loseDisk(server);
    await until(isReported, "the report");
    expect(await answer()).toBe("one");
    put(join(skill, "tools/answer.ts"), toolSource("answer", '"two"'));
    await push();
    await until(async () => (await answer()) === "two", "the next version");
    await until(() => !isReported(), "the end of the report");
  });

  test("a server that loses its disk: hosts store the sessions that they own again, and others can be made", async () => {
    const server = await startServer();
    const { store, owner } = openStore(server);
    const [busy, idle] = [await store.create("busy"), await store.create("idle")];
    for (let n = 0; n < 10; n++) busy.append({ n });
    idle.append({ n: 0 });
    await Promise.all([busy.flush(), idle.flush()]);
    await loseDisk(server);
    busy.append({ n: 10 });
    const isStored = (): Promise<boolean> =>
      busy.flush().then(
        () => true,
        () => false,
      );
    await until(isStored, "the stream to take records");
    expect(await recordsOf(server, "busy")).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    await until(() => owner.reports.filter((code) => code === "LOG_STORED_AGAIN").length === 2, "both sessions to be stored again");
    await idle.flush();
    expect(await recordsOf(server, "idle")).toEqual([0]);
    await (await store.create("new")).close();
    expect(owner.lostSessions).toEqual([]);
  });

  test("a server that stands still: calls end as of unknown outcome, records wait in memory, and both work when it continues", async () => {
    const server = await startServer();
    await startWorker(server, { "tools/answer.ts": toolSource("answer", '"hello"') });
    const { session } = await callingHost(server);
    const { store, owner } = openStore(server);
    const log = await store.create("s");
    const pausing = await server.pause();
    try {
      const call = session.callTool("answer");
      log.append({ n: 0 });
      expect(await call).toMatchObject({ ok: false, error: "FLEET_WORKER_LOST: outcome unknown" });
      await until(() => owner.reports.includes("LOG_NOT_WRITTEN"), "the report");
    } finally {
      pausing[Symbol.dispose]();
    }
    await until(async () => (await session.callTool("answer")).ok, "a call that works");
    await until(() => owner.reports.includes("LOG_WRITTEN_AGAIN"), "the record to be stored");
    await log.flush();
    expect(await recordsOf(server, "s")).toEqual([0]);
  });

  test("a server that is slow: calls, pushes and records take longer, and none is lost or taken for lost", async () => {
    const server = await startServer();
    await startWorker(server, { "tools/answer.ts": toolSource("answer", '"hello"') });
    const pushed = join(skillFolder({ "tools/pushed.ts": toolSource("pushed", '"one"') }), "far");
    const push = async (): Promise<void> => {
      await using catalog = await openSkillCatalog({ servers: server.address });
      await catalog.push({ name: "far", folder: pushed, files: ["SKILL.md", "tools/pushed.ts"] });
    };
    await push();
    await using network = await FaultyNetwork.start(Number(server.address.split(":").at(-1)));
    const behind = { address: network.address } as NatsServer;
    const { session, host, has } = await callingHost(behind, { follow: "pushed", startupWait: 30_000 });
    await has("answer", "pushed");
    const { store, owner } = openStore(behind, 5_000);
    const log = await store.create("s");
    network.slow(400);
    const began = performance.now();
    const call = session.callTool("answer");
    for (let n = 0; n < 20; n++) log.append({ n });
    expect((await call).text).toBe("hello");
    // There and back: otherwise nothing was slow.
    expect(performance.now() - began).toBeGreaterThan(800);
    await log.flush();
    expect(await recordsOf(server, "s")).toEqual(Array.from({ length: 20 }, (_, n) => n));
    put(join(pushed, "tools/pushed.ts"), toolSource("pushed", '"two"'));
    await push();
    await until(async () => (await session.callTool("pushed")).text === "two", "the next version");
    expect(owner.lostSessions).toEqual([]);
    expect(host.diagnostics.filter(({ code }) => code.startsWith("FLEET_"))).toEqual([]);
  });

  test("clocks that are minutes apart change nothing: a worker is called, and a session moves when its owner ends, and not before", async () => {
    const server = await startServer();
    const root = skillFolder({ "tools/clock.ts": toolSource("clock", "String(Date.now())") });
    vi.stubEnv("NODE_OPTIONS", shiftedClock(7));
    onTestFinished(() => void vi.unstubAllEnvs());
    const starting = startWorkerProcess(server, root);
    const early = new OwnerProcess(server, "s", shiftedClock(-7));
    await until(() => early.stored > 20, "the records of the owner");
    const late = new OwnerProcess(server, "s", shiftedClock(7));
    await until(() => late.said.filter((line) => line === "in use").length === 2, "the refusals");
    expect(late.began).toBeUndefined();
    early.signal("SIGKILL");
    await early.ended;
    await until(() => late.began !== undefined, "the session to move");
    expect(late.began).toBeGreaterThanOrEqual(early.stored);
    await starting;
    const { session, has } = await callingHost(server);
    await has("clock");
    expect(Number((await session.callTool("clock")).text) - Date.now()).toBeGreaterThan(6 * 60_000);
  });
});
