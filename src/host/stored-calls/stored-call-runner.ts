import { canonicalJson } from "../../base/canonical-json.ts";
import { waitFor } from "../../base/wait.ts";
import { checkExpectation } from "../../formats/calls/check-expectation.ts";
import type { ToolCatalog } from "../../session/catalog/tool-catalog.ts";
import type { Session } from "../../session/session.ts";
import type { Tool, ToolResult } from "../../tools/tool.ts";
import { definitionDiff } from "../../trust/pins/definition-diff.ts";
import { type KeptResult, keptResult, resultDifference } from "./run-difference.ts";
import { type SkillCall, skillCallId } from "./skill-calls.ts";

/** The outcome of one run of a stored call. */
export interface StoredCallRun extends SkillCall {
  /**
   * A call without expectations that succeeds is compared with its previous run: `first`, `same` or `changed`. A call whose tool does not
   * exist has failed.
   */
  readonly outcome: "passed" | "failed" | "first" | "same" | "changed" | "skipped";
  /** Why it failed or was skipped, one line each. */
  readonly reasons: readonly string[];
  /** The lines of the difference to the previous result. */
  readonly diff: readonly string[];
  /** The lines of the difference to the previous definition of the tool. */
  readonly schemaDiff: readonly string[];
  readonly isSignatureChanged: boolean;
  readonly durationMs: number;
  readonly previousDurationMs?: number;
  readonly result?: ToolResult;
}

interface FormerRun {
  readonly definition: Tool["definition"];
  readonly signature: string;
  readonly result: KeptResult;
  readonly durationMs: number;
}

type CallingSession = Pick<Session, "callTool" | "catalog" | "ready">;

/**
 * Makes stored calls in a session, through its whole pipeline: what the session does not permit is denied. It remembers the last result of
 * each call for the next comparison, so one runner serves one session as long as it is open.
 */
export class StoredCallRunner {
  readonly #session: CallingSession;
  readonly #now: () => number;
  /** The last runs that had a result. */
  readonly #former = new Map<string, FormerRun>();
  /** What each call was and which version of its tool it concerned when it was last made, skipped or found without a tool. */
  readonly #seen = new Map<string, string>();
  /** The tools of the newest catalog, so that a thousand calls do not search thousands of tools. */
  #tools: { readonly catalog: ToolCatalog; readonly bySource: ReadonlyMap<string, Tool> } | undefined;
  /** The number of the newest `runChanged`. */
  #turn = 0;
  #inFlight:
    | { readonly id: string; readonly version: string; readonly stop: AbortController; readonly ended: Promise<unknown> }
    | undefined;

  constructor(session: CallingSession, now: () => number = () => performance.now()) {
    this.#session = session;
    this.#now = now;
  }

  /** Makes one call because a person wants it, whatever its tool claims. @throws the signal's reason, and remembers nothing then. */
  async run(entry: SkillCall, signal: AbortSignal): Promise<StoredCallRun> {
    const tool = await this.#toolOf(entry, signal);
    return tool === undefined ? this.#withoutTool(entry) : this.#make(entry, tool, signal);
  }

  /** Makes one call unless it may only run when a person wants it: then it is `skipped`. @throws as `run`. */
  async runAllowed(entry: SkillCall, signal: AbortSignal): Promise<StoredCallRun> {
    const tool = await this.#toolOf(entry, signal);
    if (tool === undefined) return this.#withoutTool(entry);
    if (entry.call.isAutomatic || tool.definition.annotations?.readOnlyHint === true) return this.#make(entry, tool, signal);
    this.#seen.set(skillCallId(entry), versionOf(entry, tool));
    return settled(
      entry,
      "skipped",
      `Tool "${entry.call.tool}" does not claim to read only (readOnlyHint), and the call is not marked "automatic".`,
    );
  }

  /**
   * Makes those calls, one after the other, that are new or have changed, or whose tool has, since they were last made. It only calls tools
   * that claim to read only, and calls that the user marked; others are `skipped`. A newer `runChanged` ends this one: a call that is being
   * made continues if it is still the same, and is cancelled if not; the others are left to the newer one. Returns whether it came to its end.
   */
  async runChanged(entries: readonly SkillCall[], signal: AbortSignal, onRun: (run: StoredCallRun) => void): Promise<boolean> {
    const turn = ++this.#turn;
    const isOver = (): boolean => turn !== this.#turn || signal.aborted;
    this.#forgetAllBut(entries);
    try {
      await this.#endOutdated(entries, signal);
      for (const entry of entries) {
        if (isOver()) return false;
        const version = versionOf(entry, await this.#toolOf(entry, signal));
        if (isOver()) return false;
        if (this.#seen.get(skillCallId(entry)) !== version) onRun(await this.#runInTurn(entry, version, signal));
      }
      return true;
    } catch (error) {
      if (isOver()) return false;
      throw error;
    }
  }

  /** Cancels the call that is being made if it is not one of these any more, and waits for it if it is. */
  async #endOutdated(entries: readonly SkillCall[], signal: AbortSignal): Promise<void> {
    const running = this.#inFlight;
    if (running === undefined) return;
    const entry = entries.find((each) => skillCallId(each) === running.id);
    const isSame = entry !== undefined && versionOf(entry, this.#find(entry)) === running.version;
    if (!isSame) running.stop.abort(new Error("A newer change has begun another run."));
    // One that was cancelled may ignore it.
    else
      await waitFor(
        running.ended.catch(() => {}),
        { signal },
      );
  }

  async #runInTurn(entry: SkillCall, version: string, signal: AbortSignal): Promise<StoredCallRun> {
    const stop = new AbortController();
    const ended = this.runAllowed(entry, AbortSignal.any([signal, stop.signal]));
    const inFlight = { id: skillCallId(entry), version, stop, ended };
    this.#inFlight = inFlight;
    try {
      return await ended;
    } finally {
      if (this.#inFlight === inFlight) this.#inFlight = undefined;
    }
  }

  async #make(entry: SkillCall, tool: Tool, signal: AbortSignal): Promise<StoredCallRun> {
    const { call } = entry;
    const started = this.#now();
    const result = await this.#session.callTool(tool.definition.name, call.arguments, { signal });
    // A cancelled call has a result, too, which says nothing about the tool.
    signal.throwIfAborted();
    const durationMs = this.#now() - started;
    const reasons = await checkExpectation(call.expect ?? {}, result);
    signal.throwIfAborted();
    const id = skillCallId(entry);
    const former = this.#former.get(id);
    const { definition, signature } = tool;
    const kept = keptResult(result);
    this.#former.set(id, { definition, signature, result: kept, durationMs });
    this.#seen.set(id, versionOf(entry, tool));
    const diff = former === undefined ? [] : resultDifference(former.result, kept);
    return {
      ...entry,
      outcome: outcomeOf(entry, { reasons, diff, isFirst: former === undefined }),
      reasons,
      diff,
      schemaDiff: former === undefined ? [] : definitionDiff(former.definition, definition),
      isSignatureChanged: former !== undefined && former.signature !== signature,
      durationMs,
      ...(former !== undefined && { previousDurationMs: former.durationMs }),
      result,
    };
  }

  #withoutTool(entry: SkillCall): StoredCallRun {
    this.#seen.set(skillCallId(entry), versionOf(entry, undefined));
    return settled(entry, "failed", `Tool "${entry.call.tool}" does not exist.`);
  }

  /** The tool of its own skill, under whatever name it has in the session; else the one with this name that is of no skill. */
  async #toolOf(entry: SkillCall, signal: AbortSignal): Promise<Tool | undefined> {
    const found = this.#find(entry);
    if (found !== undefined) return found;
    // Tools of an MCP server are known only after it has started.
    await this.#session.ready(signal);
    return this.#find(entry);
  }

  #find({ skill, call: { tool } }: SkillCall): Tool | undefined {
    const { catalog } = this.#session;
    if (this.#tools?.catalog !== catalog) this.#tools = { catalog, bySource: toolsBySource(catalog) };
    const { bySource } = this.#tools;
    return bySource.get(`skill ${skill}/${tool}`) ?? bySource.get(tool);
  }

  #forgetAllBut(entries: readonly SkillCall[]): void {
    const ids = new Set(entries.map(skillCallId));
    for (const id of this.#seen.keys()) if (!ids.has(id)) this.#seen.delete(id);
    for (const id of this.#former.keys()) if (!ids.has(id)) this.#former.delete(id);
  }
}

/** Those of skills as `skill <name>/<tool>`; others by their names, and as `source/tool`. */
function toolsBySource({ executables }: ToolCatalog): ReadonlyMap<string, Tool> {
  const found = new Map<string, Tool>();
  for (const [name, tool] of executables) {
    const { kind, source, nativeName } = tool.origin;
    if (kind === "skill") found.set(`skill ${source}/${nativeName}`, tool);
    else found.set(name, tool).set(`${source}/${nativeName}`, tool);
  }
  return found;
}

function versionOf({ call }: SkillCall, tool: Tool | undefined): string {
  return `${tool?.revision ?? "absent"} ${canonicalJson(call)}`;
}

function outcomeOf(
  { call: { expect } }: SkillCall,
  { reasons, diff, isFirst }: { readonly reasons: readonly string[]; readonly diff: readonly string[]; readonly isFirst: boolean },
): StoredCallRun["outcome"] {
  if (reasons.length > 0) return "failed";
  if (expect !== undefined) return "passed";
  if (isFirst) return "first";
  return diff.length > 0 ? "changed" : "same";
}

function settled(entry: SkillCall, outcome: "failed" | "skipped", reason: string): StoredCallRun {
  return { ...entry, outcome, reasons: [reason], diff: [], schemaDiff: [], isSignatureChanged: false, durationMs: 0 };
}
