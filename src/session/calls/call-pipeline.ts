import { randomUUID } from "node:crypto";
import { Deadlines } from "../../base/deadlines.ts";
import { HostError, toError } from "../../base/errors.ts";
import type { AddressRules, AskOptions, Asks, FileChangeOptions, Progress, ToolResult } from "../../tools/tool.ts";
import { failureResult } from "../../tools/tool-result.ts";
import type { ToolCatalog } from "../catalog/tool-catalog.ts";
import type { AskKind } from "../clients/request-kinds.ts";
import { modelText } from "../prompt/model-text.ts";
import type { ResolvedSessionConfig } from "../session-config.ts";
import { createTelemetry, placeOf, type Telemetry } from "../telemetry.ts";
import type { SessionServices } from "../tools/session-tool-services.ts";
import { askForCall, CallContext, type ContextServices, emitProgress } from "./call-context.ts";
import { type CallServices, logFacts, settle } from "./call-stages.ts";
import { executeCall, executeRemote } from "./execute-call.ts";
import { concludeCall } from "./finalize-call.ts";
import { decideCall, gateCall } from "./prepare-call.ts";
import { type CallRegistry, RunningCall } from "./running-call.ts";
import type { AgentScope, CallOutcome, Pipeline, PreparedCall, ToolCall } from "./tool-call.ts";

/** Calls of tools by tools of tools: deeper is a loop. */
const maxDepth = 8;

export class CallPipeline implements Pipeline, ContextServices {
  readonly telemetry: Telemetry | undefined;
  readonly #host: CallServices;
  readonly #life: CallRegistry = { deadlines: new Deadlines(), waiting: new Set() };
  readonly #inFlight = new Set<Promise<unknown>>();

  constructor(host: CallServices) {
    this.#host = host;
    this.telemetry = createTelemetry(host.sessionId, host.log);
  }

  prepare(calls: readonly ToolCall[], agent: AgentScope): readonly PreparedCall[] | Promise<readonly PreparedCall[]> {
    const { catalog } = agent;
    const runs = calls.map((call) => this.#begin(call, agent, catalog, undefined));
    const gated = this.#gateFrom(runs, 0);
    return gated instanceof Promise ? this.#track(gated.then(() => this.#decideAll(runs))) : this.#decideAll(runs);
  }

  run(prepared: PreparedCall): CallOutcome | Promise<CallOutcome> {
    if (!(prepared instanceof RunningCall)) throw new HostError("CALL_FOREIGN", "run() accepts only what prepare() returned.");
    if (prepared.isTaken) throw new HostError("CALL_TAKEN", `The call ${prepared.call.id} has already run. Call prepare() again.`);
    prepared.isTaken = true;
    if (prepared.decided === undefined || prepared.kind !== "waiting") return this.#perform(prepared);
    return this.#track(prepared.decided.then(() => this.#perform(prepared)));
  }

  call(call: ToolCall, agent: AgentScope, catalog: ToolCatalog): CallOutcome | Promise<CallOutcome> {
    return this.#callFrom(undefined, call, agent, catalog);
  }

  get isBusy(): boolean {
    return this.#inFlight.size > 0 || this.#life.waiting.size > 0;
  }

  async close(): Promise<void> {
    for (const run of [...this.#life.waiting]) run.interrupt("closed");
    while (this.#inFlight.size > 0) await Promise.allSettled(this.#inFlight);
  }

  #callFrom(parent: RunningCall | undefined, call: ToolCall, agent: AgentScope, catalog: ToolCatalog): CallOutcome | Promise<CallOutcome> {
    const run = this.#begin(call, agent, catalog, parent);
    this.#announce(run);
    const gated = gateCall(run, this.#host);
    if (gated instanceof Promise) return this.#track(gated.then(() => this.#decideAndRun(run)));
    return this.#decideAndRun(run);
  }

  #decideAndRun(run: RunningCall): CallOutcome | Promise<CallOutcome> {
    decideCall(run, this.#host);
    return this.run(run);
  }

  #begin(call: ToolCall, agent: AgentScope, catalog: ToolCatalog, parent: RunningCall | undefined): RunningCall {
    const run = new RunningCall(call, agent, catalog, parent, this.#life);
    run.context = new CallContext(run, this);
    return run;
  }

  /** Sequential: a hook may count on having seen the calls before. */
  #gateFrom(runs: readonly RunningCall[], from: number): void | Promise<void> {
    for (let index = from; index < runs.length; index++) {
      const run = runs[index]!;
      this.#announce(run);
      const gated = gateCall(run, this.#host);
      if (gated instanceof Promise) return gated.then(() => this.#gateFrom(runs, index + 1));
    }
  }

  #decideAll(runs: readonly RunningCall[]): readonly PreparedCall[] {
    for (const run of runs) {
      decideCall(run, this.#host);
      if (run.decided !== undefined) void this.#track(run.decided);
    }
    return runs;
  }

  #perform(run: RunningCall): CallOutcome | Promise<CallOutcome> {
    // Between the gates and here the turn may have been stopped; nothing is begun after that.
    if (run.settlement === undefined && run.agent.signal?.aborted) settle(run, "cancelled");
    if (run.settlement !== undefined) return this.#conclude(run, run.settlement);
    if (this.telemetry !== undefined) this.#trace(run, this.telemetry);
    const ran = run.tool?.origin.kind === "mcp" ? executeRemote(run, this.#host, this.telemetry) : executeCall(run, this.#host);
    if (ran instanceof Promise) return this.#track(ran.then((settled) => concludeCall(run, this.#host, settled)));
    return this.#conclude(run, ran);
  }

  #trace(run: RunningCall, telemetry: Telemetry): void {
    const { call, agent, parent, tool } = run;
    const facts = { kind: "tool", id: call.id, name: call.name, description: tool?.definition.description } as const;
    run.trace = telemetry.begin(facts, agent.agentId, parent?.trace?.context ?? placeOf(agent));
  }

  #conclude(run: RunningCall, settled: NonNullable<RunningCall["settlement"]>): CallOutcome | Promise<CallOutcome> {
    const outcome = concludeCall(run, this.#host, settled);
    return outcome instanceof Promise ? this.#track(outcome) : outcome;
  }

  /** So that closing can wait for what is under way. */
  #track<T>(promise: Promise<T>): Promise<T> {
    this.#inFlight.add(promise);
    const end = (): void => void this.#inFlight.delete(promise);
    promise.then(end, end);
    return promise;
  }

  #announce(run: RunningCall): void {
    const { events, config } = this.#host;
    if (!events.wants("tool.execution_start")) return;
    const origin = run.catalog.executables.get(run.call.name)?.origin;
    const { model } = config.view;
    const data = {
      toolCallId: run.call.id,
      toolName: run.call.name,
      arguments: run.args,
      ...(origin?.kind === "mcp" && { mcpServerName: origin.source, mcpToolName: origin.nativeName }),
      ...(model !== undefined && { model }),
      ...(run.agent.turnId !== undefined && { turnId: run.agent.turnId }),
      ...(run.parent && { parentToolCallId: run.parent.call.id }),
    };
    events.append("tool.execution_start", data, run.agent.agentId);
  }

  get sessionId(): string {
    return this.#host.sessionId;
  }

  get session(): SessionServices {
    return this.#host.services;
  }

  workingDirectory(): string {
    return this.#host.config.workingDirectory;
  }

  application(): ResolvedSessionConfig {
    return this.#host.config;
  }

  addressRules(): AddressRules | undefined {
    return this.#host.config.permissions.addresses;
  }

  ask<K extends AskKind>(run: RunningCall, kind: K, data: Asks[K]["data"], options?: AskOptions): Promise<Asks[K]["answer"]> {
    return askForCall(run, this.#host, kind, data, options);
  }

  async callTool(run: RunningCall, ref: string, args: unknown): Promise<ToolResult> {
    const { agent } = run;
    let { catalog } = agent;
    let known = findToolName(catalog, ref);
    const starting = known === undefined ? this.#host.servers.awaitMoreTools(() => run.signal) : undefined;
    if (starting !== undefined) {
      await this.#whileStarting(run, starting);
      ({ catalog } = agent);
      known = findToolName(catalog, ref);
    }
    const name = known ?? ref;
    if (run.isOver || run.interrupted !== undefined) return failureResult(modelText("cancelled", { tool: name }));
    if (run.depth + 1 >= maxDepth) return failureResult(modelText("too_deep", { tool: name }));
    const outcome = await this.#callFrom(run, { id: randomUUID(), name, arguments: args }, agent, catalog);
    return outcome.result;
  }

  /** An MCP server that comes up has its own limit: the deadline of the call does not count meanwhile. */
  async #whileStarting(run: RunningCall, starting: Promise<void>): Promise<void> {
    run.pause();
    // What ended the call ends it below.
    await starting.catch(() => {});
    run.resume();
  }

  progress(run: RunningCall, update: Progress): void {
    if (run.isOver) return;
    run.restartClock();
    emitProgress(run, this.#host, update);
  }

  background(work: PromiseLike<unknown>): void {
    this.#host.background(work);
  }

  fileChanged(run: RunningCall, path: string, content: string, { languageId, before }: FileChangeOptions = {}): void {
    const { events, log } = this.#host;
    events.append("session.workspace_file_changed", { operation: "update", path }, run.agent.agentId);
    try {
      this.#host.onFileChanged({ path, content, toolCallId: run.call.id, before, ...(languageId !== undefined && { languageId }) });
    } catch (error) {
      log.error("A file-change listener failed.", { ...logFacts(run, this.#host), error: toError(error) });
    }
  }
}

/** The name that models use for a tool that is referred to by that name or as `server/tool`, `skill/tool`, if there is one. */
export function findToolName(catalog: ToolCatalog, ref: string): string | undefined {
  if (catalog.executables.has(ref)) return ref;
  return catalog.byNamespacedName.get(ref)?.definition.name;
}
