import type { HookFacts, HookKinds } from "./hook-kinds.ts";

/** What the hooks of a kind come to together. */
export interface HookResults {
  userPromptSubmitted: { readonly prompt: string; readonly additionalContext: readonly string[] };
  userPromptTransformed: { readonly transformedPrompt: string };
  /** Each is a message of its own before the prompt. */
  sessionStart: { readonly additionalContext: readonly string[] };
  sessionEnd: Readonly<Record<never, never>>;
  errorOccurred: {
    /** Undefined: no hook says how to go on. Of several the most careful: abort, then skip, then retry. */
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

/** How the outputs of a kind's hooks become one result, and what each hook is told of those before it. */
export interface Fold<K extends FoldedKind> {
  begin(facts: HookFacts<K>): HookResults[K];
  add(result: HookResults[K], output: HookKinds[K]["output"]): HookResults[K];
  /** Absent: the facts as they were. */
  tell?(facts: HookFacts<K>, result: HookResults[K]): HookFacts<K>;
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
    tell: (_facts, { prompt }) => ({ prompt }),
  },
  userPromptTransformed: {
    begin: ({ transformedPrompt }) => ({ transformedPrompt }),
    add: ({ transformedPrompt }, output) => ({ transformedPrompt: output.modifiedTransformedPrompt ?? transformedPrompt }),
    tell: ({ prompt }, { transformedPrompt }) => ({ prompt, transformedPrompt }),
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
    tell({ _meta: _, ...facts }, { meta }) {
      return meta === undefined ? facts : { ...facts, _meta: meta };
    },
    fail: () => ({ isDenied: true, meta: undefined }),
  },
};

const care: readonly (HookResults["errorOccurred"]["errorHandling"] | undefined)[] = [undefined, "retry", "skip", "abort"];

function withText(texts: readonly string[], text: string | undefined): readonly string[] {
  return text === undefined || text === "" ? texts : [...texts, text];
}
