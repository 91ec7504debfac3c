import { StringDecoder } from "node:string_decoder";
import type { Logger, ManagedProcess } from "skillhost";

/** An error in Python, as the worker reports it. */
export interface Fault {
  readonly kind: "syntax" | "untrusted" | "threw" | "arguments" | "not-json" | "cancelled" | "ended";
  readonly message: string;
  readonly file?: string;
  readonly line?: number | null;
  readonly column?: number | null;
  readonly files?: readonly string[];
  /** Innermost first. */
  readonly frames?: readonly { readonly file: string; readonly line: number | null; readonly name: string }[];
}

export type Reply = { readonly value: unknown } | { readonly fault: Fault };

/** Receives the notifications and requests of a running call. */
export interface CallListener {
  notify(what: string, data: Readonly<Record<string, unknown>>): void;
  ask(what: string, data: Readonly<Record<string, unknown>>): Promise<unknown>;
}

interface Pending {
  readonly settle: (reply: Reply) => void;
  readonly listener?: CallListener | undefined;
}

interface Message {
  readonly id?: number;
  readonly value?: unknown;
  readonly fault?: Fault;
  readonly call?: number;
  readonly notify?: string;
  readonly ask?: number;
  readonly what?: string;
  readonly data?: Readonly<Record<string, unknown>>;
  readonly ready?: { readonly version: string; readonly executable: string };
}

// The worker sends no longer lines, so a longer one is not from the worker.
const maxLine = 40 * 1024 * 1024;
/** Per call: output of a call is logged, however much earlier calls printed. */
const maxLoggedLines = 1000;
const maxLoggedChars = 2000;

/** A Python process and its line protocol. Requests never reject: errors are returned as faults. */
export class PythonProcess {
  readonly #process: ManagedProcess;
  readonly #log: Logger;
  readonly #pending = new Map<number, Pending>();
  #count = 0;
  #ended: string | undefined;
  #tail = "";
  /** The number of lines of stderr that were logged since the latest request. */
  #logged = 0;
  /** Fulfilled with the interpreter's path, or with the reason why it did not start. */
  readonly ready: Promise<Reply>;
  #settleReady!: (reply: Reply) => void;

  constructor(process: ManagedProcess, log: Logger) {
    this.#process = process;
    this.#log = log;
    this.ready = new Promise((resolve) => {
      this.#settleReady = resolve;
    });
    readLines(process.stdout, (line) => this.#receive(line), maxLine);
    readLines(process.stderr, (line) => {
      this.#tail = line.slice(0, maxLoggedChars);
      if (++this.#logged <= maxLoggedLines) log.info(this.#tail);
      else if (this.#logged === maxLoggedLines + 1) log.warning("Python tools print too much; the rest is left out until the next call.");
    });
    void process.ended.then(({ code, signal }) => this.#end(`The Python process ended (${signal ?? `exit code ${code}`}).`));
  }

  get isRunning(): boolean {
    return this.#ended === undefined;
  }

  /** `id` of the request, for `cancel`. */
  request(message: object, listener?: CallListener): { readonly id: number; readonly reply: Promise<Reply> } {
    const id = ++this.#count;
    this.#logged = 0;
    const reply = new Promise<Reply>((settle) => {
      if (this.#ended !== undefined) settle(ended(this.#ended));
      else this.#pending.set(id, { settle, listener });
    });
    this.#send({ id, ...message });
    return { id, reply };
  }

  cancel(id: number): void {
    if (this.#pending.has(id)) this.#send({ do: "cancel", id });
  }

  isPending(id: number): boolean {
    return this.#pending.has(id);
  }

  /** Ends it and its child processes. Running requests fail with the reason. */
  async stop(why: string, graceMs?: number): Promise<void> {
    this.#end(why);
    await this.#process.stop(graceMs);
  }

  #send(message: object): void {
    if (this.#ended === undefined) this.#process.stdin.write(`${JSON.stringify(message)}\n`);
  }

  #receive(line: string): void {
    const message = parsed(line);
    const listener = message?.call === undefined ? undefined : this.#pending.get(message.call)?.listener;
    if (message === undefined) void this.stop("The Python process sent an invalid message.", 0);
    else if (message.ready !== undefined) this.#settleReady({ value: message.ready });
    else if (message.id !== undefined) this.#settle(message.id, message);
    else if (message.notify !== undefined) listener?.notify(message.notify, message.data ?? {});
    else if (message.ask !== undefined) void this.#answer(message.ask, message, listener);
  }

  #settle(id: number, { fault, value }: Message): void {
    this.#pending.get(id)?.settle(fault === undefined ? { value } : { fault });
    this.#pending.delete(id);
  }

  async #answer(ask: number, { what = "", data = {} }: Message, listener: CallListener | undefined): Promise<void> {
    try {
      if (listener === undefined) throw new Error("The call is over.");
      this.#send({ do: "answer", ask, value: await listener.ask(what, data) });
    } catch (error) {
      this.#send({ do: "answer", ask, problem: error instanceof Error ? error.message : String(error) });
    }
  }

  #end(why: string): void {
    if (this.#ended !== undefined) return;
    this.#ended = this.#tail === "" ? why : `${why} Last line of stderr: ${this.#tail}`;
    this.#log.debug(this.#ended);
    this.#settleReady(ended(this.#ended));
    for (const { settle } of this.#pending.values()) settle(ended(this.#ended));
    this.#pending.clear();
  }
}

function ended(message: string): Reply {
  return { fault: { kind: "ended", message } };
}

function parsed(line: string): Message | undefined {
  try {
    const message: unknown = JSON.parse(line);
    return typeof message === "object" && message !== null ? (message as Message) : undefined;
  } catch {
    // Another writer than the worker has used the pipe.
    return undefined;
  }
}

/** Calls back for each line. Cuts a line that is longer than `max`. */
function readLines(stream: NodeJS.ReadableStream, onLine: (line: string) => void, max = maxLoggedChars): void {
  const decoder = new StringDecoder("utf8");
  let parts: string[] = [];
  let length = 0;
  const finish = (): void => {
    onLine(parts.join(""));
    parts = [];
    length = 0;
  };
  stream.on("data", (chunk: Buffer) => {
    const pieces = decoder.write(chunk).split("\n");
    pieces.forEach((piece, index) => {
      if (length < max) parts.push(length + piece.length > max ? piece.slice(0, max - length) : piece);
      length += piece.length;
      if (index < pieces.length - 1) finish();
    });
  });
  stream.on("end", () => {
    if (length > 0) finish();
  });
}
