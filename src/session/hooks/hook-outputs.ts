import { errorMessage } from "../../base/errors.ts";
import type { HookKind, HookKinds } from "./hook-kinds.ts";

export type ReadOutput<K extends HookKind> =
  | { readonly ok: true; readonly output: HookKinds[K]["output"] }
  | { readonly ok: false; readonly problem: string };

/**
 * Reads what a hook returned: each field that its kind knows once, others not at all, since later versions of a client
 * may send more. Null and undefined are no answer, except where null means something.
 */
export function readHookOutput<K extends HookKind>(kind: K, returned: unknown): ReadOutput<K> {
  if (returned === undefined || returned === null) return nothing as ReadOutput<K>;
  if (typeof returned !== "object" || Array.isArray(returned)) {
    return { ok: false, problem: `it returned ${Array.isArray(returned) ? "an array" : `a ${typeof returned}`} instead of an object` };
  }
  try {
    return readFields(kind, returned as Readonly<Record<string, unknown>>);
  } catch (error) {
    // A getter that throws.
    return { ok: false, problem: `what it returned cannot be read (${errorMessage(error)})` };
  }
}

const nothing = Object.freeze({ ok: true, output: Object.freeze({}) });

function readFields<K extends HookKind>(kind: K, returned: Readonly<Record<string, unknown>>): ReadOutput<K> {
  const output: Record<string, unknown> = {};
  for (const [name, rule] of Object.entries<FieldRule>(outputRules[kind])) {
    const value = returned[name];
    if (value === undefined || (value === null && rule !== metadata)) continue;
    if (!rule.accepts(value)) return { ok: false, problem: `its ${name} is not ${rule.what}` };
    output[name] = value;
  }
  const problem = kind === "agentStop" || kind === "subagentStop" ? blockProblem(output) : undefined;
  return problem === undefined ? { ok: true, output: Object.freeze(output) as HookKinds[K]["output"] } : { ok: false, problem };
}

/** To go on, an agent needs something to go on with. */
function blockProblem({ decision, reason }: Readonly<Record<string, unknown>>): string | undefined {
  return decision === "block" && (reason === undefined || reason === "") ? "it blocks without a reason" : undefined;
}

interface FieldRule {
  readonly what: string;
  accepts(value: unknown): boolean;
}

const anything: FieldRule = { what: "anything", accepts: () => true };
const text: FieldRule = { what: "a text", accepts: (value) => typeof value === "string" };
const flag: FieldRule = { what: "true or false", accepts: (value) => typeof value === "boolean" };
const count: FieldRule = { what: "a whole number from 0", accepts: (value) => Number.isSafeInteger(value) && (value as number) >= 0 };
const metadata: FieldRule = { what: "an object or null", accepts: (value) => typeof value === "object" && !Array.isArray(value) };

function oneOf(...words: readonly string[]): FieldRule {
  return { what: `one of ${words.map((word) => JSON.stringify(word)).join(", ")}`, accepts: (value) => words.includes(value as string) };
}

const context = { additionalContext: text };
const stop = { decision: oneOf("block", "allow"), reason: text };

const outputRules: { readonly [K in HookKind]: { readonly [F in keyof HookKinds[K]["output"]]-?: FieldRule } } = {
  preToolUse: {
    permissionDecision: oneOf("allow", "deny", "ask"),
    permissionDecisionReason: text,
    modifiedArgs: anything,
    ...context,
    suppressOutput: flag,
  },
  preMcpToolCall: { metaToUse: metadata },
  postToolUse: { modifiedResult: anything, ...context, suppressOutput: flag },
  postToolUseFailure: context,
  userPromptSubmitted: { modifiedPrompt: text, ...context, suppressOutput: flag },
  userPromptTransformed: { modifiedTransformedPrompt: text },
  sessionStart: context,
  sessionEnd: {},
  errorOccurred: { errorHandling: oneOf("retry", "skip", "abort"), retryCount: count, userNotification: text, suppressOutput: flag },
  agentStop: stop,
  subagentStart: context,
  subagentStop: stop,
};
