import type { JSONRPCMessage } from "@modelcontextprotocol/client";
import { errorMessage, HostError, toError } from "../../base/errors.ts";
import { maxJsonValues } from "../../base/json-limits.ts";
import { type Logger, redactText } from "../../base/logger.ts";
import { isPlainRecord } from "../../base/read-fields.ts";
import { settlesWithin } from "../../base/wait-for.ts";
import type { ManagedProcess, ProcessExit } from "../../io/spawn-process.ts";
import type { ConnectionEnd } from "./connection.ts";
import { LineSplitter, type LongLine } from "./line-splitter.ts";
import type { ServerLink } from "./server-link.ts";
import { StderrTail } from "./stderr-tail.ts";

export interface StdioOptions {
  readonly serverName: string;
  /** Of one message; a longer one is an error for the request that it answers. */
  readonly maxMessageBytes: number;
  readonly log: Logger;
  readonly onStderr?: ((text: string) => void) | undefined;
}

// How long a server may take to end after its input has: most take no time, and who ignores it gets a signal.
const inputGrace = 500;
const signalGrace = 2000;
// A server that closed its output says nothing any more; usually its end follows.
const silenceGrace = 500;
const loudGarbage = 5;

/** MCP's stdio transport over a process of ours: one JSON message a line. It ends with the process, and the process with it. */
export class StdioTransport implements ServerLink {
  onclose?: (() => void) | undefined;
  onerror?: ((error: Error) => void) | undefined;
  onmessage?: ServerLink["onmessage"];
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

  constructor(process: ManagedProcess, options: StdioOptions) {
    this.#process = process;
    this.#options = options;
    this.ended = new Promise((resolve) => {
      this.#resolveEnded = resolve;
    });
    process.stderr.on("data", (chunk: Buffer) => this.#hearStderr(chunk));
    void process.ended.then((exit) => this.#finish({ reason: "exited", message: this.#exitText(exit) }));
  }

  get end(): ConnectionEnd | undefined {
    return this.#end;
  }

  get pid(): number {
    return this.#process.pid;
  }

  /** How many lines on stdout were no messages. */
  get garbageLines(): number {
    return this.#garbage;
  }

  async start(): Promise<void> {
    const lines = new LineSplitter(
      this.#options.maxMessageBytes,
      (line) => this.#takeLine(line),
      (line) => this.#takeLong(line),
    );
    this.#process.stdout.on("data", (chunk: Buffer) => lines.push(chunk));
    this.#process.stdout.on("end", () => this.#hearSilence());
  }

  send(message: JSONRPCMessage): Promise<void> {
    if (this.#end !== undefined) return Promise.reject(new HostError("MCP_CLOSED", this.#end.message));
    if (this.#outgoing === "") queueMicrotask(() => this.#flush());
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

  /** Messages of one turn go out in one write. */
  #flush(): void {
    const text = this.#outgoing;
    this.#outgoing = "";
    if (this.#end === undefined) this.#process.stdin.write(text);
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

  #takeLine(line: string): void {
    if (this.#end !== undefined) return;
    const message = parseMessage(line);
    try {
      if (message === undefined) this.#countGarbage(line);
      else this.onmessage?.(message);
    } catch (error) {
      this.onerror?.(toError(error));
    }
  }

  #countGarbage(line: string): void {
    this.#garbage++;
    if (this.#garbage > loudGarbage) return;
    const more = this.#garbage === loudGarbage ? " Further ones are not told." : "";
    this.#options.log.warning(
      `The MCP server ${this.#options.serverName} wrote a line to stdout that is no message; it was skipped.${more}`,
      { server: this.#options.serverName, line: redactText(line.slice(0, 200)) },
    );
  }

  /** The request that it answers fails; when that cannot be told, nobody knows who waits for what. */
  #takeLong(line: LongLine): void {
    const size = line.why === "bytes" ? `${this.#options.maxMessageBytes} bytes` : `${maxJsonValues} values`;
    const text = `The MCP server ${this.#options.serverName} sent a message of over ${size}, which is not read`;
    const id = idOf(line);
    if (id === undefined || this.onunreadable?.(id, text) !== true) this.lose(text);
  }

  #hearStderr(chunk: Buffer): void {
    this.#stderr.add(chunk);
    this.#options.onStderr?.(redactText(chunk.toString("utf8")));
  }

  #hearSilence(): void {
    const timer = setTimeout(() => {
      this.lose(`The MCP server ${this.#options.serverName} closed its output and went on running.`);
    }, silenceGrace);
    void this.ended.then(() => clearTimeout(timer));
  }

  #finish(end: ConnectionEnd): void {
    if (this.#end !== undefined) return;
    this.#end = end;
    this.#resolveEnded(end);
    try {
      this.onclose?.();
    } catch (error) {
      this.#options.log.error(`The end of the MCP server ${this.#options.serverName} could not be told: ${errorMessage(error)}`);
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
    const how = signal === null ? `exited with code ${code}` : `was ended by ${signal}`;
    const last = this.#stderr.lastLine;
    return `The MCP server ${this.#options.serverName} ${how}.${last === undefined ? "" : ` It last wrote to stderr: ${last}`}`;
  }
}

function parseMessage(line: string): JSONRPCMessage | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return isPlainRecord(value) && value["jsonrpc"] === "2.0" ? (value as JSONRPCMessage) : undefined;
  } catch {
    // A banner, a log line: anything but a message.
    return undefined;
  }
}

function idOf({ head, tail }: LongLine): number | undefined {
  const atStart = /^\{(?:"jsonrpc":"2\.0",)?"id":(\d{1,15}),/.exec(head.replace(/\s/g, ""));
  const atEnd = /,"id":(\d{1,15})(?:,"jsonrpc":"2\.0")?\}$/.exec(tail.replace(/\s/g, ""));
  const found = atStart?.[1] ?? atEnd?.[1];
  return found === undefined ? undefined : Number(found);
}
