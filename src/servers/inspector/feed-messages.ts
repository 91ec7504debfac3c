import type { Diagnostic } from "../../base/diagnostic.ts";
import type { Json } from "../../base/json.ts";
import type { SkillInfo } from "../../host/host.ts";
import type { PluginsChange } from "../../plugin-host/plugin-reloads.ts";
import type { RewindFile, RewindResult } from "../../session/history/session-rewind.ts";
import type { ServerInfo } from "../../session/mcp/server-connections.ts";
import type { SkillsChange } from "../../skills/skill.ts";
import type { ToolDefinition } from "../../tools/tool.ts";

/** The version of these messages. It rises when a reader of the former version would misunderstand one. */
export const feedVersion = 1;

/**
 * A message of the feed. `seq` rises by one with each message. A reader that reconnects names the feed and the last `seq` that it
 * has read: it receives the messages since then, or a new `snapshot` when those are gone or the host was started again. Readers
 * ignore types and members that they do not know. Secrets are replaced before a message is made.
 */
export type FeedMessage = {
  readonly [T in keyof FeedData]: { readonly type: T; readonly seq: number; readonly at: number } & FeedData[T];
}[keyof FeedData];

export interface FeedData {
  /** The first message of a reader, and the answer to a gap: everything as it is now. */
  readonly snapshot: FeedSnapshot;
  /** Skills and tools that changed, each whole, and those that are gone: skills by folder, tools by id. */
  readonly catalog: {
    readonly skills: readonly FeedSkill[];
    readonly tools: readonly FeedTool[];
    readonly removedSkills: readonly string[];
    readonly removedTools: readonly string[];
  };
  /** A load with its outcome. The list of a skill's loads is its generations. */
  readonly reload: FeedReload;
  /** Changed plugins were loaded, with the outcome. */
  readonly "plugins.reload": PluginsChange;
  /** All current problems. */
  readonly diagnostics: { readonly diagnostics: readonly FeedDiagnostic[] };
  /** A session was opened, or its state changed. */
  readonly session: { readonly session: FeedSession };
  readonly "session.closed": { readonly sessionId: string };
  /** An event of a session, with its data as in the session's log. Long texts are cut: see `FeedBlob`. */
  readonly event: { readonly sessionId: string; readonly event: FeedEvent };
  /** Something is asked of a person. */
  readonly ask: { readonly ask: FeedAsk };
  readonly "ask.settled": { readonly askId: string; readonly sessionId: string };
  /** The state of a call that a reader of the feed began. */
  readonly call: { readonly call: FeedCall };
  readonly server: { readonly server: ServerInfo };
  readonly "server.removed": { readonly name: string };
  /** A message between the host and an MCP server. */
  readonly traffic: { readonly traffic: FeedTraffic };
  /** The stored calls of all skills, whole. `file`: they are all in this one. `problem`: what is wrong with files, a line each. */
  readonly pins: { readonly pins: readonly FeedPin[]; readonly file?: string; readonly problem?: string };
  /** A stored call has been run again. */
  readonly "pin.run": { readonly pinId: string; readonly run: FeedPinRun };
  /** Messages were left out because the reader or this connection could not keep up. */
  readonly dropped: { readonly count: number };
  /** Sent every few seconds, so that a reader can detect a connection that is gone or a proxy that buffers. */
  readonly alive: Record<never, never>;
}

export interface FeedSnapshot {
  readonly version: number;
  /** Identifies this run of the host. */
  readonly feed: string;
  readonly host: {
    readonly version: string;
    readonly node: string;
    readonly pid: number;
    readonly workingDirectory: string;
    readonly platform: string;
  };
  /** Whether requests that change or call something are refused. */
  readonly isReadOnly: boolean;
  /** Whether this is the export of a session, and no host is running. */
  readonly isExport: boolean;
  readonly skills: readonly FeedSkill[];
  readonly tools: readonly FeedTool[];
  readonly diagnostics: readonly FeedDiagnostic[];
  readonly sessions: readonly FeedSession[];
  readonly asks: readonly FeedAsk[];
  readonly servers: readonly ServerInfo[];
  readonly pins: readonly FeedPin[];
  readonly pinFile?: string;
  readonly pinProblem?: string;
  /** The last loads, the newest last. */
  readonly reloads: readonly FeedReload[];
  /** The last calls that readers of the feed began, the newest last. */
  readonly calls: readonly FeedCall[];
  /** The last events of the sessions, the newest last. */
  readonly events: readonly { readonly sessionId: string; readonly event: FeedEvent }[];
  /** The last messages to and from MCP servers, the newest last. */
  readonly traffic: readonly FeedTraffic[];
}

/** A skill. Its folder identifies it: of several with one name, one is active. */
export interface FeedSkill extends Omit<SkillInfo, "prompts"> {
  /** The text of one is the answer to the request `prompt`. */
  readonly prompts: readonly { readonly path: string; readonly size: number }[];
  /** Generations before the current one that calls still run on. */
  readonly oldGenerations?: readonly { readonly generation: number; readonly calls: number }[];
}

export interface FeedTool {
  /** Unique among the tools of the feed. */
  readonly id: string;
  readonly definition: ToolDefinition;
  readonly kind: string;
  /** The skill, server or plugin that it comes from. */
  readonly source: string;
  readonly nativeName?: string;
  readonly file?: string;
  readonly state: "wins" | "lost" | "renamed" | "disabled";
  /** The rule that decided the state. */
  readonly rule: string;
  /** What it is called instead, if `renamed`. */
  readonly renamedTo?: string;
  readonly signature: string;
  /** Whether it may be run again without a question after each save. */
  readonly isReadOnly: boolean;
}

/** A problem, and the lines around its place. */
export interface FeedDiagnostic extends Diagnostic {
  readonly frame?: { readonly firstLine: number; readonly lines: readonly string[] };
}

export interface FeedReload extends SkillsChange {
  readonly id: number;
  readonly durationMs: number;
}

export interface FeedSession {
  readonly id: string;
  readonly model?: string;
  /** What opened it: `library`, `copilot`, `mcp`, `inspector`, or the name that a program gave itself. */
  readonly client: string;
  readonly state: "idle" | "running" | "closed";
  readonly startTime: string;
  readonly title?: string;
  readonly workingDirectory: string;
}

/** An event of a session. `data` depends on the type, as documented for sessions. */
export interface FeedEvent {
  readonly id: string;
  readonly type: string;
  readonly timestamp: string;
  readonly parentId: string | null;
  readonly agentId?: string;
  readonly data: Json;
}

/**
 * Stands for a text in a message that was too long for it. The whole text is at `GET /blob/<id>`, as long as the feed keeps it.
 * In JSON: `{"$blob": {...}}`.
 */
export interface FeedBlob {
  readonly id: string;
  /** UTF-8 bytes. */
  readonly size: number;
  readonly mimeType: string;
  /** The beginning of a text. */
  readonly head?: string;
}

export interface FeedAsk {
  readonly id: string;
  readonly sessionId: string;
  readonly kind: "permission" | "elicitation" | "userInput" | "exitPlanMode";
  readonly toolCallId?: string;
  readonly data: Json;
}

/** A todo of a model. Each field may be missing: the model has the table. */
export interface FeedTodo {
  readonly id?: string;
  readonly title?: string;
  readonly description?: string;
  readonly status?: string;
  /** The ids of todos that it waits for. */
  readonly dependsOn: readonly string[];
}

export interface FeedCall {
  readonly id: string;
  readonly tool: string;
  readonly arguments: Json;
  readonly state: "running" | "completed" | "cancelled";
  readonly startTime: string;
  readonly durationMs?: number;
  readonly progress?: { readonly progress: number; readonly total?: number; readonly message?: string };
  /** What it logged, a line each. */
  readonly logs: readonly string[];
  readonly result?: FeedResult;
  /** Its tool has a page of its MCP server that shows the result: the request `app.open`. */
  readonly hasApp?: true;
}

/** A page of an MCP server for the result of a call (MCP Apps, SEP-1865). Its text is at `GET /app/<appId>`. */
export interface FeedApp {
  readonly appId: string;
  readonly server: string;
  /** Of the resource: `ui://…`. */
  readonly address: string;
  /** The addresses that it wants to reach, as in its `csp`. With `GET /app/<appId>?domains=1` its policy allows them. */
  readonly domains: { readonly connect?: readonly string[]; readonly resource?: readonly string[]; readonly frame?: readonly string[] };
  /** The tool as in `tools/list`. */
  readonly tool: Json;
  /** Whole, as its server got and gave them. */
  readonly arguments: Json;
  readonly result: Json;
}

export interface FeedResult {
  readonly ok: boolean;
  readonly code: string;
  /** What the model reads. */
  readonly text: string | { readonly $blob: FeedBlob };
  readonly structured?: Json;
  /** Images, audio, resources and other blocks, as in MCP. */
  readonly content: readonly Json[];
  /** What is for people only. */
  readonly error?: string;
}

export interface FeedTraffic {
  readonly id: number;
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly server: string;
  readonly direction: "sent" | "received" | "stderr";
  /** Pairs an answer with its request. */
  readonly rpcId?: string | number;
  readonly method?: string;
  readonly message: Json;
}

/** A call that is stored with a skill and made again after each save that changes its tool. */
export interface FeedPin {
  readonly id: string;
  /** Unique among the stored calls of its skill. */
  readonly name: string;
  readonly skill: string;
  /** The name of the tool in its skill. */
  readonly tool: string;
  readonly arguments: Json;
  /** Whether the user allows that it is made by itself although its tool does not claim to read only. */
  readonly isAutomatic: boolean;
  /** As `expect` in the file. */
  readonly expect?: Json;
  readonly file: string;
  readonly lastRun?: FeedPinRun;
}

export interface FeedPinRun {
  readonly at: number;
  readonly durationMs: number;
  /** Absent: it was not made. */
  readonly result?: FeedResult;
  readonly outcome: "passed" | "failed" | "changed" | "same" | "first" | "skipped";
  /** Why it failed or was skipped, one line each. */
  readonly reasons: readonly string[];
  /** Lines of a difference to the previous run: `+`, `-` and ` `. */
  readonly diff: readonly string[];
  readonly schemaDiff?: readonly string[];
  readonly isSignatureChanged: boolean;
  readonly previousDurationMs?: number;
  /** The number of the load that caused it. */
  readonly reloadId?: number;
}

/**
 * A request of a reader: `POST /request` with `{"method": …, "params": …}`. The answer is `{"result": …}`, or
 * `{"error": {"code", "message"}}` with a status of 4xx or 5xx.
 */
export interface FeedRequests {
  /** Begins a call. Its state follows as `call` messages. With `wait` the answer comes when it has ended, with its state. */
  readonly call: {
    readonly params: { readonly tool: string; readonly arguments: Json; readonly sessionId?: string; readonly wait?: boolean };
    readonly result: { readonly callId: string; readonly call?: FeedCall };
  };
  readonly cancel: { readonly params: { readonly callId: string }; readonly result: Record<never, never> };
  /** Checks arguments as a call would. A path is a JSON pointer (RFC 6901). */
  readonly validate: {
    readonly params: { readonly tool: string; readonly arguments: Json };
    readonly result: { readonly problems: readonly { readonly path: string; readonly message: string }[] };
  };
  readonly answer: {
    readonly params: { readonly askId: string; readonly sessionId: string; readonly answer: Json };
    readonly result: { readonly isFirst: boolean };
  };
  /** The text of a skill's prompt. */
  readonly prompt: { readonly params: { readonly folder: string; readonly path: string }; readonly result: { readonly text: string } };
  readonly reload: { readonly params: Record<never, never>; readonly result: Record<never, never> };
  readonly explain: { readonly params: { readonly name: string }; readonly result: Json };
  /** Opens a session. `script`: what a scripted model answers, a text or `{ text, calls: [{ name, args }] }` for each request. */
  readonly "session.create": {
    readonly params: {
      readonly model?: string;
      readonly provider?: Json;
      readonly script?: readonly (string | Json)[];
      readonly agent?: string;
    };
    readonly result: { readonly sessionId: string };
  };
  readonly "session.send": {
    readonly params: { readonly sessionId: string; readonly prompt: string };
    readonly result: Record<never, never>;
  };
  readonly "session.abort": { readonly params: { readonly sessionId: string }; readonly result: Record<never, never> };
  readonly "session.close": { readonly params: { readonly sessionId: string }; readonly result: Record<never, never> };
  /** What the model got with the last request, also as the endpoint got it, and an estimate of the tokens of each part. */
  readonly "session.modelView": { readonly params: { readonly sessionId: string }; readonly result: FeedModelView };
  /** What the model has to do, the oldest first; at most 500 of `total`. `session.todos_changed` says when to read it again. */
  readonly "session.todos": {
    readonly params: { readonly sessionId: string };
    readonly result: {
      readonly todos: readonly FeedTodo[];
      readonly total: number;
      /** By state. */
      readonly counts: { readonly [status: string]: number };
    };
  };
  /** The messages of the user that `session.rewind` can go back to, the oldest first; at most the last 200 of `total`. */
  readonly "session.listRewindPoints": {
    readonly params: { readonly sessionId: string };
    readonly result: {
      readonly points: readonly FeedRewindPoint[];
      readonly total: number;
      /** Whether the session keeps what files contained before its tools changed them, so that they can be restored. */
      readonly tracksFiles: boolean;
    };
  };
  /** The files that `session.rewind` would restore, unless others change them meanwhile; at most 200 of `fileCount`. */
  readonly "session.previewRewind": {
    readonly params: { readonly sessionId: string; readonly eventId: string };
    readonly result: { readonly files: readonly RewindFile[]; readonly fileCount: number };
  };
  /** Takes back an event with all after it, and on request what tools did to files meanwhile. */
  readonly "session.rewind": {
    readonly params: { readonly sessionId: string; readonly eventId: string; readonly restoreFiles?: boolean };
    readonly result: RewindResult;
  };
  /** The summaries that were made of the conversation, the oldest first; at most the last 200 of `total`. */
  readonly "session.listCheckpoints": {
    readonly params: { readonly sessionId: string };
    readonly result: { readonly checkpoints: readonly { readonly number: number; readonly title: string }[]; readonly total: number };
  };
  readonly "session.readCheckpoint": {
    readonly params: { readonly sessionId: string; readonly number: number };
    readonly result: { readonly text: string | { readonly $blob: FeedBlob } };
  };
  /** Stores a copy of the session, also while it runs, or when it is stored and not open. With `toEventId`: of what was before this event. */
  readonly "session.fork": {
    readonly params: { readonly sessionId: string; readonly toEventId?: string };
    readonly result: { readonly sessionId: string };
  };
  /** The session as one file, which `skillhost inspect <file>` opens. */
  readonly "session.export": {
    readonly params: { readonly sessionId: string };
    readonly result: { readonly fileName: string; readonly text: string };
  };
  readonly "app.open": { readonly params: { readonly callId: string }; readonly result: FeedApp };
  /** Calls a tool for a page: one of its own server that is for pages. The result is a `CallToolResult` of MCP. */
  readonly "app.call": {
    readonly params: { readonly appId: string; readonly tool: string; readonly arguments: Json };
    readonly result: Json;
  };
  /** Reads a resource of the page's own server, as `resources/read` of MCP. */
  readonly "app.read": { readonly params: { readonly appId: string; readonly uri: string }; readonly result: Json };
  readonly "server.restart": { readonly params: { readonly name: string }; readonly result: Record<never, never> };
  readonly approve: {
    readonly params: { readonly server?: string; readonly skill?: string; readonly tool?: string };
    readonly result: { readonly count: number };
  };
  /**
   * Stores a call with the skill of its tool: `tool` is the id or name of a tool, or that of the stored call `id`, which is changed. Secrets and
   * long texts that were not shown stay as they are in the file.
   */
  readonly "pin.save": {
    readonly params: { readonly pin: Omit<FeedPin, "id" | "skill" | "file" | "lastRun"> & { readonly id?: string } };
    readonly result: { readonly pinId: string };
  };
  readonly "pin.remove": { readonly params: { readonly pinId: string }; readonly result: Record<never, never> };
  readonly "pin.run": { readonly params: { readonly pinId: string }; readonly result: FeedPinRun };
  /**
   * A call as commands of `skillhost` for a POSIX shell and for PowerShell, as a `curl` command, and as a test for `skillhost/testing`, which
   * only tools of skills have. The `curl` command reads the token from the variable `SKILLHOST_INSPECTOR_TOKEN`.
   */
  readonly exportCall: {
    readonly params: { readonly tool: string; readonly arguments: Json };
    readonly result: { readonly command: string; readonly powershell: string; readonly curl: string; readonly test?: string };
  };
}

/** A message of the user that a session can go back to. */
export interface FeedRewindPoint {
  /** Its place among all of them; the first is 1. */
  readonly number: number;
  readonly eventId: string;
  /** Its beginning. */
  readonly prompt: string;
  readonly timestamp: string;
}

export interface FeedModelView {
  readonly model: string;
  readonly system: string;
  readonly tools: readonly Json[];
  readonly messages: readonly Json[];
  readonly parts: readonly { readonly name: string; readonly tokens: number }[];
  /** The body of the HTTP request, as the endpoint got it, and its size in UTF-8 bytes. Absent: the model is not asked over HTTP. */
  readonly body?: { readonly text: string | { readonly $blob: FeedBlob }; readonly size: number };
}
