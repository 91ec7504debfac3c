import { resolve } from "node:path";
import { usageError } from "./cli-error.ts";
import type { CommandContext } from "./command-context.ts";

/** The options of every command that connects to a fleet. */
export interface FleetCommandOptions {
  readonly nats?: readonly string[];
  readonly prefix?: string;
  readonly credentials?: string;
  readonly nkey?: string;
  readonly tlsCa?: string;
  readonly tlsCert?: string;
  readonly tlsKey?: string;
  /** False: without TLS. */
  readonly tls: boolean;
}

/** What the command line and the environment say of the servers. */
export function fleetOptions({ io }: CommandContext, options: FleetCommandOptions): object {
  const { env, cwd } = io;
  const path = (file: string | undefined): string | undefined => (file === undefined ? undefined : resolve(cwd, file));
  const servers = options.nats ?? (env["NATS_URL"] ? [env["NATS_URL"]] : undefined);
  if (servers === undefined) throw usageError("No NATS server is named. Use --nats nats://<host>:4222, or set NATS_URL.");
  const { prefix, tlsCa, tlsCert, tlsKey } = options;
  const isNamed = options.credentials !== undefined || options.nkey !== undefined;
  const known = isNamed ? {} : environmentCredentials(env);
  return {
    servers: servers.flatMap((server) => server.split(",")),
    prefix,
    ...known,
    ...(options.credentials !== undefined && { credentials: path(options.credentials) }),
    ...(options.nkey !== undefined && { nkey: path(options.nkey) }),
    ...(!options.tls && { tls: false }),
    ...((tlsCa ?? tlsCert ?? tlsKey) !== undefined && { tls: { ca: path(tlsCa), cert: path(tlsCert), key: path(tlsKey) } }),
  };
}

/** Not from the command line, which other users of the machine can read. */
function environmentCredentials(env: CommandContext["io"]["env"]): object {
  const named = { credentials: "NATS_CREDS", nkey: "NATS_NKEY", token: "NATS_TOKEN", user: "NATS_USER", password: "NATS_PASSWORD" };
  return Object.fromEntries(Object.entries(named).flatMap(([key, name]) => (env[name] ? [[key, env[name]]] : [])));
}
