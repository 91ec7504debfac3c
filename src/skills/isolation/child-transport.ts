import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { errorMessage, HostError } from "../../base/errors.ts";
import { packageRoot } from "../../base/package-root.ts";
import { minimalEnvironment } from "../../io/process/child-environment.ts";
import { type ManagedProcess, spawnProcess } from "../../io/process/child-process.ts";
import {
  enclosedCommand,
  enclosedPaths,
  enclosedTemporaryFolder,
  findSandbox,
  permissionArguments,
  type Sandbox,
} from "../../io/process/enclose-process.ts";
import { liesAt } from "../../io/process/mount-identity.ts";
import type { EnclosedProgram } from "../../io/process/sandbox-runtime.ts";
import { StderrTail } from "../../io/process/stderr-tail.ts";
import { FrameSplitter, type MountsAsked, maxFrameLength, parseFrame, throughHost } from "./child-frames.ts";
import { NetworkGate } from "./network-gate.ts";
import type { SkillLimits } from "./skill-limits.ts";

/** A running child: a worker thread, or a process. */
export interface ChildTransport {
  send(text: string): void;
  /** Ends the child at once. Settles when nothing of it is left. */
  kill(): Promise<void>;
  /** Whether a child that starts at this place now would get the same. @throws HostError `ISOLATION_PATH` as its start would */
  suits(place: ChildPlace): boolean;
}

export interface ChildListener {
  received(text: string): void;
  /** Called once, with the reason as the end of a sentence. */
  ended(reason: string): void;
}

/** Where a child runs, and what its skill declares. */
export interface ChildPlace {
  readonly folder: string;
  /** Variables of the host. */
  readonly environment: readonly string[];
  /** Tools that its code may call. Absent: all. */
  readonly tools?: readonly string[] | undefined;
  /** What its code may reach, found when the child starts. Absent: what the user can. */
  readonly limits?: (() => SkillLimits) | undefined;
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
    // It shares everything with the host, wherever its skill lies.
    suits: () => true,
  };
}

/**
 * Runs a skill in a process with a minimal environment and a process group of its own, which ends with it, and as far as this machine can
 * enforce it, within the limits of its place.
 */
export async function openProcess(place: ChildPlace, listener: ChildListener): Promise<ChildTransport> {
  return openEnclosed(place, listener, place.limits === undefined ? { kind: "none", why: "it has no limits" } : await findSandbox());
}

/** Like `openProcess`, in this sandbox: tests try the weaker ones. @internal */
export async function openEnclosed(place: ChildPlace, listener: ChildListener, sandbox: Sandbox): Promise<ChildTransport> {
  if (sandbox.kind !== "system") return startEnclosed(place, listener, sandbox);
  for (let attempt = 1; attempt <= maxStarts; attempt++) {
    const relay = new ChildRelay();
    const child = await startEnclosed(place, relay, sandbox);
    const { end } = relay;
    let isRight = false;
    try {
      isRight = end === undefined && child.suits(place);
    } finally {
      if (!isRight) await child.kill();
    }
    if (isRight) {
      relay.attach(listener);
      return child;
    }
    if (end !== undefined) throw new Error(`The child of an isolated skill could not be started: ${end}.`);
  }
  const message = `Files that the skill in ${place.folder} may reach were replaced again and again while its child was started. Stop what replaces them, and reload the skill.`;
  throw new HostError("ISOLATION_PATH", message);
}

/** Starts of a child, when its files are replaced meanwhile. */
const maxStarts = 5;

/** The listener of a child that has none yet. */
export class ChildRelay implements ChildListener {
  #listener: ChildListener | undefined;
  #ended: string | undefined;

  attach(listener: ChildListener): void {
    this.#listener = listener;
  }

  received = (text: string): void => {
    this.#listener?.received(text);
  };

  ended = (reason: string): void => {
    this.#ended = reason;
    this.#listener?.ended(reason);
  };

  /** Why the child has ended. */
  get end(): string | undefined {
    return this.#ended;
  }
}

async function startEnclosed(place: ChildPlace, listener: ChildListener, sandbox: Sandbox): Promise<ChildTransport> {
  const limits = place.limits?.();
  const resources = createResources(limits, sandbox);
  const launch = launchOf(place, { limits, sandbox, resources });
  const child = await start(place.folder, sandbox, launch).catch((error: unknown) => {
    resources.close();
    throw error;
  });
  const stderr = new StderrTail();
  let failure: string | undefined;
  const fail = (reason: string): void => {
    failure ??= reason;
    void child.stop(0);
  };
  const send = (text: string): void => {
    child.stdin.write(`${text}\n`);
    if (child.stdin.writableLength > 2 * maxFrameLength) fail("it does not read what it is sent");
  };
  const doors = new NetworkDoor(resources.gate, send, fail);
  let answered: ((text: string) => void) | undefined;
  const received = (text: string): void => {
    if (answered !== undefined) answered(text);
    else if (!doors.receives(text)) listener.received(text);
  };
  const lines = new FrameSplitter(received, () => fail("it sent a message that is too long"));
  child.stdout.on("data", (chunk: Buffer) => lines.add(chunk));
  child.stderr.on("data", (chunk: Buffer) => stderr.add(chunk));
  const ended = child.ended.then(({ code, signal }) => {
    resources.close();
    const heap = /heap out of memory|Allocation failed/.test(stderr.text) ? outOfMemory : undefined;
    const line = stderr.lastLine;
    const how = signal === null ? `it exited with code ${code}` : `it was ended by ${signal}`;
    listener.ended(failure ?? heap ?? (line === undefined ? how : `${how}: ${line}`));
  });
  const mounts = launch.mounts ?? [];
  let seen: readonly unknown[] = [];
  if (launch.mounts !== undefined) {
    const answer = new Promise<string>((resolve) => {
      answered = resolve;
    });
    send(JSON.stringify({ mounts } satisfies MountsAsked));
    const text = await Promise.race([answer, ended]);
    answered = undefined;
    const given = parseFrame(text ?? "")?.["mounts"];
    seen = Array.isArray(given) ? given : [];
  }
  // A file that is mounted stays what it is and keeps its number, so what was seen once is still there.
  const areSame = (): boolean =>
    seen.length === mounts.length && seen.every((identity, index) => identity === null || liesAt(mounts[index]!, String(identity)));
  const started = JSON.stringify(launch);
  return {
    send,
    kill: async () => void (await child.stop(0)),
    suits(next) {
      const now = { limits: next.limits?.(), sandbox, resources };
      return next.folder === place.folder && JSON.stringify(launchOf(next, now)) === started && areSame();
    },
  };
}

/** What exists as long as a child. */
interface ChildResources {
  readonly gate: NetworkGate | undefined;
  /** A temporary folder of its own. */
  readonly temporary: string | undefined;
  close(): void;
}

function createResources(limits: SkillLimits | undefined, { kind }: Sandbox): ChildResources {
  const hasNoNetwork = kind === "system" || kind === "runtime";
  const gate = limits !== undefined && hasNoNetwork && limits.hosts.length > 0 ? new NetworkGate(limits.hosts) : undefined;
  const temporary = kind === "node" || kind === "runtime" ? mkdtempSync(join(tmpdir(), "skillhost-skill-")) : undefined;
  if (gate === undefined && temporary === undefined) return { gate, temporary, close: () => {} };
  const close = atExit(() => {
    gate?.close();
    if (temporary !== undefined) rmSync(temporary, { recursive: true, force: true });
  });
  return { gate, temporary, close };
}

const unclosed = new Set<() => void>();

/** A program may end without closing its host. Returns a function that closes now instead. */
function atExit(close: () => void): () => void {
  if (unclosed.size === 0) process.on("exit", closeAll);
  unclosed.add(close);
  return () => {
    if (!tryClose(close)) return;
    if (unclosed.delete(close) && unclosed.size === 0) process.off("exit", closeAll);
  };
}

function closeAll(): void {
  for (const close of unclosed) tryClose(close);
}

/** False: it is tried again when the program ends. A folder cannot be listed without a free file descriptor. */
function tryClose(close: () => void): boolean {
  try {
    close();
    return true;
  } catch {
    // A child that has ended must be reported nevertheless.
    return false;
  }
}

interface Enclosing {
  readonly limits: SkillLimits | undefined;
  readonly sandbox: Sandbox;
  readonly resources: ChildResources;
}

interface EnclosedLaunch {
  readonly command: string;
  readonly args: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  /** Where a child that has its own file tree must see the files that lie there outside. */
  readonly mounts?: readonly string[];
  /** What a runtime encloses the command in. */
  readonly enclosure?: Pick<EnclosedProgram, "readable" | "writable" | "sockets">;
}

async function start(cwd: string, sandbox: Sandbox, { command, args, environment, enclosure }: EnclosedLaunch): Promise<ManagedProcess> {
  const isByRuntime = sandbox.kind === "runtime" && enclosure !== undefined;
  const program = isByRuntime
    ? await sandbox.runtime.enclose({ ...enclosure, command: [command, ...args], environment })
    : { command, args };
  const spawned = await spawnProcess({ ...program, environment, cwd });
  if (spawned.kind !== "spawned") throw new Error(spawned.message);
  return spawned.process;
}

function launchOf({ folder, environment }: ChildPlace, { limits, sandbox, resources: { gate, temporary } }: Enclosing): EnclosedLaunch {
  const declared = environment.flatMap((name) => {
    const value = process.env[name];
    return value === undefined || unsafeVariables.test(name) ? [] : [[name, value] as const];
  });
  const node = [`--max-old-space-size=${maxHeapMegabytes}`, "--disable-warning=ExperimentalWarning", "--disable-warning=SecurityWarning"];
  if (limits === undefined || sandbox.kind === "none")
    return { command: process.execPath, args: [...node, program], environment: minimalEnvironment(Object.fromEntries(declared)) };
  const home = temporary ?? enclosedTemporaryFolder;
  const own = { HOME: home, TMPDIR: home, ...(process.platform === "win32" && { TEMP: home, TMP: home, USERPROFILE: home }) };
  const variables = minimalEnvironment({ ...own, ...Object.fromEntries(declared) });
  if (sandbox.kind === "node") {
    const enclosure = { ...limits, writable: [...limits.writable, home], isOnline: limits.hosts.length > 0 };
    return { command: process.execPath, args: [...node, ...permissionArguments(sandbox, enclosure), program], environment: variables };
  }
  const readable = [...limits.readable, ...(gate === undefined ? [] : [gate.folder])];
  const args = [...node, program, ...(gate === undefined ? [] : [throughHost])];
  if (sandbox.kind === "runtime") {
    const shown = { readable: [...readable, ...limits.programs], writable: [...limits.writable, home] };
    return { command: process.execPath, args, environment: variables, enclosure: { ...shown, sockets: gate?.folder } };
  }
  const enclosure = { ...limits, readable };
  const inner = [process.execPath, ...args];
  const [command, enclosed] = enclosedCommand(sandbox.program, enclosure, folder, inner);
  const mounts = [...new Set([...enclosedPaths(enclosure), ...limits.exact])];
  return { command, args: enclosed, environment: variables, mounts };
}

/** Answers a child's requests for connections, which are not messages of a call. */
class NetworkDoor {
  readonly #gate: NetworkGate | undefined;
  readonly #send: (text: string) => void;
  readonly #fail: (reason: string) => void;
  #refused = 0;

  constructor(gate: NetworkGate | undefined, send: (text: string) => void, fail: (reason: string) => void) {
    this.#gate = gate;
    this.#send = send;
    this.#fail = fail;
  }

  /** Whether the text was a request for a connection. */
  receives(text: string): boolean {
    const frame = this.#gate !== undefined && text.startsWith('{"kind":"connect",') ? parseFrame(text) : undefined;
    if (this.#gate === undefined || frame?.["kind"] !== "connect") return false;
    const { connection, host, port } = frame;
    if (typeof host !== "string" || typeof port !== "number" || !Number.isInteger(port) || port < 1 || port > 65_535 || host.length > 300)
      return false;
    this.#gate.connect(host, port).then(
      (path) => this.#send(JSON.stringify({ kind: "connected", connection, path })),
      (error: NodeJS.ErrnoException) => {
        this.#send(JSON.stringify({ kind: "connected", connection, error: errorMessage(error), code: error.code }));
        if (++this.#refused > maxRefused) this.#fail(`more than ${maxRefused} of its connections failed`);
      },
    );
    return true;
  }
}

const maxRefused = 10_000;

/** Variables that make Node.js or the system's loader run other code than the skill's. */
const unsafeVariables = /^(?:NODE_OPTIONS|NODE_PATH|NODE_REPL_EXTERNAL_MODULE|LD_.*|DYLD_.*)$/i;
