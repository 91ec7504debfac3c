import { randomUUID } from "node:crypto";
import { errorMessage, HostError } from "../../base/errors.ts";
import type { ToolLike } from "../../tools/define/define-tool.ts";
import type { Asks, Tool, ToolAnswer } from "../../tools/tool.ts";
import type { SourceSnapshot } from "../../tools/tool-source.ts";
import type { PushTrust } from "../../trust/push-trust.ts";
import type { ResolvedSessionConfig } from "../session-config.ts";
import type { AskHandler, AskHandlers, AskInvocation, ClientRequests } from "./client-requests.ts";
import { keepUnchanged, type PushedTools, readPushedTools, type ToolsDiff } from "./pushed-tools.ts";
import { type AskKind, noResult } from "./request-kinds.ts";

/** The precedence of a client: if two push tools with the same name, the one with the earlier level is used. */
type AttachmentLevel = "host" | "connection" | "extension";

/**
 * Options of `session.attach`.
 *
 * @example
 * ```ts
 * const options: AttachmentOptions = { level: "connection", answers: ["permission"], handlers: { permission: () => ({ kind: "approve-once" }) } };
 * ```
 */
export interface AttachmentOptions {
  /** Its precedence: of two clients with a tool of the same name, that of the earlier level is used. */
  readonly level: AttachmentLevel;
  /** What messages call the client. Default: its level. */
  readonly name?: string;
  /** The kinds of questions that it may answer. */
  readonly answers: readonly AskKind[];
  /** Callbacks for those that it answers in this process; the others it hears of by events. */
  readonly handlers?: AskHandlers;
}

/** A client that is connected to a session: it owns the tools it pushed and the questions it may answer. */
export interface Attachment extends AsyncDisposable {
  readonly id: string;
  readonly level: AttachmentLevel;
  readonly tools: readonly Tool[];
  /**
   * Replaces the tools this client offers. Calls already running keep the tool they started with. Equal tools change
   * nothing, so that a client may send its whole list as often as it likes.
   * @throws HostError `TOOL_NAME_TAKEN` when a name is a built-in's and `overridesBuiltInTool` is not set, or is that of
   * a different tool of another client of the same level; `TOOL_NAME_ILLEGAL`, `TOOL_INVALID`. Nothing is changed then.
   */
  setTools(all: readonly ToolLike[]): ToolsDiff;
  /** Withdraws its tools, and ends what only it could answer. */
  [Symbol.asyncDispose](): Promise<void>;
}

interface SessionClientsOptions {
  readonly asks: ClientRequests;
  /** Decides which pushed tools are offered. Absent: all are. */
  readonly trust: PushTrust | undefined;
  /** The options that contain the callbacks of this program. */
  config(): ResolvedSessionConfig;
  /** @throws HostError `SESSION_CLOSED`. */
  assertOpen(): void;
  builtinNames(): ReadonlySet<string>;
  /** Pushed tools changed; `hasNewContract` says whether in a way that clients and models see. */
  onToolsChanged(hasNewContract: boolean): void;
  /** A client that may answer questions was attached or detached. */
  onAnswerersChanged(): void;
}

const levels: readonly AttachmentLevel[] = ["host", "connection", "extension"];
const nothing: SourceSnapshot = Object.freeze({ tools: [], skills: [], diagnostics: [] });

interface Client {
  readonly id: string;
  readonly level: AttachmentLevel;
  readonly name: string;
  readonly answers: ReadonlySet<AskKind>;
  /** What it pushed last, as it came. */
  list: readonly ToolLike[];
  snapshot: SourceSnapshot;
  byName: ReadonlyMap<string, Tool>;
}

/** The clients of a session: which tools each pushed, and who may answer which questions. */
export class SessionClients {
  readonly #options: SessionClientsOptions;
  readonly #clients = new Map<string, Client>();
  readonly #approvals: Disposable | undefined;
  /** This program, as a client of its own session. */
  readonly own: Attachment;

  constructor(options: SessionClientsOptions) {
    this.#options = options;
    this.own = this.#add({ level: "host", name: "this program", ...createOwnClient(() => options.config()) });
    // An approval makes tools available that were held back.
    this.#approvals = options.trust?.subscribe(() => {
      for (const client of this.#clients.values()) if (client.snapshot.diagnostics.length > 0) this.#setTools(client, client.list);
    });
  }

  attach(options: AttachmentOptions): Attachment {
    this.#options.assertOpen();
    const attachment = this.#add(options);
    if (options.answers.length > 0) this.#options.onAnswerersChanged();
    return attachment;
  }

  #add({ level, name = level, answers, handlers = {} }: AttachmentOptions): Attachment {
    if (!levels.includes(level)) throw new HostError("ATTACHMENT_LEVEL", `A client attaches as ${levels.join(", ")}, not as "${level}".`);
    const client: Client = { id: randomUUID(), level, name, answers: new Set(answers), list: [], snapshot: nothing, byName: new Map() };
    this.#clients.set(client.id, client);
    this.#options.asks.attach({ id: client.id, answers: client.answers, handlers });
    return {
      id: client.id,
      level,
      get tools() {
        return client.snapshot.tools;
      },
      setTools: (all) => this.#setTools(client, all),
      [Symbol.asyncDispose]: async () => {
        if (!this.#clients.delete(client.id)) return;
        if (client.snapshot.tools.length > 0) this.#options.onToolsChanged(true);
        this.#options.asks.detach(client.id);
        if (client.answers.size > 0) this.#options.onAnswerersChanged();
      },
    };
  }

  /** One snapshot per client with tools, in order of precedence. A client whose list did not change keeps its snapshot. */
  snapshots(): readonly SourceSnapshot[] {
    const withTools = [...this.#clients.values()].filter(({ snapshot }) => snapshot.tools.length + snapshot.diagnostics.length > 0);
    return levels.flatMap((level) => withTools.filter((client) => client.level === level)).map(({ snapshot }) => snapshot);
  }

  /** The clients whose tool this is: usually one, several when they pushed the same. Undefined: not a pushed tool. */
  ownersOf(tool: Tool): readonly string[] | undefined {
    if (tool.origin.kind !== "external") return undefined;
    const { name } = tool.definition;
    const level = this.#clients.get(tool.origin.owner ?? "")?.level;
    return [...this.#clients.values()].filter((client) => client.level === level && client.byName.has(name)).map(({ id }) => id);
  }

  /** Whether a client can answer this kind of question. This program can if it has a callback for it. */
  canAsk(kind: AskKind): boolean {
    if (hasOwnHandler(kind, this.#options.config())) return true;
    return [...this.#clients.values()].some(({ id, answers }) => id !== this.own.id && answers.has(kind));
  }

  /** Withdraws everything without notifying anyone. */
  close(): void {
    this.#approvals?.[Symbol.dispose]();
    this.#clients.clear();
  }

  #setTools(client: Client, all: readonly ToolLike[]): ToolsDiff {
    const { trust } = this.#options;
    this.#options.assertOpen();
    if (!this.#clients.has(client.id)) throw new HostError("ATTACHMENT_CLOSED", `${client.name} is detached. Attach again to offer tools.`);
    const pushed = trustedOnly(readPushedTools(all, client), client, trust);
    client.list = [...all];
    this.#refuseTakenNames(client, pushed.tools);
    const { tools, diff } = keepUnchanged(client.snapshot.tools, pushed.tools);
    const before = client.snapshot;
    const hasNewContract = diff.added.length + diff.changed.length + diff.removed.length > 0;
    const isSame = !hasNewContract && tools.every((tool) => client.byName.get(tool.definition.name) === tool);
    if (isSame && pushed.diagnostics.length === 0 && before.diagnostics.length === 0) return diff;
    client.snapshot = Object.freeze({ tools, skills: [], diagnostics: pushed.diagnostics });
    client.byName = new Map(tools.map((tool) => [tool.definition.name, tool]));
    this.#options.onToolsChanged(hasNewContract);
    return diff;
  }

  #refuseTakenNames(client: Client, tools: readonly Tool[]): void {
    const builtins = this.#options.builtinNames();
    const peers = [...this.#clients.values()].filter((other) => other !== client && other.level === client.level);
    for (const tool of tools) {
      const { name, overridesBuiltInTool } = tool.definition;
      if (builtins.has(name) && overridesBuiltInTool !== true) throw builtinTaken(name, client);
      const other = peers.find((peer) => isAnother(peer.byName.get(name), tool));
      if (other !== undefined) throw peerTaken(name, client, other);
    }
  }
}

function trustedOnly(pushed: PushedTools, { name: pusher }: Client, trust: PushTrust | undefined): PushedTools {
  if (trust === undefined || trust.mode === "off") return pushed;
  const diagnostics = [...pushed.diagnostics];
  const tools = pushed.tools.filter(({ definition, signature }) => {
    const fault = trust.judge({ name: definition.name, contract: signature, definition }, pusher);
    if (fault !== undefined) diagnostics.push(fault);
    return fault?.severity !== "error";
  });
  return { tools, diagnostics };
}

function isAnother(held: Tool | undefined, tool: Tool): boolean {
  return held !== undefined && held.revision !== tool.revision;
}

function builtinTaken(name: string, { name: source }: Client): HostError {
  const advice = "Set overridesBuiltInTool: true on it to take the built-in's place, or rename it.";
  return new HostError("TOOL_NAME_TAKEN", `Tool "${name}", registered by ${source}, has the name of a built-in tool. ${advice}`);
}

function peerTaken(name: string, { name: source }: Client, { name: other }: Client): HostError {
  return new HostError(
    "TOOL_NAME_TAKEN",
    `Tool "${name}", registered by ${source}, is already registered by ${other} with a different definition. Rename one of them.`,
  );
}

/** The program that made a session, as a client of it: its callbacks are those of the configuration of now. */
function createOwnClient(config: () => ResolvedSessionConfig): {
  readonly answers: readonly AskKind[];
  readonly handlers: AskHandlers;
} {
  return {
    answers: ["permission", "tool", "userInput", "elicitation", "sampling", "authorization", "exitPlanMode"],
    handlers: {
      permission: (data, invocation) => callBack(config().onPermissionRequest, data, invocation),
      userInput: (data, invocation) => callBack(config().onUserInputRequest, data, invocation),
      elicitation: (data, invocation) => callBack(config().onElicitationRequest, data, invocation),
      sampling: (data, invocation) => callBack(config().onSamplingRequest, data, invocation),
      exitPlanMode: (data, invocation) => callBack(config().options.onExitPlanModeRequest, data, invocation),
      authorization: (data, invocation) => callBack(config().onMcpAuthorization, data, invocation),
    },
  };
}

/** Whether the program that made a session answers this kind of question itself. */
function hasOwnHandler(kind: AskKind, config: ResolvedSessionConfig): boolean {
  if (kind === "userInput") return config.onUserInputRequest !== undefined;
  if (kind === "elicitation") return config.onElicitationRequest !== undefined;
  return kind === "exitPlanMode" && config.options.onExitPlanModeRequest !== undefined;
}

/** Reads what a program gives for a pending call: `{ result }`, `{ error }`, an Error, or the result itself. */
export function toToolAnswer(answer: unknown): ToolAnswer {
  if (answer instanceof Error) return { error: errorMessage(answer) };
  const keys = typeof answer === "object" && answer !== null ? Object.keys(answer) : [];
  const only = keys.length === 1 ? keys[0] : undefined;
  if (only === "result") return answer as { readonly result: unknown };
  return only === "error" && typeof (answer as { error: unknown }).error === "string"
    ? (answer as { readonly error: string })
    : { result: answer };
}

function callBack<K extends AskKind>(handler: AskHandler<K> | undefined, data: Asks[K]["data"], invocation: AskInvocation): unknown {
  return handler === undefined ? noResult : handler(data, invocation);
}
