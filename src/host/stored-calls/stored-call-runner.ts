import { canonicalJson } from "../../base/canonical-json.ts";
import { checkExpectation } from "../../formats/calls/check-expectation.ts";
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

type CallingSession = Pick<Session, "callTool" | "catalog" | "listTools" | "ready">;

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
  #automatic = new AbortController();

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
   * that claim to read only, and calls that the user marked; others are `skipped`. A newer `runChanged` cancels this one: its unfinished
   * calls are left to the newer one. Returns whether it came to its end.
   */
  async runChanged(entries: readonly SkillCall[], signal: AbortSignal, onRun: (run: StoredCallRun) => void): Promise<boolean> {
    this.#automatic.abort(new Error("A newer change has begun another run."));
    const own = new AbortController();
    this.#automatic = own;
    const either = AbortSignal.any([signal, own.signal]);
    this.#forgetAllBut(entries);
    try {
      for (const entry of entries) {
        either.throwIfAborted();
        const tool = await this.#toolOf(entry, either);
        if (this.#seen.get(skillCallId(entry)) === versionOf(entry, tool)) continue;
        const run = await this.runAllowed(entry, either);
        either.throwIfAborted();
        onRun(run);
      }
      return true;
    } catch (error) {
      if (either.aborted) return false;
      throw error;
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
    const tools = this.#session.listTools();
    const listed =
      tools.find(({ namespacedName }) => namespacedName === `${skill}/${tool}`) ??
      tools.find(({ name, namespacedName, source }) => source.kind !== "skill" && (name === tool || namespacedName === tool));
    return listed && this.#session.catalog.executables.get(listed.name);
  }

  #forgetAllBut(entries: readonly SkillCall[]): void {
    const ids = new Set(entries.map(skillCallId));
    for (const id of this.#seen.keys()) if (!ids.has(id)) this.#seen.delete(id);
    for (const id of this.#former.keys()) if (!ids.has(id)) this.#former.delete(id);
  }
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
