import { statSync } from "node:fs";
import { isAbsolute, resolve } from "node:path";
import { HostError } from "../base/errors.ts";
import { isRecord } from "../base/json.ts";
import {
  type FieldReaders,
  fieldsReader,
  mustBe,
  readCallback,
  readFields,
  readFlag,
  readPositive,
  readRecord,
  readText,
  readTexts,
} from "../base/read-fields.ts";
import type { ToolLike } from "../tools/define/define-tool.ts";
import type { CallerContext, HostServices } from "../tools/host-services.ts";
import { type AgentOptions, agentReaders, type CustomAgentOptions, resolveAgents, type SessionAgents } from "./agents/agent-profiles.ts";
import { type CatalogView, createCatalogView } from "./catalog/catalog-view.ts";
import { toolOptionsFor } from "./catalog/model-tool-options.ts";
import type { FilterPrecedence } from "./catalog/tool-filter.ts";
import type { AskHandler } from "./clients/client-requests.ts";
import { type Hook, type HookKind, hookOptions, joinHooks, type ResolvedHooks, type SessionHooks } from "./hooks/hook-kinds.ts";
import { type ResolvedServers, resolveServers, type ServerOptions, serverReaders } from "./mcp/session-server-options.ts";
import { compilePermissionRules, type PermissionRuleOptions, type PermissionRules } from "./permissions/permission-rules.ts";
import {
  assertProvider,
  type ModelFactory,
  resolveTurnConfig,
  type TurnConfig,
  type TurnOptions,
  turnReaders,
} from "./turns/turn-options.ts";

export type { SessionHooks };

/**
 * Options of `host.createSession`. All are optional.
 *
 * @example
 * ```ts
 * const options: SessionOptions = { permissions: { allow: ["get_weather"] }, excludedTools: ["skill:noisy"], persist: false };
 * ```
 */
export interface SessionOptions extends AgentOptions, ServerOptions, TurnOptions {
  /** Letters, digits, "_", "-" and, not at the beginning, ".". Default: a new UUID. */
  readonly sessionId?: string | undefined;
  /**
   * Whether what happens is written to the host's `sessionsDirectory`, so that the session can be resumed after its
   * process. Default: true if the host has one, and a warning where it cannot be written; given as true, an error.
   */
  readonly persist?: boolean | undefined;
  /** Default: the host's. */
  readonly workingDirectory?: string | undefined;
  /** The model, as its endpoint calls it. Needed for turns; calls need none. */
  readonly model?: string | undefined;
  /** Tools of this program. Change them with `session.setTools`. */
  readonly tools?: readonly ToolLike[] | undefined;
  /** Only these tools, by name or pattern. Default: all. */
  readonly availableTools?: readonly string[] | undefined;
  /** All tools but these, by name or pattern. Default: none. */
  readonly excludedTools?: readonly string[] | undefined;
  /** Which list decides about a tool that is in both. Default: `excluded`. */
  readonly toolFilterPrecedence?: FilterPrecedence | undefined;
  /** More skill folders; they take precedence over the host's. Relative ones start at the working directory. */
  readonly skillDirectories?: readonly string[] | undefined;
  /** Skills that contribute nothing to this session, by name; `*`: none does. */
  readonly disabledSkills?: readonly string[] | undefined;
  /** Functions that observe or change what happens, by kind. Default: none. */
  readonly hooks?: SessionHooks | undefined;
  /** How long a hook may take, in milliseconds; one that takes longer has failed. Default: 60,000. */
  readonly hookTimeout?: number | undefined;
  /** What is decided about calls before anybody is asked. */
  readonly permissions?: PermissionRuleOptions | undefined;
  /** Decides about calls that need permission. Absent: they are denied. */
  readonly onPermissionRequest?: AskHandler<"permission"> | undefined;
  /** Answers questions of tools to the user. Default: they are declined unless a client is attached. */
  readonly onUserInputRequest?: AskHandler<"userInput"> | undefined;
  /** Answers forms of tools and servers. Default: they are declined unless a client is attached. */
  readonly onElicitationRequest?: AskHandler<"elicitation"> | undefined;
  /** Answers what an MCP server wants a model to write, with the result of MCP's `sampling/createMessage`. */
  readonly onSamplingRequest?: AskHandler<"sampling"> | undefined;
  /** Lets a person sign in to an MCP server and returns the address that the browser came back to. */
  readonly onMcpAuthorization?: AskHandler<"authorization"> | undefined;
  /** True: clients may still attach, so a question that no client can answer yet stays open. Default: false. */
  readonly waitForAttachments?: boolean | undefined;
  /** Deadline of calls in milliseconds, for tools without their own. Default: 120,000. */
  readonly toolTimeout?: number | undefined;
  /** What happens to results that are too large for a model. Default: they go to files. */
  readonly largeOutput?: LargeOutputOptions | undefined;
  /** Whether the session keeps what files contained before its tools changed them, for `session.rewind`. Default: false. */
  readonly fileChangeTracking?: boolean | undefined;
  /**
   * Whether the model has the tool `sql`: a database in the session's folder, with a list of its todos that `session.readSqlTodos` reads.
   * Default: false.
   */
  readonly sessionDatabase?: boolean | undefined;
  /**
   * What the program knows of this session, such as its user: handlers of tools, prompts and resources read it as
   * `invocation.context`. It stays in this process: no log, client or model gets it. Declare its type by extending `CallerContext`.
   */
  readonly context?: CallerContext | undefined;
}

/** What `update` may change while a session lives. A field given as undefined goes back to its default. */
export type SessionChange = Omit<SessionOptions, "sessionId" | "persist" | "tools" | "waitForAttachments" | "fileChangeTracking">;

/** The options of a session, checked and complete. Frozen; `update` makes another. */
export interface ResolvedSessionConfig {
  readonly sessionId: string;
  readonly workingDirectory: string;
  /** Where the session was opened: relative paths of its options start there, and so do its MCP servers. */
  readonly startDirectory: string;
  readonly tools: readonly ToolLike[];
  /** What the tools depend on. */
  readonly view: CatalogView;
  readonly agents: SessionAgents;
  /** What the conversation with a model depends on. */
  readonly turn: TurnConfig;
  /** The host's, then the session's own. */
  readonly hooks: ResolvedHooks;
  readonly hostHooks: ResolvedHooks | undefined;
  readonly hostAgents: readonly CustomAgentOptions[] | undefined;
  readonly modelProviders: ReadonlyMap<string, ModelFactory> | undefined;
  readonly hookTimeout: number;
  readonly permissions: PermissionRules;
  readonly onPermissionRequest: AskHandler<"permission"> | undefined;
  readonly onUserInputRequest: AskHandler<"userInput"> | undefined;
  readonly onElicitationRequest: AskHandler<"elicitation"> | undefined;
  readonly onSamplingRequest: AskHandler<"sampling"> | undefined;
  readonly onMcpAuthorization: AskHandler<"authorization"> | undefined;
  /** The MCP servers that the session and its agents bring. */
  readonly servers: ResolvedServers;
  readonly waitForAttachments: boolean;
  readonly toolTimeout: number;
  /** Infinite when results are never cut. */
  readonly largeOutput: { readonly maxSizeBytes: number; readonly outputDir: string | undefined };
  /** The host's services for handlers. */
  readonly services: HostServices;
  readonly context: CallerContext | undefined;
  /** What was asked for, for `update` to change. */
  readonly options: SessionOptions;
}

export interface SessionDefaults {
  readonly sessionId: string;
  readonly workingDirectory: string;
  /** Default: the working directory. */
  readonly startDirectory?: string | undefined;
  /** They run before the session's own. */
  readonly hostHooks?: ResolvedHooks | undefined;
  /** Agents that every session has, unless it brings one of the same name. */
  readonly hostAgents?: readonly CustomAgentOptions[] | undefined;
  /** Makes the models of providers that the host knows, by `provider.type`. */
  readonly modelProviders?: ReadonlyMap<string, ModelFactory> | undefined;
  /** What the application hands to handlers. */
  readonly services?: HostServices | undefined;
}

/**
 * Checks a session's options and fills in what they leave open.
 * @throws HostError `SESSION_OPTIONS` naming the field that is unknown or of the wrong type; `PERMISSION_RULE` naming the rule.
 */
export function resolveSessionConfig(options: SessionOptions, defaults: SessionDefaults): ResolvedSessionConfig {
  const given = readFields(options, "session options", "SESSION_OPTIONS", fields);
  const workingDirectory = resolve(defaults.workingDirectory, given.workingDirectory ?? "");
  const { startDirectory = workingDirectory } = defaults;
  const { largeOutput = {} } = given;
  assertProvider(given.provider, defaults.modelProviders);
  const agents = resolveAgents(given, defaults.hostAgents);
  const servers = resolveServers(given, agents, startDirectory);
  const view = createView(given, agents, servers, startDirectory);
  return Object.freeze({
    sessionId: given.sessionId ?? defaults.sessionId,
    workingDirectory,
    startDirectory,
    tools: given.tools ?? [],
    view,
    agents,
    turn: createTurn(given, agents, view, defaults.modelProviders),
    // For `update`, which resolves everything again.
    hostHooks: defaults.hostHooks,
    hostAgents: defaults.hostAgents,
    modelProviders: defaults.modelProviders,
    hooks: hooksOf(defaults.hostHooks, resolveHooks(given.hooks ?? {})),
    hookTimeout: given.hookTimeout ?? 60_000,
    permissions: compilePermissionRules(given.permissions ?? {}, workingDirectory),
    onPermissionRequest: given.onPermissionRequest,
    onUserInputRequest: given.onUserInputRequest,
    onElicitationRequest: given.onElicitationRequest,
    onSamplingRequest: given.onSamplingRequest,
    onMcpAuthorization: given.onMcpAuthorization,
    servers,
    waitForAttachments: given.waitForAttachments ?? false,
    toolTimeout: given.toolTimeout ?? 120_000,
    largeOutput: Object.freeze({
      maxSizeBytes: largeOutput.enabled === false ? Number.POSITIVE_INFINITY : (largeOutput.maxSizeBytes ?? 51_200),
      outputDir: largeOutput.outputDir === undefined ? undefined : resolve(startDirectory, largeOutput.outputDir),
    }),
    services: defaults.services ?? noServices,
    context: given.context,
    // Absolute by now: resolved again from here it stays what it is.
    options: { ...given, workingDirectory },
  });
}

function createTurn(
  given: SessionOptions,
  { selected }: SessionAgents,
  { model }: CatalogView,
  modelProviders: SessionDefaults["modelProviders"],
): TurnConfig {
  const reasoningEffort = selected?.reasoningEffort ?? given.reasoningEffort;
  return resolveTurnConfig({ ...given, model, reasoningEffort, modelProviders }, toolOptionsFor(model, given.modelTools));
}

function createView(given: SessionOptions, { selected }: SessionAgents, { key }: ResolvedServers, startDirectory: string): CatalogView {
  const { model, availableTools, excludedTools, toolFilterPrecedence, disabledSkills, toolSearch, modelTools } = given;
  return createCatalogView({
    model: selected?.model ?? model ?? given.chatModel?.id,
    availableTools,
    excludedTools,
    toolFilterPrecedence,
    disabledSkills,
    toolSearch,
    modelTools,
    skillDirectories: absolute(given.skillDirectories, startDirectory),
    agent: selected && { name: selected.name, tools: selected.tools },
    defaultExcludedTools: given.defaultAgent?.excludedTools,
    servers: key,
  });
}

/** What a host has for all of its sessions, as far as it is part of their configuration. */
type HostDefaults = Pick<SessionDefaults, "hostHooks" | "hostAgents" | "modelProviders" | "services">;

/**
 * The configuration after a change: what the change does not mention stays. What the host has is that of now.
 * @throws HostError `SESSION_OPTIONS` for what cannot change while a session lives.
 */
export function changeSessionConfig(
  config: ResolvedSessionConfig,
  change: SessionChange,
  host: HostDefaults = config,
): ResolvedSessionConfig {
  if (isRecord(change)) {
    const fixed = Object.keys(change).find((key) => fixedFields.has(key));
    // There is no default to go back to: the host's may be far from where the session was opened.
    if (Object.hasOwn(change, "workingDirectory") && change.workingDirectory === undefined)
      throw wrong("workingDirectory", "must be a path");
    if (fixed !== undefined) throw wrong(fixed, `cannot change while the session is open${fixed === "tools" ? "; use setTools" : ""}`);
  }
  const given = readFields(change, "changes of a session", "SESSION_OPTIONS", fields);
  const { sessionId, workingDirectory, startDirectory } = config;
  const { hostHooks, hostAgents, modelProviders, services } = host;
  const moved = given.workingDirectory === undefined ? {} : toMove(config, given.workingDirectory);
  return resolveSessionConfig(
    { ...config.options, ...moved, ...given },
    { sessionId, workingDirectory, startDirectory, hostHooks, hostAgents, modelProviders, services },
  );
}

const noServices: HostServices = Object.freeze({});
const fixedFields: ReadonlySet<string> = new Set(["sessionId", "persist", "tools", "waitForAttachments", "fileChangeTracking"]);

/** What else changes with the working directory: folders that were named from the old one stay the same folders. */
function toMove(config: ResolvedSessionConfig, directory: string): Pick<SessionOptions, "additionalDirectories"> {
  const { workingDirectory, options } = config;
  const next = resolve(workingDirectory, directory);
  if (next === workingDirectory) return {};
  const stats = statSync(next, { throwIfNoEntry: false });
  if (stats?.isDirectory() !== true)
    throw wrong("workingDirectory", `must be a folder that exists, and ${JSON.stringify(next)} is not one`);
  const { additionalDirectories } = options;
  return { ...(additionalDirectories && { additionalDirectories: absolute(additionalDirectories, workingDirectory) }) };
}

/**
 * What happens to results of tools that are too large for a model.
 *
 * @example
 * ```ts
 * const options: LargeOutputOptions = { maxSizeBytes: 20_000 };
 * ```
 */
export interface LargeOutputOptions {
  /** False: results are never cut. Default: true. */
  readonly enabled?: boolean | undefined;
  /** Longer results go to a file. Default: 51,200. */
  readonly maxSizeBytes?: number | undefined;
  /** Where the files go. Default: the session's folder. */
  readonly outputDir?: string | undefined;
}

const largeOutputFields: FieldReaders<LargeOutputOptions> = { enabled: readFlag, maxSizeBytes: readPositive, outputDir: readText };

/** @throws HostError `SESSION_OPTIONS` naming the field. */
const readLargeOutput: (value: unknown, path: string) => LargeOutputOptions = fieldsReader(largeOutputFields);

const fields: FieldReaders<SessionOptions> = {
  sessionId: readSessionId,
  persist: readFlag,
  workingDirectory: readText,
  model: readText,
  // Each tool is read when it is pushed, with the messages of a push.
  tools: (value, field) => (Array.isArray(value) ? (value as ToolLike[]) : mustBe(field, "a list of tools")),
  availableTools: readTexts,
  excludedTools: readTexts,
  toolFilterPrecedence: (value, field) =>
    value === "excluded" || value === "available" ? value : mustBe(field, '"excluded" or "available"'),
  skillDirectories: readTexts,
  disabledSkills: readTexts,
  hooks: (value, field) => fieldsReader(hookFields)(value, field),
  hookTimeout: readPositive,
  permissions: (value, field) => fieldsReader(permissionFields)(value, field),
  ...agentReaders,
  ...serverReaders,
  ...turnReaders,
  onPermissionRequest: readCallback,
  onUserInputRequest: readCallback,
  onElicitationRequest: readCallback,
  onSamplingRequest: readCallback,
  onMcpAuthorization: readCallback,
  waitForAttachments: readFlag,
  toolTimeout: readPositive,
  fileChangeTracking: readFlag,
  sessionDatabase: readFlag,
  largeOutput: readLargeOutput,
  context: readRecord,
};

const hookFields: FieldReaders<SessionHooks> = {
  onPreToolUse: readHooks<"preToolUse">,
  onPreMcpToolCall: readHooks<"preMcpToolCall">,
  onPostToolUse: readHooks<"postToolUse">,
  onPostToolUseFailure: readHooks<"postToolUseFailure">,
  onUserPromptSubmitted: readHooks<"userPromptSubmitted">,
  onUserPromptTransformed: readHooks<"userPromptTransformed">,
  onSessionStart: readHooks<"sessionStart">,
  onSessionEnd: readHooks<"sessionEnd">,
  onErrorOccurred: readHooks<"errorOccurred">,
  onAgentStop: readHooks<"agentStop">,
  onSubagentStart: readHooks<"subagentStart">,
  onSubagentStop: readHooks<"subagentStop">,
};

const permissionFields: FieldReaders<PermissionRuleOptions> = { allow: readTexts, deny: readTexts, ask: readTexts };

/** Whether something can be a session's id. It names a folder. */
export function isSessionId(value: unknown): value is string {
  return typeof value === "string" && /^[\w-][\w.-]{0,127}$/.test(value);
}

function readSessionId(value: unknown, field: string): string {
  return isSessionId(value) ? value : mustBe(field, 'up to 128 letters, digits, "_", "-" and, not at the beginning, "."');
}

function readHooks<K extends HookKind>(value: unknown, field: string): readonly Hook<K>[] {
  const hooks = Array.isArray(value) ? value : [value];
  return Object.freeze(hooks.map((hook: unknown) => readCallback<Hook<K>>(hook, field)));
}

/**
 * Checks an object of hooks as `SessionOptions.hooks` holds them.
 * @throws HostError `SESSION_OPTIONS` naming the hook that is unknown or no function.
 */
export function readSessionHooks(hooks: unknown): ResolvedHooks {
  return resolveHooks(readFields(hooks, "hooks", "SESSION_OPTIONS", hookFields));
}

function hooksOf(hostHooks: ResolvedHooks | undefined, own: ResolvedHooks): ResolvedHooks {
  return hostHooks === undefined ? own : joinHooks([hostHooks, own]);
}

function resolveHooks(hooks: SessionHooks): ResolvedHooks {
  const entries = Object.entries(hookOptions).map(([kind, option]) => [kind, hooks[option as keyof SessionHooks] ?? []]);
  return Object.freeze(Object.fromEntries(entries)) as ResolvedHooks;
}

function absolute(directories: readonly string[] | undefined, from: string): readonly string[] | undefined {
  // "~" is the host's to expand.
  return directories?.map((directory) => (directory.startsWith("~") || isAbsolute(directory) ? directory : resolve(from, directory)));
}

function wrong(field: string, problem: string): HostError {
  return new HostError("SESSION_OPTIONS", `${field} ${problem}.`);
}
