import type { Readable } from "node:stream";

/** A stream that text is written to. Writing never throws: where the reader has gone, the text goes nowhere. */
export interface CliStream {
  readonly isTTY: boolean;
  readonly columns?: number | undefined;
  write(text: string): void;
}

export interface CliInput {
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
