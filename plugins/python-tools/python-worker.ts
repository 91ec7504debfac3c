import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { CheckedTree, Logger, PluginApi } from "skillhost";
import { type CallListener, type Fault, PythonProcess, type Reply } from "./python-process.ts";

export interface WorkerOptions {
  readonly startProcess: PluginApi["startProcess"];
  readonly log: Logger;
  /** The configured `python`, else that of the skill's virtual environment, else the first in PATH. */
  readonly python?: string | undefined;
  /** Added to the default variables of every program. */
  readonly environment: Readonly<Record<string, string>>;
  /** Interpreters by skill folder; shared by all workers. */
  readonly interpreters: Map<string, string>;
  /** Milliseconds until the process of a cancelled call is ended. */
  readonly killAfter: number;
}

/** A tool definition and its position in the file. */
export interface PythonDefinition {
  readonly index: number;
  readonly definition: Readonly<Record<string, unknown>>;
}

export type LoadedFile =
  | { readonly kind: "loaded"; readonly tools: readonly PythonDefinition[]; readonly files: readonly string[] }
  | { readonly kind: "faulty"; readonly fault: Fault }
  | { readonly kind: "missing"; readonly message: string };

export interface PythonCall {
  readonly file: string;
  readonly index: number;
  readonly args: unknown;
  readonly invocation: object;
  readonly signal: AbortSignal;
  readonly listener: CallListener;
}

interface LoadedValue {
  readonly tools: readonly Readonly<Record<string, unknown>>[];
  readonly files: readonly string[];
  readonly sources: Readonly<Record<string, string>>;
}

type Started = { readonly process: PythonProcess } | { readonly missing: string };

const workerFolder = fileURLToPath(new URL("./worker/", import.meta.url));

/**
 * Runs the Python files of one skill in a long-lived process. When the process ends, by an error or because a call did not
 * stop, the next call starts a new one.
 */
export class PythonWorker {
  readonly #folder: string;
  readonly #options: WorkerOptions;
  readonly #checked: CheckedTree | undefined;
  #started: Promise<Started> | undefined;
  /** The current start, which concurrent calls share. */
  #restart: Promise<Started> | undefined;
  /** Files that the running process has loaded. */
  #loaded = new Map<string, Promise<Reply>>();
  #sources: Readonly<Record<string, string>> = {};
  #users = 0;

  /** `checked`: the only files of the folder that may run. */
  constructor(folder: string, options: WorkerOptions, checked?: CheckedTree) {
    this.#folder = folder;
    this.#options = options;
    this.#checked = checked;
  }

  get checked(): CheckedTree | undefined {
    return this.#checked;
  }

  get isUsed(): boolean {
    return this.#users > 0;
  }

  /** Each user of the worker keeps it until `release`; the last release ends its process. */
  retain(): void {
    this.#users++;
  }

  async release(): Promise<void> {
    if (--this.#users > 0) return;
    const started = await this.#started;
    if (started !== undefined && "process" in started) await started.process.stop("Its skill was unloaded or reloaded.");
  }

  async load(file: string): Promise<LoadedFile> {
    const started = await this.#start();
    if ("missing" in started) return { kind: "missing", message: started.missing };
    const reply = await this.#loadInto(started.process, file);
    if ("fault" in reply) return { kind: "faulty", fault: reply.fault };
    const { tools, files } = reply.value as LoadedValue;
    return { kind: "loaded", tools: tools.map((definition, index) => ({ index, definition })), files };
  }

  async call({ file, index, args, invocation, signal, listener }: PythonCall): Promise<Reply> {
    const started = await this.#start();
    if ("missing" in started) return { fault: { kind: "ended", message: started.missing } };
    const { process } = started;
    const loaded = await this.#loadInto(process, file);
    if ("fault" in loaded) return loaded;
    const { id, reply } = process.request({ do: "call", file, index, args, invocation }, listener);
    const cancel = (): void => this.#cancel(process, id);
    if (signal.aborted) cancel();
    else signal.addEventListener("abort", cancel, { once: true });
    return reply.finally(() => signal.removeEventListener("abort", cancel));
  }

  #loadInto(process: PythonProcess, file: string): Promise<Reply> {
    const known = this.#loaded.get(file);
    if (known !== undefined) return known;
    // A process receives the digests with the first file that it loads.
    const digests = this.#checked && this.#loaded.size === 0 ? digestsOf(this.#checked) : undefined;
    const { reply } = process.request({ do: "load", folder: this.#folder, file, sources: this.#sources, digests });
    const kept = reply.then((loaded) => this.#keep(loaded));
    this.#loaded.set(file, kept);
    return kept;
  }

  /** A new process loads the same files again, in the same order. */
  #keep(loaded: Reply): Reply {
    if ("value" in loaded) this.#sources = { ...(loaded.value as LoadedValue).sources, ...this.#sources };
    return loaded;
  }

  /** A thread cannot be ended from outside: a call that does not stop ends its process. */
  #cancel(process: PythonProcess, id: number): void {
    process.cancel(id);
    const timer = setTimeout(() => {
      if (process.isPending(id)) void process.stop("A call that was cancelled did not stop, so the Python process was ended.", 0);
    }, this.#options.killAfter);
    timer.unref();
  }

  async #start(): Promise<Started> {
    const before = await this.#started;
    if (before !== undefined && "process" in before && before.process.isRunning) return before;
    // A process that starts after the last release would never be ended.
    if (!this.isUsed) return { missing: "The skill of this file is no longer loaded, so no Python process was started for it." };
    // The first of several calls that find it ended starts a new one.
    this.#restart ??= this.#launch().finally(() => {
      this.#restart = undefined;
    });
    return this.#restart;
  }

  #launch(): Promise<Started> {
    this.#loaded = new Map();
    this.#started = startPython(this.#folder, this.#options, this.#checked);
    return this.#started;
  }
}

function digestsOf({ files }: CheckedTree): Readonly<Record<string, string>> {
  return Object.fromEntries([...files].map(([path, { digest }]) => [path, digest]));
}

async function startPython(folder: string, options: WorkerOptions, checked: CheckedTree | undefined): Promise<Started> {
  const problems: string[] = [];
  const known = options.interpreters.get(folder);
  for (const [command, ...args] of [...(known === undefined ? [] : [[known] as const]), ...candidates(folder, options.python, checked)]) {
    const environment = { ...options.environment, PYTHONDONTWRITEBYTECODE: "1", PYTHONUTF8: "1", PYTHONUNBUFFERED: "1" };
    const spawned = await options.startProcess({ command, args: [...args, "-B", workerFolder], cwd: folder, env: environment });
    if (spawned.kind !== "spawned") {
      problems.push(spawned.message);
      continue;
    }
    const process = new PythonProcess(spawned.process, options.log);
    const ready = await process.ready;
    if (!("fault" in ready)) {
      // The next start uses the interpreter itself, since the command may be a script that searches for it each time.
      options.interpreters.set(folder, (ready.value as { readonly executable: string }).executable);
      return { process };
    }
    options.interpreters.delete(folder);
    problems.push(`${command} could not be started: ${ready.fault.message}`);
  }
  const remedy = `Install Python 3.10 or later, or set its path: { "use": "skillhost/plugins/python-tools", "config": { "python": "/path/to/python3" } }.`;
  return { missing: `There is no Python to run this file. ${remedy} Tried: ${problems.join(" ")}` };
}

type Command = readonly [command: string, ...args: string[]];

function candidates(folder: string, python: string | undefined, checked: CheckedTree | undefined): readonly Command[] {
  if (python !== undefined) return [[python]];
  const isWindows = process.platform === "win32";
  const own = join(folder, ".venv", isWindows ? "Scripts/python.exe" : "bin/python");
  const onPath: readonly Command[] = isWindows ? [["py", "-3"], ["python3"], ["python"]] : [["python3"], ["python"]];
  // The system would open the file by name, regardless of the check.
  return checked === undefined && existsSync(own) ? [[own]] : onPath;
}
