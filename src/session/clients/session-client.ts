import { randomUUID } from "node:crypto";
import { HostError } from "../../base/errors.ts";
import type { ToolLike } from "../../tools/define/define-tool.ts";
import type { Tool } from "../../tools/tool.ts";
import type { SourceSnapshot } from "../../tools/tool-source.ts";
import type { PushTrust } from "../../trust/push-trust.ts";
import type { AskHandlers, ClientRequests } from "./client-requests.ts";
import { keepUnchanged, type PushedTools, readPushedTools, type ToolsDiff } from "./pushed-tools.ts";
import type { AskKind } from "./request-kinds.ts";

/** Where a client stands: of two that push tools of one name, the earlier level's is used. */
type AttachmentLevel = "host" | "connection" | "extension";

export interface AttachmentOptions {
  readonly level: AttachmentLevel;
  /** What messages call the client. Default: its level. */
  readonly name?: string;
  /** The kinds of questions that it may answer. */
  readonly answers: readonly AskKind[];
  /** Callbacks for those that it answers in this process; the others it hears of by events. */
  readonly handlers?: AskHandlers;
}

/** Somebody connected to a session: it owns the tools it pushed and the questions it may answer. */
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

/** What attachments need of their session. */
export interface AttachmentHost {
  readonly asks: ClientRequests;
  /** @throws HostError `SESSION_CLOSED`. */
  assertOpen(): void;
  builtinNames(): ReadonlySet<string>;
  /** Pushed tools changed; `hasNewContract` says whether in a way that clients and models see. */
  onToolsChanged(hasNewContract: boolean): void;
  /** Somebody came or left who may answer questions. */
  onAnswerersChanged(): void;
}

export interface SessionClients {
  attach(options: AttachmentOptions): Attachment;
  /** One snapshot per client with tools, the one whose tools win first. A client whose list did not change keeps its snapshot. */
  snapshots(): readonly SourceSnapshot[];
  /** The clients whose tool this is: usually one, several when they pushed the same. Undefined: not a pushed tool. */
  ownersOf(tool: Tool): readonly string[] | undefined;
  /** Whether a client, apart from one, may answer this kind of question. */
  canAnswer(kind: AskKind, except: string): boolean;
  /** Withdraws everything without telling anybody. */
  close(): void;
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

/** `trust` has the say about which pushed tools are offered. Absent: all are. */
export function createSessionClients(host: AttachmentHost, trust?: PushTrust): SessionClients {
  const clients = new Map<string, Client>();
  // What waited for somebody to approve it is there from then on.
  const approvals = trust?.subscribe(() => {
    for (const client of clients.values()) if (client.snapshot.diagnostics.length > 0) setTools(client, client.list);
  });

  function refuseTakenNames(client: Client, tools: readonly Tool[]): void {
    const builtins = host.builtinNames();
    const peers = [...clients.values()].filter((other) => other !== client && other.level === client.level);
    for (const tool of tools) {
      const { name, overridesBuiltInTool } = tool.definition;
      if (builtins.has(name) && overridesBuiltInTool !== true) throw builtinTaken(name, client);
      const other = peers.find((peer) => isAnother(peer.byName.get(name), tool));
      if (other !== undefined) throw peerTaken(name, client, other);
    }
  }

  function setTools(client: Client, all: readonly ToolLike[]): ToolsDiff {
    host.assertOpen();
    if (!clients.has(client.id)) throw new HostError("ATTACHMENT_CLOSED", `${client.name} is detached. Attach again to offer tools.`);
    const pushed = trustedOnly(readPushedTools(all, client), client, trust);
    client.list = [...all];
    refuseTakenNames(client, pushed.tools);
    const { tools, diff } = keepUnchanged(client.snapshot.tools, pushed.tools);
    publish(client, { tools, skills: [], diagnostics: pushed.diagnostics }, diff);
    return diff;
  }

  function publish(client: Client, next: SourceSnapshot, diff: ToolsDiff): void {
    const before = client.snapshot;
    const hasNewContract = diff.added.length + diff.changed.length + diff.removed.length > 0;
    const isSame = !hasNewContract && next.tools.every((tool) => client.byName.get(tool.definition.name) === tool);
    if (isSame && next.diagnostics.length === 0 && before.diagnostics.length === 0) return;
    client.snapshot = Object.freeze(next);
    client.byName = new Map(next.tools.map((tool) => [tool.definition.name, tool]));
    host.onToolsChanged(hasNewContract);
  }

  async function detach(client: Client): Promise<void> {
    if (!clients.delete(client.id)) return;
    const hadTools = client.snapshot.tools.length > 0;
    if (hadTools) host.onToolsChanged(true);
    host.asks.detach(client.id);
    if (client.answers.size > 0) host.onAnswerersChanged();
  }

  return {
    attach(options) {
      host.assertOpen();
      const { level, name = level, answers, handlers = {} } = options;
      if (!levels.includes(level)) throw new HostError("ATTACHMENT_LEVEL", `A client attaches as ${levels.join(", ")}, not as "${level}".`);
      const client: Client = { id: randomUUID(), level, name, answers: new Set(answers), list: [], snapshot: nothing, byName: new Map() };
      clients.set(client.id, client);
      host.asks.attach({ id: client.id, answers: client.answers, handlers });
      if (client.answers.size > 0) host.onAnswerersChanged();
      return {
        id: client.id,
        level,
        get tools() {
          return client.snapshot.tools;
        },
        setTools: (all) => setTools(client, all),
        [Symbol.asyncDispose]: () => detach(client),
      };
    },
    snapshots() {
      const withTools = [...clients.values()].filter(({ snapshot }) => snapshot.tools.length + snapshot.diagnostics.length > 0);
      return levels.flatMap((level) => withTools.filter((client) => client.level === level)).map(({ snapshot }) => snapshot);
    },
    ownersOf(tool) {
      if (tool.origin.kind !== "external") return undefined;
      const { name } = tool.definition;
      const level = clients.get(tool.origin.owner ?? "")?.level;
      return [...clients.values()].filter((client) => client.level === level && client.byName.has(name)).map(({ id }) => id);
    },
    canAnswer: (kind, except) => [...clients.values()].some(({ id, answers }) => id !== except && answers.has(kind)),
    close: () => {
      approvals?.[Symbol.dispose]();
      clients.clear();
    },
  };
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
