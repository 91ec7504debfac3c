import { positionAt } from "../base/diagnostic.ts";
import { parseJson } from "../formats/text/json-document.ts";
import { maxJsonBytes } from "../formats/text/limits.ts";
import { usageError } from "./cli-error.ts";
import type { CliIo } from "./process-io.ts";

const patienceMs = 1_000;

interface GivenArguments {
  /** JSON, or "-" for stdin. */
  readonly json: string | undefined;
  /** `key=value` each. */
  readonly pairs: readonly string[];
}

/**
 * The arguments of a call: JSON from the command line or stdin, overlaid with the `--arg` pairs. `waits` is called when the command waits
 * for stdin.
 */
export async function readArguments(
  { json, pairs }: GivenArguments,
  io: CliIo,
  waits: () => void,
): Promise<Readonly<Record<string, unknown>>> {
  const fromStdin = json === "-" || (json === undefined && pairs.length === 0 && io.stdin.isPiped);
  const text = fromStdin ? await readStdin(io, waits) : json;
  const base = text === undefined || text.trim() === "" ? {} : parseObject(text, fromStdin ? "stdin" : "the arguments");
  return Object.assign(Object.create(null), base, parsePairs(pairs));
}

async function readStdin(io: CliIo, waits: () => void): Promise<string> {
  const timer = setTimeout(waits, patienceMs);
  try {
    const text = await io.stdin.read(io.signal);
    if (text.length > maxJsonBytes)
      throw usageError(`stdin has more than ${maxJsonBytes} characters. Pass the path of a file as an argument instead.`);
    return text;
  } finally {
    clearTimeout(timer);
  }
}

function parseObject(text: string, where: string): object {
  const { document, faults } = parseJson(text);
  const fault = faults[0];
  if (document === undefined && fault) {
    const { line, column } = positionAt(text, fault.offset);
    throw usageError(`The JSON in ${where} is not valid (${line}:${column}): ${fault.message}`);
  }
  const value = document?.value;
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  throw usageError(`Tool arguments must be a JSON object such as '{"path": "src"}', or --arg path=src.`);
}

function parsePairs(pairs: readonly string[]): Record<string, unknown> {
  const values: Record<string, unknown> = Object.create(null);
  for (const pair of pairs) {
    const at = pair.indexOf("=");
    if (at < 1) throw usageError(`--arg requires the form name=value, but got ${JSON.stringify(pair)}.`);
    values[pair.slice(0, at)] = parseValue(pair.slice(at + 1));
  }
  return values;
}

function parseValue(text: string): unknown {
  const { document } = parseJson(text);
  return document === undefined ? text : document.value;
}

/** A time limit for one call; its clock pauses while the user is asked. */
interface CallLimit {
  hasPassed(): boolean;
  /** Runs the call; the signal fires at the time limit. */
  run<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T>;
  pausedWhile<T>(work: () => T | Promise<T>): Promise<T>;
}

/** Without milliseconds there is no limit. */
export function createCallLimit(milliseconds: number | undefined): CallLimit {
  const stop = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  let left = milliseconds ?? 0;
  let since = 0;
  const start = (): void => {
    if (milliseconds === undefined) return;
    since = performance.now();
    timer = setTimeout(() => stop.abort(new Error(`Cancelled after ${milliseconds} ms.`)), Math.max(0, left));
  };
  const pause = (): void => {
    clearTimeout(timer);
    left -= performance.now() - since;
  };
  return {
    hasPassed: () => stop.signal.aborted,
    async run<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
      start();
      try {
        return await work(stop.signal);
      } finally {
        clearTimeout(timer);
      }
    },
    async pausedWhile<T>(work: () => T | Promise<T>): Promise<T> {
      pause();
      try {
        return await work();
      } finally {
        start();
      }
    },
  };
}
