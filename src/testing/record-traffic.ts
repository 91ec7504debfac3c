import { fileURLToPath } from "node:url";
import { HostError } from "../base/errors.ts";
import { installTrafficTap, type TrafficTap } from "../base/traffic-tap.ts";
import { tapGlobalFetch } from "../io/net/tapped-fetch.ts";
import { RecordingCleaner } from "./clean-recording.ts";
import { NewRecording, ReplayedRecording, readRecording } from "./traffic-recording.ts";

/**
 * Options of `recordTraffic`.
 *
 * @example
 * ```ts
 * const options: RecordTrafficOptions = { tools: ["run_linter"], secrets: ["my-token"] };
 * ```
 */
export interface RecordTrafficOptions {
  /** Tools whose results are recorded, for those that run programs or reach what cannot be recorded itself. */
  readonly tools?: readonly string[];
  /** Texts that must not be in the recording, beside the values of environment variables with names such as `API_KEY`. */
  readonly secrets?: readonly string[];
  /** Default: what the variable `SKILLHOST_RECORDINGS` says (`record` or `replay`), else `replay` if the recording exists, and `live` if not. */
  readonly mode?: "record" | "replay" | "live";
}

/**
 * Runs a test whose HTTP requests (`fetch`, and tools with an HTTP handler), requests to MCP servers and calls of the named tools are recorded
 * in a JSON file, or answered from it: then none of these is reached, no MCP server is started, and a request that is not recorded fails the
 * test. Credentials are removed. What a failed test reached is not written. Start hosts in it, so that their MCP servers take part.
 * @throws HostError `RECORDING_MISSING`, `RECORDING_INVALID`, `RECORDING_MISMATCH`, `RECORDING_ACTIVE`; what the test throws.
 */
export async function recordTraffic<T>(file: string | URL, run: () => T | Promise<T>, options: RecordTrafficOptions = {}): Promise<T> {
  const path = typeof file === "string" ? file : fileURLToPath(file);
  const { tools = [], secrets = [], mode = modeOfEnvironment() } = options;
  const parts = { file: path, cleaner: new RecordingCleaner(secrets), tools: new Set(tools) };
  const text = mode === "record" || mode === "live" ? undefined : await readRecording(path);
  if (mode === "replay" && text === undefined) {
    throw new HostError("RECORDING_MISSING", `${path} does not exist, so it cannot be replayed. Record it: skillhost test --record.`);
  }
  if (mode === "record") {
    const recording = new NewRecording(parts);
    const result = await runWith(recording, run);
    await recording.save();
    return result;
  }
  return text === undefined ? run() : replay(new ReplayedRecording(text, parts), run);
}

/** The traffic of several calls, which pass or fail each by itself. Everything that this process reaches belongs to it until it ends. */
export interface OpenTraffic {
  /** Makes one call. @throws HostError `RECORDING_MISMATCH` if it reached for what is not recorded, whatever it made of that. */
  during<T>(call: () => Promise<T>): Promise<T>;
  /** Writes the recording, if one is being made, something is in it, and the calls passed. */
  end(havePassed: boolean): Promise<void>;
}

/** Records or replays as `recordTraffic` does. But calls that reach nothing need no recording. */
export async function openTraffic(file: string): Promise<OpenTraffic> {
  const mode = modeOfEnvironment();
  const parts = { file, cleaner: new RecordingCleaner([]), tools: new Set<string>() };
  const text = await readRecording(file);
  if (mode === undefined && text === undefined) return { during: (call) => call(), end: async () => {} };
  const recording = mode === "record" ? new NewRecording(parts) : new ReplayedRecording(text, parts);
  const taps = [installTrafficTap(recording), tapGlobalFetch(recording)];
  return {
    async during(call) {
      const result = await call();
      if (recording.isReplay && recording.mismatches.length > 0) throw recording.mismatches.splice(0)[0];
      return result;
    },
    async end(havePassed) {
      for (const tap of taps.reverse()) tap[Symbol.dispose]();
      if (!recording.isReplay && havePassed && (text !== undefined || !recording.isEmpty)) await recording.save();
    },
  };
}

async function replay<T>(recording: ReplayedRecording, run: () => T | Promise<T>): Promise<T> {
  const [result, thrown] = await runWith(recording, async () => {
    try {
      return [await run(), undefined] as const;
    } catch (error) {
      return [undefined, { error }] as const;
    }
  });
  // It is the reason for whatever else went wrong, and may have been handled like a broken connection.
  const [first] = recording.mismatches;
  if (first !== undefined) throw thrown === undefined ? first : new HostError(first.code, first.message, { cause: thrown.error });
  if (thrown !== undefined) throw thrown.error;
  return result as T;
}

async function runWith<T>(tap: TrafficTap, run: () => T | Promise<T>): Promise<T> {
  using _tap = installTrafficTap(tap);
  using _fetch = tapGlobalFetch(tap);
  return await run();
}

function modeOfEnvironment(): RecordTrafficOptions["mode"] {
  const value = process.env["SKILLHOST_RECORDINGS"] ?? "";
  if (value === "" || value === "record" || value === "replay") return value === "" ? undefined : value;
  throw new HostError("RECORDING_MODE", `SKILLHOST_RECORDINGS is "${value}". It must be "record" or "replay".`);
}
