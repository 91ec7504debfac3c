import type { Diagnostic } from "../base/diagnostic.ts";
import type { ProcessLimits } from "../io/process/confine-process.ts";

/** A JSON Schema document (draft 2020-12 unless it says otherwise). */
export type JsonSchema = { readonly [keyword: string]: unknown };

/** Hints about a tool, as MCP defines them (specification 2025-11-25, ToolAnnotations). They promise nothing. */
export interface ToolAnnotations {
  readonly title?: string;
  readonly readOnlyHint?: boolean;
  readonly destructiveHint?: boolean;
  readonly idempotentHint?: boolean;
  readonly openWorldHint?: boolean;
}

/** What there is to know about a tool without running it. All of it can be written as JSON. */
export interface ToolDefinition {
  /** `^[a-zA-Z0-9_-]{1,64}$`: what a model calls it by. */
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  /** JSON Schema of the arguments in input form: a field with a default is not required. Absent: the tool takes none. */
  readonly parameters?: JsonSchema;
  readonly outputSchema?: JsonSchema;
  readonly annotations?: ToolAnnotations;
  /** The tool means to take the name of a built-in tool. Without it such a name is refused. */
  readonly overridesBuiltInTool?: boolean;
  /** Calls run without asking for permission. */
  readonly skipPermission?: boolean;
  /** `never`: always advertised, however many tools there are. */
  readonly defer?: "auto" | "never";
  /** A call of it ends the turn. */
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
  /** What the tool is called there, before any renaming. */
  readonly nativeName: string;
  /** The attachment or plugin that pushed it. */
  readonly owner?: string;
  /** The file that defines it, where there is one. */
  readonly file?: string;
  /**
   * What makes the source this one, whatever it calls itself: an opaque text. Approvals are bound to it. Absent: nothing
   * tells it apart from another source of its name, so an approval covers this contract of this tool only.
   */
  readonly identity?: string;
}

/** What a handler gets as its second argument: exactly these keys; the trace keys only while tracing is on. */
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
}

/** Progress of a running call. Any update restarts the call's deadline. */
export interface Progress {
  readonly message?: string;
  readonly progress?: number;
  readonly total?: number;
  /** Makes the message a line for a log, at one of the levels of RFC 5424; no progress is told then. */
  readonly level?: "debug" | "info" | "notice" | "warning" | "error" | "critical" | "alert" | "emergency";
  /** What a log line holds beside, or instead of, its message. Plain JSON. */
  readonly data?: unknown;
}

/** What may be asked of whoever is attached: the kind, what is sent, and what an answer looks like. */
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
  /** A server wants a model to write something: the parameters and result of MCP's `sampling/createMessage`. */
  sampling: { data: Readonly<Record<string, unknown>>; answer: Readonly<Record<string, unknown>> };
  /** Which folders are worked in, as MCP's `roots/list` has it. */
  roots: {
    data: Readonly<Record<string, never>>;
    answer: { readonly roots: readonly { readonly uri: string; readonly name?: string }[] };
  };
  /** A plan that somebody may have carried out. */
  exitPlanMode: {
    data: { summary: string; planContent: string; actions: readonly string[]; recommendedAction: string };
    answer: { approved: boolean; selectedAction?: string; autoApproveEdits?: boolean; feedback?: string };
  };
  /** A server wants a token that somebody has, or can get. */
  accessToken: {
    data: {
      serverName: string;
      serverUrl: string;
      /** `reauth`: whoever was asked to refresh a token would not, and another sign-in may be wanted. */
      reason: "initial" | "refresh" | "reauth" | "upscope";
      wwwAuthenticateParams?: { scope?: string; resourceMetadataUrl?: string; error?: string };
      /** The document at `resourceMetadataUrl`, as the server wrote it. */
      resourceMetadata?: string;
    };
    answer: { kind: "token"; accessToken: string; expiresIn?: number } | { kind: "cancelled" };
  };
  /** Somebody must sign in at an address; the answer is the address that the browser came back to. */
  authorization: {
    data: { serverName: string; serverUrl?: string; url: string; redirectUrl: string };
    answer: { callbackUrl: string };
  };
}

export interface ToolAsk {
  readonly toolCallId: string;
  readonly toolName: string;
  readonly arguments: unknown;
  readonly workingDirectory: string;
  /** Only while tracing is on. */
  readonly traceparent?: string;
  readonly tracestate?: string;
}

/** The answer to a call of a tool without a handler: what a handler would have returned, or why it failed. */
export type ToolAnswer = { readonly result: unknown } | { readonly error: string };

/** What a tool says it is about to do, for whoever must allow it. `kind` names which fields follow. */
export interface PermissionRequest {
  readonly kind: string;
  readonly [field: string]: unknown;
}

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

export interface AskOptions {
  /** What the answer is filed under where several are asked for at once. Default: the kind and a number. */
  readonly key?: string;
}

/** What a call of a tool that is written in JSON reaches of the machine, with its arguments filled in. Never shown: it may hold secrets. */
export type CallReach =
  | { readonly kind: "url"; readonly url: string }
  | {
      readonly kind: "program";
      readonly command: string;
      readonly args: readonly string[];
      readonly cwd: string;
      /** What is added to the environment of the program. */
      readonly env: Readonly<Record<string, string>>;
      readonly stdin?: string;
    };

/** Rules about addresses, for calls that are already allowed. */
export interface AddressRules {
  /** Whether a call that was allowed for one address may go on to another one. */
  mayFollow(from: string, to: string): boolean;
  /** Whether a rule allows this host by its name. */
  names(url: string): boolean;
}

/** What a handler gets as its third argument: the ways back into the session. */
export interface ToolContext {
  readonly invocation: ToolInvocation;
  /** Asks whoever is attached; the call's clock stops while it waits. Rejects when nobody can answer or the call ends. */
  ask<K extends keyof Asks>(kind: K, data: Asks[K]["data"], options?: AskOptions): Promise<Asks[K]["answer"]>;
  /** What the rules of the session say about addresses that a call meets while it runs. Undefined: they say nothing. @internal */
  readonly addressRules?: AddressRules | undefined;
  /** What the program of this call must run with, so that the rules of the session hold. @internal */
  readonly limits?: ProcessLimits | undefined;
  /** Calls another tool of the session by name or `server/tool`, through every gate. Never rejects for what that tool does. */
  callTool(ref: string, args: unknown): Promise<ToolResult>;
  /** Reports progress and restarts the deadline. */
  progress(update: Progress): void;
  /**
   * Says that the tool wrote a file, with its new content, so that editors and servers see the same. `languageId` is what
   * editors call the file's language by, where its name does not tell.
   */
  fileChanged(path: string, content: string, options?: { readonly languageId?: string }): void;
  /**
   * Says that work which the call started goes on after its result, such as a process: the session tells `session.idle`
   * only when it has settled. How it settles is for the tool to handle.
   */
  background(work: PromiseLike<unknown>): void;
}

export type ResultType = "success" | "failure" | "rejected" | "denied" | "timeout";

export interface BinaryResult {
  /** Base64. */
  readonly data: string;
  readonly mimeType: string;
  readonly type: string;
  readonly description?: string;
}

/**
 * What a call came to. `textResultForLlm` and `binaryResultsForLlm` go to the model; `error`, `sessionLog` and
 * `toolTelemetry` never do. `structuredContent`, `contents` and `meta` keep what an MCP server sent as it came.
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

/** The outcome of checking arguments: the value to run with (defaults applied), or what is wrong with them. */
export type Validated = { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly issues: readonly ArgumentIssue[] };

export interface ArgumentIssue {
  /** `limit`, `range.start`, `tags[2]`; empty for the whole of the arguments. */
  readonly path: string;
  readonly message: string;
}

/**
 * The only thing that is ever called. Frozen; shared by every catalog that offers it. It knows no session: what it
 * needs of one comes with the call.
 */
export interface Tool {
  readonly definition: ToolDefinition;
  readonly origin: ToolOrigin;
  /** sha256 over the canonical JSON of name, title, description, parameters and the two flags: the contract. */
  readonly signature: string;
  /** Changes with any field and with the generation of the code behind it: "did anything change?" */
  readonly revision: string;
  /** False: a declaration. Its calls stay open until somebody who is attached answers them. */
  readonly hasHandler: boolean;
  /**
   * What the tool says of permission allows nothing: neither `skipPermission`, nor a `permission` that returns null, nor the kind
   * that this gives a call. Its source may not decide that.
   */
  readonly isAlwaysAsked?: boolean;
  validate(args: unknown): Validated | Promise<Validated>;
  /** The tool's own description of what this call would do; null: nothing that needs permission. */
  permission?(args: unknown, context: ToolContext): PermissionRequest | null | Promise<PermissionRequest | null>;
  /** What this call would reach, for rules about addresses, commands and paths. Absent: nobody can tell. @internal */
  reach?(args: unknown, context: ToolContext): CallReach;
  /**
   * Keeps what is behind the tool as it is until the hold is disposed of. Taken for a call that waits between its gates
   * and its execution, which may be long: somebody is asked.
   */
  hold?(): Disposable;
  /** Runs the handler and returns what it returned, raw. */
  execute(args: unknown, context: ToolContext): unknown;
}

/** Tools that could be made of something, and what was wrong with the rest. */
export interface ToolsFound {
  readonly tools: readonly Tool[];
  readonly diagnostics: readonly Diagnostic[];
}
