import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath, pathToFileURL } from "node:url";
import { createSessionStore } from "skillhost/plugins/nats";
import { describe, expect, onTestFinished, test } from "vitest";
import { createHost } from "../../../src/host/create-host.ts";
import type { Host } from "../../../src/host/host.ts";
import { scriptedModel } from "../../../src/models/scripted-model.ts";
import { approveAll } from "../../../src/tools/tool.ts";
import { buildPackage } from "../../built-package.ts";
import { keepingOwner } from "../../contract/session-store-contract.ts";
import { tempFolder } from "../../skills/kit.ts";
import { startServer } from "./fleet-kit.ts";
import { findNatsServer, type NatsServer, until } from "./nats-server.ts";

const { path } = findNatsServer();
/** SKILLHOST_KILLS=200 tries it longer. */
const kills = Number(process.env["SKILLHOST_KILLS"] ?? 12);
const lanes = 4;

class OwnerProcess {
  readonly #child: ChildProcess;
  readonly ended: Promise<unknown>;
  readonly said: string[] = [];

  constructor({ address }: NatsServer, sessionId: string) {
    const plugin = pathToFileURL(join(buildPackage().folder, "dist/plugins/nats/plugin.js")).href;
    const script = fileURLToPath(new URL("session-owner.mjs", import.meta.url));
    const child = spawn(process.execPath, [script, plugin, address, sessionId], { stdio: ["ignore", "pipe", "inherit"] });
    this.#child = child;
    this.ended = new Promise((resolve) => child.once("close", resolve));
    createInterface({ input: child.stdout }).on("line", (line) => this.said.push(line));
    onTestFinished(async () => {
      child.kill("SIGKILL");
      await this.ended;
    });
  }

  /** The number of records that are acknowledged. */
  get stored(): number {
    return Number(this.said.findLast((line) => line.startsWith("stored "))?.split(" ")[1] ?? 0);
  }

  /** The number of records with which it began. */
  get began(): number | undefined {
    const found = this.said.find((line) => line.startsWith("owns "));
    return found === undefined ? undefined : Number(found.split(" ")[1]);
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }
}

async function recordsOf({ address }: NatsServer, sessionId: string): Promise<readonly unknown[]> {
  const store = createSessionStore({ servers: address, lease: 500 });
  store.attach(keepingOwner());
  onTestFinished(() => store[Symbol.asyncDispose]());
  return (await store.read(sessionId)).records.map(({ n }) => n);
}

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

  test(`of ${kills} owners that are killed while they write, no acknowledged record is lost and none is doubled`, async () => {
    const server = await startServer();
    const moves: number[] = [];
    const run = async (lane: number): Promise<void> => {
      const sessionId = `lane-${lane}`;
      let acknowledged = 0;
      for (let kill = lane; kill < kills; kill += lanes) {
        const began = performance.now();
        const owner = new OwnerProcess(server, sessionId);
        await until(() => owner.began !== undefined, "the next owner");
        moves.push(performance.now() - began);
        expect(owner.began).toBeGreaterThanOrEqual(acknowledged);
        // At different moments: while records are sent, stored and acknowledged.
        await until(() => owner.stored > (owner.began ?? 0) + 20 + ((kill * 37) % 200), "its records");
        owner.signal("SIGKILL");
        await owner.ended;
        acknowledged = owner.stored;
      }
      const records = await recordsOf(server, sessionId);
      expect(records.length).toBeGreaterThanOrEqual(acknowledged);
      expect(records).toEqual(Array.from(records, (_, n) => n));
    };
    await Promise.all(Array.from({ length: lanes }, (_, lane) => run(lane)));
    process.stderr.write(
      `${kills} kills: the next owner after ${Math.round(Math.max(...moves))} ms at most, start of its process included.\n`,
    );
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
    for (let round = 0; round < 2; round++) {
      await server.kill();
      await until(() => owner.said.filter((line) => line.startsWith("failed LOG_NOT_WRITTEN")).length > round, "the report");
      await server.start();
      const now = owner.stored;
      await until(() => owner.stored > now, "the records after the return");
    }
    owner.signal("SIGKILL");
    await owner.ended;
    const records = await recordsOf(server, "s");
    expect(records.length).toBeGreaterThanOrEqual(owner.stored);
    expect(records).toEqual(Array.from(records, (_, n) => n));
  });
});
