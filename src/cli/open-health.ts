import type { Host } from "../host/host.ts";
import type { MetricsText } from "../servers/metrics/metrics-text.ts";
import type { CommandContext } from "./command-context.ts";

/** Where a command answers questions about its health: a port of this machine, or an address of one. */
export interface HealthPlace {
  readonly host: string;
  readonly port: number;
}

interface HealthParts {
  /** Why the command takes no work now. Undefined: it is ready. */
  readonly unready?: () => string | undefined;
  /** Metrics of the command itself. */
  readonly write?: (text: MetricsText) => void;
}

/** Answers questions about the health of a command until it is disposed of. Undefined: it was not asked for. */
export async function openHealth(
  { io, out }: CommandContext,
  host: Host,
  place: HealthPlace | undefined,
  { unready, write }: HealthParts = {},
): Promise<AsyncDisposable | undefined> {
  if (place === undefined) return undefined;
  const { serveHealth } = await import("../servers/metrics/serve-health.ts");
  const { HostMetrics, writeProcessMetrics } = await import("../servers/metrics/host-metrics.ts");
  const { MetricsText: Text } = await import("../servers/metrics/metrics-text.ts");
  const figures = new HostMetrics(host);
  const served = await serveHealth(
    {
      unready: () => (io.signal.aborted ? "It is being stopped." : unready?.()),
      metrics() {
        const text = new Text();
        writeProcessMetrics(text);
        figures.write(text);
        write?.(text);
        return String(text);
      },
    },
    place,
  ).catch((error: unknown) => {
    figures[Symbol.dispose]();
    throw error;
  });
  out.note(`Health: ${served.url}/readyz`);
  return {
    async [Symbol.asyncDispose]() {
      figures[Symbol.dispose]();
      await served[Symbol.asyncDispose]();
    },
  };
}
