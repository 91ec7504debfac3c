import { mkdirSync } from "node:fs";
import { resolve } from "node:path";
import { counted } from "../../base/text.ts";
import { onAbort } from "../../base/wait.ts";
import type { Host } from "../../host/host.ts";
import { importBundled, natsPlugin } from "../../plugin-host/bundled.ts";
import type { MetricsText } from "../../servers/metrics/metrics-text.ts";
import type { CommandContext } from "../command-context.ts";
import { type FleetCommandOptions, fleetOptions } from "../fleet-options.ts";
import { type HealthPlace, openHealth } from "../open-health.ts";
import { skillDirectories, withHost } from "../open-host.ts";

export interface WorkerCommandOptions extends FleetCommandOptions {
  readonly name?: string;
  readonly maxCalls?: number;
  readonly grace?: number;
  readonly available?: readonly string[];
  readonly excluded?: readonly string[];
  /** A folder: the skills of the fleet's catalog are loaded there. */
  readonly follow?: string;
  readonly health?: HealthPlace;
}

/** The part of the plugin for NATS that this command uses. */
interface NatsModule {
  startToolWorker(host: Host, options: object): Promise<StartedWorker>;
  followSkills(host: Host, options: object): Promise<AsyncDisposable>;
}

interface StartedWorker {
  readonly id: string;
  readonly tools: readonly string[];
  readonly isConnected: boolean;
  readonly statistics: {
    readonly running: number;
    readonly tools: readonly { readonly tool: string; readonly calls: number; readonly failed: number; readonly processingMs: number }[];
  };
  drain(graceMs?: number): Promise<void>;
}

/** Serves tools to the hosts of a fleet until it is stopped. */
export async function worker(context: CommandContext, options: WorkerCommandOptions): Promise<number> {
  const { io, out, log } = context;
  const { name, maxCalls, grace, available: availableTools, excluded: excludedTools } = options;
  const fleet = fleetOptions(context, options);
  const folder = options.follow === undefined ? undefined : resolve(io.cwd, options.follow);
  if (folder !== undefined) mkdirSync(folder, { recursive: true });
  // Named ones are added by withHost, after these: the worker's own skills take precedence.
  const directories = folder === undefined ? [] : [folder, ...(context.options.skills === undefined ? skillDirectories(context) : [])];
  return withHost(context, { watch: true, directories }, async (host) => {
    const { startToolWorker, followSkills } = (await importBundled(natsPlugin)) as unknown as NatsModule;
    await using _followed = folder === undefined ? undefined : await followSkills(host, { ...fleet, folder, name, logger: log });
    const started = await startToolWorker(host, { ...fleet, name, maxCalls, availableTools, excludedTools, logger: log });
    const { id, tools } = started;
    const unready = (): string | undefined => (started.isConnected ? undefined : "The NATS servers are away.");
    await using _health = await openHealth(context, host, options.health, { unready, write: (text) => writeMetrics(started, text) });
    if (out.isJson) out.envelope({ ok: true, data: { id, tools }, diagnostics: [] });
    else out.line(`Serving ${counted(tools.length, "tool")} as worker ${id}.`);
    await new Promise<void>((stop) => void onAbort(io.signal, stop));
    out.note("Running calls still end; no more are taken.");
    await started.drain(grace);
    return 0;
  });
}

function writeMetrics({ isConnected, statistics }: StartedWorker, text: MetricsText): void {
  const { running, tools } = statistics;
  text.gauge("skillhost_worker_connected", "Whether the worker reaches a NATS server.", isConnected ? 1 : 0);
  text.gauge("skillhost_worker_calls_running", "Calls of other hosts that run.", running);
  for (const { tool, calls } of tools) text.counter("skillhost_worker_calls_total", "Calls of other hosts.", calls, { tool });
  for (const { tool, failed } of tools)
    text.counter("skillhost_worker_calls_failed_total", "Calls of other hosts that failed.", failed, { tool });
  for (const { tool, processingMs } of tools)
    text.counter("skillhost_worker_call_seconds_total", "Time that calls of other hosts took.", processingMs / 1000, { tool });
}
