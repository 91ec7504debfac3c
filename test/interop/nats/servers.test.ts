import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { Kvm } from "@nats-io/kv";
import type { NatsConnection } from "@nats-io/transport-node";
import { describe, expect, test } from "vitest";
import { NatsCluster } from "./nats-cluster.ts";
import { answered, findNatsServer, NatsServer, until } from "./nats-server.ts";

const { path, reason } = findNatsServer();
if (path === "") process.stderr.write(`skipped: ${reason}\n`);

// .ci/allowed-skips.json lists this title with the reason.
describe.skipIf(path === "")("a real nats-server", () => {
  test("answers requests, and stores values with JetStream", async () => {
    await using server = await NatsServer.start();
    await using connection = await server.connect();
    connection.subscribe("echo", { callback: (_error, message) => void message.respond(message.data) });
    const reply = await connection.request("echo", "hello");
    const bucket = await new Kvm(connection).create("values");
    await bucket.put("key", "value");
    expect([reply.string(), (await bucket.get("key"))?.string()]).toEqual(["hello", "value"]);
  });

  test("two servers have ports and stores of their own", async () => {
    await using one = await NatsServer.start();
    await using two = await NatsServer.start();
    expect(one.address).not.toBe(two.address);
    await using ofOne = await one.connect();
    await using ofTwo = await two.connect();
    await addStream(ofOne, 1);
    expect(await streamsOf(ofTwo)).toEqual([]);
  });

  test("one that is killed returns at its address with what it had acknowledged, and clients with it", async () => {
    await using server = await NatsServer.start();
    await using connection = await server.connect();
    await addStream(connection, 1);
    await jetstream(connection).publish("log.a", "first");
    const { address } = server;
    await server.kill();
    expect(server.isRunning).toBe(false);
    await server.start();
    expect(server.address).toBe(address);
    await until(() => publishes(connection, "second"), "the client to come back");
    expect(await messagesIn(connection)).toEqual(["first", "second"]);
  });

  test("one that lost its disk returns without its streams", async () => {
    await using server = await NatsServer.start();
    await using connection = await server.connect();
    await addStream(connection, 1);
    expect(() => server.loseDisk()).toThrow("Kill it first");
    await server.kill();
    server.loseDisk();
    await server.start();
    await using after = await server.connect();
    expect(await streamsOf(after)).toEqual([]);
  });

  test("one that is paused answers when it is resumed, and not before", async () => {
    await using server = await NatsServer.start();
    await using connection = await server.connect();
    let isAnswered = false;
    const pausing = await server.pause();
    const answer = connection.flush().then(() => {
      isAnswered = true;
    });
    try {
      // Enough for thousands of answers of one that runs.
      await new Promise((resolve) => setTimeout(resolve, 200));
      expect(isAnswered).toBe(false);
    } finally {
      pausing[Symbol.dispose]();
    }
    await answer;
    expect(isAnswered).toBe(true);
  });

  test("one that wants a token refuses who has another", async () => {
    await using server = await NatsServer.start({ args: ["--auth", "right"], client: { token: "right" } });
    await expect(server.connect({ token: "wrong" })).rejects.toThrow(/authorization/i);
    await using connection = await server.connect();
    await connection.flush();
  });

  test("one that cannot start gives its own reason", async () => {
    await expect(NatsServer.start({ args: ["--no-such-option"] })).rejects.toThrow(/no-such-option/);
  });

  test("three of them keep every acknowledged message when the leader of a stream is killed", async () => {
    await using cluster = await NatsCluster.start();
    await using connection = await cluster.connect();
    await addStream(connection, 3);
    const acknowledged = Array.from({ length: 20 }, (_, at) => `message ${at}`);
    for (const text of acknowledged) await until(() => publishes(connection, text), "an acknowledgement");
    const leader = await cluster.leaderOf("LOG", connection);
    await leader.kill();
    await until(() => publishes(connection, "after"), "the two others to elect a leader");
    expect(await messagesIn(connection)).toEqual([...acknowledged, "after"]);
    expect(await cluster.leaderOf("LOG", connection)).not.toBe(leader);
  });
});

async function addStream(connection: NatsConnection, replicas: number): Promise<void> {
  const add = async (): Promise<unknown> =>
    (await jetstreamManager(connection, { timeout: 2_000 })).streams.add({ name: "LOG", subjects: ["log.>"], num_replicas: replicas });
  await answered(add, "the stream to be made");
}

async function streamsOf(connection: NatsConnection): Promise<readonly string[]> {
  return (await jetstreamManager(connection)).streams.names().next();
}

/** The id lets a message that was stored but not acknowledged be sent again. */
async function publishes(connection: NatsConnection, text: string): Promise<boolean> {
  try {
    await jetstream(connection, { timeout: 2_000 }).publish("log.a", text, { msgID: text });
    return true;
  } catch {
    // The connection or the leader is away.
    return false;
  }
}

function messagesIn(connection: NatsConnection): Promise<readonly string[]> {
  return answered(async () => {
    const { streams } = await jetstreamManager(connection, { timeout: 2_000 });
    const { state } = await streams.info("LOG");
    const texts: string[] = [];
    for (let seq = state.first_seq; seq <= state.last_seq; seq++) {
      const stored = await streams.getMessage("LOG", { seq });
      if (stored === null) throw new Error(`Message ${seq} is missing.`);
      texts.push(stored.string());
    }
    return texts;
  }, "the messages of the stream");
}
