import type { Diagnostic, PluginApi, SourceSnapshot, Tool, ToolContext, ToolSource } from "skillhost";
import type { OfferedTool } from "./call-messages.ts";
import { connectFleet, type FleetConnection, type FleetConnectionOptions, type FleetSubjects, fleetSubjects } from "./fleet-connection.ts";
import { refusedSubject } from "./fleet-permissions.ts";
import { RemoteCalls } from "./remote-calls.ts";
import { isRepeatable } from "./tool-worker.ts";
import { waitAtMost } from "./wait-at-most.ts";
import { WorkerDirectory } from "./worker-directory.ts";

export interface RemoteToolsConfig extends FleetConnectionOptions {
  /** The only contracts that are offered. Absent: all that workers have. */
  readonly signatures?: readonly string[] | undefined;
  readonly startupWait: number;
  readonly maxResult: number;
}

// Half of the time in which a lost worker is to be noticed is for three signs of life.
const silenceMs = 1_700;
/** Workers that are there answer the first roll call within this time. */
const rollCallMs = 250;

const nothing: SourceSnapshot = Object.freeze({ tools: [], skills: [], diagnostics: [] });

/** The tools of all workers, as one source. */
export class RemoteToolSource implements ToolSource {
  readonly id = "workers";
  readonly #api: Pick<PluginApi, "createTool" | "log">;
  readonly #config: RemoteToolsConfig;
  readonly #subjects: FleetSubjects;
  readonly #listeners = new Set<() => void>();
  /** By definition, so that equal tools stay the same object. */
  #tools = new Map<string, Tool>();
  #chosen = new Map<string, string>();
  #snapshot: SourceSnapshot = nothing;
  #directory: WorkerDirectory | undefined;
  #calls: RemoteCalls | undefined;
  #fleet: FleetConnection | undefined;
  #problem: Diagnostic | undefined;
  #isDisposed = false;
  readonly #late: NodeJS.Timeout;
  readonly #started: Promise<void>;

  constructor(api: Pick<PluginApi, "createTool" | "log">, config: RemoteToolsConfig) {
    this.#api = api;
    this.#config = config;
    this.#subjects = fleetSubjects(config.prefix);
    this.#started = this.#start();
    // Not in ready(): a host without a session has the same problem.
    this.#late = setTimeout(() => this.#reportLate(), config.startupWait).unref();
  }

  get snapshot(): SourceSnapshot {
    return this.#snapshot;
  }

  /** Servers that are away do not keep a host from starting: what they have later counts then. */
  async ready(signal: AbortSignal): Promise<void> {
    await waitAtMost(this.#started, this.#config.startupWait, signal);
    this.#reportLate();
  }

  subscribe(listener: () => void): Disposable {
    this.#listeners.add(listener);
    return { [Symbol.dispose]: () => void this.#listeners.delete(listener) };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isDisposed = true;
    clearTimeout(this.#late);
    this.#directory?.[Symbol.dispose]();
    await this.#calls?.[Symbol.asyncDispose]();
    await this.#fleet?.connection.close();
  }

  async #start(): Promise<void> {
    try {
      const fleet = await this.#connect();
      if (this.#isDisposed) return void (await fleet.connection.close());
      await this.#use(fleet);
    } catch (error) {
      const code = (error as { readonly code?: unknown }).code;
      this.#report(typeof code === "string" ? code : "FLEET_UNREACHABLE", error instanceof Error ? error.message : String(error));
    }
  }

  /** Refused credentials are reported at once, and tried again like servers that are away: either can be put right on the servers. */
  async #connect(): Promise<FleetConnection> {
    try {
      return await connectFleet(this.#config, "skillhost");
    } catch (error) {
      const { code, message } = error as { readonly code?: unknown; readonly message: string };
      if (code === "FLEET_REFUSED") this.#report(code, message);
      else if (code !== "FLEET_UNREACHABLE") throw error;
    }
    return connectFleet(this.#config, "skillhost", true);
  }

  async #use(fleet: FleetConnection): Promise<void> {
    const { log } = this.#api;
    this.#fleet = fleet;
    const directory = new WorkerDirectory({ fleet, subjects: this.#subjects, log, onChange: () => this.#publish() });
    this.#directory = directory;
    this.#calls = new RemoteCalls({
      fleet,
      subjects: this.#subjects,
      log,
      maxResult: this.#config.maxResult,
      silence: silenceMs,
      isConnected: () => directory.isConnected,
      onMissing: () => directory.callRoll(),
    });
    void this.#follow(fleet, directory);
    directory.callRoll();
    await new Promise((resolve) => setTimeout(resolve, rollCallMs));
    await directory.settled();
    if (this.#problem?.code !== "FLEET_FORBIDDEN") this.#problem = undefined;
    this.#publish();
  }

  /** Reports that the servers are away, and that they are back. */
  async #follow({ connection }: FleetConnection, directory: WorkerDirectory): Promise<void> {
    for await (const status of connection.status()) {
      if (status.type === "disconnect") {
        directory.isConnected = false;
        this.#report(
          "FLEET_DISCONNECTED",
          "The connection to the NATS servers is lost. The tools of workers are kept; calls of them fail until it is back.",
        );
      } else if (status.type === "reconnect") {
        directory.isConnected = true;
        this.#problem = undefined;
        directory.callRoll();
        this.#publish();
      } else if (status.type === "error") this.#reportError(status.error);
    }
  }

  /** A right that is missing is so until the next connection. */
  #reportError(error: Error): void {
    const refused = refusedSubject(error);
    if (refused === undefined) this.#api.log.warning("The NATS server reports an error.", { error: String(error) });
    else this.#report("FLEET_FORBIDDEN", `${refused.message}.`);
  }

  #reportLate(): void {
    if (this.#fleet !== undefined || this.#problem !== undefined) return;
    const servers = [this.#config.servers].flat().join(", ");
    this.#report("FLEET_UNREACHABLE", `No NATS server has answered yet at ${servers}. The host keeps trying.`);
  }

  #report(code: string, message: string): void {
    this.#problem = { severity: "error", code, source: "nats", message };
    this.#publish();
  }

  #publish(): void {
    if (this.#isDisposed) return;
    const diagnostics: Diagnostic[] = this.#problem === undefined ? [] : [this.#problem];
    for (const [worker, problem] of this.#directory?.problems ?? []) {
      diagnostics.push({
        severity: "warning",
        code: "FLEET_WORKER",
        source: "nats",
        message: `The worker ${worker} is not used: ${problem}.`,
      });
    }
    const tools = this.#choose(diagnostics);
    const before = this.#snapshot;
    const isSame = tools.length === before.tools.length && tools.every((tool, index) => tool === before.tools[index]);
    if (isSame && JSON.stringify(diagnostics) === JSON.stringify(before.diagnostics)) return;
    this.#snapshot = Object.freeze({
      tools: isSame ? before.tools : Object.freeze(tools),
      skills: [],
      diagnostics: Object.freeze(diagnostics),
    });
    for (const listener of this.#listeners) listener();
  }

  /** Of several contracts with one name, the one that most workers have: during a roll-out, the new one takes over in the middle. */
  #choose(diagnostics: Diagnostic[]): Tool[] {
    const offered = new Map<string, { readonly offer: OfferedTool; count: number }[]>();
    for (const list of this.#directory?.offers ?? []) {
      for (const offer of list) {
        const { name } = offer.definition;
        const rivals = offered.get(name) ?? [];
        const equal = rivals.find(({ offer: { signature } }) => signature === offer.signature);
        if (equal === undefined) rivals.push({ offer, count: 1 });
        else equal.count++;
        offered.set(name, rivals);
      }
    }
    const made = new Map<string, Tool>();
    const chosen = new Map<string, string>();
    for (const [name, rivals] of [...offered].sort(([a], [b]) => (a < b ? -1 : 1))) {
      const before = this.#chosen.get(name);
      const ranked = rivals.toSorted(
        (a, b) => b.count - a.count || Number(b.offer.signature === before) - Number(a.offer.signature === before),
      );
      const tool = this.#firstUsable(
        ranked.map(({ offer }) => offer),
        made,
        diagnostics,
      );
      if (tool !== undefined) chosen.set(name, tool.signature);
    }
    this.#tools = made;
    this.#chosen = chosen;
    return [...made.values()];
  }

  #firstUsable(offers: readonly OfferedTool[], made: Map<string, Tool>, diagnostics: Diagnostic[]): Tool | undefined {
    for (const offer of offers) {
      const { name } = offer.definition;
      const { signatures } = this.#config;
      if (signatures !== undefined && !signatures.includes(offer.signature)) {
        const message = `The tool "${name}" of a worker is not offered: its contract ${offer.signature} is not one of "signatures". Review it, and add it.`;
        diagnostics.push({ severity: "warning", code: "FLEET_NOT_APPROVED", source: "nats", message });
        continue;
      }
      const key = `${offer.signature} ${JSON.stringify(offer.definition)}`;
      const tool = this.#tools.get(key) ?? this.#make(offer, key, diagnostics);
      if (tool === undefined) continue;
      made.set(key, tool);
      return tool;
    }
    return undefined;
  }

  #make({ signature, definition }: OfferedTool, key: string, diagnostics: Diagnostic[]): Tool | undefined {
    const target = { name: definition.name, signature, isRepeatable: isRepeatable(definition.annotations) };
    const report = (message: string): undefined => {
      diagnostics.push({
        severity: "warning",
        code: "FLEET_TOOL",
        source: "nats",
        message: `The tool "${definition.name}" of a worker is not offered: ${message}`,
      });
      return undefined;
    };
    // To take the place of a tool of the host itself, a contract must be approved.
    if (definition.overridesBuiltInTool === true && this.#config.signatures === undefined)
      return report(`it overrides a built-in tool, and its contract ${signature} is not one of "signatures".`);
    try {
      const handler = (args: unknown, _: unknown, context: ToolContext): Promise<unknown> => this.#run(target, args, context);
      const tool = this.#api.createTool({ ...definition, handler } as Parameters<PluginApi["createTool"]>[0], { generation: key });
      if (tool.signature !== signature)
        return report(`a worker gives it the signature ${signature}, but its contract has ${tool.signature}.`);
      return this.#config.signatures === undefined ? alwaysAsked(tool) : tool;
    } catch (error) {
      return report(error instanceof Error ? error.message : String(error));
    }
  }

  #run(target: Parameters<RemoteCalls["run"]>[0], args: unknown, context: ToolContext): Promise<unknown> {
    if (this.#calls === undefined) throw new Error("There is no connection to the workers.");
    return this.#calls.run(target, args, context);
  }
}

/** What a tool says of its own permission does not count until its contract is approved. */
function alwaysAsked({ definition, origin, signature, revision, hasHandler, validate, execute }: Tool): Tool {
  return Object.freeze({ definition, origin, signature, revision, hasHandler, isAlwaysAsked: true, validate, execute });
}
