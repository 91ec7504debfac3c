import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { PassThrough } from "node:stream";
import { onTestFinished } from "vitest";
import { createLineReader } from "../../src/cli/line-reader.ts";
import { main } from "../../src/cli/main.ts";
import type { CliIo, ProtocolStreams } from "../../src/cli/process-io.ts";
import { StatusLine } from "../../src/cli/status-line.ts";
import { patience } from "../slowness.ts";

export interface CliSetup {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** The content of stdin. Absent: stdin is not piped. */
  readonly stdin?: string;
  /** False: the folder is not trusted. Default: true. */
  readonly isTrusted?: boolean;
  /** Whether the streams belong to a terminal. */
  readonly isTTY?: boolean;
  /** Whether the terminal has keys and a status line. */
  readonly hasKeys?: boolean;
  /** The streams of a protocol. */
  readonly streams?: Omit<ProtocolStreams, typeof Symbol.dispose>;
  /** Answers a question on the terminal. */
  readonly answer?: (question: string) => string | Promise<string>;
}

export interface CliRun {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** A running command. */
export interface RunningCli {
  readonly done: Promise<CliRun>;
  /** The output so far. */
  readonly stdout: string;
  readonly stderr: string;
  /** The next matching line of stdout that was not returned before. Rejects when none arrives in time. */
  line(fits: (line: string) => boolean): Promise<string>;
  /** Interrupts the command like Ctrl-C. */
  interrupt(): void;
  /** Types a line into a command that reads lines. */
  type(line: string): void;
  /** Presses a key of a terminal that has keys. False: no key is listened to. */
  press(key: string): boolean;
  /** Ends the input like Ctrl-D. */
  endInput(): void;
  /** Waits until stderr contains a text that was not waited for before. */
  said(text: string): Promise<void>;
}

/** Runs the command line in this process until it ends. */
export function runCli(argv: readonly string[], setup: CliSetup = {}): Promise<CliRun> {
  return startCli(argv, setup).done;
}

export function startCli(argv: readonly string[], setup: CliSetup = {}): RunningCli {
  const stop = new AbortController();
  let [stdout, stderr, taken] = ["", "", 0];
  const watchers = new Set<() => void>();
  const typed = new PassThrough();
  const interrupts: (() => void)[] = [];
  let heard = 0;
  let onKey: ((key: string) => void) | undefined;
  let status: StatusLine | undefined;
  const { cwd = tmpdir(), env = {}, stdin, isTTY = false, isTrusted = true, answer, streams, hasKeys = false } = setup;
  const io: CliIo = {
    stdout: {
      isTTY,
      write(text) {
        status?.before();
        stdout += text;
        status?.after(text);
        for (const watcher of watchers) watcher();
      },
    },
    stderr: {
      isTTY,
      write(text) {
        status?.before();
        stderr += text;
        status?.after(text);
        for (const watcher of watchers) watcher();
      },
    },
    stdin: { isTTY, isPiped: stdin !== undefined, read: () => Promise.resolve(stdin ?? "") },
    cwd,
    env: { LANG: "C.UTF-8", ...(isTrusted && { SKILLHOST_TRUST: "1" }), ...env },
    signal: stop.signal,
    ...(streams && { takeStreams: () => ({ ...streams, [Symbol.dispose]: () => {} }) }),
    openLines: () => createLineReader(typed, (text) => io.stderr.write(text)),
    onInterrupt(listener) {
      interrupts.push(listener);
      return { [Symbol.dispose]: () => void interrupts.splice(interrupts.indexOf(listener), 1) };
    },
    ...(hasKeys && {
      openKeys(listener: (key: string) => void) {
        onKey = listener;
        return {
          [Symbol.dispose]: () => {
            onKey = undefined;
          },
        };
      },
      openStatus() {
        const opened = new StatusLine(
          (text) => {
            stderr += text;
            for (const watcher of watchers) watcher();
          },
          () => 120,
        );
        status = opened;
        return {
          show: (text: string) => opened.show(text),
          [Symbol.dispose]: () => {
            opened[Symbol.dispose]();
            status = undefined;
          },
        };
      },
    }),
    ...(answer && { ask: async (question: string) => answer(question) }),
  };
  const done = main(argv, io).then((code) => ({ code, stdout, stderr }));
  // A test that timed out must not keep running beside later ones.
  onTestFinished(() => stop.abort(new Error("The test is over.")));
  const line = (fits: (text: string) => boolean): Promise<string> =>
    new Promise((resolve, reject) => {
      const look = (): void => {
        const lines = stdout.slice(0, stdout.lastIndexOf("\n") + 1).split("\n");
        const at = lines.findIndex((text, index) => index >= taken && text !== "" && fits(text));
        if (at === -1) return;
        taken = at + 1;
        settle(() => resolve(lines[at]!));
      };
      const fail = (why: string): void => settle(() => reject(new Error(`${why}\nstdout:\n${stdout}\nstderr:\n${stderr}`)));
      const timer = setTimeout(() => fail("No such line in time."), patience(15_000));
      const settle = (end: () => void): void => {
        clearTimeout(timer);
        watchers.delete(look);
        end();
      };
      watchers.add(look);
      void done.then(() => fail("It ended before such a line."));
      look();
    });
  return {
    done,
    line,
    interrupt: () => (interrupts.at(-1) ?? (() => stop.abort(new Error("Stopped by SIGINT."))))(),
    type: (text) => void typed.write(`${text}\n`),
    press: (key) => {
      onKey?.(key);
      return onKey !== undefined;
    },
    endInput: () => void typed.end(),
    said: (text) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          const at = stderr.indexOf(text, heard);
          if (at === -1) return;
          heard = at + text.length;
          end();
          resolve();
        };
        const timer = setTimeout(() => fail(`stderr does not contain ${JSON.stringify(text)} in time`), patience(15_000));
        const fail = (why: string): void => {
          end();
          reject(new Error(`${why}\nstdout:\n${stdout}\nstderr:\n${stderr}`));
        };
        const end = (): void => {
          clearTimeout(timer);
          watchers.delete(look);
        };
        watchers.add(look);
        void done.then(() => {
          if (watchers.has(look)) fail("It ended before.");
        });
        look();
      }),
    get stdout() {
      return stdout;
    },
    get stderr() {
      return stderr;
    },
  };
}

/** A folder for a test, with files. */
export interface Workplace extends Disposable {
  readonly path: string;
  at(file: string): string;
  write(file: string, text: string): void;
}

export function workplace(files: Readonly<Record<string, string>> = {}): Workplace {
  const path = realpathSync(mkdtempSync(join(tmpdir(), "skillhost-cli-")));
  const at = (file: string): string => join(path, file);
  const write = (file: string, text: string): void => {
    mkdirSync(dirname(at(file)), { recursive: true });
    writeFileSync(at(file), text);
  };
  for (const [file, text] of Object.entries(files)) write(file, text);
  return { path, at, write, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}

/** A SKILL.md that conforms to the specification. */
export function skillDocument(name: string, description = "Greets people by name. Use it when the user says hello."): string {
  return `---\nname: ${name}\ndescription: ${description}\n---\n\nGreet people.\n`;
}

/** A module with one tool that returns a text. */
export function toolModule(name: string, text: string): string {
  return `import { defineTool } from "skillhost";
export default defineTool("${name}", {
  description: "Returns one fixed sentence when the user asks for it.",
  parameters: { type: "object", properties: { name: { type: "string", description: "Whom to greet." } }, required: [] },
  handler: (args: { name?: string }) => \`${text} \${args.name ?? "stranger"}\`,
});
`;
}
