import { HostError } from "./errors.ts";
import type { Json } from "./json.ts";

/** What is recorded for tests: HTTP requests, requests to MCP servers, and calls of tools that the test names. */
export type TrafficKind = "http" | "mcp" | "tools";

/** Stands between this process and what it reaches, while a test records that or answers it from a recording. */
export interface TrafficTap {
  /** Whether the answers come from a recording. Then nothing else is reached. */
  readonly isReplay: boolean;
  /** Whether the calls of this tool are recorded, instead of what the tool itself reaches. */
  taps(tool: string): boolean;
  /** Keeps an exchange. Without an answer: it never came. */
  record(kind: TrafficKind, asked: Json, answer: Json | undefined): void;
  /**
   * The recorded answer; undefined if none ever came. Each answers once, unless the request only reads what does not change.
   * @throws HostError `RECORDING_MISMATCH`
   */
  replay(kind: TrafficKind, asked: Json, options?: { readonly isRepeatable?: boolean }): Json | undefined;
}

let current: TrafficTap | undefined;

/** The tap of now. Undefined, as outside of tests: everything is reached. */
export function trafficTap(): TrafficTap | undefined {
  return current;
}

/** @throws HostError `RECORDING_ACTIVE` when there is one already: it is unknown which test causes a request. */
export function installTrafficTap(tap: TrafficTap): Disposable {
  if (current !== undefined) {
    throw new HostError(
      "RECORDING_ACTIVE",
      "Another recording is active in this process. Run such tests one after the other, not at the same time.",
    );
  }
  current = tap;
  return {
    [Symbol.dispose]: () => {
      current = undefined;
    },
  };
}
