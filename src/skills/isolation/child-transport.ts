import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { errorMessage } from "../../base/errors.ts";
import { packageRoot } from "../../base/package-root.ts";
import { minimalEnvironment } from "../../io/process/child-environment.ts";
import { spawnProcess } from "../../io/process/child-process.ts";
import { StderrTail } from "../../io/process/stderr-tail.ts";
import { FrameSplitter, maxFrameLength } from "./child-frames.ts";

/** A running child: a worker thread, or a process. */
export interface ChildTransport {
  send(text: string): void;
  /** Ends the child at once. Settles when nothing of it is left. */
  kill(): Promise<void>;
}

export interface ChildListener {
  received(text: string): void;
  /** Called once, with the reason as the end of a sentence. */
  ended(reason: string): void;
}

/** Where a child runs, and the variables of the host that its skill declares. */
export interface ChildPlace {
  readonly folder: string;
  readonly environment: readonly string[];
}

export type OpenChild = (place: ChildPlace, listener: ChildListener) => Promise<ChildTransport>;

// Both tiers start the built program: a thread or process of Node.js 20 cannot run TypeScript.
const program: string = join(packageRoot, "dist/skills/isolation/child-main.js");
const maxHeapMegabytes = 512;
const outOfMemory = `it used more than ${maxHeapMegabytes} MB of memory`;

/** Runs a skill in a worker thread, which shares files, network and environment with the host. */
export async function openWorker(_place: ChildPlace, listener: ChildListener): Promise<ChildTransport> {
  const worker = new Worker(program, {
    stdout: true,
    stderr: true,
    execArgv: [],
    resourceLimits: { maxOldGenerationSizeMb: maxHeapMegabytes },
  });
  // Output that is not read would be kept in memory.
  worker.stdout.resume();
  worker.stderr.resume();
  let failure: string | undefined;
  worker.on("message", (text: unknown) => {
    if (typeof text === "string") listener.received(text);
    else listener.received("");
  });
  worker.on("error", (error: NodeJS.ErrnoException) => {
    failure = error?.code === "ERR_WORKER_OUT_OF_MEMORY" ? outOfMemory : `it failed with: ${errorMessage(error)}`;
  });
  worker.on("exit", (code) => listener.ended(failure ?? `it exited with code ${code}`));
  return {
    send: (text) => worker.postMessage(text),
    kill: async () => void (await worker.terminate()),
  };
}

/** Runs a skill in a process with a minimal environment and a process group of its own, which ends with it. */
export async function openProcess({ folder, environment }: ChildPlace, listener: ChildListener): Promise<ChildTransport> {
  const declared = environment.flatMap((name) => {
    const value = process.env[name];
    return value === undefined || unsafeVariables.test(name) ? [] : [[name, value] as const];
  });
  const spawned = await spawnProcess({
    command: process.execPath,
    args: [`--max-old-space-size=${maxHeapMegabytes}`, program],
    cwd: folder,
    environment: minimalEnvironment(Object.fromEntries(declared)),
  });
  if (spawned.kind !== "spawned") throw new Error(spawned.message);
  const child = spawned.process;
  const stderr = new StderrTail();
  let failure: string | undefined;
  const fail = (reason: string): void => {
    failure ??= reason;
    void child.stop(0);
  };
  const lines = new FrameSplitter(listener.received, () => fail("it sent a message that is too long"));
  child.stdout.on("data", (chunk: Buffer) => lines.add(chunk));
  child.stderr.on("data", (chunk: Buffer) => stderr.add(chunk));
  void child.ended.then(({ code, signal }) => {
    const heap = /heap out of memory|Allocation failed/.test(stderr.text) ? outOfMemory : undefined;
    const line = stderr.lastLine;
    const how = signal === null ? `it exited with code ${code}` : `it was ended by ${signal}`;
    listener.ended(failure ?? heap ?? (line === undefined ? how : `${how}: ${line}`));
  });
  return {
    send: (text) => {
      child.stdin.write(`${text}\n`);
      if (child.stdin.writableLength > 2 * maxFrameLength) fail("it does not read what it is sent");
    },
    kill: async () => void (await child.stop(0)),
  };
}

/** Variables that make Node.js or the system's loader run other code than the skill's. */
const unsafeVariables = /^(?:NODE_OPTIONS|NODE_PATH|NODE_REPL_EXTERNAL_MODULE|LD_.*|DYLD_.*)$/i;
