import { errorMessage } from "../../base/errors.ts";
import type { HookFacts, HookKind, HookKinds } from "./hook-kinds.ts";

/** What the hooks of a kind come to together. */
export interface HookResults {
  userPromptSubmitted: { readonly prompt: string; readonly additionalContext: readonly string[] };
  userPromptTransformed: { readonly transformedPrompt: string };
  /** Each is a message of its own before the prompt. */
  sessionStart: { readonly additionalContext: readonly string[] };
  sessionEnd: Readonly<Record<never, never>>;
  errorOccurred: {
    /** Undefined: no hook says how to continue. Of several the most careful: abort, then skip, then retry. */
    readonly errorHandling: "retry" | "skip" | "abort" | undefined;
    readonly retryCount: number | undefined;
    readonly userNotifications: readonly string[];
  };
  /** The reason of the first hook that blocks: the next message. Undefined: the agent may stop. */
  agentStop: { readonly blockedBy: string | undefined };
  subagentStart: { readonly additionalContext: readonly string[] };
  subagentStop: { readonly blockedBy: string | undefined };
  preMcpToolCall: {
    /** A hook failed: the call must not be made. */
    readonly isDenied: boolean;
    /** What to send as `_meta`; undefined: none. */
    readonly meta: Readonly<Record<string, unknown>> | undefined;
  };
}

/** The kinds that run on their own. Those around a tool's call are run by the call, one by one. */
export type FoldedKind = keyof HookResults;

/** How the outputs of a kind's hooks become one result, and what each hook receives of the outputs before it. */
export interface Fold<K extends FoldedKind> {
  begin(facts: HookFacts<K>): HookResults[K];
  add(result: HookResults[K], output: HookKinds[K]["output"]): HookResults[K];
  /** Absent: the facts as they were. */
  inputFor?(facts: HookFacts<K>, result: HookResults[K]): HookFacts<K>;
  /** For gates: what becomes of the result when a hook failed. The hooks after it are not run. */
  fail?(result: HookResults[K]): HookResults[K];
}

const addingContext: Fold<"sessionStart"> & Fold<"subagentStart"> = {
  begin: () => ({ additionalContext: [] }),
  add: ({ additionalContext }, output) => ({ additionalContext: withText(additionalContext, output.additionalContext) }),
};

const stopping: Fold<"agentStop"> & Fold<"subagentStop"> = {
  begin: () => ({ blockedBy: undefined }),
  add: ({ blockedBy }, { decision, reason }) => ({ blockedBy: blockedBy ?? (decision === "block" ? reason : undefined) }),
};

export const folds: { readonly [K in FoldedKind]: Fold<K> } = {
  userPromptSubmitted: {
    begin: ({ prompt }) => ({ prompt, additionalContext: [] }),
    add: ({ prompt, additionalContext }, output) => ({
      prompt: output.modifiedPrompt ?? prompt,
      additionalContext: withText(additionalContext, output.additionalContext),
    }),
    inputFor: (_facts, { prompt }) => ({ prompt }),
  },
  userPromptTransformed: {
    begin: ({ transformedPrompt }) => ({ transformedPrompt }),
    add: ({ transformedPrompt }, output) => ({ transformedPrompt: output.modifiedTransformedPrompt ?? transformedPrompt }),
    inputFor: ({ prompt }, { transformedPrompt }) => ({ prompt, transformedPrompt }),
  },
  sessionStart: addingContext,
  sessionEnd: { begin: () => ({}), add: (result) => result },
  errorOccurred: {
    begin: () => ({ errorHandling: undefined, retryCount: undefined, userNotifications: [] }),
    add(result, { errorHandling, retryCount, userNotification }) {
      const userNotifications = withText(result.userNotifications, userNotification);
      const isMoreCareful = care.indexOf(errorHandling) > care.indexOf(result.errorHandling);
      return isMoreCareful ? { errorHandling, retryCount, userNotifications } : { ...result, userNotifications };
    },
  },
  agentStop: stopping,
  subagentStart: addingContext,
  subagentStop: stopping,
  preMcpToolCall: {
    begin: ({ _meta: meta }) => ({ isDenied: false, meta }),
    add: ({ meta }, { metaToUse }) => ({ isDenied: false, meta: metaToUse === undefined ? meta : (metaToUse ?? undefined) }),
    inputFor({ _meta: _, ...facts }, { meta }) {
      return meta === undefined ? facts : { ...facts, _meta: meta };
    },
    fail: () => ({ isDenied: true, meta: undefined }),
  },
};

const care: readonly (HookResults["errorOccurred"]["errorHandling"] | undefined)[] = [undefined, "retry", "skip", "abort"];

function withText(texts: readonly string[], text: string | undefined): readonly string[] {
  return text === undefined || text === "" ? texts : [...texts, text];
}

type ReadOutput<K extends HookKind> =
  | { readonly ok: true; readonly output: HookKinds[K]["output"] }
  | { readonly ok: false; readonly problem: string };

/**
 * Reads what a hook returned: each field that its kind knows once, others not at all, since later versions of a client
 * may send more. Null and undefined mean no answer, except where null has a meaning.
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
    return { ok: false, problem: `its return value cannot be read (${errorMessage(error)})` };
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

/** To continue, an agent needs a reason. */
function blockProblem({ decision, reason }: Readonly<Record<string, unknown>>): string | undefined {
  return decision === "block" && (reason === undefined || reason === "") ? "it blocks without a reason" : undefined;
}

interface FieldRule {
  readonly what: string;
  accepts(value: unknown): boolean;
}

const anything: FieldRule = { what: "anything", accepts: () => true };
const text: FieldRule = { what: "a string", accepts: (value) => typeof value === "string" };
const flag: FieldRule = { what: "true or false", accepts: (value) => typeof value === "boolean" };
const count: FieldRule = { what: "a non-negative integer", accepts: (value) => Number.isSafeInteger(value) && (value as number) >= 0 };
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
