import { resolve } from "node:path";
import { counted } from "../../base/text.ts";
import { onAbort } from "../../base/wait.ts";
import type { Host } from "../../host/host.ts";
import { importBundled, natsPlugin } from "../../plugin-host/bundled.ts";
import { usageError } from "../cli-error.ts";
import type { CommandContext } from "../command-context.ts";
import { withHost } from "../open-host.ts";

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

export interface WorkerCommandOptions extends FleetCommandOptions {
  readonly name?: string;
  readonly maxCalls?: number;
  readonly grace?: number;
  readonly available?: readonly string[];
  readonly excluded?: readonly string[];
}

/** The part of the plugin for NATS that this command uses. */
interface NatsModule {
  startToolWorker(host: Host, options: object): Promise<StartedWorker>;
}

interface StartedWorker {
  readonly id: string;
  readonly tools: readonly string[];
  drain(graceMs?: number): Promise<void>;
}

/** Serves tools to the hosts of a fleet until it is stopped. */
export async function worker(context: CommandContext, options: WorkerCommandOptions): Promise<number> {
  const { io, out, log } = context;
  const { name, maxCalls, grace, available: availableTools, excluded: excludedTools } = options;
  const fleet = fleetOptions(context, options);
  return withHost(context, { watch: true }, async (host) => {
    const { startToolWorker } = (await importBundled(natsPlugin)) as unknown as NatsModule;
    const started = await startToolWorker(host, { ...fleet, name, maxCalls, availableTools, excludedTools, logger: log });
    const { id, tools } = started;
    if (out.isJson) out.envelope({ ok: true, data: { id, tools }, diagnostics: [] });
    else out.line(`Serving ${counted(tools.length, "tool")} as worker ${id}.`);
    await new Promise<void>((stop) => void onAbort(io.signal, stop));
    out.note("Running calls still end; no more are taken.");
    await started.drain(grace);
    return 0;
  });
}

/** What the command line and the environment say of the servers. */
function fleetOptions({ io }: CommandContext, options: FleetCommandOptions): object {
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
