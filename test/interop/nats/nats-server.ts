import { type ChildProcess, spawn } from "node:child_process";
import { accessSync, constants, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { type ConnectionOptions, connect, type NatsConnection } from "@nats-io/transport-node";
import { patience } from "../../slowness.ts";

/** The installed nats-server, or the reason why there is none. */
export function findNatsServer(): { readonly path: string; readonly reason: string } {
  if (process.platform !== "linux") return { path: "", reason: "the tests read the state of a server's threads as Linux shows it" };
  // Debian installs it where the PATH of an ordinary user does not lead.
  const folders = [...(process.env["PATH"] ?? "").split(delimiter), "/usr/sbin", "/usr/local/sbin"];
  for (const folder of folders) {
    const path = join(folder, "nats-server");
    try {
      if (folder !== "") accessSync(path, constants.X_OK);
      if (folder !== "") return { path, reason: "" };
    } catch {
      // It is not in this folder.
    }
  }
  return { path: "", reason: "nats-server is not installed (Debian: apt-get install nats-server)" };
}

export interface NatsServerOptions {
  /** Further arguments, such as those of a cluster. */
  readonly args?: readonly string[];
  readonly name?: string;
  /** Variables that its configuration refers to. */
  readonly env?: Readonly<Record<string, string>>;
  /** Where it listens. Default: 127.0.0.1. */
  readonly host?: string;
  /** The network namespace that it runs in. */
  readonly namespace?: string;
  /** Default: the server chooses a free one. */
  readonly port?: number;
  /** How the kit's own connections sign in. */
  readonly client?: ConnectionOptions;
}

/** A real nats-server with JetStream on the loopback interface. Its store is a folder of its own, removed with it. */
export class NatsServer implements AsyncDisposable {
  readonly #options: NatsServerOptions;
  readonly #folder = mkdtempSync(join(tmpdir(), "nats-"));
  #process: ChildProcess | undefined;
  #log = "";
  #port: number;

  private constructor(options: NatsServerOptions) {
    this.#options = options;
    this.#port = options.port ?? -1;
  }

  /** Settles when the server accepts clients. Rejects with the server's own words when it ends before that. */
  static async start(options: NatsServerOptions = {}): Promise<NatsServer> {
    const server = new NatsServer(options);
    try {
      await server.start();
      return server;
    } catch (error) {
      await server[Symbol.asyncDispose]();
      throw error;
    }
  }

  get address(): string {
    return `${this.#options.host ?? "127.0.0.1"}:${this.#port}`;
  }

  get isRunning(): boolean {
    return this.#process !== undefined;
  }

  /** Starts the server again on its former port, with what its store contains. */
  async start(): Promise<void> {
    if (this.#process !== undefined) throw new Error(`The server ${this.address} runs already.`);
    const { path, reason } = findNatsServer();
    if (path === "") throw new Error(reason);
    const { args = [], name = "alone", env = {}, host = "127.0.0.1", namespace } = this.#options;
    const store = ["-js", "-sd", join(this.#folder, "store"), "--ports_file_dir", this.#folder];
    const command = [path, "-a", host, "-p", String(this.#port), "-n", name, ...store, ...args];
    // `ip` becomes the server, with the same process id.
    const [program = path, ...rest] = namespace === undefined ? command : ["ip", "netns", "exec", namespace, ...command];
    const child = spawn(program, rest, {
      stdio: ["ignore", "ignore", "pipe"],
      env: { ...process.env, ...env },
    });
    this.#process = child;
    this.#log = "";
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.#log += text;
    });
    child.once("close", () => {
      if (this.#process === child) this.#process = undefined;
    });
    await until(() => this.#accepts(child), `nats-server ${name} to accept clients`);
  }

  /** As by a power failure: nothing is written any more. */
  async kill(): Promise<void> {
    await this.#end("SIGKILL");
  }

  /**
   * The server stops without closing its connections, as behind a network that loses every packet. Settles when each of its threads has
   * stopped: until then it may still answer. Disposing resumes it; a test that fails must do so before it closes its clients, since
   * closing waits for the server.
   */
  async pause(): Promise<Disposable> {
    const child = this.#process;
    if (child === undefined) throw new Error(`The server ${this.address} does not run.`);
    child.kill("SIGSTOP");
    const resume = (): void => void child.kill("SIGCONT");
    try {
      await until(() => isStopped(child.pid), "the server to stop");
    } catch (error) {
      resume();
      throw error;
    }
    return { [Symbol.dispose]: resume };
  }

  /** Removes what a server that does not run had stored. */
  loseDisk(): void {
    if (this.#process !== undefined) throw new Error("A running server keeps its files open. Kill it first.");
    rmSync(join(this.#folder, "store"), { recursive: true, force: true });
  }

  async connect(options: ConnectionOptions = {}): Promise<NatsConnection> {
    return connectTo([this.address], { ...this.#options.client, ...options });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#end("SIGKILL");
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 3 });
  }

  async #accepts(child: ChildProcess): Promise<boolean> {
    if (this.#process !== child) throw new Error(`nats-server ended before it accepted clients:\n${this.#log.slice(-2_000)}`);
    const port = this.#writtenPort(child.pid);
    if (port === undefined) return false;
    this.#port = port;
    return true;
  }

  /** The server writes this file, by its process id, after it has begun to listen. */
  #writtenPort(id: number | undefined): number | undefined {
    const name = readdirSync(this.#folder).find((file) => file.endsWith(`_${id}.ports`));
    if (name === undefined) return undefined;
    try {
      const { nats } = JSON.parse(readFileSync(join(this.#folder, name), "utf8")) as { readonly nats: readonly string[] };
      return Number(new URL(nats[0] ?? "").port);
    } catch {
      // It is being written.
      return undefined;
    }
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#process;
    if (child === undefined) return;
    const closed = new Promise<void>((resolve) => child.once("close", () => resolve()));
    child.kill(signal);
    await closed;
  }
}

/** Signals reach the threads of a program one after another. */
function isStopped(id: number | undefined): boolean {
  const threads = `/proc/${id}/task`;
  return readdirSync(threads).every((thread) => /\) [Tt] /.test(readFileSync(join(threads, thread, "stat"), "utf8")));
}

/** A connection that returns to its servers however long they are away. */
export function connectTo(servers: readonly string[], options: ConnectionOptions = {}): Promise<NatsConnection> {
  return connect({ servers: [...servers], reconnectTimeWait: 50, maxReconnectAttempts: -1, timeout: patience(5_000), ...options });
}

/** Polls a condition for which there is no event. What the condition throws ends the wait. */
export async function until(holds: () => boolean | Promise<boolean>, what: string, seconds = 30): Promise<void> {
  const deadline = performance.now() + patience(seconds * 1_000);
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`Waited in vain for ${what}.`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** Asks servers again that have just lost a leader: until they have elected another, they do not answer. */
export async function answered<T>(ask: () => Promise<T>, what: string): Promise<T> {
  let answer: { readonly value: T } | undefined;
  let last: unknown;
  const isAnswered = async (): Promise<boolean> => {
    try {
      answer = { value: await ask() };
    } catch (error) {
      last = error;
    }
    return answer !== undefined;
  };
  await until(isAnswered, what).catch((error: unknown) => {
    throw new Error(`${String(error)} The last answer: ${String(last)}`, { cause: last });
  });
  return (answer as unknown as { readonly value: T }).value;
}
