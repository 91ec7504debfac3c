import { createServer, type Server } from "node:net";
import { jetstreamManager } from "@nats-io/jetstream";
import type { ConnectionOptions, NatsConnection } from "@nats-io/transport-node";
import { answered, connectTo, NatsServer, type NatsServerOptions, until } from "./nats-server.ts";

const names = ["one", "two", "three"];

/** Three servers that replicate their streams. */
export class NatsCluster implements AsyncDisposable {
  readonly servers: readonly NatsServer[];

  private constructor(servers: readonly NatsServer[]) {
    this.servers = servers;
  }

  /** Settles when a stream with three replicas can be made. */
  static async start(): Promise<NatsCluster> {
    const ports = await freePorts(names.length * 2);
    return NatsCluster.startAt(
      names.map((_, at) => ({ options: { port: ports[at] as number }, route: `127.0.0.1:${ports[names.length + at]}` })),
    );
  }

  /** As `start`, of three servers with such places. `route`: where the other two reach it. */
  static async startAt(places: readonly { readonly options: NatsServerOptions; readonly route: string }[]): Promise<NatsCluster> {
    const routes = places.map(({ route }) => `nats://${route}`).join(",");
    const started = await Promise.allSettled(
      places.map(({ options, route }, at) => {
        const args = ["--cluster_name", "test", "--cluster", `nats://${route}`, "--routes", routes, ...(options.args ?? [])];
        return NatsServer.start({ ...options, name: names[at] as string, args });
      }),
    );
    const cluster = new NatsCluster(started.flatMap((one) => (one.status === "fulfilled" ? [one.value] : [])));
    try {
      for (const one of started) if (one.status === "rejected") throw one.reason;
      await cluster.#replicates();
      return cluster;
    } catch (error) {
      await cluster[Symbol.asyncDispose]();
      throw error;
    }
  }

  connect(options: ConnectionOptions = {}): Promise<NatsConnection> {
    return connectTo(
      this.servers.map(({ address }) => address),
      options,
    );
  }

  /** The server that leads the replicas of a stream now, as soon as there is one. */
  leaderOf(stream: string, connection: NatsConnection): Promise<NatsServer> {
    return answered(async () => {
      const { cluster } = await (await jetstreamManager(connection, { timeout: 2_000 })).streams.info(stream);
      const leader = this.servers[names.indexOf(cluster?.leader ?? "")];
      if (leader === undefined) throw new Error(`Stream ${stream} has no leader now.`);
      return leader;
    }, `the leader of ${stream}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.servers.map((server) => server[Symbol.asyncDispose]()));
  }

  /** Servers accept clients before they have elected the leader that makes streams. */
  async #replicates(): Promise<void> {
    const connection = await this.connect();
    try {
      await until(() => makesReplicas(connection), "three servers to make a stream together");
    } finally {
      await connection.close();
    }
  }
}

async function makesReplicas(connection: NatsConnection): Promise<boolean> {
  try {
    const { streams } = await jetstreamManager(connection, { timeout: 2_000 });
    await streams.add({ name: "PROBE", subjects: ["probe"], num_replicas: names.length });
    return await streams.delete("PROBE");
  } catch {
    // There is no leader yet, or too few servers.
    return false;
  }
}

/** Held all at once, so that they differ. Routes name ports before the servers start, so the servers cannot choose them. */
export async function freePorts(count: number): Promise<readonly number[]> {
  const held = await Promise.all(Array.from({ length: count }, listen));
  const ports = held.map((server) => (server.address() as { readonly port: number }).port);
  await Promise.all(held.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}

function listen(): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject).listen(0, "127.0.0.1", () => resolve(server));
  });
}
