import { describe, expect, onTestFinished, test } from "vitest";
import { createHost } from "../../../src/host/create-host.ts";
import type { Host } from "../../../src/host/host.ts";
import { scriptedModel } from "../../../src/models/scripted-model.ts";
import { approveAll } from "../../../src/tools/tool.ts";
import { tempFolder } from "../../skills/kit.ts";
import { startServer } from "./fleet-kit.ts";
import { findNatsServer, type NatsServer, until } from "./nats-server.ts";
import { runSessionModel } from "./session-log-model.ts";
import { killOwners, OwnerProcess, recordsOf } from "./session-owners.ts";

const { path } = findNatsServer();

async function hostOf({ address }: NatsServer): Promise<Host> {
  const host = await createHost({
    plugins: [{ use: "skillhost/plugins/nats", config: { servers: address, sessions: { lease: 500 } } }],
    skillDirectories: [],
    workingDirectory: tempFolder(),
    watch: false,
  });
  onTestFinished(() => host.close());
  return host;
}

describe.skipIf(path === "")("a real nats-server (sessions that move)", () => {
  test("a session is resumed on another host with its conversation, and a session of a live host is refused", async () => {
    const server = await startServer();
    const [one, other] = [await hostOf(server), await hostOf(server)];
    const session = await one.createSession({ chatModel: scriptedModel("I will remember 42."), onPermissionRequest: approveAll });
    await session.sendAndWait("Remember 42.");
    await session.flush();
    await expect(other.resumeSession(session.id)).rejects.toMatchObject({ code: "SESSION_IN_USE" });
    expect((await other.listSessions()).map(({ sessionId }) => sessionId)).toEqual([session.id]);
    await one.close();
    const chatModel = scriptedModel("It was 42.");
    const resumed = await other.resumeSession(session.id, { chatModel, onPermissionRequest: approveAll });
    await resumed.sendAndWait("What was it?");
    expect(JSON.stringify(chatModel.requests[0]?.messages)).toContain("I will remember 42.");
  });

  // session-log.soak.test.ts kills more of them.
  test("of owners that are killed while they write, no acknowledged record is lost and none is doubled", async () => {
    await killOwners(await startServer(), 8);
  });

  test("while networks, hosts and the server fail at random, each session stays what its owners added, in order", async () => {
    await runSessionModel(await startServer(), { run: 0, sessions: 4, steps: 4, faults: 3 });
  });

  test("an owner that was stopped is replaced, and what it writes when it continues is refused", async () => {
    const server = await startServer();
    const stopped = new OwnerProcess(server, "s");
    await until(() => stopped.stored > 50, "its records");
    stopped.signal("SIGSTOP");
    const next = new OwnerProcess(server, "s");
    await until(() => next.stored > (next.began ?? Number.POSITIVE_INFINITY) + 50, "the records of the next owner");
    expect(next.began).toBeGreaterThanOrEqual(stopped.stored);
    stopped.signal("SIGCONT");
    await until(() => stopped.said.includes("moved"), "the former owner to notice");
    expect(stopped.said).toContain("lost SESSION_MOVED");
    await stopped.ended;
    const now = next.stored;
    await until(() => next.stored > now, "further records of the next owner");
    next.signal("SIGKILL");
    await next.ended;
    const records = await recordsOf(server, "s");
    expect(records.length).toBeGreaterThanOrEqual(next.stored);
    expect(records).toEqual(Array.from(records, (_, n) => n));
  });

  test("while the server is away an owner keeps its records, and stores them once when it is back", async () => {
    const server = await startServer();
    const owner = new OwnerProcess(server, "s");
    await until(() => owner.stored > 50, "its records");
    await server.kill();
    await until(() => owner.said.includes("failed LOG_NOT_WRITTEN"), "the report");
    await server.start();
    const now = owner.stored;
    await until(() => owner.stored > now, "the records after the return");
    owner.signal("SIGKILL");
    await owner.ended;
    const records = await recordsOf(server, "s");
    expect(records.length).toBeGreaterThanOrEqual(owner.stored);
    expect(records).toEqual(Array.from(records, (_, n) => n));
  });
});
