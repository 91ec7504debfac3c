import { fstatSync } from "node:fs";
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { isatty } from "node:tty";
import { setFlagsFromString } from "node:v8";
import { toError } from "../base/errors.ts";
import { onAbort, waitFor } from "../base/wait.ts";
import { createLineReader, type LineReader } from "./line-reader.ts";
import { StatusLine } from "./status-line.ts";
import { openTerminalKeys } from "./terminal-keys.ts";

const graceMs = 1_000;

/** The process as the command line sees it. `leave` ends it if leftovers of skills keep it running. */
export function createProcessIo(self: NodeJS.Process): { readonly io: CliIo; leave(): void } {
  const stop = new AbortController();
  const interrupts: (() => void)[] = [];
  const onSignal = (signal: NodeJS.Signals): void => {
    const interrupt = signal === "SIGINT" ? interrupts.at(-1) : undefined;
    if (interrupt !== undefined) {
      interrupt();
      return;
    }
    // A second signal exits at once.
    if (stop.signal.aborted) self.exit(signal === "SIGINT" ? 130 : 143);
    stop.abort(new Error(`Stopped by ${signal}.`));
  };
  self.on("SIGINT", onSignal).on("SIGTERM", onSignal);
  // From now on only the answer goes to stdout; all other output, including that of skills, goes to stderr.
  const { stdout, stderr } = self;
  const answer = stdout.write.bind(stdout) as Write;
  const talk = stderr.write.bind(stderr) as Write;
  stdout.write = talk;
  let status: StatusLine | undefined;
  // The status line stays below all output, including that of skills.
  const above = (print: Write): Write =>
    ((...given: Parameters<Write>) => {
      if (status === undefined) return print(...given);
      status.before();
      const isFree = print(...given);
      status.after(given[0]);
      return isFree;
    }) as Write;
  const io: CliIo = {
    stdout: toStream(self.stdout, above(answer), () => stop.abort(new Error("The output was closed by its reader."))),
    stderr: toStream(self.stderr, above(talk), () => {}),
    stdin: toInput(self),
    cwd: self.cwd(),
    env: self.env,
    signal: stop.signal,
    takeStreams: () => takeStreams(self, answer),
    ask: (question, signal) => ask(self, question, signal),
    openLines: () => createLineReader(self.stdin, (text) => self.stderr.write(text)),
    onInterrupt(listener) {
      interrupts.push(listener);
      return { [Symbol.dispose]: () => void interrupts.splice(interrupts.indexOf(listener), 1) };
    },
    openKeys: (onKey) => openTerminalKeys(self, onKey, () => onSignal("SIGINT")),
    openStatus() {
      const opened = new StatusLine(talk, () => self.stderr.columns);
      status = opened;
      stdout.write = stderr.write = above(talk);
      return {
        show: (text) => opened.show(text),
        [Symbol.dispose]() {
          opened[Symbol.dispose]();
          status = undefined;
          stdout.write = stderr.write = talk;
        },
      };
    },
    onStrayError: (listener) => onStrayError(self, listener),
  };
  return {
    io,
    leave: () => {
      // Unreferenced, so that it does not delay a normal exit; it ends a process that a skill's timer or socket keeps running. Flushes
      // output first.
      setTimeout(() => answer("", () => self.exit()), graceMs).unref();
    },
  };
}

type Write = NodeJS.WriteStream["write"];

function toStream(stream: NodeJS.WriteStream, print: Write, onClosed: () => void): CliStream {
  let isOpen = true;
  // The reader of a pipe may close it at any time, which is not an error (EPIPE, and EIO for a closed terminal).
  stream.on("error", () => {
    isOpen = false;
    onClosed();
  });
  return {
    isTTY: stream.isTTY === true,
    get columns() {
      return stream.columns;
    },
    write: (chunk) => void (isOpen && print(chunk)),
  };
}

/** All other output already goes to stderr. */
function takeStreams({ stdin, stdout }: NodeJS.Process, answer: Write): ProtocolStreams {
  return {
    input: stdin,
    output: {
      write: (text) => void (stdout.writable && answer(text)),
      get pendingBytes() {
        return stdout.writableLength;
      },
    },
    [Symbol.dispose]: () => {},
  };
}

// process.stdin is created on first access, and few commands need it.
function toInput(self: NodeJS.Process): CliInput {
  return {
    isTTY: isatty(0),
    isPiped: isPiped(0),
    async read(signal) {
      signal.throwIfAborted();
      const closing = onAbort(signal, () => self.stdin.destroy());
      try {
        return await waitFor(text(self.stdin), { signal });
      } finally {
        closing[Symbol.dispose]();
      }
    },
  };
}

function isPiped(fd: number): boolean {
  try {
    const stat = fstatSync(fd);
    return stat.isFIFO() || stat.isFile() || stat.isSocket();
  } catch {
    // The parent process closed it: there is nothing to read.
    return false;
  }
}

async function ask(self: NodeJS.Process, question: string, signal: AbortSignal): Promise<string> {
  const { createInterface } = await import("node:readline/promises");
  // Not in raw mode, so that Ctrl-C remains a signal.
  const lines = createInterface({ input: self.stdin, output: self.stderr, terminal: false });
  try {
    const ended = new Promise<string>((resolve) => lines.once("close", () => resolve("")));
    return await Promise.race([lines.question(question, { signal }), ended]);
  } finally {
    lines.close();
    self.stdin.pause();
  }
}

function onStrayError(self: NodeJS.Process, listener: (error: Error) => void): Disposable {
  const listen = (error: unknown): void => listener(toError(error));
  self.on("uncaughtException", listen).on("unhandledRejection", listen);
  return {
    [Symbol.dispose]: () => void self.off("uncaughtException", listen).off("unhandledRejection", listen),
  };
}

/** A text stream. Writing never throws: after the reader has closed, text is discarded. */
export interface CliStream {
  readonly isTTY: boolean;
  readonly columns?: number | undefined;
  write(text: string): void;
}

interface CliInput {
  readonly isTTY: boolean;
  /** True for a file, pipe or socket, which may have data. */
  readonly isPiped: boolean;
  /** Reads up to the end. Rejects with the signal's reason. */
  read(signal: AbortSignal): Promise<string>;
}

/** Standard input and output reserved for a protocol; disposing of it releases them. */
export interface ProtocolStreams extends Disposable {
  readonly input: Readable;
  /** After the reader has closed, text is discarded. `pendingBytes`: the bytes that it has not read yet. */
  readonly output: { write(text: string): void; readonly pendingBytes: number };
}

/** A line below all output, until it is disposed of. An empty text removes it. */
export interface ShownStatus extends Disposable {
  show(text: string): void;
}

/** Everything outside of files that the command line uses of the machine, so that tests can replace it. */
export interface CliIo {
  readonly stdout: CliStream;
  readonly stderr: CliStream;
  readonly stdin: CliInput;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Fires on Ctrl-C, on SIGTERM, and when the reader of stdout closes it. */
  readonly signal: AbortSignal;
  /** Standard input and output for a protocol. */
  takeStreams?(): ProtocolStreams;
  /** Asks the user at the terminal. Rejects with the signal's reason; the end of the input is an empty answer. */
  ask?(question: string, signal: AbortSignal): Promise<string>;
  /** Reads standard input line by line. Nothing else may read it until the reader is disposed of. */
  openLines?(): LineReader;
  /** Calls the listener on Ctrl-C instead of firing the signal. The latest listener counts. */
  onInterrupt?(listener: () => void): Disposable;
  /** Calls the listener for each key that is pressed. Nothing else may read standard input until it is disposed of. */
  openKeys?(onKey: (key: string) => void): Disposable;
  /** A line below all output. Only for a terminal. */
  openStatus?(): ShownStatus;
  /** Reports uncaught errors of skill code, which may outlive its calls. */
  onStrayError?(listener: (error: Error) => void): Disposable;
}

/**
 * Keeps the young generation of the heap at its initial size. Loading creates many short-lived objects, for which V8 would enlarge it
 * permanently: 40 MB for a runtime that mostly waits.
 */
export function keepHeapSmall(): void {
  setFlagsFromString("--semi-space-growth-factor=1");
}

/** Lets V8 grow the young generation: faster for continuous work. */
export function letHeapGrow(): void {
  setFlagsFromString("--semi-space-growth-factor=2");
}
