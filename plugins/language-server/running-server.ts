import { HostError, type Logger, type ManagedProcess, type PluginApi, type Session } from "skillhost";
import { ClientToolCalls, type ClientToolCallsParts } from "./client-tool-calls.ts";
import { findServer } from "./find-server.ts";
import type { LanguageServerOptions } from "./options.ts";
import { toSettings } from "./options.ts";
import { Registrar, type ToolStatus } from "./registrar.ts";
import { Rpc } from "./rpc.ts";
import { editorAnswers, logNotification, workspaceFolder } from "./server-requests.ts";
import { isFields, textOf } from "./wire.ts";

export interface ServerParts {
  readonly api: Pick<PluginApi, "log" | "startProcess">;
  readonly session: Session;
  readonly options: LanguageServerOptions;
  readonly statuses: Map<string, ToolStatus>;
  permit: ClientToolCallsParts["permit"];
  onTurnOver: ClientToolCallsParts["onTurnOver"];
  progressed(token: string | number, value: unknown): void;
}

const shutdownMs = 2_000;
const defaultStartTimeout = 90_000;
const defaultOutputLimit = 4_000;

/** One server process. Each start creates a new instance. */
export class RunningServer implements AsyncDisposable {
  readonly rpc: Rpc;
  readonly toolCalls: ClientToolCalls;
  readonly registrar: Registrar;
  readonly pid: number;
  /** Settles with the reason when the program has ended. */
  readonly ended: Promise<HostError>;
  version = "";
  readonly #process: ManagedProcess;
  readonly #log: Logger;
  #stderr = "";
  #isStopping = false;

  private constructor(process: ManagedProcess, { api, session, options, statuses, permit, onTurnOver, progressed }: ServerParts) {
    const { log } = api;
    const { outputLimit = defaultOutputLimit, schemas = "repair" } = options;
    this.#process = process;
    this.#log = log;
    this.pid = process.pid;
    this.toolCalls = new ClientToolCalls({ session, outputLimit, log, permit, onTurnOver });
    const requests = {
      ...editorAnswers(session.config.workingDirectory),
      "conversation/invokeClientTool": this.toolCalls.invoke.bind(this.toolCalls),
      "conversation/invokeClientToolConfirmation": this.toolCalls.confirm.bind(this.toolCalls),
    };
    const notified = (method: string, params: unknown): void => logNotification(log, method, params);
    this.rpc = new Rpc(process, { requests, notified, progressed }, log);
    this.registrar = new Registrar({ session, rpc: this.rpc, repair: schemas === "repair", log }, statuses);
    process.stderr.on("data", (chunk: Buffer) => this.#drain(String(chunk)));
    this.ended = this.#watch();
  }

  /**
   * Starts the program and initializes the protocol, unless the signal aborts before.
   * @throws HostError `LANGUAGE_SERVER_NOT_FOUND`, `LANGUAGE_SERVER_START`, `LANGUAGE_SERVER_TIMEOUT`, `LANGUAGE_SERVER_EXITED`.
   */
  static async start(place: ServerParts, signal: AbortSignal): Promise<RunningServer> {
    const { api, session, options } = place;
    const folder = session.config.workingDirectory;
    const { hostEnvironment = process.env, env, environment, startTimeout = defaultStartTimeout } = options;
    const spec = {
      ...findServer(options.server, folder),
      cwd: folder,
      env: { ...serverVariables(hostEnvironment), ...env },
      ...(environment && { environment }),
    };
    const spawned = await api.startProcess(spec);
    if (spawned.kind !== "spawned") throw new HostError("LANGUAGE_SERVER_START", spawned.message);
    const server = new RunningServer(spawned.process, place);
    const stop = (): void => void server.#kill();
    if (signal.aborted) stop();
    signal.addEventListener("abort", stop, { once: true });
    try {
      await server.#shakeHands(folder, options, startTimeout);
      return server;
    } catch (error) {
      await server.#kill();
      throw error;
    } finally {
      signal.removeEventListener("abort", stop);
    }
  }

  /** Asks the server to exit, then ends it. Pending requests are rejected. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#isStopping) return void (await this.ended);
    this.#isStopping = true;
    this.toolCalls.close();
    if (!(await this.#askToEnd())) await this.#kill();
  }

  /** False: it must be killed. */
  async #askToEnd(): Promise<boolean> {
    try {
      await this.rpc.request("shutdown", undefined, { timeout: shutdownMs });
    } catch {
      // It has ended already, or does not respond.
      return false;
    }
    this.rpc.notify("exit", undefined);
    return Promise.race([this.ended.then(() => true), delay(shutdownMs).then(() => false)]);
  }

  async #shakeHands(folder: string, options: LanguageServerOptions, timeout: number): Promise<void> {
    const { uri, name } = workspaceFolder(folder);
    const answer = await this.rpc.request(
      "initialize",
      {
        processId: process.pid,
        capabilities: { workspace: { workspaceFolders: true } },
        rootUri: uri,
        workspaceFolders: [{ uri, name }],
        initializationOptions: {
          editorInfo: { name: "skillhost", version: "1" },
          editorPluginInfo: { name: "skillhost-language-server", version: "1" },
        },
      },
      { timeout },
    );
    const serverInfo = isFields(answer) ? answer["serverInfo"] : undefined;
    this.version = isFields(serverInfo) ? textOf(serverInfo["version"]) : "";
    this.rpc.notify("initialized", {});
    this.rpc.notify("workspace/didChangeConfiguration", { settings: toSettings(options) });
  }

  async #watch(): Promise<HostError> {
    const { code, signal } = await this.#process.ended;
    const how = signal === null ? `with code ${code}` : `by ${signal}`;
    const said = this.#isStopping || this.#stderr.trim() === "" ? "" : ` Last line of stderr: ${this.#stderr.trim().split("\n").at(-1)}`;
    const reason = this.#isStopping
      ? new HostError("LANGUAGE_SERVER_CLOSED", "The language server was stopped.")
      : new HostError("LANGUAGE_SERVER_EXITED", `The language server exited ${how}.${said}`);
    this.toolCalls.close();
    this.rpc.end(reason);
    if (!this.#isStopping) this.#log.error(reason.message, { code: reason.code });
    return reason;
  }

  /** The stream must be read, or the server would block. Its content has no meaning. */
  #drain(text: string): void {
    this.#stderr = (this.#stderr + text).slice(-500);
    this.#log.debug(`The language server writes: ${text.slice(0, 2000)}`);
  }

  async #kill(): Promise<void> {
    this.#isStopping = true;
    this.rpc[Symbol.dispose]();
    await this.#process.stop();
  }
}

function delay(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms).unref());
}

/** Variables that a language server reads, in addition to those of every program. */
function serverVariables(host: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const isWanted = /^(GH_COPILOT_|GITHUB_COPILOT_|AGENT_DEBUG_|XDG_|HOME$|(HTTPS?|ALL|NO)_PROXY$|NODE_EXTRA_CA_CERTS$)/i;
  const known = Object.entries(host).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return Object.fromEntries(known.filter(([name]) => isWanted.test(name)));
}
