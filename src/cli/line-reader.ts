import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { onAbort } from "../base/wait.ts";

/** Reads a terminal or pipe line by line. Lines that arrive before they are asked for are kept. */
export interface LineReader extends Disposable {
  /** Prints a prompt and reads the next line. Undefined: the input has ended. Rejects with the signal's reason. */
  question(prompt: string, signal: AbortSignal): Promise<string | undefined>;
}

/** Not in raw mode, so that the terminal edits the line and Ctrl-C remains a signal. */
export function createLineReader(input: Readable, print: (text: string) => void): LineReader {
  const reader = createInterface({ input, terminal: false });
  const lines: string[] = [];
  let waiting: ((line: string | undefined) => void) | undefined;
  let hasEnded = false;
  const take = (line: string | undefined): void => {
    const settle = waiting;
    waiting = undefined;
    if (settle !== undefined) settle(line);
    else if (line !== undefined) lines.push(line);
  };
  reader.on("line", take);
  reader.on("close", () => {
    hasEnded = true;
    take(undefined);
  });
  return {
    async question(prompt, signal) {
      signal.throwIfAborted();
      print(prompt);
      const [next] = lines;
      if (next !== undefined) return lines.shift();
      if (hasEnded) return undefined;
      return new Promise((resolve, reject) => {
        const stop = onAbort(signal, () => {
          waiting = undefined;
          reject(signal.reason);
        });
        waiting = (line) => {
          stop[Symbol.dispose]();
          resolve(line);
        };
      });
    },
    [Symbol.dispose]() {
      reader.close();
      input.pause();
    },
  };
}
