import { isRecord } from "../../../base/json.ts";
import type { SessionOptions } from "../../../session/session-config.ts";
import type { ProtocolVersion } from "../clients/client.ts";
import type { ClientCapabilities } from "../clients/client-capabilities.ts";
import type { CommandDeclaration } from "../clients/client-commands.ts";
import { badParams, type Params } from "../connection/params.ts";

type Fields = Readonly<Record<string, unknown>>;

/** What a client asks of a session that it creates or resumes. */
export interface SessionRequest {
  /** The options that the session checks and takes. */
  readonly options: SessionOptions;
  /** What the client can do in the session. */
  readonly capabilities: ClientCapabilities;
  /** The names of options that have no effect in skillhost. */
  readonly ignored: readonly string[];
}

/**
 * Reads the parameters of `session.create` and `session.resume`. `version`: the protocol that the client speaks. Options that
 * a client relies on for its safety are refused when skillhost cannot enforce them.
 */
export function parseSessionRequest(params: Params, version: ProtocolVersion | undefined): SessionRequest {
  refuseUnenforceable(params);
  const capabilities = parseCapabilities(params, version);
  return { options: parseSessionOptions(params), capabilities, ignored: findIgnored(params) };
}

/** Options with the same meaning in the protocol and in a session, which checks their values. */
const same = [
  "model",
  "reasoningEffort",
  "workingDirectory",
  "additionalDirectories",
  "availableTools",
  "excludedTools",
  "toolFilterPrecedence",
  "skillDirectories",
  "disabledSkills",
  "mcpServers",
  "disabledMcpServers",
  "envValueMode",
  "githubMcpToolConfig",
  "excludedBuiltinAgents",
  "agent",
  "modelCapabilities",
  "streaming",
  "enableCitations",
] as const satisfies readonly (keyof SessionOptions)[];

/** Options that are objects, with the fields that a session knows. */
const parts = {
  toolSearch: ["enabled", "deferThreshold"],
  largeOutput: ["enabled", "maxSizeBytes", "outputDir"],
  defaultAgent: ["excludedTools"],
  infiniteSessions: ["enabled", "backgroundCompactionThreshold", "bufferExhaustionThreshold"],
} as const;

const agentFields = [
  "name",
  "displayName",
  "description",
  "prompt",
  "tools",
  "mcpServers",
  "skills",
  "model",
  "reasoningEffort",
  "infer",
] as const;

/**
 * Reads the session options of `session.create`, `session.resume` and `session.options.update`. The session itself refuses
 * wrong values.
 */
export function parseSessionOptions(params: Params): SessionOptions {
  const options: Record<string, unknown> = {};
  for (const key of same) if (params.get(key) !== undefined) options[key] = params.get(key);
  for (const [key, fields] of Object.entries(parts)) {
    const value = params.get(key);
    if (value !== undefined) options[key] = isRecord(value) ? pick(value, fields) : value;
  }
  const variant = params.optionalText("askUserVariant");
  // Only some clients can show forms; the others get plain questions.
  if (variant !== undefined && params.flag("requestElicitation")) options["askUserVariant"] = variant;
  const tracking = params.optionalFlag("enableFileChangeTracking");
  if (tracking !== undefined) options["fileChangeTracking"] = tracking;
  if (params.optionalFlag("enableSkills") === false) options["disabledSkills"] = ["*"];
  const agents = params.get("customAgents");
  if (agents !== undefined) options["customAgents"] = Array.isArray(agents) ? agents.map(toAgent) : agents;
  return options as SessionOptions;
}

/** The tools that a client declares and runs. */
export function toDeclarations(params: Params, key = "tools"): readonly Fields[] {
  return params.records(key).map((tool) => pick(tool, toolFields));
}

const toolFields = [
  "name",
  "title",
  "description",
  "parameters",
  "overridesBuiltInTool",
  "skipPermission",
  "defer",
  "isTerminal",
  "metadata",
] as const;

function toAgent(agent: unknown): unknown {
  if (!isRecord(agent)) return agent;
  const { tools } = agent;
  // Null means all tools, as absent does.
  return { ...pick(agent, agentFields), ...(tools === null && { tools }) };
}

/** Own fields that are neither null nor undefined. */
export function pick(value: Fields, keys: readonly string[]): Fields {
  const known = keys.filter((key) => Object.hasOwn(value, key) && value[key] !== null && value[key] !== undefined);
  return Object.fromEntries(known.map((key) => [key, value[key]]));
}

/** Options without an equivalent in skillhost, and the values with which they would have an effect. */
const ineffective: Readonly<Record<string, (value: unknown) => boolean>> = {
  authClientIdMetadataUrl: isText,
  canvasProvider: isRecord,
  canvases: isFilledList,
  capi: (value) => isRecord(value) && isText(value["autoTier"]),
  cloud: isRecord,
  configDir: isText,
  contextTier: (value) => isText(value) && value !== "default",
  embeddingCacheStorage: (value) => value === "persistent",
  // skillhost does not read hooks from files or run git for the session, so only true has no effect.
  enableFileHooks: isTrue,
  enableGitHubTelemetryForwarding: isTrue,
  enableHostGitOperations: isTrue,
  enableOnDemandInstructionDiscovery: isTrue,
  enableSessionStore: isTrue,
  enableSessionTelemetry: isTrue,
  expAssignments: isFilledRecord,
  extensionInfo: isRecord,
  factories: isFilledList,
  featureFlags: isFilledRecord,
  isExperimentalMode: isTrue,
  // Tokens of a sign-in in a browser are stored on disk.
  mcpOAuthTokenStorage: (value) => value === "in-memory",
  memory: (value) => isRecord(value) && value["enabled"] === true,
  openCanvases: isFilledList,
  reasoningSummary: (value) => typeof value === "string" && value !== "none",
  remoteSession: (value) => typeof value === "string" && value !== "off",
  requestAutoModeSwitch: isTrue,
  requestCanvasRenderer: isTrue,
  sessionLimits: (value) => isRecord(value) && Object.values(value).some((limit) => limit !== null && limit !== undefined),
};

function findIgnored(params: Params): readonly string[] {
  return Object.keys(ineffective).filter((key) => params.get(key) !== undefined && ineffective[key]!(params.get(key)));
}

function refuseUnenforceable(params: Params): void {
  for (const key of ["managedSettings", "enableManagedSettings"]) {
    const value = params.get(key);
    const holdsRules = value === true || (isRecord(value) && Object.keys(value).length > 0);
    if (holdsRules)
      throw badParams(params.method, `${key} is not enforced by skillhost. Pass the rules to session.permissions.configure instead.`);
  }
}

function isTrue(value: unknown): boolean {
  return value === true;
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}

function isFilledRecord(value: unknown): boolean {
  return isRecord(value) && Object.keys(value).length > 0;
}

function isFilledList(value: unknown): boolean {
  return Array.isArray(value) && value.length > 0;
}

function parseCapabilities(params: Params, version: ProtocolVersion | undefined): ClientCapabilities {
  return {
    hooks: params.flag("hooks"),
    answersPermissions: params.flag("requestPermission"),
    answersUserInput: params.flag("requestUserInput"),
    answersElicitation: version !== 2 && params.flag("requestElicitation"),
    answersPlans: version !== 2 && params.flag("requestExitPlanMode"),
    rendersApps: params.flag("requestMcpApps"),
    wantsSubAgentStreaming: params.optionalFlag("includeSubAgentStreamingEvents") ?? true,
    commands: params.records("commands").flatMap(toCommand),
    tools: params.get("tools") === undefined ? undefined : toDeclarations(params),
  };
}

function toCommand({ name, description }: Readonly<Record<string, unknown>>): readonly CommandDeclaration[] {
  return typeof name === "string" && name !== "" ? [{ name, description: typeof description === "string" ? description : "" }] : [];
}
