import { fstatSync } from "node:fs";
import { createInterface } from "node:readline/promises";
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { isatty } from "node:tty";
import { toError } from "../base/errors.ts";
import { onAbort, waitFor } from "../base/wait-for.ts";

const graceMs = 1_000;

/** The command line's view of a process. `leave` ends it when something that skills left behind keeps it from ending. */
export function createProcessIo(self: NodeJS.Process): { readonly io: CliIo; leave(): void } {
  const stop = new AbortController();
  const onSignal = (signal: NodeJS.Signals): void => {
    // Whoever asks twice means it.
    if (stop.signal.aborted) self.exit(signal === "SIGINT" ? 130 : 143);
    stop.abort(new Error(`Stopped by ${signal}.`));
  };
  self.on("SIGINT", onSignal).on("SIGTERM", onSignal);
  // From now on stdout is the answer's alone: whatever else is printed, by code of skills too, goes to stderr.
  const { stdout, stderr } = self;
  const answer = stdout.write.bind(stdout) as Write;
  stdout.write = stderr.write.bind(stderr) as Write;
  const io: CliIo = {
    stdout: toStream(self.stdout, answer, () => stop.abort(new Error("The output was closed by its reader."))),
    stderr: toStream(self.stderr, self.stderr.write.bind(self.stderr), () => {}),
    stdin: toInput(self),
    cwd: self.cwd(),
    env: self.env,
    signal: stop.signal,
    takeStreams: () => takeStreams(self, answer),
    ask: (question, signal) => ask(self, question, signal),
    onStrayError: (listener) => onStrayError(self, listener),
  };
  return {
    io,
    leave: () => {
      // Not for a process that ends by itself; a skill's timer or socket would keep it. What is printed goes out first.
      setTimeout(() => answer("", () => self.exit()), graceMs).unref();
    },
  };
}

type Write = NodeJS.WriteStream["write"];

function toStream(stream: NodeJS.WriteStream, print: Write, onClosed: () => void): CliStream {
  let isOpen = true;
  // The reader of a pipe may go at any time; that is no fault of ours (EPIPE, and EIO of a terminal that is gone).
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

/** What else is printed goes to stderr anyway. */
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

// process.stdin itself is made when it is first touched, and few commands do.
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
    // Closed by whoever started us: there is nothing to read.
    return false;
  }
}

async function ask(self: NodeJS.Process, question: string, signal: AbortSignal): Promise<string> {
  // Not in raw mode, so that Ctrl-C is a signal as everywhere else.
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

/** A stream that text is written to. Writing never throws: where the reader has gone, the text goes nowhere. */
export interface CliStream {
  readonly isTTY: boolean;
  readonly columns?: number | undefined;
  write(text: string): void;
}

interface CliInput {
  readonly isTTY: boolean;
  /** A file, pipe or socket stands behind it, so there may be something to read. */
  readonly isPiped: boolean;
  /** All of it, up to its end. Rejects with the signal's reason. */
  read(signal: AbortSignal): Promise<string>;
}

/** Standard input and output, given over to a protocol. Disposing of it gives them back. */
export interface ProtocolStreams extends Disposable {
  readonly input: Readable;
  /** Where the reader has gone, what is written goes nowhere. `pendingBytes`: what it has not taken yet. */
  readonly output: { write(text: string): void; readonly pendingBytes: number };
}

/** Everything of the machine that the command line uses beside files, so that tests can stand in for it. */
export interface CliIo {
  readonly stdout: CliStream;
  readonly stderr: CliStream;
  readonly stdin: CliInput;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Fires on Ctrl-C, on SIGTERM, and when whoever read stdout has gone. */
  readonly signal: AbortSignal;
  /** Standard input and output for a protocol. */
  takeStreams?(): ProtocolStreams;
  /** Asks a person, on a terminal. Rejects with the signal's reason; the end of the input is an empty answer. */
  ask?(question: string, signal: AbortSignal): Promise<string>;
  /** Tells of errors that nobody caught: those of skills' own code, which may outlive their calls. */
  onStrayError?(listener: (error: Error) => void): Disposable;
}
