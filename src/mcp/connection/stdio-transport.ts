import type { JSONRPCMessage } from "@modelcontextprotocol/client";
import { errorMessage, HostError, toError } from "../../base/errors.ts";
import { isRecord, JsonValueCount, maxJsonDepth, maxJsonValues } from "../../base/json.ts";
import { type Logger, redactText } from "../../base/logger.ts";
import { JsonTooDeep, SlicedJson } from "../../base/sliced-json.ts";
import { settlesWithin } from "../../base/wait.ts";
import type { ManagedProcess, ProcessExit } from "../../io/process/child-process.ts";
import { StderrTail } from "../../io/process/stderr-tail.ts";
import type { ConnectionEnd } from "./connection.ts";
import type { ServerLink } from "./server-link.ts";

interface StdioOptions {
  readonly serverName: string;
  /** Limit for one message; a longer one fails the request that it answers. */
  readonly maxMessageBytes: number;
  readonly log: Logger;
  readonly onStderr?: ((text: string) => void) | undefined;
}

// Milliseconds for a server to exit after its input ended, before it gets a signal.
const inputGrace = 500;
const signalGrace = 2000;
// A server that closed its output cannot answer any more; usually it exits soon.
const silenceGrace = 500;
const loudGarbage = 5;
/** A message with more values is parsed in slices of a few milliseconds. */
const valuesAtOnce = 10_000;
const valuesPerSlice = 5_000;

interface WaitingLine {
  readonly line: string;
  readonly values: number;
}

/** MCP's stdio transport over a child process: one JSON message a line. It ends with the process, and ends the process. */
export class StdioTransport implements ServerLink {
  onclose?: (() => void) | undefined;
  onerror?: ((error: Error) => void) | undefined;
  onmessage?: ServerLink["onmessage"];
  onshallow?: ServerLink["onshallow"];
  onunreadable?: ServerLink["onunreadable"];
  readonly ended: Promise<ConnectionEnd>;
  readonly #process: ManagedProcess;
  readonly #options: StdioOptions;
  readonly #stderr = new StderrTail();
  #resolveEnded: (end: ConnectionEnd) => void = () => {};
  #end: ConnectionEnd | undefined;
  #stopped: Promise<void> | undefined;
  #outgoing = "";
  #drained: Promise<void> | undefined;
  #garbage = 0;
  /** Lines behind one that is being parsed in slices. */
  #waiting: WaitingLine[] | undefined;

  constructor(process: ManagedProcess, options: StdioOptions) {
    this.#process = process;
    this.#options = options;
    this.ended = new Promise((resolve) => {
      this.#resolveEnded = resolve;
    });
    process.stderr.on("data", (chunk: Buffer) => {
      this.#stderr.add(chunk);
      this.#options.onStderr?.(redactText(chunk.toString("utf8")));
    });
    void process.ended.then((exit) => this.#finish({ reason: "exited", message: this.#exitText(exit) }));
  }

  get end(): ConnectionEnd | undefined {
    return this.#end;
  }

  get pid(): number {
    return this.#process.pid;
  }

  /** Lines on stdout that were not messages. */
  get garbageLines(): number {
    return this.#garbage;
  }

  async start(): Promise<void> {
    const lines = new LineSplitter(
      this.#options.maxMessageBytes,
      (line, values) => this.#takeLine({ line, values }),
      (line) => this.#takeLong(line),
    );
    this.#process.stdout.on("data", (chunk: Buffer) => lines.push(chunk));
    this.#process.stdout.on("end", () => {
      const timer = setTimeout(() => {
        this.lose(`The MCP server ${this.#options.serverName} closed its output but is still running.`);
      }, silenceGrace);
      void this.ended.then(() => clearTimeout(timer));
    });
  }

  send(message: JSONRPCMessage): Promise<void> {
    if (this.#end !== undefined) return Promise.reject(new HostError("MCP_CLOSED", this.#end.message));
    if (this.#outgoing === "")
      queueMicrotask(() => {
        // Messages of one turn of the event loop are written at once.
        const text = this.#outgoing;
        this.#outgoing = "";
        if (this.#end === undefined) this.#process.stdin.write(text);
      });
    this.#outgoing += `${JSON.stringify(message)}\n`;
    return this.#process.stdin.writableNeedDrain ? this.#drain() : Promise.resolve();
  }

  lose(message: string): void {
    this.#finish({ reason: "lost", message });
    void this.#stop();
  }

  close(): Promise<void> {
    this.#finish({ reason: "closed", message: `The connection to the MCP server ${this.#options.serverName} was closed.` });
    return this.#stop();
  }

  #drain(): Promise<void> {
    this.#drained ??= new Promise((resolve) => {
      const done = (): void => {
        this.#drained = undefined;
        resolve();
      };
      this.#process.stdin.once("drain", done);
      void this.ended.then(done);
    });
    return this.#drained;
  }

  #takeLine(waiting: WaitingLine): void {
    if (this.#end !== undefined) return;
    const { line, values } = waiting;
    if (this.#waiting !== undefined) this.#waiting.push(waiting);
    else if (values > valuesAtOnce) void this.#takeLarge(line);
    else this.#takeMessage(line, parseMessage(line), this.onmessage);
  }

  #takeMessage(line: string, message: JSONRPCMessage | undefined, take: ((message: JSONRPCMessage) => void) | undefined): void {
    try {
      if (message === undefined) this.#countGarbage(line);
      else take?.(message);
    } catch (error) {
      this.onerror?.(toError(error));
    }
  }

  /** Reads nothing else in the meantime, so messages stay in order and wait in the pipe. Never rejects. */
  async #takeLarge(line: string): Promise<void> {
    this.#process.stdout.pause();
    this.#waiting = [];
    const message = await this.#parseInSlices(line);
    if (message === "too deep") this.#takeLong({ why: "depth", head: line.slice(0, 512), tail: line.slice(-512) });
    else if (this.#end === undefined) this.#takeMessage(line, message, this.onshallow ?? this.onmessage);
    const behind = this.#waiting;
    this.#waiting = undefined;
    for (const each of behind) this.#takeLine(each);
    // A process does not exit while its output is not read.
    if (this.#waiting === undefined || this.#end !== undefined) this.#process.stdout.resume();
  }

  async #parseInSlices(line: string): Promise<JSONRPCMessage | "too deep" | undefined> {
    try {
      const json = new SlicedJson(line);
      while (!json.advance(valuesPerSlice)) {
        await new Promise(setImmediate);
        if (this.#end !== undefined) return undefined;
      }
      return toMessage(json.value);
    } catch (error) {
      return error instanceof JsonTooDeep ? "too deep" : undefined;
    }
  }

  #countGarbage(line: string): void {
    this.#garbage++;
    if (this.#garbage > loudGarbage) return;
    const more = this.#garbage === loudGarbage ? " Further ones are not reported." : "";
    this.#options.log.warning(
      `The MCP server ${this.#options.serverName} wrote a line to stdout that is not a message; it was skipped.${more}`,
      { server: this.#options.serverName, line: redactText(line.slice(0, 200)) },
    );
  }

  /** Fails the request that it answers. If that is unknown, the connection is lost, since some request would wait in vain. */
  #takeLong(line: LongLine): void {
    const sizes = {
      bytes: `of more than ${this.#options.maxMessageBytes} bytes`,
      values: `of more than ${maxJsonValues} values`,
      depth: `that is nested more than ${maxJsonDepth} levels deep`,
    };
    const text = `The MCP server ${this.#options.serverName} sent a message ${sizes[line.why]}, which was ignored`;
    const id = idOf(line);
    if (id === undefined || this.onunreadable?.(id, text) !== true) this.lose(text);
  }

  #finish(end: ConnectionEnd): void {
    if (this.#end !== undefined) return;
    this.#end = end;
    this.#resolveEnded(end);
    try {
      this.onclose?.();
    } catch (error) {
      this.#options.log.error(`The end of the MCP server ${this.#options.serverName} could not be reported: ${errorMessage(error)}`);
    }
  }

  #stop(): Promise<void> {
    this.#stopped ??= this.#stopOnce();
    return this.#stopped;
  }

  async #stopOnce(): Promise<void> {
    this.#process.stdin.end();
    await settlesWithin(this.#process.ended, inputGrace);
    await this.#process.stop(signalGrace);
  }

  #exitText({ code, signal }: ProcessExit): string {
    const how = signal === null ? `exited with code ${code}` : `was killed by ${signal}`;
    const last = this.#stderr.lastLine;
    return `The MCP server ${this.#options.serverName} ${how}.${last === undefined ? "" : ` It last wrote to stderr: ${last}`}`;
  }
}

function parseMessage(line: string): JSONRPCMessage | undefined {
  try {
    return toMessage(JSON.parse(line));
  } catch {
    // A banner or a log line.
    return undefined;
  }
}

function toMessage(value: unknown): JSONRPCMessage | undefined {
  return isRecord(value) && value["jsonrpc"] === "2.0" ? (value as JSONRPCMessage) : undefined;
}

function idOf({ head, tail }: LongLine): number | undefined {
  const atStart = /^\{(?:"jsonrpc":"2\.0",)?"id":(\d{1,15}),/.exec(head.replace(/\s/g, ""));
  const atEnd = /,"id":(\d{1,15})(?:,"jsonrpc":"2\.0")?\}$/.exec(tail.replace(/\s/g, ""));
  const found = atStart?.[1] ?? atEnd?.[1];
  return found === undefined ? undefined : Number(found);
}

const lineBreak = 0x0a;
const carriageReturn = 0x0d;
// The id is at the beginning or at the end of a message, whichever library wrote it.
const edge = 512;

/** Beginning and end of a line that is not read: it is too long, has too many values, or is nested too deep. */
export interface LongLine {
  readonly why: "bytes" | "values" | "depth";
  readonly head: string;
  readonly tail: string;
}

/** `values`: how many the line has, as far as they were counted; 0 for a line that came in one chunk. */
type LineListener = (line: string, values: number) => void;

/**
 * Splits a stream of bytes into lines of UTF-8. Of a line over the limits only the beginning and the end are kept.
 * @internal Exported for tests.
 */
export class LineSplitter {
  readonly #limit: number;
  readonly #onLine: LineListener;
  readonly #onLong: (line: LongLine) => void;
  #chunks: Buffer[] = [];
  #length = 0;
  #head: string | undefined;
  #why: LongLine["why"] = "bytes";
  /** Of the current line, if it comes in more than one chunk. */
  #values = new JsonValueCount();

  constructor(limit: number, onLine: LineListener, onLong: (line: LongLine) => void) {
    this.#limit = limit;
    this.#onLine = onLine;
    this.#onLong = onLong;
  }

  push(chunk: Buffer): void {
    let start = 0;
    for (let at = chunk.indexOf(lineBreak); at !== -1; at = chunk.indexOf(lineBreak, start)) {
      this.#endLine(chunk.subarray(start, at));
      start = at + 1;
    }
    if (start < chunk.length) this.#keep(chunk.subarray(start));
  }

  #keep(part: Buffer): void {
    this.#chunks.push(part);
    this.#length += part.length;
    // Counted as it arrives, so that the whole line need not be read at once later.
    if (this.#head === undefined) this.#values.add(part);
    if (this.#length <= this.#limit && !this.#values.isTooMany) return;
    if (this.#head === undefined && this.#length <= this.#limit) this.#why = "values";
    const all = Buffer.concat(this.#chunks);
    this.#head ??= all.toString("utf8", 0, edge);
    // A copy: a slice would keep the megabytes alive that it is part of.
    this.#chunks = [Buffer.from(all.subarray(-edge))];
    this.#length = this.#limit;
  }

  #endLine(rest: Buffer): void {
    // The usual case: the line lies within one chunk.
    if (this.#chunks.length === 0 && rest.length <= this.#limit) {
      this.#emit(rest, 0);
      return;
    }
    this.#keep(rest);
    const line = Buffer.concat(this.#chunks);
    const head = this.#head;
    const why = this.#why;
    const { count } = this.#values;
    this.#chunks = [];
    this.#length = 0;
    this.#head = undefined;
    this.#why = "bytes";
    this.#values = new JsonValueCount();
    if (head === undefined) this.#emit(line, count);
    else this.#onLong({ why, head, tail: line.toString("utf8") });
  }

  #emit(line: Buffer, values: number): void {
    const end = line.at(-1) === carriageReturn ? line.length - 1 : line.length;
    if (end > 0) this.#onLine(line.toString("utf8", 0, end), values);
  }
}
