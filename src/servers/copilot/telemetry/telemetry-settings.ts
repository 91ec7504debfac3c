import { resolve } from "node:path";
import type { Environment } from "../copilot-options.ts";

/** What of a session is exported, and where. */
export interface TelemetrySettings {
  readonly filePath: string;
  /** The name of the instrumentation scope. */
  readonly sourceName: string;
  /** Whether messages, arguments, results and names from outside are exported as they are. */
  readonly capturesContent: boolean;
  /** The attributes of the resource. */
  readonly resource: Readonly<Record<string, string>>;
  /** Milliseconds between two exports of metrics. */
  readonly metricInterval: number;
}

/**
 * The settings of the variables that the Copilot SDK sets for its option `telemetry`. Undefined: they switch it off. A text says what is
 * wrong with them.
 */
export function readTelemetrySettings(environment: Environment, version: string): TelemetrySettings | string | undefined {
  if (isFalse(environment["COPILOT_OTEL_ENABLED"]) || isTrue(environment["OTEL_SDK_DISABLED"])) return undefined;
  const path = environment["COPILOT_OTEL_FILE_EXPORTER_PATH"] || undefined;
  const exporter = environment["COPILOT_OTEL_EXPORTER_TYPE"] || (path === undefined ? "otlp-http" : "file");
  if (exporter !== "file") {
    return `OpenTelemetry is exported to files only, so nothing is exported: the exporter type is ${JSON.stringify(exporter.slice(0, 50))}. Set COPILOT_OTEL_EXPORTER_TYPE=file and COPILOT_OTEL_FILE_EXPORTER_PATH.`;
  }
  if (path === undefined) return "COPILOT_OTEL_EXPORTER_TYPE=file requires COPILOT_OTEL_FILE_EXPORTER_PATH, so nothing is exported.";
  const interval = Number(environment["OTEL_METRIC_EXPORT_INTERVAL"]);
  return {
    filePath: resolve(path),
    sourceName: environment["COPILOT_OTEL_SOURCE_NAME"] || "github.copilot",
    capturesContent: isTrue(environment["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"]),
    resource: {
      ...readAttributes(environment["OTEL_RESOURCE_ATTRIBUTES"]),
      "service.version": version,
      "service.name": environment["OTEL_SERVICE_NAME"] || "skillhost",
    },
    metricInterval: Number.isInteger(interval) && interval > 0 && interval < 2 ** 31 ? interval : 60_000,
  };
}

function isTrue(value: string | undefined): boolean {
  return value?.toLowerCase() === "true" || value === "1";
}

function isFalse(value: string | undefined): boolean {
  return value?.toLowerCase() === "false" || value === "0";
}

/** Pairs as in W3C Baggage: `key=value,key=value` with percent-encoded values. Pairs in another form are ignored. */
function readAttributes(text = ""): Readonly<Record<string, string>> {
  const pairs = text.split(",").flatMap((pair) => {
    const [, key, value] = /^\s*([^\s=]+)\s*=\s*(.*?)\s*$/.exec(pair) ?? [];
    const decoded = value === undefined ? undefined : decode(value);
    return key === undefined || decoded === undefined ? [] : [[key, decoded] as const];
  });
  return Object.fromEntries(pairs);
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    // An invalid percent sequence.
    return undefined;
  }
}
