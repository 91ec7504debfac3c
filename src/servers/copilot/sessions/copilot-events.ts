import { randomUUID } from "node:crypto";
import { basename, join } from "node:path";
import { isRecord } from "../../../base/json.ts";
import { escapeHidden } from "../../../base/untrusted-text.ts";
import type { DescribedSkill } from "../../../session/environment.ts";
import type { SkillFacts } from "../../../session/history/event-types.ts";
import type { RecordedEvent } from "../../../session/history/events.ts";
import type { Session } from "../../../session/session.ts";

/**
 * Types of events that are internal to skillhost.
 * @internal Exported for tests.
 */
export const hiddenTypes: ReadonlySet<string> = new Set([
  "session.options_changed",
  "session.history_truncated",
  "roots.requested",
  "roots.completed",
]);

/** Types of events that name the call that started the sub-agent which emits them. */
const ofSubAgents: ReadonlySet<string> = new Set([
  "assistant.message",
  "assistant.message_delta",
  "assistant.usage",
  "tool.execution_start",
  "tool.execution_complete",
]);

/** Types of events that a client does without when it reads too slowly. */
const droppable: ReadonlySet<string> = new Set([
  "assistant.message_delta",
  "assistant.reasoning_delta",
  "assistant.streaming_delta",
  "assistant.tool_call_delta",
  "pending_messages.modified",
  "session.custom_notification",
  "session.usage_info",
  "tool.execution_partial_result",
  "tool.execution_progress",
]);

/** Translates the events of one session for its clients. Events that depend on order: one translator per stream of events. */
export class EventTranslator {
  /** The parents of hidden events. The event after a hidden one gets the hidden one's parent. */
  readonly #skipped = new Map<string, string | null>();
  /** The calls that started sub-agents, by the sub-agents. */
  readonly #startedBy = new Map<string, unknown>();
  /** The model that the session began with. */
  #selectedModel: unknown;

  /** Whether the model that is asked is at a provider of a client. */
  readonly #isAtGivenProvider: () => boolean;

  constructor(selectedModel?: unknown, isAtGivenProvider: () => boolean = () => false) {
    this.#selectedModel = selectedModel;
    this.#isAtGivenProvider = isAtGivenProvider;
  }

  /** Undefined: the event is hidden. */
  translate(event: RecordedEvent): RecordedEvent | undefined {
    const parentId = this.#parentOf(event.parentId);
    if (event.type === "session.start") this.#selectedModel = event.data["selectedModel"];
    if (event.type === "subagent.started" && event.agentId !== undefined) this.#startedBy.set(event.agentId, event.data["toolCallId"]);
    if (this.#isHidden(event)) {
      if (event.ephemeral !== true) this.#skipped.set(event.id, parentId);
      return undefined;
    }
    const shown = asNotification(event) ?? event;
    const data = this.#withProvider(shown, this.#withCaller(shown, toWireData(shown)));
    return parentId === event.parentId && data === event.data ? event : { ...shown, data, parentId };
  }

  /**
   * Internal events, messages that hooks and skills wrote to the model, the model that `session.start` names already, and denials by rules,
   * which no request precedes.
   */
  #isHidden({ type, data, agentId }: RecordedEvent): boolean {
    if (type === "permission.completed") return isRecord(data["result"]) && data["result"]["kind"] === "denied-by-rules";
    if (type === "user.message") return data["source"] === "hook";
    if (type !== "session.model_change") return hiddenTypes.has(type);
    return agentId === undefined && data["previousModel"] === undefined && data["newModel"] === this.#selectedModel;
  }

  /** Names the call that started a sub-agent in what the sub-agent says and does, as clients that know no `agentId` expect. */
  #withCaller({ type, agentId }: RecordedEvent, data: RecordedEvent["data"]): RecordedEvent["data"] {
    const parentToolCallId = agentId === undefined || !ofSubAgents.has(type) ? undefined : this.#startedBy.get(agentId);
    return typeof parentToolCallId === "string" ? { ...data, parentToolCallId } : data;
  }

  #withProvider({ type }: RecordedEvent, data: RecordedEvent["data"]): RecordedEvent["data"] {
    return type === "assistant.usage" ? { ...data, isByok: this.#isAtGivenProvider() } : data;
  }

  #parentOf(id: string | null): string | null {
    return id === null ? null : (this.#skipped.get(id) ?? (this.#skipped.has(id) ? null : id));
  }
}

export function translateAll(events: readonly RecordedEvent[]): readonly RecordedEvent[] {
  const translator = new EventTranslator();
  return events.flatMap((event) => translator.translate(event) ?? []);
}

export function isDroppable({ type }: RecordedEvent): boolean {
  return droppable.has(type);
}

export function isStreaming({ type }: RecordedEvent): boolean {
  return type.endsWith("_delta") || type === "assistant.message_start";
}

/** A message that the session itself wrote to the model, about an agent that has ended, is a notification to clients. */
function asNotification(event: RecordedEvent): RecordedEvent | undefined {
  const { type, data } = event;
  if (type !== "user.message" || data["source"] !== "agent") return undefined;
  const content = String(data["content"]);
  const [, agentId, agentType, outcome] = /^<system_notification>\nAgent "([^"]*)" \(([^)]*)\) (has completed)?/.exec(content) ?? [];
  if (agentId === undefined) return undefined;
  const status = outcome === undefined ? "failed" : "completed";
  return { ...event, type: "system.notification", data: { content, kind: { type: "agent_completed", agentId, agentType, status } } };
}

function toWireData({ type, data, timestamp }: RecordedEvent): RecordedEvent["data"] {
  switch (type) {
    case "session.start":
    case "session.resume": {
      // The options serve to resume the session, and may contain details of this machine.
      const { options: _options, forkedFrom: _origin, ...rest } = data;
      return rest;
    }
    case "tool.execution_complete": {
      // The result of a failed call repeats the error; only the session needs it, to rebuild the conversation.
      if (data["success"] === true) return data;
      const { result: _result, ...rest } = data;
      return rest;
    }
    case "permission.requested":
      return {
        ...data,
        permissionRequest: toWireRequest(data["permissionRequest"]),
        promptRequest: toPromptRequest(data["permissionRequest"]),
      };
    case "session.skills_loaded":
      return { ...data, skills: (data["skills"] as readonly SkillFacts[]).map(toWireSkill) };
    case "skill.invoked":
      return { ...data, path: toSkillFile(data["path"]) };
    case "assistant.usage":
      return { ...data, finishReason: String(data["finishReason"]).replace("-", "_") };
    case "permission.completed":
      return { ...data, result: toWireResult(data["result"]) };
    case "session.shutdown":
      // Earlier versions recorded this event without fields that SDKs require.
      return "modelMetrics" in data ? data : { ...noUsage, sessionStartTime: Date.parse(timestamp), ...data };
    default:
      return data;
  }
}

const noUsage = { totalApiDurationMs: 0, codeChanges: { linesAdded: 0, linesRemoved: 0, filesModified: [] }, modelMetrics: {} };

/**
 * Emits events that clients of the Copilot SDK expect and a session does not emit itself: its title (the first message, unless
 * a client has set a name), the model's reasoning as a whole, changes of background tasks, and, when a client opens it, that no
 * managed settings apply.
 */
export class DerivedEvents implements Disposable {
  readonly #session: Session;
  readonly #subscriptions: readonly Disposable[];
  #hasTitle = false;
  /** The reasoning whose pieces were emitted last, by agent. */
  readonly #reasoning = new Map<string | undefined, string>();

  constructor(session: Session, isNamed: () => boolean) {
    this.#session = session;
    const { events } = session;
    this.#subscriptions = [
      events.addSink(({ data, agentId }) => {
        if (agentId !== undefined || data["source"] !== undefined || this.#hasTitle) return;
        this.#hasTitle = true;
        // A session that is resumed in the middle of its conversation keeps its title.
        const isFirst = !session.history.messages().some(({ role }) => role === "assistant");
        if (isFirst && !isNamed()) events.append("session.title_changed", { title: data["content"] });
      }, "user.message"),
      events.addSink(({ data, agentId }) => void this.#reasoning.set(agentId, String(data["reasoningId"])), "assistant.reasoning_delta"),
      events.addSink((event) => this.#emitReasoning(event), "assistant.message"),
      ...agentTypes.map((type) => events.addSink(() => events.append("session.background_tasks_changed", {}), type)),
    ];
  }

  emitOpened(): void {
    this.#session.events.append("session.managed_settings_resolved", ungoverned);
  }

  #emitReasoning({ data, agentId }: RecordedEvent): void {
    const reasoningId = this.#reasoning.get(agentId) ?? randomUUID();
    this.#reasoning.delete(agentId);
    const content = data["reasoningText"];
    if (typeof content === "string" && content !== "")
      this.#session.events.append("assistant.reasoning", { reasoningId, content }, agentId);
  }

  [Symbol.dispose](): void {
    for (const subscription of this.#subscriptions) subscription[Symbol.dispose]();
  }
}

const agentTypes = ["subagent.started", "subagent.completed", "subagent.failed"] as const;

/** skillhost applies no settings of an organization. */
const ungoverned = {
  source: "none",
  serverManaged: false,
  deviceManaged: false,
  clientManaged: false,
  failClosed: false,
  bypassPermissionsDisabled: false,
  managedKeys: [],
} as const;

type Fields = Readonly<Record<string, unknown>>;
type Check = (value: unknown) => boolean;

const isText: Check = (value) => typeof value === "string";
const isFlag: Check = (value) => typeof value === "boolean";
const listOf =
  (check: Check): Check =>
  (value) =>
    Array.isArray(value) && value.every(check);
const recordOf =
  (fields: Readonly<Record<string, Check>>): Check =>
  (value) =>
    isRecord(value) && Object.entries(fields).every(([name, check]) => check(value[name]));

interface KindShape {
  /** Fields without which the request makes no sense. */
  readonly facts: Readonly<Record<string, Check>>;
  /** Fields that clients of the Copilot SDK require, with a fallback. */
  readonly defaults?: Readonly<Record<string, readonly [Check, (request: Fields) => unknown]>>;
  /** Optional fields, which are dropped when they have another type. */
  readonly optional?: Readonly<Record<string, Check>>;
}

const intention = (request: Fields): unknown => request["toolDescription"] ?? request["description"] ?? "";
const bypass = { requestSandboxBypass: isFlag, requestSandboxBypassReason: isText };

const shapes: Readonly<Record<string, KindShape>> = {
  shell: {
    facts: { fullCommandText: isText },
    defaults: {
      intention: [isText, intention],
      commands: [listOf(recordOf({ identifier: isText, readOnly: isFlag })), () => []],
      possiblePaths: [listOf(isText), () => []],
      possibleUrls: [listOf(recordOf({ url: isText })), () => []],
      hasWriteFileRedirection: [isFlag, () => false],
      canOfferSessionApproval: [isFlag, () => false],
    },
    optional: { commandSegments: listOf(recordOf({ identifier: isText, fullCommandText: isText })), warning: isText, ...bypass },
  },
  write: {
    facts: { fileName: isText },
    defaults: { intention: [isText, intention], diff: [isText, () => ""], canOfferSessionApproval: [isFlag, () => false] },
    optional: { newFileContents: isText, ...bypass },
  },
  read: { facts: { path: isText }, defaults: { intention: [isText, intention] }, optional: bypass },
  url: { facts: { url: isText }, defaults: { intention: [isText, intention] }, optional: { redirectedFrom: isText, ...bypass } },
  mcp: {
    facts: { serverName: isText, toolName: isText },
    defaults: { toolTitle: [isText, ({ toolName }) => toolName], readOnly: [isFlag, () => false] },
  },
  memory: {
    facts: { fact: isText },
    optional: {
      action: (value) => value === "store" || value === "vote",
      subject: isText,
      citations: isText,
      direction: (value) => value === "upvote" || value === "downvote",
      reason: isText,
      scope: (value) => value === "repository" || value === "user",
    },
  },
  "custom-tool": { facts: { toolName: isText, toolDescription: isText }, optional: { skipPermission: isFlag } },
  hook: { facts: { toolName: isText }, optional: { hookMessage: isText } },
  "extension-management": { facts: { operation: isText }, optional: { extensionName: isText } },
};

/**
 * Completes a permission request for clients of the Copilot SDK. SDKs of strict languages drop a request that lacks a field,
 * and then it is never answered. A request of an unknown kind becomes one of a custom tool.
 */
export function toWireRequest(request: unknown): Fields {
  const fields = isRecord(request) ? request : {};
  const kind = String(fields["kind"]);
  const shape = Object.hasOwn(shapes, kind) ? shapes[kind]! : undefined;
  if (shape === undefined || !recordOf(shape.facts)(fields)) return asCustomTool(fields);
  const wrong = Object.entries(shape.optional ?? {}).filter(([name, check]) => name in fields && !check(fields[name]));
  const missing = Object.entries(shape.defaults ?? {}).filter(([name, [check]]) => !check(fields[name]));
  if (wrong.length === 0 && missing.length === 0) return fields;
  const without = new Set(wrong.map(([name]) => name));
  const kept = Object.entries(fields).filter(([name]) => !without.has(name));
  return Object.fromEntries([...kept, ...missing.map(([name, [, fallback]]) => [name, fallback(fields)])]);
}

/**
 * The form of a permission request that is shown to users: tools of MCP servers have the server's own names, and invisible
 * characters are escaped.
 */
export function toPromptRequest(request: unknown): Fields {
  const fields = withHiddenEscaped(toWireRequest(request)) as Fields;
  if (fields["kind"] === "shell") {
    const commandIdentifiers = (fields["commands"] as readonly { readonly identifier: string }[]).map(({ identifier }) => identifier);
    return { ...fields, kind: "commands", commandIdentifiers };
  }
  if (fields["kind"] !== "mcp") return fields;
  const [prefix, name] = [`${String(fields["serverName"])}-`, String(fields["toolName"])];
  return name.startsWith(prefix) ? { ...fields, toolName: name.slice(prefix.length) } : fields;
}

const maxDepth = 64;

function withHiddenEscaped(value: unknown, depth = 0): unknown {
  if (typeof value === "string") return escapeHidden(value);
  if (typeof value !== "object" || value === null || depth > maxDepth) return value;
  if (Array.isArray(value)) return value.map((item: unknown) => withHiddenEscaped(item, depth + 1));
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [escapeHidden(key), withHiddenEscaped(item, depth + 1)]));
}

function asCustomTool(fields: Fields): Fields {
  const { toolName, toolCallId, toolDescription, description, args, toolArgs } = fields;
  const shown = isText(toolDescription) ? toolDescription : isText(description) ? description : "";
  return { kind: "custom-tool", toolCallId, toolName: String(toolName ?? ""), toolDescription: shown, args: args ?? toolArgs ?? {} };
}

const approvals: Readonly<Record<string, Readonly<Record<string, Check>>>> = {
  commands: { commandIdentifiers: listOf(isText) },
  read: {},
  write: {},
  memory: {},
  mcp: { serverName: isText, toolName: (value) => value === null || isText(value) },
  "custom-tool": { toolName: isText },
};

/** The decision on a request. A lasting approval that does not say what it covers is shown as one for this call. */
function toWireResult(result: unknown): unknown {
  if (!isRecord(result)) return result;
  const { kind, approval, locationKey, rules } = result;
  if (kind === "denied-by-rules" && Array.isArray(rules)) {
    return { ...result, rules: rules.map((rule) => (isRecord(rule) ? { ...rule, argument: rule["argument"] ?? null } : rule)) };
  }
  if (kind !== "approved-for-session" && kind !== "approved-for-location") return result;
  const wanted = isRecord(approval) && isText(approval["kind"]) ? approvals[String(approval["kind"])] : undefined;
  const isWhole = wanted !== undefined && recordOf(wanted)(approval) && (kind === "approved-for-session" || isText(locationKey));
  return isWhole ? result : { kind: "approved" };
}

function toWireSkill(skill: SkillFacts): SkillFacts {
  const path = toSkillFile(skill.path);
  return { ...skill, commandName: skill.name, ...(typeof path === "string" && { path }) };
}

/** Sessions name a skill's folder, and clients expect its file. */
function toSkillFile(path: unknown): unknown {
  return typeof path === "string" && path !== "" && basename(path) !== "SKILL.md" ? join(path, "SKILL.md") : path;
}

/** A skill in the form of the protocol. */
export function describeSkill({ name, description, folder, isActive, isUserInvocable }: DescribedSkill): SkillFacts {
  return {
    name,
    commandName: name,
    description,
    source: "custom",
    userInvocable: isUserInvocable,
    enabled: isActive,
    ...(folder !== undefined && { path: join(folder, "SKILL.md") }),
  };
}
