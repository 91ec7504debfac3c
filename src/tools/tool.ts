import type { Diagnostic } from "../base/diagnostic.ts";
import type { ProcessLimits } from "../io/process/confine-process.ts";
import type { CallerContext, HostServices } from "./host-services.ts";
import type { ToolArguments, ToolData, ToolName } from "./tool-signatures.ts";

/** A JSON Schema document (draft 2020-12 unless it says otherwise). */
export type JsonSchema = { readonly [keyword: string]: unknown };

/** Hints about a tool, as MCP defines them (specification 2025-11-25, ToolAnnotations). They guarantee nothing. */
export interface ToolAnnotations {
  readonly title?: string;
  readonly readOnlyHint?: boolean;
  readonly destructiveHint?: boolean;
  readonly idempotentHint?: boolean;
  readonly openWorldHint?: boolean;
}

/** A tool as plain JSON data. */
export interface ToolDefinition {
  /** `^[a-zA-Z0-9_-]{1,64}$`: the name by which models call the tool. */
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  /** JSON Schema of the arguments in input form: a field with a default is not required. Absent: the tool takes none. */
  readonly parameters?: JsonSchema;
  readonly outputSchema?: JsonSchema;
  readonly annotations?: ToolAnnotations;
  /** The tool replaces the built-in tool with the same name. Without this flag such a name is refused. */
  readonly overridesBuiltInTool?: boolean;
  /** Calls run without asking for permission. */
  readonly skipPermission?: boolean;
  /** `never`: always advertised, however many tools there are. */
  readonly defer?: "auto" | "never";
  /** A call of this tool ends the turn. */
  readonly isTerminal?: boolean;
  readonly metadata?: Readonly<Record<string, unknown>>;
  /** Deadline of one call in milliseconds. */
  readonly timeout?: number;
}

export type ToolKind = "builtin" | "skill" | "mcp" | "plugin" | "external";

/** Where a tool comes from. */
export interface ToolOrigin {
  readonly kind: ToolKind;
  /** The skill's, server's, plugin's or attachment's name. */
  readonly source: string;
  /** The name of the tool at its source, before any renaming. */
  readonly nativeName: string;
  /** The attachment or plugin that pushed it. */
  readonly owner?: string;
  /** The file that defines the tool, if there is one. */
  readonly file?: string;
  /**
   * An opaque text that identifies the source, whatever its name. Approvals are bound to it. Absent: another source with the same name
   * cannot be distinguished, so an approval covers only this contract of this tool.
   */
  readonly identity?: string;
}

/** The second argument of a handler. The trace keys exist only while tracing is on. */
export interface ToolInvocation {
  readonly sessionId: string;
  readonly toolCallId: string;
  readonly toolName: string;
  /** The arguments as the handler gets them: after hooks and defaults. */
  readonly arguments: unknown;
  /** Fires when the call's deadline passes, the call is cancelled or the session ends. */
  readonly signal: AbortSignal;
  readonly workingDirectory: string;
  readonly traceparent?: string;
  readonly tracestate?: string;
  /** The application's services, as `createHost({ services })` passes them. Without any, an empty object. Not an own key. */
  readonly services: HostServices;
  /** What the application knows of the session, as `createSession({ context })` passes it. Not an own key. */
  readonly context?: CallerContext | undefined;
}

/** Progress of a running call. Any update restarts the call's deadline. */
export interface Progress {
  readonly message?: string;
  readonly progress?: number;
  readonly total?: number;
  /** Makes the message a log line, at one of the levels of RFC 5424; it is then not sent as progress. */
  readonly level?: "debug" | "info" | "notice" | "warning" | "error" | "critical" | "alert" | "emergency";
  /** The data of a log line, beside or instead of its message. Plain JSON. */
  readonly data?: unknown;
  /**
   * All output so far, such as that of a command. Listeners get it as the event `tool.execution_partial_result`, cut to the size that a
   * result of the session may have. The caller does not get it, and the other fields are not used then.
   */
  readonly partialOutput?: string;
}

/** The questions for attached clients: the kind, the data sent, and the form of the answer. */
export interface Asks {
  permission: { data: PermissionAsk; answer: PermissionDecision };
  tool: { data: ToolAsk; answer: ToolAnswer };
  userInput: {
    data: { question: string; choices?: readonly string[]; allowFreeform?: boolean };
    answer: { answer: string; wasFreeform?: boolean };
  };
  elicitation: {
    data: { message: string; requestedSchema?: JsonSchema; url?: string };
    answer: { action: "accept" | "decline" | "cancel"; content?: Readonly<Record<string, unknown>> };
  };
  /** An MCP server requests a model's answer: the parameters and result of MCP's `sampling/createMessage`. */
  sampling: { data: Readonly<Record<string, unknown>>; answer: Readonly<Record<string, unknown>> };
  /** The workspace folders, as in MCP's `roots/list`. */
  roots: {
    data: Readonly<Record<string, never>>;
    answer: { readonly roots: readonly { readonly uri: string; readonly name?: string }[] };
  };
  /** A plan for the user to approve. */
  exitPlanMode: {
    data: { summary: string; planContent: string; actions: readonly string[]; recommendedAction: string };
    answer: { approved: boolean; selectedAction?: string; autoApproveEdits?: boolean; feedback?: string };
  };
  /** A server needs an access token that the client has or can get. */
  accessToken: {
    data: {
      serverName: string;
      serverUrl: string;
      /** `reauth`: the token could not be refreshed, so a new sign-in may be needed. */
      reason: "initial" | "refresh" | "reauth" | "upscope";
      wwwAuthenticateParams?: { scope?: string; resourceMetadataUrl?: string; error?: string };
      /** The document at `resourceMetadataUrl`, unchanged. */
      resourceMetadata?: string;
    };
    answer: { kind: "token"; accessToken: string; expiresIn?: number } | { kind: "cancelled" };
  };
  /** The user must sign in at a URL; the answer is the URL to which the browser was redirected. */
  authorization: {
    data: { serverName: string; serverUrl?: string; url: string; redirectUrl: string };
    answer: { callbackUrl: string };
  };
}

interface ToolAsk {
  readonly toolCallId: string;
  readonly toolName: string;
  readonly arguments: unknown;
  readonly workingDirectory: string;
  /** Only while tracing is on. */
  readonly traceparent?: string;
  readonly tracestate?: string;
}

/** The answer to a call of a client tool: what a handler would have returned, or why it failed. */
export type ToolAnswer = { readonly result: unknown } | { readonly error: string };

/** What a tool is about to do, for the permission decision. `kind` determines the other fields. */
export interface PermissionRequest {
  readonly kind: string;
  readonly [field: string]: unknown;
}

/** A question whether a call may run. */
export interface PermissionAsk extends PermissionRequest {
  readonly toolCallId: string;
  readonly toolName: string;
  readonly toolArgs: unknown;
  readonly description?: string;
}

/** An answer to a permission request. The short `{decision}` form is the older one of the Copilot SDK's documentation. */
export type PermissionDecision =
  | { readonly kind: "approve-once" }
  | { readonly kind: "approve-for-session"; readonly approval?: unknown }
  | { readonly kind: "approve-for-location"; readonly approval?: unknown; readonly locationKey?: string }
  | { readonly kind: "approve-permanently"; readonly domain?: string }
  | { readonly kind: "reject"; readonly feedback?: string }
  | { readonly kind: "user-not-available" }
  | { readonly decision: "allow" | "deny"; readonly reason?: string };

const approval: PermissionDecision = Object.freeze({ kind: "approve-once" });

/** Allows every call. For programs that trust every tool they offer. */
export const approveAll: () => PermissionDecision = () => approval;

export interface AskOptions {
  /** The key of the answer when several questions are asked at once. Default: the kind and a number. */
  readonly key?: string;
}

/** What a call of a declarative tool reaches on this machine, with its arguments filled in. Never shown: it may contain secrets. */
export type CallReach =
  | { readonly kind: "url"; readonly url: string }
  | {
      readonly kind: "program";
      readonly command: string;
      readonly args: readonly string[];
      readonly cwd: string;
      /** Added to the environment of the program. */
      readonly env: Readonly<Record<string, string>>;
      readonly stdin?: string;
    };

/** Rules about addresses, for calls that are already allowed. */
export interface AddressRules {
  /** Whether a call that was allowed for one URL may follow a redirect to another. */
  mayFollow(from: string, to: string): boolean;
  /** Whether a rule allows this host by its name. */
  names(url: string): boolean;
}

/** The third argument of a handler: its access to the session. */
export interface ToolContext {
  readonly invocation: ToolInvocation;
  /** Asks an attached client; the call's deadline pauses while it waits. Rejects when no client can answer or the call ends. */
  ask<K extends keyof Asks>(kind: K, data: Asks[K]["data"], options?: AskOptions): Promise<Asks[K]["answer"]>;
  /** The session's rules about URLs that a call reaches while it runs. Undefined: there are none. @internal */
  readonly addressRules?: AddressRules | undefined;
  /** The limits of this call's program that enforce the rules of the session. @internal */
  readonly limits?: ProcessLimits | undefined;
  /** Calls another tool of the session by name or `server/tool`, through every gate. Never rejects for a failure of that tool. */
  callTool<Name extends ToolName>(ref: Name, args: ToolArguments<Name>): Promise<CallResult<ToolData<Name>>>;
  /** Reports progress and restarts the deadline. */
  progress(update: Progress): void;
  /**
   * Reports that the tool wrote a file, with its new content, so that editors and servers see the same text. `languageId` is the language
   * as editors name it, if the file name does not determine it. `before` is what the file contained, null if it did not exist: a session
   * that tracks changes of files needs it to restore the file.
   */
  fileChanged(path: string, content: string, options?: FileChangeOptions): void;
  /**
   * Reports that work of the call, such as a process, continues after its result: the session emits `session.idle` only when it has
   * settled. The tool handles its outcome.
   */
  background(work: PromiseLike<unknown>): void;
}

export interface FileChangeOptions {
  readonly languageId?: string | undefined;
  readonly before?: string | Uint8Array | null | undefined;
}

/** How a call of a tool ended. */
export type ResultType = "success" | "failure" | "rejected" | "denied" | "timeout";

/** A part of a result that is not text, such as an image. */
export interface BinaryResult {
  /** Base64. */
  readonly data: string;
  readonly mimeType: string;
  readonly type: string;
  readonly description?: string;
}

/**
 * The result of a call. `textResultForLlm` and `binaryResultsForLlm` go to the model; `error`, `sessionLog` and `toolTelemetry` never do.
 * `structuredContent`, `contents` and `meta` keep what an MCP server sent, unchanged.
 */
export interface ToolResult {
  readonly resultType: ResultType;
  readonly textResultForLlm: string;
  readonly binaryResultsForLlm?: readonly BinaryResult[];
  readonly structuredContent?: unknown;
  readonly contents?: readonly unknown[];
  readonly meta?: Readonly<Record<string, unknown>>;
  readonly error?: string;
  readonly sessionLog?: string;
  readonly toolTelemetry?: Readonly<Record<string, unknown>>;
  readonly toolReferences?: readonly unknown[];
}

/** A result as the caller of a tool gets it: the same data, and short ways to what programs read. */
export interface CallResult<Answer = unknown> extends ToolResult {
  /** Whether the call succeeded. Not an own key, as the other two. */
  readonly ok: boolean;
  /** What the model reads: the answer, or why there is none. */
  readonly text: string;
  /**
   * The answer as data: the structured content of an MCP tool, else the text read as JSON. The type is what the caller expects, or what
   * `ToolSignatures` declares; it is not checked.
   * @throws HostError `RESULT_FAILED` when the call did not succeed, `RESULT_NOT_JSON` when the text is not JSON.
   */
  json<Value = Answer>(): Value;
}

/** The outcome of validation: the value to run with (defaults applied), or the issues. */
export type Validated = { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly issues: readonly ArgumentIssue[] };

export interface ArgumentIssue {
  /** `limit`, `range.start`, `tags[2]`; empty for the whole of the arguments. */
  readonly path: string;
  readonly message: string;
}

/** A callable tool. Frozen and shared by every catalog that offers it. Independent of sessions: each call passes what it needs of one. */
export interface Tool {
  readonly definition: ToolDefinition;
  readonly origin: ToolOrigin;
  /** The contract: sha256 of the canonical JSON of name, title, description, parameters and the two flags. */
  readonly signature: string;
  /** Changes with any field and with the generation of the code behind it. */
  readonly revision: string;
  /** False: a client tool. Its calls stay open until an attached client answers them. */
  readonly hasHandler: boolean;
  /**
   * The tool's own statements cannot allow a call: neither `skipPermission`, nor a `permission` that returns null, nor the kind that it
   * gives a call. Its source may not decide that.
   */
  readonly isAlwaysAsked?: boolean;
  validate(args: unknown): Validated | Promise<Validated>;
  /** The tool's own description of what this call would do; null when it needs no permission. */
  permission?(args: unknown, context: ToolContext): PermissionRequest | null | Promise<PermissionRequest | null>;
  /** What this call would reach, for rules about URLs, commands and paths. Absent: unknown. @internal */
  reach?(args: unknown, context: ToolContext): CallReach;
  /**
   * Keeps the code behind the tool unchanged until the hold is disposed of. Taken for a call that waits between its gates and its
   * execution, for example for the user's answer.
   */
  hold?(): Disposable;
  /** Runs the handler and returns what it returned, raw. */
  execute(args: unknown, context: ToolContext): unknown;
}

/** The tools that could be created, and the problems of the rest. */
export interface ToolsFound {
  readonly tools: readonly Tool[];
  readonly diagnostics: readonly Diagnostic[];
}

/** The result of `checkToolName`: the name is usable, or the nearest usable one. */
type ToolNameCheck = { readonly ok: true } | { readonly ok: false; readonly nearest: string; readonly message: string };

const maxLength = 64;
const legalName = /^[a-zA-Z0-9_-]{1,64}$/;

/** Whether models can call a tool by this name. If not, `nearest` is the closest usable name. */
export function checkToolName(name: unknown): ToolNameCheck {
  if (typeof name === "string" && legalName.test(name)) return { ok: true };
  const nearest = nearestToolName(typeof name === "string" ? name : "");
  const given = typeof name === "string" ? shown(name) : `not a string (${name === null ? "null" : typeof name})`;
  const rule = `A tool name must have 1 to ${maxLength} letters (a-z, A-Z), digits, "_" or "-"`;
  return { ok: false, nearest, message: `${rule}; this one is ${given}. Name it "${nearest}".` };
}

/** The nearest name that models can call: without accents, `_` for other characters, at most 64 characters. Legal names stay unchanged. */
export function nearestToolName(name: string): string {
  if (legalName.test(name)) return name;
  const plain = name
    .slice(0, 1_000)
    .normalize("NFKD")
    .replace(/\p{M}+/gu, "");
  const trimmed = plain.replace(/^[^a-zA-Z0-9_-]+|[^a-zA-Z0-9_-]+$/g, "");
  const legal = trimmed.replace(/[^a-zA-Z0-9_-]+/g, "_").slice(0, maxLength);
  return legal === "" ? "tool" : legal;
}

function shown(name: string): string {
  const text = JSON.stringify(name);
  return text.length > 100 ? `${text.slice(0, 100)}…"` : text;
}
