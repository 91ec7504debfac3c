import { isPlainRecord } from "../../base/read-fields.ts";
import type { ResolvedSessionConfig, SessionOptions } from "../session-config.ts";
import type { SessionEvent } from "./events.ts";

/**
 * Where an option is kept, so that a resumed session has it again. `log`: with the session, for whoever resumes it.
 * `process`: it may hold a secret, so only the host that had the session remembers it. `nowhere`: functions, and who the
 * session is.
 */
const keeping: { readonly [K in keyof Required<SessionOptions>]: "log" | "process" | "nowhere" } = {
  sessionId: "nowhere",
  persist: "nowhere",
  workingDirectory: "log",
  model: "log",
  tools: "nowhere",
  availableTools: "log",
  excludedTools: "log",
  toolFilterPrecedence: "log",
  skillDirectories: "log",
  disabledSkills: "log",
  hooks: "nowhere",
  onPermissionRequest: "nowhere",
  onUserInputRequest: "nowhere",
  onElicitationRequest: "nowhere",
  onSamplingRequest: "nowhere",
  onMcpAuthorization: "nowhere",
  mcpServers: "process",
  disabledMcpServers: "log",
  envValueMode: "log",
  githubMcpToolConfig: "log",
  mcpTokenOwner: "process",
  waitForAttachments: "log",
  toolTimeout: "log",
  hookTimeout: "log",
  permissions: "log",
  largeOutput: "log",
  customAgents: "process",
  agent: "log",
  excludedBuiltinAgents: "log",
  defaultAgent: "log",
  toolSearch: "log",
  modelTools: "log",
  provider: "process",
  chatModel: "process",
  modelCapabilities: "log",
  reasoningEffort: "log",
  streaming: "log",
  systemMessage: "log",
  skillListing: "log",
  maxIterations: "log",
  additionalDirectories: "log",
  infiniteSessions: "log",
  agentMode: "log",
  customInstructions: "log",
  askUserVariant: "log",
  onExitPlanModeRequest: "nowhere",
};

/** The events whose `options` hold all that was recorded of them at that time. */
const carriers: ReadonlySet<string> = new Set(["session.start", "session.resume", "session.options_changed"]);

/** The options as the log keeps them: plain JSON that means the same wherever it is read. */
export function toRecordedOptions(config: ResolvedSessionConfig): Readonly<Record<string, unknown>> {
  const { options, view, largeOutput } = config;
  const resolved: SessionOptions = {
    ...options,
    skillDirectories: options.skillDirectories && view.skillDirectories,
    largeOutput: options.largeOutput && { ...options.largeOutput, outputDir: largeOutput.outputDir },
  };
  const agents = options.customAgents && { customAgents: withoutServers(options.customAgents) };
  return JSON.parse(JSON.stringify({ ...optionsKept(resolved, "log"), ...agents }, withoutFunctions));
}

/** The options that only this process may remember. */
export function toRememberedOptions({ options }: ResolvedSessionConfig): SessionOptions {
  return optionsKept(options, "process");
}

/** What the log recorded, with what this process remembers of the same. */
export function withRemembered(recorded: SessionOptions, remembered: SessionOptions): SessionOptions {
  const { customAgents, ...rest } = remembered;
  // Somebody else may have gone on with other agents meanwhile.
  const areSame = customAgents !== undefined && JSON.stringify(withoutServers(customAgents)) === JSON.stringify(recorded.customAgents);
  return { ...recorded, ...rest, ...(areSame && { customAgents }) };
}

/** The options that the log last recorded, not checked; undefined when it recorded none that can be read. */
export function readRecordedOptions(events: readonly SessionEvent[]): SessionOptions | undefined {
  const options = events.findLast(({ type, data }) => carriers.has(type) && isPlainRecord(data["options"]))?.data["options"];
  return isPlainRecord(options) ? Object.fromEntries(Object.entries(options).filter(([name]) => isInLog(name))) : undefined;
}

function optionsKept(options: SessionOptions, where: "log" | "process"): SessionOptions {
  const kept = Object.entries(options).filter(([name, value]) => value !== undefined && keeping[name as keyof SessionOptions] === where);
  return Object.fromEntries(kept);
}

/** Leaves out what consists of a function, such as the change of one section of the system message. */
function withoutFunctions(_key: string, value: unknown): unknown {
  return isPlainRecord(value) && Object.values(value).some((field) => typeof field === "function") ? undefined : value;
}

function isInLog(name: string): boolean {
  return name === "customAgents" || (Object.hasOwn(keeping, name) && keeping[name as keyof SessionOptions] === "log");
}

/** The environment and the headers of a server may hold secrets. */
function withoutServers(agents: NonNullable<SessionOptions["customAgents"]>): NonNullable<SessionOptions["customAgents"]> {
  return agents.map(({ mcpServers: _servers, ...agent }) => agent);
}
