import { randomUUID } from "node:crypto";
import { errorMessage, toError } from "../base/errors.ts";
import type { Logger } from "../base/logger.ts";
import type { ToolResult } from "../tools/tool.ts";
import type { SessionEvents } from "./events.ts";
import { isThenable } from "./thenable.ts";

/** What every hook is told. */
export interface HookInput {
  readonly sessionId: string;
  /** Milliseconds since 1970. */
  readonly timestamp: number;
  readonly cwd: string;
}

export interface PreToolUseInput extends HookInput {
  readonly toolName: string;
  readonly toolArgs: unknown;
}

/** What a preToolUse hook may decide. A hook that throws, or decides something else, denies the call. */
export interface PreToolUseOutput {
  /** `allow`: nobody is asked. `deny`: the call does not run. `ask`: somebody is asked, even for tools that skip it. */
  readonly permissionDecision?: "allow" | "deny" | "ask";
  readonly permissionDecisionReason?: string;
  /** Runs the call with these arguments instead. */
  readonly modifiedArgs?: unknown;
  /** Told to the model after the result. */
  readonly additionalContext?: string;
  readonly suppressOutput?: boolean;
}

export interface PostToolUseInput extends PreToolUseInput {
  readonly toolResult: ToolResult;
}

export interface PostToolUseOutput {
  /** Takes the result's place: anything a handler may return. */
  readonly modifiedResult?: unknown;
  readonly additionalContext?: string;
  readonly suppressOutput?: boolean;
}

export interface PostToolUseFailureInput extends PreToolUseInput {
  readonly error: string;
}

export interface PostToolUseFailureOutput {
  readonly additionalContext?: string;
}

/** The kinds of hooks: what each is told, and what it may answer. */
export interface HookKinds {
  preToolUse: { input: PreToolUseInput; output: PreToolUseOutput };
  postToolUse: { input: PostToolUseInput; output: PostToolUseOutput };
  postToolUseFailure: { input: PostToolUseFailureInput; output: PostToolUseFailureOutput };
}

export type HookKind = keyof HookKinds;

/** A hook; what it returns, or the promise of it, is its kind's output, or nothing. */
export type Hook<K extends HookKind> = (input: HookKinds[K]["input"], invocation: { readonly sessionId: string }) => unknown;

/** A session's hooks, each kind in the order they run. */
export type ResolvedHooks = { readonly [K in HookKind]: readonly Hook<K>[] };

/** The option that holds each kind, as the Copilot SDK names them. */
export const hookOptions: { readonly [K in HookKind]: string } = {
  preToolUse: "onPreToolUse",
  postToolUse: "onPostToolUse",
  postToolUseFailure: "onPostToolUseFailure",
};

/** What running one hook came to. */
export type HookRun<K extends HookKind> =
  | { readonly kind: "answered"; readonly output: HookKinds[K]["output"] }
  | { readonly kind: "failed" };

export interface HookRunner {
  /** Runs one hook and tells the events of it. Never throws or rejects; a promise only if the hook returned one. */
  run<K extends HookKind>(kind: K, hook: Hook<K>, input: HookKinds[K]["input"], agentId?: string): HookRun<K> | Promise<HookRun<K>>;
}

export function createHookRunner(sessionId: string, events: SessionEvents, log: Logger): HookRunner {
  const invocation = Object.freeze({ sessionId });

  function end<K extends HookKind>(kind: K, id: string, agentId: string | undefined, run: HookRun<K>, error?: unknown): HookRun<K> {
    if (run.kind === "failed") log.error(`A ${kind} hook failed.`, { sessionId, hook: kind, error: toError(error) });
    if (events.wants("hook.end")) {
      const outcome =
        run.kind === "failed" ? { success: false, error: { message: errorMessage(error) } } : { success: true, output: run.output };
      events.append("hook.end", { hookInvocationId: id, hookType: kind, ...outcome }, agentId);
    }
    return run;
  }

  return {
    run(kind, hook, input, agentId) {
      const told = events.wants("hook.start") || events.wants("hook.end");
      const id = told ? randomUUID() : "";
      if (told) events.append("hook.start", { hookInvocationId: id, hookType: kind, input }, agentId);
      try {
        const returned = hook(input, invocation);
        if (!isThenable(returned)) return end(kind, id, agentId, answered(returned));
        return Promise.resolve(returned).then(
          (output) => end(kind, id, agentId, answered(output)),
          (error) => end(kind, id, agentId, failed, error),
        );
      } catch (error) {
        return end(kind, id, agentId, failed, error);
      }
    },
  };
}

const failed = Object.freeze({ kind: "failed" as const });

function answered<K extends HookKind>(output: unknown): HookRun<K> {
  return { kind: "answered", output: (typeof output === "object" && output !== null ? output : {}) as HookKinds[K]["output"] };
}
