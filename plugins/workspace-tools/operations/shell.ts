import { constants } from "node:os";
import { StringDecoder } from "node:string_decoder";
import type { Limits } from "./command-confinement.ts";

/** What a shell is started with. */
export interface ShellSpec {
  readonly id: string;
  readonly command: string;
  readonly mode: "sync" | "async";
  /** It outlives the session that started it. */
  readonly isDetached: boolean;
  /** What the command is kept from. */
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

/** One command that runs, or ran, with what it wrote. */
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
    // Both streams arrive on the first one: the command line merges them.
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

  /** Undefined: it runs. */
  get exitCode(): number | undefined {
    return this.#exitCode;
  }

  /** Whole seconds that it has run. */
  get elapsed(): number {
    return Math.round(((this.#endedAt ?? Date.now()) - this.startedAt) / 1000);
  }

  /** Waits until it has ended, at most so many milliseconds, or until nobody waits any more. */
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

  /** Gives it input. False: it takes none any more. */
  write(text: string): boolean {
    const { stdin } = this.#process;
    if (this.#exitCode !== undefined || !stdin.writable) return false;
    stdin.write(text);
    return true;
  }

  /** Ends it with all that it started in its process group. */
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

/** What a command wrote and nobody has read: its beginning and its end, when it is more than is kept. */
export class OutputBuffer {
  readonly #half: number;
  #head = "";
  #tail: string[] = [];
  #tailChars = 0;
  #dropped = 0;

  /** `max`: how many characters are kept. */
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

  /** Gives what is there, and forgets it. */
  take(): string {
    this.#cutTail();
    const cut = this.#dropped === 0 ? "" : `\n[${this.#dropped} characters of output omitted.]\n`;
    const text = this.#head + cut + this.#tail.join("");
    this.#head = "";
    this.#tail = [];
    this.#tailChars = 0;
    this.#dropped = 0;
    return text;
  }

  #addToTail(text: string): void {
    this.#tail.push(text);
    this.#tailChars += text.length;
    // Cut now and then rather than at each chunk: a program may write byte by byte.
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
