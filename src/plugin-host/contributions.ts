import { isAbsolute } from "node:path";
import type { Diagnostic } from "../base/diagnostic.ts";
import { errorMessage, HostError } from "../base/errors.ts";
import type { Logger } from "../base/logger.ts";
import { waitFor } from "../base/wait.ts";
import type { Scope } from "../io/scope.ts";
import { readAgentOptions } from "../session/agents/agent-profiles.ts";
import type { Hook, HookKind, ResolvedHooks } from "../session/hooks/hook-kinds.ts";
import { readSessionHooks } from "../session/session-config.ts";
import type { SessionStore } from "../session/session-store.ts";
import { type ModelFactory, ownProviderTypes } from "../session/turns/turn-options.ts";
import type { CallsInFlight } from "../skills/load/calls-in-flight.ts";
import { moduleExtensions } from "../skills/load/tool-entries.ts";
import type { ToolRunner } from "../skills/load/tool-runner.ts";
import { createTool, wrapExecute } from "../tools/create/create-tool.ts";
import type { ToolLike } from "../tools/define/define-tool.ts";
import type { Prompt } from "../tools/prompt.ts";
import type { Resource, ResourceTemplate } from "../tools/resource.ts";
import type { Tool, ToolOrigin } from "../tools/tool.ts";
import type { SourceSnapshot, ToolSource } from "../tools/tool-source.ts";
import type { McpPeers } from "./mcp-peers.ts";
import { createSystemApi, type PluginAgent, type PluginApi, type PluginCommand, type PluginToolOptions } from "./plugin-api.ts";
import type { PluginSessions } from "./plugin-sessions.ts";
import type { PluginSkills } from "./plugin-skills.ts";

/** Everything that one plugin adds. */
export interface Contributions {
  readonly tools: readonly Tool[];
  readonly toolSources: readonly ToolSource[];
  readonly toolRunners: readonly ToolRunner[];
  readonly skillDirectories: readonly string[];
  readonly hooks: readonly ResolvedHooks[];
  readonly agents: ReadonlyMap<string, PluginAgent>;
  readonly commands: ReadonlyMap<string, PluginCommand>;
  readonly modelProviders: ReadonlyMap<string, ModelFactory>;
  readonly mcpServers: ReadonlyMap<string, object>;
  readonly sessionStores: readonly SessionStore[];
  readonly mcpPeers: readonly McpPeers[];
  /** Problems of its tools. */
  readonly diagnostics: readonly Diagnostic[];
}

export interface PluginPlace {
  readonly name: string;
  /** Whether it is part of this package. Its tools count as built-in ones. */
  readonly isBundled: boolean;
  /** The identity of its module, to which approvals of its tools are bound. Absent: a program passed the plugin itself. */
  readonly identity?: string | undefined;
  /** Checked, with defaults. */
  readonly config: unknown;
  readonly workingDirectory: string;
  readonly log: Logger;
  readonly sessions: PluginSessions;
  readonly skills: PluginSkills;
}

/** The API for one activation, and its contributions. `seal` ends the activation: later contributions are refused. */
interface Collector {
  readonly api: PluginApi;
  seal(): Contributions;
}

export function collectContributions(place: PluginPlace, scope: Scope): Collector {
  const queue = createQueue();
  let isSealed = false;
  const adding = <A extends unknown[]>(what: string, add: (...args: A) => void): ((...args: A) => void) => {
    return (...args) => {
      if (isSealed) throw tooLate(place.name, what);
      try {
        add(...args);
      } catch (error) {
        throw refused(place.name, what, error);
      }
    };
  };
  const api: PluginApi = Object.freeze({
    name: place.name,
    config: place.config as PluginApi["config"],
    workingDirectory: place.workingDirectory,
    log: place.log,
    signal: scope.signal,
    ...createSystemApi(scope),
    session: (sessionId: string) => place.sessions.find(sessionId),
    onSessionClosed: (listener: (sessionId: string) => void | Promise<void>) => {
      const listening = place.sessions.onClosed(mustCall(listener, "listener"));
      scope.onDispose(() => listening[Symbol.dispose]());
    },
    skillIn: (folder: string) => place.skills.find(folder),
    reloadSkills: async () => {
      if (!isSealed) {
        const advice = "Skills are loaded after all plugins. Do not await this in activate.";
        throw new HostError("PLUGIN_ACTIVATING", `Plugin "${place.name}" cannot reload skills while it is activated. ${advice}`);
      }
      await waitFor(place.skills.reload(), { signal: scope.signal });
    },
    onDispose: (end: () => void | Promise<void>) => scope.onDispose(mustCall(end, "end")),
    createTool: (definition: ToolLike, options: PluginToolOptions = {}) => makeTool(place, definition, options),
    addTools: adding("tools", (tools: ToolLike | readonly ToolLike[]) => addTools(queue, place, [tools].flat())),
    addToolSource: adding("a tool source", (source: ToolSource) => addToolSource(queue, scope, source)),
    addToolRunner: adding("a tool runner", (runner: ToolRunner) => addToolRunner(queue, runner)),
    addSkillDirectory: adding("a skill directory", (directory: string) => addSkillDirectory(queue, directory)),
    addHooks: adding("hooks", (hooks: object) => void queue.hooks.push(readSessionHooks(hooks))),
    addAgent: adding("an agent", (agent: PluginAgent) => {
      const read = readAgentOptions(agent);
      addNamed(queue.agents, read.name, read);
    }),
    addCommand: adding("a command", (command: PluginCommand) => {
      mustCall(command?.handler, "handler");
      addNamed(queue.commands, command.name, command);
    }),
    addModelProvider: adding("a model provider", (name: string, create: ModelFactory) => {
      if (ownProviderTypes.has(name)) throw new TypeError(`"${name}" is a reserved name`);
      addNamed(queue.modelProviders, name, mustCall(create, "the factory"));
    }),
    addMcpServer: adding("an MCP server", (name: string, config: object) => {
      if (typeof config !== "object" || config === null || Array.isArray(config))
        throw new TypeError("its configuration must be an object");
      addNamed(queue.mcpServers, name, Object.freeze({ ...config }));
    }),
    addSessionStore: adding("a session store", (store: SessionStore) => {
      for (const method of ["attach", "create", "open", "read", "add", "list", "delete"] as const) mustCall(store?.[method], method);
      queue.sessionStores.push(store);
    }),
    addMcpPeers: adding("MCP peers", (peers: McpPeers) => {
      mustCall(peers?.join, "join");
      queue.mcpPeers.push(peers);
    }),
  });
  return {
    api,
    seal() {
      isSealed = true;
      return queue;
    },
  };
}

interface Queue extends Contributions {
  readonly tools: Tool[];
  readonly toolSources: ToolSource[];
  readonly toolRunners: ToolRunner[];
  readonly skillDirectories: string[];
  readonly hooks: ResolvedHooks[];
  readonly agents: Map<string, PluginAgent>;
  readonly commands: Map<string, PluginCommand>;
  readonly modelProviders: Map<string, ModelFactory>;
  readonly mcpServers: Map<string, object>;
  readonly sessionStores: SessionStore[];
  readonly mcpPeers: McpPeers[];
  readonly diagnostics: Diagnostic[];
}

function createQueue(): Queue {
  return {
    tools: [],
    toolSources: [],
    toolRunners: [],
    skillDirectories: [],
    hooks: [],
    agents: new Map(),
    commands: new Map(),
    modelProviders: new Map(),
    mcpServers: new Map(),
    sessionStores: [],
    mcpPeers: [],
    diagnostics: [],
  };
}

function makeTool(place: PluginPlace, definition: ToolLike, { generation, ofSkill, onDiagnostic }: PluginToolOptions): Tool {
  const { name } = definition;
  const origin: ToolOrigin =
    ofSkill === undefined ? originOf(place, name) : { kind: "skill", source: ofSkill.name, nativeName: name, file: ofSkill.file };
  return createTool(definition, origin, { ...(generation !== undefined && { generation }), ...(onDiagnostic && { onDiagnostic }) });
}

export function originOf(
  { name, isBundled, identity }: Pick<PluginPlace, "name" | "isBundled" | "identity">,
  nativeName: string,
): ToolOrigin {
  return { kind: isBundled ? "builtin" : "plugin", source: name, nativeName, owner: name, ...(identity !== undefined && { identity }) };
}

function addTools({ tools, diagnostics }: Queue, place: PluginPlace, definitions: readonly ToolLike[]): void {
  for (const definition of definitions) {
    try {
      const onDiagnostic = (found: Diagnostic): void => void diagnostics.push(found);
      // Tests check the schemas of bundled plugins, so that a start does not have to.
      tools.push(createTool(definition, originOf(place, definition.name), { onDiagnostic, checkSchemas: !place.isBundled }));
    } catch (error) {
      const code = error instanceof HostError ? error.code : "TOOL_INVALID";
      diagnostics.push({ severity: "error", code, source: place.name, message: `Plugin "${place.name}": ${errorMessage(error)}` });
    }
  }
}

function addToolSource({ toolSources }: Queue, scope: Scope, source: ToolSource): void {
  if (typeof source?.id !== "string" || source.id === "") throw new TypeError("its id must be a non-empty string");
  for (const method of ["ready", "subscribe", Symbol.asyncDispose] as const) mustCall(source[method], String(method));
  // From here on the host disposes of it, even if the activation fails later.
  scope.onDispose(async () => source[Symbol.asyncDispose]());
  if (toolSources.some(({ id }) => id === source.id)) throw new TypeError(`it already added a source with the id "${source.id}"`);
  toolSources.push(source);
}

const taken: ReadonlySet<string> = new Set([...moduleExtensions, ".json", ".md"]);

function addToolRunner({ toolRunners }: Queue, runner: ToolRunner): void {
  mustCall(runner?.load, "load");
  const { extensions } = runner;
  if (!Array.isArray(extensions) || extensions.length === 0) throw new TypeError('its extensions must be an array such as [".py"]');
  for (const extension of extensions as unknown[]) {
    if (typeof extension !== "string" || !/^\.[a-z0-9]+$/.test(extension)) {
      throw new TypeError(`${JSON.stringify(extension)} is not a valid extension; write it with its dot, in lowercase`);
    }
    if (taken.has(extension)) throw new TypeError(`files with the extension "${extension}" are read by the host itself`);
  }
  toolRunners.push(runner);
}

function addSkillDirectory({ skillDirectories }: Queue, directory: string): void {
  if (typeof directory !== "string" || !isAbsolute(directory) || directory.includes("\0")) {
    const advice = 'such as fileURLToPath(new URL("./skills", import.meta.url))';
    throw new TypeError(`${JSON.stringify(directory)} is not an absolute path; use one, ${advice}`);
  }
  skillDirectories.push(directory);
}

function addNamed<T>(map: Map<string, T>, name: unknown, value: T): void {
  if (typeof name !== "string" || name === "") throw new TypeError("its name must be a non-empty string");
  if (map.has(name)) throw new TypeError(`it already added one named "${name}"`);
  map.set(name, value);
}

function mustCall<F>(value: F, what: string): F {
  if (typeof value !== "function") throw new TypeError(`${what} must be a function`);
  return value;
}

function refused(plugin: string, what: string, cause: unknown): HostError {
  return new HostError("PLUGIN_CONTRIBUTION", `Plugin "${plugin}" cannot add ${what}: ${errorMessage(cause)}.`, { cause });
}

function tooLate(plugin: string, what: string): HostError {
  const advice = "Add it in activate, before its promise resolves. Use a tool source for tools that change later.";
  return new HostError("PLUGIN_NOT_ACTIVATING", `Plugin "${plugin}" adds ${what} after its activation ended. ${advice}`);
}

/** Counts the calls of contributions, so that a replaced plugin is disposed of only after its running calls. */
export function countContributions(contributions: Contributions, calls: CallsInFlight): Contributions {
  const { tools, hooks, commands } = contributions;
  return {
    ...contributions,
    tools: tools.map((tool) => countCallsOf(tool, calls)),
    hooks: hooks.map((kinds) => countHooks(kinds, calls)),
    commands: new Map(Array.from(commands, ([name, command]) => [name, countCommand(command, calls)])),
  };
}

export function countCallsOf(tool: Tool, calls: CallsInFlight): Tool {
  return wrapExecute(tool, (execute) => calls.track(execute), calls.hold);
}

function countHooks(kinds: ResolvedHooks, calls: CallsInFlight): ResolvedHooks {
  const counted = Object.entries(kinds).map(([kind, hooks]) => [
    kind,
    (hooks as readonly Hook<HookKind>[]).map((hook) => calls.track(hook)),
  ]);
  return Object.freeze(Object.fromEntries(counted)) as ResolvedHooks;
}

function countCommand(command: PluginCommand, calls: CallsInFlight): PluginCommand {
  const { name, description } = command;
  return { name, description, handler: calls.track((...args: Parameters<PluginCommand["handler"]>) => command.handler(...args)) };
}

/** The prompts and resources of a source. */
type PluginFeatures = Required<Pick<SourceSnapshot, "prompts" | "resources" | "resourceTemplates">>;

/** The prompts and resources of a source with the origin of its plugin. `originOf` gets the native name. */
export function attributeFeatures(
  { prompts, resources, resourceTemplates }: SourceSnapshot,
  originOf: (nativeName: string) => ToolOrigin,
): PluginFeatures {
  return {
    prompts: Object.freeze((prompts ?? []).map((prompt) => ownPrompt(prompt, originOf(prompt.definition.name)))),
    resources: Object.freeze((resources ?? []).map((resource) => ownResource(resource, originOf(resource.definition.name)))),
    resourceTemplates: Object.freeze(
      (resourceTemplates ?? []).map((template) => ownTemplate(template, originOf(template.definition.name))),
    ),
  };
}

// Methods are called on their own object, which may be an instance of a class.
function ownPrompt(prompt: Prompt, origin: ToolOrigin): Prompt {
  const { definition, revision } = prompt;
  return Object.freeze({
    definition,
    origin,
    revision,
    get: (...args: Parameters<Prompt["get"]>) => prompt.get(...args),
    ...(prompt.complete && { complete: prompt.complete.bind(prompt) }),
  });
}

function ownResource(resource: Resource, origin: ToolOrigin): Resource {
  const { definition, revision } = resource;
  return Object.freeze({
    definition,
    origin,
    revision,
    read: (...args: Parameters<Resource["read"]>) => resource.read(...args),
    ...(resource.watch && { watch: resource.watch.bind(resource) }),
  });
}

function ownTemplate(template: ResourceTemplate, origin: ToolOrigin): ResourceTemplate {
  const { definition, revision } = template;
  return Object.freeze({
    definition,
    origin,
    revision,
    match: (uri: string) => template.match(uri),
    read: (...args: Parameters<ResourceTemplate["read"]>) => template.read(...args),
    ...(template.watch && { watch: template.watch.bind(template) }),
    ...(template.complete && { complete: template.complete.bind(template) }),
  });
}
