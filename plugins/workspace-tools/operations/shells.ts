import { Lifetime } from "skillhost";
import type { Machine } from "./machine.ts";
import { Shell, type ShellSpec } from "./shell.ts";

export interface ShellsOptions {
  readonly machine: Pick<Machine, "startProcess">;
  /** Absolute. */
  readonly bash: string;
}

export interface StartRequest {
  readonly command: string;
  readonly workingDirectory: string;
  readonly mode: ShellSpec["mode"];
  readonly isDetached: boolean;
  /** Absent: the next free number. */
  readonly id?: string | undefined;
  readonly limits?: ShellSpec["limits"];
}

export type ShellStart =
  | { readonly kind: "started"; readonly shell: Shell }
  | { readonly kind: "busy" | "too-many" | "too-long" }
  | { readonly kind: "failed"; readonly message: string };

const maxRunning = 32;
/** The maximum number of ended shells whose output can still be read. */
const maxKept = 64;
// The limit of Linux for one argument.
const maxCommandBytes = 120_000;

/** The shells of all sessions; a session sees only its own. */
export class Shells {
  readonly #options: ShellsOptions;
  readonly #bySession = new Map<string, Map<string, Shell>>();
  readonly #numbers = new Map<string, number>();
  /** Ids that are reserved for shells which are being started. */
  readonly #starting = new Set<string>();
  readonly #life = new Lifetime(() => new Error("The shells are closed."));
  /** Ends what is being started for a session when the session ends. */
  readonly #sessions = new Map<string, Lifetime>();

  constructor(options: ShellsOptions) {
    this.#options = options;
  }

  /** Starts a command in its own process group. The id of an ended shell can be used again. */
  async start(sessionId: string, request: StartRequest): Promise<ShellStart> {
    const shells = this.#of(sessionId);
    const running = [...shells.values()].filter(({ exitCode }) => exitCode === undefined);
    if (Buffer.byteLength(request.command) > maxCommandBytes) return { kind: "too-long" };
    if (running.length + this.#starting.size >= maxRunning) return { kind: "too-many" };
    const id = request.id ?? this.#nextId(sessionId, shells);
    const key = JSON.stringify([sessionId, id]);
    if (this.#starting.has(key) || running.some(({ spec }) => spec.id === id)) return { kind: "busy" };
    this.#starting.add(key);
    const session = this.#lifeOf(sessionId);
    try {
      const begin = () => this.#start({ ...request, id }, request.workingDirectory);
      const started = await this.#life.open(() => session.open(begin, stopLate), stopLate);
      if (started.kind === "started") this.#keep(sessionId, started.shell);
      return started;
    } catch (error) {
      if (!this.#life.isOver && !session.isOver) throw error;
      return { kind: "failed", message: "The session, or the host, ended while it was started." };
    } finally {
      this.#starting.delete(key);
    }
  }

  async #start({ id, command, mode, isDetached, limits }: ShellSpec, workingDirectory: string): Promise<ShellStart> {
    const spec: ShellSpec = { id, command, mode, isDetached, limits };
    const started = await this.#options.machine.startProcess({
      command: this.#options.bash,
      args: ["--noprofile", "--norc", "-c", scriptOf(spec)],
      cwd: workingDirectory,
      limits,
    });
    if (started.kind !== "spawned") return { kind: "failed", message: started.message };
    return { kind: "started", shell: new Shell(spec, started.process) };
  }

  find(sessionId: string, id: string): Shell | undefined {
    return this.#bySession.get(sessionId)?.get(id);
  }

  /** In start order. */
  list(sessionId: string): readonly Shell[] {
    return [...(this.#bySession.get(sessionId)?.values() ?? [])];
  }

  /** Ends and removes a shell. */
  async stop(sessionId: string, shell: Shell): Promise<void> {
    this.forget(sessionId, shell);
    await shell.stop();
  }

  forget(sessionId: string, { spec: { id } }: Shell): void {
    this.#bySession.get(sessionId)?.delete(id);
  }

  /** Ends all shells of a session that are not detached. */
  async endSession(sessionId: string): Promise<void> {
    const life = this.#sessions.get(sessionId);
    this.#sessions.delete(sessionId);
    await life?.end();
    const shells = this.list(sessionId);
    const lasting = shells.filter(({ spec, exitCode }) => spec.isDetached && exitCode === undefined);
    this.#numbers.delete(sessionId);
    this.#bySession.delete(sessionId);
    // Still available when the session is resumed.
    if (lasting.length > 0) this.#bySession.set(sessionId, new Map(lasting.map((shell) => [shell.spec.id, shell])));
    await Promise.all(shells.filter((shell) => !lasting.includes(shell)).map((shell) => shell.stop()));
  }

  /** Ends all shells. */
  async close(): Promise<void> {
    await this.#life.end();
    const all = [...this.#bySession.values()].flatMap((shells) => [...shells.values()]);
    this.#bySession.clear();
    await Promise.all(all.map((shell) => shell.stop()));
  }

  #lifeOf(sessionId: string): Lifetime {
    const life = this.#sessions.get(sessionId) ?? new Lifetime(() => new Error("The session ended."));
    this.#sessions.set(sessionId, life);
    return life;
  }

  #of(sessionId: string): Map<string, Shell> {
    const shells = this.#bySession.get(sessionId) ?? new Map<string, Shell>();
    this.#bySession.set(sessionId, shells);
    return shells;
  }

  #keep(sessionId: string, shell: Shell): void {
    const shells = this.#of(sessionId);
    shells.delete(shell.spec.id);
    shells.set(shell.spec.id, shell);
    const ended = [...shells.values()].filter(({ exitCode }) => exitCode !== undefined);
    for (const old of ended.slice(0, Math.max(0, ended.length - maxKept))) shells.delete(old.spec.id);
  }

  #nextId(sessionId: string, shells: ReadonlyMap<string, Shell>): string {
    let number = this.#numbers.get(sessionId) ?? 0;
    while (shells.has(String(number))) number++;
    this.#numbers.set(sessionId, number + 1);
    return String(number);
  }
}

async function stopLate(start: ShellStart): Promise<void> {
  if (start.kind === "started") await start.shell.stop();
}

/**
 * Both output streams of the command are merged in the order of writing. The input of a sync command is empty: /dev/null
 * rather than a closed pipe, which tools such as ripgrep would read.
 */
function scriptOf({ command, mode, isDetached }: ShellSpec): string {
  return `exec 2>&1${mode === "async" && !isDetached ? "" : " </dev/null"}\n${command}`;
}
