import { readFile } from "node:fs/promises";
import { canonicalJson } from "../base/canonical-json.ts";
import { errorMessage, HostError } from "../base/errors.ts";
import { isRecord, type Json } from "../base/json.ts";
import { counted } from "../base/text.ts";
import type { TrafficKind, TrafficTap } from "../base/traffic-tap.ts";
import { writeFileAtomic } from "../io/atomic-write.ts";
import type { RecordingCleaner } from "./clean-recording.ts";

interface RecordedExchange {
  readonly request: Json;
  /** Absent: it never came. */
  readonly response?: Json;
}

type RecordedTraffic = Record<TrafficKind, RecordedExchange[]>;

const kinds = ["http", "mcp", "tools"] as const satisfies readonly TrafficKind[];
const nouns: Readonly<Record<TrafficKind, string>> = { http: "HTTP request", mcp: "request to an MCP server", tools: "call" };
const mark = { recording: "skillhost", version: 1 } as const;

interface RecordingOptions {
  readonly file: string;
  readonly cleaner: RecordingCleaner;
  readonly tools: ReadonlySet<string>;
}

/** What a test reaches, being recorded. */
export class NewRecording implements TrafficTap {
  readonly isReplay = false as const;
  readonly #options: RecordingOptions;
  readonly #traffic: RecordedTraffic = { http: [], mcp: [], tools: [] };

  constructor(options: RecordingOptions) {
    this.#options = options;
  }

  get isEmpty(): boolean {
    return kinds.every((kind) => this.#traffic[kind].length === 0);
  }

  taps(tool: string): boolean {
    return this.#options.tools.has(tool);
  }

  record(kind: TrafficKind, asked: Json, answer: Json | undefined): void {
    const exchange = plain({ request: asked, ...(answer !== undefined && { response: answer }) });
    this.#traffic[kind].push(this.#options.cleaner.clean(exchange) as RecordedExchange);
  }

  replay(): never {
    throw new HostError("RECORDING_MISMATCH", "This recording has no answers yet.");
  }

  /** Writes the file, unless it already has this text: equal requests in their order, different ones sorted. */
  async save(): Promise<void> {
    const sorted = kinds.flatMap((kind) => {
      const exchanges = this.#traffic[kind].map((exchange) => ({ exchange, key: canonicalJson(exchange.request) }));
      const ordered = exchanges.sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0)).map(({ exchange }) => exchange);
      return ordered.length === 0 ? [] : [[kind, ordered] as const];
    });
    const text = `${JSON.stringify({ ...mark, ...Object.fromEntries(sorted) }, undefined, 2)}\n`;
    if ((await readRecording(this.#options.file)) !== text) await writeFileAtomic(this.#options.file, text);
  }
}

/** A recording that answers in the place of what a test reaches. */
export class ReplayedRecording implements TrafficTap {
  readonly isReplay = true as const;
  /** The requests that were refused. */
  readonly mismatches: HostError[] = [];
  readonly #options: RecordingOptions;
  readonly #traffic: RecordedTraffic;
  /** How often each request was answered. */
  readonly #used = new Map<string, number>();

  /** Without a text it has no answers. @throws HostError `RECORDING_INVALID` */
  constructor(text: string | undefined, options: RecordingOptions) {
    this.#options = options;
    this.#traffic = text === undefined ? { http: [], mcp: [], tools: [] } : parseRecording(text, options.file);
  }

  taps(tool: string): boolean {
    return this.#options.tools.has(tool);
  }

  record(): void {}

  replay(kind: TrafficKind, asked: Json, { isRepeatable = false }: { readonly isRepeatable?: boolean } = {}): Json | undefined {
    const request = this.#options.cleaner.clean(plain(asked));
    const key = canonicalJson(request);
    const answers = this.#traffic[kind].filter((exchange) => canonicalJson(exchange.request) === key);
    const used = this.#used.get(`${kind} ${key}`) ?? 0;
    const found = answers[isRepeatable ? Math.min(used, answers.length - 1) : used];
    if (found === undefined) throw this.#refuse(kind, request, answers.length);
    this.#used.set(`${kind} ${key}`, used + 1);
    return found.response;
  }

  #refuse(kind: TrafficKind, request: Json, times: number): HostError {
    const { file } = this.#options;
    const known = this.#traffic[kind].map((exchange) => describe(kind, exchange.request));
    const shown = [...new Set(known)].slice(0, 10).map((line) => `\n  ${line}`);
    const has =
      times > 0
        ? `It was recorded ${times === 1 ? "once" : `${times} times`}, and has been made once more.`
        : known.length === 0
          ? `Recorded: no ${nouns[kind]}.`
          : `Recorded: ${counted(known.length, nouns[kind])}:${shown.join("")}${known.length > shown.length ? "\n  …" : ""}`;
    const advice = "If the test is right, record again: skillhost test --record (or SKILLHOST_RECORDINGS=record with another test runner).";
    const message = `${file} has no answer to this ${nouns[kind]}:\n  ${describe(kind, request)}\n${has}\n${advice}`;
    const error = new HostError("RECORDING_MISMATCH", message);
    this.mismatches.push(error);
    return error;
  }
}

/** Undefined: there is none. */
export async function readRecording(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

function parseRecording(text: string, file: string): RecordedTraffic {
  const traffic: RecordedTraffic = { http: [], mcp: [], tools: [] };
  const value = parseJson(text, file);
  if (!isRecord(value) || value["recording"] !== mark.recording || value["version"] !== mark.version) {
    throw invalid(file, `it is not a recording of version ${mark.version}`);
  }
  for (const kind of kinds) {
    const exchanges = value[kind] ?? [];
    if (!Array.isArray(exchanges)) throw invalid(file, `"${kind}" is not a list`);
    for (const [index, exchange] of exchanges.entries()) {
      if (!isExchange(exchange)) throw invalid(file, `"${kind}[${index}]" has no request, or a response that is not an object`);
      traffic[kind].push(exchange);
    }
  }
  return traffic;
}

function parseJson(text: string, file: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw invalid(file, errorMessage(error));
  }
}

function isExchange(value: unknown): value is RecordedExchange {
  return isRecord(value) && isRecord(value["request"]) && (value["response"] === undefined || isRecord(value["response"]));
}

function invalid(file: string, why: string): HostError {
  return new HostError("RECORDING_INVALID", `${file} cannot be replayed: ${why}. Record it again: skillhost test --record.`);
}

/** As it is after it was written and read. */
function plain<T>(value: T): T {
  return JSON.parse(JSON.stringify(value)) as T;
}

const longest = 400;

function describe(kind: TrafficKind, request: Json): string {
  const body = (value: unknown): string => (value === undefined ? "" : ` ${typeof value === "string" ? value : canonicalJson(value)}`);
  const { method, url, server, tool, params, args } = request;
  const line =
    kind === "http"
      ? `${method} ${url}${body(request["body"])}`
      : kind === "mcp"
        ? `${server} ${method}${body(params)}`
        : `${tool}${body(args)}`;
  return line.length <= longest ? line : `${line.slice(0, longest)}…`;
}
