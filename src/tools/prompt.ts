import type { AskOptions, Asks, ToolOrigin } from "./tool.ts";

/** A block of MCP content (specification 2025-11-25, ContentBlock): text, image, audio, resource link or embedded resource. */
export type ContentBlock = { readonly type: string; readonly [field: string]: unknown };

export interface PromptArgument {
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly required?: boolean;
}

/** What there is to know about a prompt without making it. All of it can be written as JSON. */
export interface PromptDefinition {
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly arguments?: readonly PromptArgument[];
}

export interface PromptMessage {
  readonly role: "user" | "assistant";
  readonly content: ContentBlock;
}

export interface PromptResult {
  readonly description?: string;
  readonly messages: readonly PromptMessage[];
}

/** What making a prompt or reading a resource may need of whoever wants it. */
export interface OfferContext {
  /** Fires when nobody waits for the answer any more. */
  readonly signal: AbortSignal;
  /** Asks whoever is attached; rejects when nobody can answer. */
  ask<K extends keyof Asks>(kind: K, data: Asks[K]["data"], options?: AskOptions): Promise<Asks[K]["answer"]>;
}

/** Suggestions for an argument, best first; at most 100 of them count. */
export interface Completion {
  readonly values: readonly string[];
  readonly total?: number;
  readonly hasMore?: boolean;
}

/** What else is filled in where a completion is wanted. */
export interface CompletionContext {
  readonly arguments: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}

/** A prompt that can be had by name, wherever it comes from. Frozen; it knows no session. */
export interface Prompt {
  readonly definition: PromptDefinition;
  readonly origin: ToolOrigin;
  /** Changes with the definition and with what is behind it. */
  readonly revision: string;
  /** Rejects with HostError `PROMPT_ARGUMENTS` when a required argument is missing, and with what making it throws. */
  get(args: Readonly<Record<string, string>>, context: OfferContext): Promise<PromptResult>;
  /** Absent: it has no suggestions. */
  complete?(argument: string, value: string, context: CompletionContext): Promise<Completion>;
}
