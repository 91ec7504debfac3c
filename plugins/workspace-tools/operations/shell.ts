import { constants } from "node:os";
import { StringDecoder } from "node:string_decoder";
import type { Limits } from "./command-confinement.ts";

/** How a shell is started. */
export interface ShellSpec {
  readonly id: string;
  readonly command: string;
  readonly mode: "sync" | "async";
  /** It keeps running after the session ends. */
  readonly isDetached: boolean;
  /** What the operating system prevents the command from doing. */
  readonly limits?: Limits | undefined;
}

/** The running program behind a shell. */
interface ShellProcess {
  readonly pid: number;
  readonly stdin: NodeJS.WritableStream;
  readonly stdout: NodeJS.ReadableStream;
  readonly stderr: NodeJS.ReadableStream;
  readonly ended: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>;
  stop(): Promise<unknown>;
}

const maxKeptChars = 1024 * 1024;

/** A running or ended command with its output. */
export class Shell {
  readonly spec: ShellSpec;
  readonly startedAt: number = Date.now();
  readonly output: OutputBuffer = new OutputBuffer(maxKeptChars);
  readonly #process: ShellProcess;
  readonly #ended: Promise<void>;
  #exitCode: number | undefined;
  #endedAt: number | undefined;

  constructor(spec: ShellSpec, process: ShellProcess) {
    this.spec = spec;
    this.#process = process;
    // The command line merges both streams into the first one.
    for (const stream of [process.stdout, process.stderr]) this.#listen(stream);
    this.#ended = process.ended.then(({ code, signal }) => {
      this.#exitCode = code ?? 128 + (signal === null ? 0 : (constants.signals[signal] ?? 0));
      this.#endedAt = Date.now();
    });
  }

  get pid(): number {
    return this.#process.pid;
  }

  /** Never rejects. */
  get ended(): Promise<void> {
    return this.#ended;
  }

  /** Undefined: still running. */
  get exitCode(): number | undefined {
    return this.#exitCode;
  }

  /** Run time in whole seconds. */
  get elapsed(): number {
    return Math.round(((this.#endedAt ?? Date.now()) - this.startedAt) / 1000);
  }

  /** Waits until it has ended, the time is over, or the signal aborts. */
  async wait(milliseconds: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted || this.#exitCode !== undefined) return;
    let finish = (): void => {};
    const over = new Promise<void>((resolve) => {
      finish = resolve;
    });
    const timer = setTimeout(finish, milliseconds);
    signal.addEventListener("abort", finish, { once: true });
    await Promise.race([this.#ended, over]);
    clearTimeout(timer);
    signal.removeEventListener("abort", finish);
  }

  /** Writes to its standard input. False: the input is closed. */
  write(text: string): boolean {
    const { stdin } = this.#process;
    if (this.#exitCode !== undefined || !stdin.writable) return false;
    stdin.write(text);
    return true;
  }

  /** Ends its whole process group. */
  async stop(): Promise<void> {
    await this.#process.stop();
    await this.#ended;
  }

  #listen(stream: NodeJS.ReadableStream): void {
    const decoder = new StringDecoder("utf8");
    stream.on("data", (chunk: Buffer) => this.output.add(decoder.write(chunk)));
    stream.on("end", () => this.output.add(decoder.end()));
  }
}

/** The unread output of a command. If it is too long, only its beginning and its end. */
export class OutputBuffer {
  readonly #half: number;
  #head = "";
  #tail: string[] = [];
  #tailChars = 0;
  #dropped = 0;

  /** `max`: the maximum number of characters. */
  constructor(max: number) {
    this.#half = Math.floor(max / 2);
  }

  get isEmpty(): boolean {
    return this.#head === "";
  }

  add(text: string): void {
    const room = this.#half - this.#head.length;
    if (room > 0) this.#head += text.slice(0, room);
    if (text.length > room) this.#addToTail(text.slice(Math.max(0, room)));
  }

  /** The unread output, which stays unread. */
  get text(): string {
    this.#cutTail();
    const cut = this.#dropped === 0 ? "" : `\n[${this.#dropped} characters of output omitted.]\n`;
    return this.#head + cut + this.#tail.join("");
  }

  /** Returns the unread output and clears the buffer. */
  take(): string {
    const { text } = this;
    this.#head = "";
    this.#tail = [];
    this.#tailChars = 0;
    this.#dropped = 0;
    return text;
  }

  #addToTail(text: string): void {
    this.#tail.push(text);
    this.#tailChars += text.length;
    // Not cut at every chunk: a program may write byte by byte.
    if (this.#tailChars > this.#half * 2 || this.#tail.length > 1024) this.#cutTail();
  }

  #cutTail(): void {
    const text = this.#tail.join("");
    const kept = text.length > this.#half ? text.slice(-this.#half) : text;
    this.#dropped += text.length - kept.length;
    this.#tail = kept === "" ? [] : [kept];
    this.#tailChars = kept.length;
  }
}
