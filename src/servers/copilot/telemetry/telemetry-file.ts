import { type FileHandle, open } from "node:fs/promises";
import { errorMessage, toError } from "../../../base/errors.ts";
import type { Logger } from "../../../base/logger.ts";
import { packageVersion } from "../../../base/package-root.ts";
import type { Environment } from "../copilot-options.ts";
import { GenAiMetrics } from "./genai-metrics.ts";
import type { SpanOutput } from "./span.ts";
import { readTelemetrySettings, type TelemetrySettings } from "./telemetry-settings.ts";

/** Opens the file that the environment names. What is wrong with the variables is reported, and exports nothing. */
export function openTelemetryFile(environment: Environment, log: Logger): TelemetryFile | undefined {
  const settings = readTelemetrySettings(environment, packageVersion);
  if (typeof settings === "object") return new TelemetryFile(settings, packageVersion, log);
  if (settings !== undefined) log.warning(settings);
  return undefined;
}

/** What may wait for a slow disk. More is dropped. */
const mostWaitingBytes = 16 * 1024 * 1024;

/**
 * The file with the spans and metrics of a runtime, one JSON object a line, as the official runtime writes it. Nothing that happens
 * to the file affects sessions: what cannot be written is dropped, and reported once until writing works again.
 */
export class TelemetryFile implements SpanOutput {
  readonly settings: TelemetrySettings;
  readonly metrics: GenAiMetrics = new GenAiMetrics();
  /** The members of a span that are the same for all. */
  readonly origin: object;
  readonly #log: Logger;
  readonly #interval: NodeJS.Timeout;
  #waiting: string[] = [];
  #waitingBytes = 0;
  #writing: Promise<void> | undefined;
  #handle: FileHandle | undefined;
  #hasFailed = false;
  /** A line may have been written in part. */
  #isLineOpen = false;
  #dropped = 0;

  constructor(settings: TelemetrySettings, version: string, log: Logger) {
    this.settings = settings;
    this.#log = log;
    this.origin = {
      resource: { attributes: settings.resource, schemaUrl: "https://opentelemetry.io/schemas/1.44.0" },
      instrumentationScope: { name: settings.sourceName, version },
    };
    this.#interval = setInterval(() => this.#writeMetrics(), settings.metricInterval).unref();
  }

  /** Adds a line. Returns at once, and never throws. */
  write(record: object): void {
    let line: string;
    try {
      line = `${JSON.stringify(record)}\n`;
    } catch (error) {
      this.#log.error("A span could not be converted to JSON.", { error: toError(error) });
      return;
    }
    if (this.#waitingBytes + line.length > mostWaitingBytes) {
      this.#dropped += 1;
      return;
    }
    this.#waiting.push(line);
    this.#waitingBytes += line.length;
    this.#writing ??= Promise.resolve().then(() => this.#writeAll());
  }

  /** Writes the metrics and what waits. */
  async close(): Promise<void> {
    clearInterval(this.#interval);
    this.#writeMetrics();
    await this.#writing;
    await this.#handle?.close().catch(() => {});
    this.#handle = undefined;
  }

  #writeMetrics(): void {
    for (const record of this.metrics.collect()) this.write(record);
  }

  /** Never rejects. */
  async #writeAll(): Promise<void> {
    while (this.#waiting.length > 0) {
      const lines = this.#waiting;
      this.#waiting = [];
      this.#waitingBytes = 0;
      try {
        // Only its user may read what was said.
        this.#handle ??= await open(this.settings.filePath, "a", 0o600);
        const text = (this.#isLineOpen ? "\n" : "") + lines.join("");
        this.#isLineOpen = true;
        await this.#handle.appendFile(text);
        this.#isLineOpen = false;
        this.#reportDropped();
      } catch (error) {
        this.#dropped += lines.length;
        if (!this.#hasFailed) this.#reportFailure(error);
      }
    }
    this.#writing = undefined;
  }

  #reportFailure(error: unknown): void {
    this.#hasFailed = true;
    const { filePath } = this.settings;
    const message = `OpenTelemetry spans cannot be written to ${filePath}: ${errorMessage(error)}. They are dropped until that works; sessions are not affected. Check COPILOT_OTEL_FILE_EXPORTER_PATH and the disk.`;
    this.#log.error(message, { error: toError(error) });
  }

  #reportDropped(): void {
    if (this.#dropped > 0) this.#log.warning(`${this.#dropped} OpenTelemetry records were dropped, because they could not be written.`);
    this.#dropped = 0;
    this.#hasFailed = false;
  }
}
