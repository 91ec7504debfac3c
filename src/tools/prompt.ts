import { sha256 } from "../base/canonical-json.ts";
import type { CallerContext, HostServices } from "./host-services.ts";
import type { AskOptions, Asks, ToolOrigin } from "./tool.ts";

/** A block of MCP content (specification 2025-11-25, ContentBlock): text, image, audio, resource link or embedded resource. */
export type ContentBlock = { readonly type: string; readonly [field: string]: unknown };

/** An argument of a prompt. */
export interface PromptArgument {
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly required?: boolean;
}

/** A prompt as plain JSON data. */
export interface PromptDefinition {
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly arguments?: readonly PromptArgument[];
}

/** A message of a prompt. */
export interface PromptMessage {
  readonly role: "user" | "assistant";
  readonly content: ContentBlock;
}

/** The messages of a prompt. */
export interface PromptResult {
  readonly description?: string;
  readonly messages: readonly PromptMessage[];
}

/** What the code of a prompt or resource may use while it answers a client. */
export interface OfferContext {
  /** Fires when no client waits for the answer any longer. */
  readonly signal: AbortSignal;
  /** The application's services, as `createHost({ services })` passes them. */
  readonly services: HostServices;
  /** What the application knows of the session, as `createSession({ context })` passes it. */
  readonly context?: CallerContext | undefined;
  /** Asks an attached client; rejects when none can answer. */
  ask<K extends keyof Asks>(kind: K, data: Asks[K]["data"], options?: AskOptions): Promise<Asks[K]["answer"]>;
}

/** Suggestions for an argument, best first; at most 100 are used. */
export interface Completion {
  readonly values: readonly string[];
  readonly total?: number;
  readonly hasMore?: boolean;
}

/** The other arguments that are already filled in. */
export interface CompletionContext {
  readonly arguments: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}

/** A prompt of any source. Frozen; independent of sessions. */
export interface Prompt {
  readonly definition: PromptDefinition;
  readonly origin: ToolOrigin;
  /** Changes with the definition and with the code behind it. */
  readonly revision: string;
  /** Rejects with HostError `PROMPT_ARGUMENTS` when a required argument is missing, and with errors of the prompt's code. */
  get(args: Readonly<Record<string, string>>, context: OfferContext): Promise<PromptResult>;
  /** Absent: there are no suggestions. */
  complete?(argument: string, value: string, context: CompletionContext): Promise<Completion>;
}

const maxLength = 128;
const legalName = /^[A-Za-z0-9_.-]{1,128}$/;

/** Whether clients accept this prompt name. */
export function isPromptName(name: unknown): name is string {
  return typeof name === "string" && legalName.test(name);
}

/**
 * The name under which a prompt is offered: a legal name stays; otherwise hyphens replace illegal characters, and part of a hash of the
 * whole name follows, so that different names stay different.
 */
export function promptName(name: string): string {
  if (legalName.test(name)) return name;
  const plain = name
    .slice(0, 1000)
    .normalize("NFKD")
    .replace(/\p{M}+/gu, "")
    .replace(/[^A-Za-z0-9_.-]+/g, "-")
    .replace(/^-+|-+$/g, "");
  const suffix = `-${sha256(name).slice(0, 8)}`;
  return `${plain.slice(0, maxLength - suffix.length) || "prompt"}${suffix}`;
}
