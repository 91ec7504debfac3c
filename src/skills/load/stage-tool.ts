import { extname } from "node:path";
import { canonicalJson, sha256 } from "../../base/canonical-json.ts";
import type { Diagnostic } from "../../base/diagnostic.ts";
import { HostError, toError } from "../../base/errors.ts";
import type { Logger } from "../../base/logger.ts";
import { waitFor } from "../../base/wait.ts";
import type { SkillPermissions } from "../../formats/skills/skill-permissions.ts";
import type { ToolJson } from "../../formats/skills/tool-json.ts";
import { ModuleError } from "../../io/module-loader/module-error.ts";
import type { ModuleLoader } from "../../io/module-loader/module-loader.ts";
import type { FileGuard } from "../../io/read-bounded.ts";
import { createScope, type OwnedScope, type Scope } from "../../io/scope.ts";
import { createPrompt } from "../../tools/create/create-prompt.ts";
import { createResource, createResourceTemplate, type ResourcePlace } from "../../tools/create/create-resource.ts";
import { alwaysAsked, createTool, withOrigin, withReach, wrapExecute } from "../../tools/create/create-tool.ts";
import type { DefinedPrompt } from "../../tools/define/define-prompt.ts";
import type { DefinedResource } from "../../tools/define/define-resource.ts";
import type { ToolLike } from "../../tools/define/define-tool.ts";
import type { Prompt } from "../../tools/prompt.ts";
import type { Resource, ResourceTemplate } from "../../tools/resource.ts";
import type { Tool, ToolOrigin, ToolsFound } from "../../tools/tool.ts";
import type { ResourceSet } from "../../tools/tool-source.ts";
import type { CheckedFolder, FolderView } from "../../trust/checked-folder.ts";
import type { Arguments } from "../handlers/fill-template.ts";
import { handlerOf } from "../handlers/tool-handler.ts";
import { describeUse, reachOfUse, useFaults, usesOf } from "../handlers/tool-uses.ts";
import { createResourceList } from "../prompts/resource-list.ts";
import { countCalls, countOffers } from "./calls-in-flight.ts";
import { readToolJson } from "./read-skill.ts";
import { rightsOf, type SkillStanding, type ToolRights } from "./skill-definitions.ts";
import { moduleExtensions, type ToolEntry } from "./tool-entries.ts";
import { definitionsOfModule, moduleFailure } from "./tool-module.ts";
import type { EnclosedPrograms, LoadedTools, RunnerTarget, ToolRunner } from "./tool-runner.ts";

/** The result of one entry. It is carried over to later generations as long as none of its files changes. */
export interface ToolUnit {
  /** The key and the state of its entry: see `ToolEntry`. */
  readonly key: string;
  readonly state: string;
  /** Absent for a tool in the manifest. */
  readonly path?: string;
  readonly tools: readonly Tool[];
  readonly prompts: readonly Prompt[];
  readonly resources: readonly Resource[];
  readonly resourceTemplates: readonly ResourceTemplate[];
  readonly resourceLists: readonly ResourceSet[];
  readonly diagnostics: readonly Diagnostic[];
  /** What a declarative tool uses on the machine, one line per resource. */
  readonly uses: readonly string[];
  /** All files of the unit; a lazily loaded handler adds its own when it runs. */
  readonly files: ReadonlySet<string>;
  /** Ends this unit: disposes of its scope once its calls have ended. Returns the errors of disposers. */
  retire(): Promise<readonly Error[]>;
  /** Ends this unit even while its calls are running. */
  abandon(): Promise<readonly Error[]>;
}

export interface StageContext {
  readonly loader: ModuleLoader;
  readonly runners: readonly ToolRunner[];
  /** False: tools get no handlers. Default: true. */
  readonly mayRun?: boolean | undefined;
  readonly target: RunnerTarget;
  /** The time limit for loading a module, in milliseconds. */
  readonly importTimeout: number;
  readonly signal: AbortSignal;
  seen(file: string, bytes: Uint8Array): void;
  readonly guard?: FileGuard | undefined;
  readonly view?: FolderView | undefined;
  /** If a signature is required: the only files that may be used. */
  readonly tree?: CheckedFolder | undefined;
  readonly standing: SkillStanding;
  /** The permissions in the manifest. */
  readonly permissions: SkillPermissions | undefined;
}

/** Creates the tools of an entry. Never rejects for errors of the entry's files, which become diagnostics of the unit. */
export async function stageTool(entry: ToolEntry, context: StageContext): Promise<ToolUnit> {
  const scope = createScope();
  const calls = countCalls();
  // The manifest does not belong to a tool in it: its other lines may change.
  const files = new Set(entry.kind === "inline" ? [] : [entry.file]);
  const staged =
    entry.kind === "module" ? await stageModule(entry.file, files, context, scope) : await stageJson(entry, files, context, scope);
  const { name: source } = context.target.skill;
  const { uses = [], rights = rightsOf(context.standing, "code") } = staged;
  const identity = identityOf(context.target.skill.identity, uses, context.permissions);
  // Whichever runner loads the file, its tools belong to the skill.
  const owned = staged.tools
    .map((tool) => withOrigin(tool, { ...tool.origin, kind: "skill", source, ...(identity && { identity }) }))
    .map((tool) => (rights.decidesPermission ? tool : alwaysAsked(tool)));
  const asked = rights.decidesPermission
    ? []
    : owned.flatMap((tool) => reportIgnoredPermissions(tool, context.standing, uses.length === 0));
  return {
    key: entry.key,
    state: entry.state,
    ...(entry.kind === "inline" ? {} : { path: entry.path }),
    tools: owned.map((tool) => (tool.hasHandler ? wrapExecute(tool, calls.track, calls.hold) : tool)),
    ...countOffers(staged, calls),
    diagnostics: [...staged.diagnostics, ...asked].map((diagnostic) => ({ source, ...diagnostic })),
    uses,
    files,
    retire: async () => {
      await calls.ended();
      return scope.dispose();
    },
    abandon: () => scope.dispose(),
  };
}

interface Staged extends Omit<LoadedTools, "files"> {
  readonly uses?: readonly string[];
  /** Absent: the rights of code. */
  readonly rights?: ToolRights;
}

/** An approval covers only what the skill declares now, and for a declarative tool only the program or service that it uses now. */
function identityOf(skill: string | undefined, uses: readonly string[], permissions: SkillPermissions | undefined): string | undefined {
  const approved = permissions === undefined ? uses : [...uses, permissions];
  return skill === undefined || approved.length === 0 ? skill : `${skill} ${sha256(canonicalJson(approved))}`;
}

async function stageModule(file: string, files: Set<string>, context: StageContext, scope: OwnedScope): Promise<Staged> {
  const runner = context.runners.find((candidate) => candidate.extensions.includes(extname(file)));
  if (runner === undefined) return { tools: [], diagnostics: [moduleFailure(file, new Error(`nothing runs ${extname(file)}`))] };
  if (context.tree !== undefined && runner.runsCheckedFiles !== true) return { tools: [], diagnostics: [runsByName(file)] };
  try {
    const expired = () =>
      new HostError(
        "MODULE_TIMEOUT",
        `It did not finish loading within ${context.importTimeout} ms of waiting. It probably awaits something at its top level that never settles.`,
      );
    const limits = { milliseconds: context.importTimeout, countsWaiting: true, signal: context.signal, expired };
    const loaded = await waitFor(runner.load(file, context.target, scope), limits);
    for (const path of loaded.files) files.add(path);
    return loaded;
  } catch (error) {
    for (const path of filesOf(error, file, context)) files.add(path);
    await scope.dispose();
    return { tools: [], diagnostics: [diagnosticOf(file, error)] };
  }
}

async function stageJson(
  entry: Exclude<ToolEntry, { kind: "module" }>,
  files: Set<string>,
  context: StageContext,
  scope: OwnedScope,
): Promise<Staged> {
  const { tool, diagnostics } = readToolJson(entry, context.seen, context.guard);
  if (tool === undefined) return { tools: [], diagnostics };
  const { folder } = context.target.skill;
  const rights = rightsOf(context.standing, isCode(tool, entry) ? "code" : "json");
  const faults = useFaults(tool, entry.file, { permissions: context.permissions, rights });
  if (faults.length > 0) return { tools: [], diagnostics: [...diagnostics, ...faults] };
  try {
    const programs = tool.handler?.kind === "command" && context.mayRun !== false ? enclosedPrograms(context) : undefined;
    const place = { ...context, ...rights, folder, files, scope, isolated: isolatedHandlers(context, scope), enclose: programs?.enclose };
    const handler = context.mayRun === false ? undefined : handlerOf(tool, entry, place);
    const permission = permissionOf(tool, folder);
    const definition = { ...tool.definition, ...(handler && { handler }), ...(permission && { permission }) };
    const made = makeTools([definition], entry.file, context.target, { isDeclared: true });
    const tools = made.tools.map((each) => reaching(each, tool.handler, folder));
    const limited = (await programs?.report(entry.file)) ?? [];
    return { tools, diagnostics: [...limited, ...diagnostics, ...made.diagnostics], uses: usesOf(tool.handler), rights };
  } catch (error) {
    for (const path of filesOf(error, entry.file, context)) files.add(path);
    return { tools: [], diagnostics: [...diagnostics, diagnosticOf(entry.file, error)] };
  }
}

/** Creates handlers of tool JSON in the runner of their files, if that runs code elsewhere. */
function isolatedHandlers({ runners, target, tree }: StageContext, scope: OwnedScope): Parameters<typeof handlerOf>[2]["isolated"] {
  return (file, pick) => {
    const runner = runners.find((candidate) => candidate.extensions.includes(extname(file)));
    if (runner?.handler === undefined) return undefined;
    if (tree !== undefined && runner.runsCheckedFiles !== true) throw new HostError("TRUST_RUNNER", runsByName(file).message);
    return runner.handler(file, pick, target, scope);
  };
}

function enclosedPrograms({ runners, target }: StageContext): EnclosedPrograms | undefined {
  for (const runner of runners) {
    const programs = runner.programs?.(target);
    if (programs !== undefined) return programs;
  }
  return undefined;
}

function isCode({ handler }: ToolJson, entry: Exclude<ToolEntry, { kind: "module" }>): boolean {
  return handler === undefined ? entry.kind === "json" && entry.sibling !== undefined : handler.kind === "module";
}

function permissionOf({ definition, handler }: ToolJson, folder: string): ToolLike["permission"] {
  return handler?.kind === "command" || handler?.kind === "http" ? describeUse(handler, definition.description, folder) : undefined;
}

function reaching(tool: Tool, handler: ToolJson["handler"], folder: string): Tool {
  if (handler?.kind !== "command" && handler?.kind !== "http") return tool;
  const reach = reachOfUse(handler, folder);
  return withReach(tool, (args, context) => reach(args as Arguments, context));
}

/** Reports which permission statements of a tool are ignored here. */
function reportIgnoredPermissions(
  { definition, origin, permission }: Tool,
  { scope }: SkillStanding,
  describesItself: boolean,
): readonly Diagnostic[] {
  const says =
    definition.skipPermission === true ? "skipPermission" : permission !== undefined && describesItself ? "permission()" : undefined;
  if (says === undefined || origin.file === undefined) return [];
  const who = scope === "package" ? "a tool of a package" : "a tool that is written in JSON";
  const how =
    scope === "package" ? "have the skill signed with a trusted key" : "define it in a module, or have the skill signed with a trusted key";
  const message = `Tool "${definition.name}" asks for permission at each call: ${who} cannot decide about its own permission, so its ${says} has no effect. Allow it with a rule, or ${how}.`;
  const severity = says === "skipPermission" ? "warning" : "info";
  return [{ severity, code: "TOOL_ALWAYS_ASKED", file: origin.file, message }];
}

/** The files that may fix an error: those it names, or those the module imports. */
function filesOf(error: unknown, file: string, { loader, tree }: StageContext): Iterable<string> {
  if (error instanceof ModuleError) return error.files;
  try {
    return loader.prepare(file, tree).files;
  } catch (another) {
    return another instanceof ModuleError ? another.files : [];
  }
}

function runsByName(file: string): Diagnostic {
  const message = `The runner for ${extname(file)} files opens them by name, so it cannot run the verified files. Update the plugin that adds it: it must use the verified files and set runsCheckedFiles.`;
  return { severity: "error", code: "TRUST_RUNNER", file, message };
}

function diagnosticOf(file: string, error: unknown): Diagnostic {
  if (error instanceof ModuleError) return { file, ...error.toDiagnostic() };
  if (error instanceof HostError) return { severity: "error", code: error.code, message: error.message, file };
  return moduleFailure(file, error);
}

interface MakeToolsOptions {
  /** The tool comes from a JSON file, so its schemas are data. */
  readonly isDeclared?: boolean;
}

/** Creates tools from the definitions of a skill file. An invalid definition becomes a diagnostic and does not affect the others. */
export function makeTools(
  definitions: readonly ToolLike[],
  file: string,
  { skill, generation }: RunnerTarget,
  { isDeclared = false }: MakeToolsOptions = {},
): ToolsFound {
  const diagnostics: Diagnostic[] = [];
  const tools = definitions.flatMap((definition): Tool[] => {
    const origin = { kind: "skill", source: skill.name, nativeName: definition.name, file } as const;
    try {
      const onDiagnostic = (diagnostic: Diagnostic): void => void diagnostics.push(diagnostic);
      return [createTool(definition, origin, { generation: `${skill.folder}#${generation}`, onDiagnostic, untrustedSchema: isDeclared })];
    } catch (error) {
      const code = error instanceof HostError ? error.code : "TOOL_INVALID";
      diagnostics.push({ severity: "error", code, file, source: skill.name, message: toError(error).message });
      return [];
    }
  });
  return { tools, diagnostics };
}

/** Runs TypeScript and JavaScript in this process. A module with an endless loop stops the host: nothing here can end it. */
export function createModuleRunner(loader: ModuleLoader): ToolRunner {
  return {
    extensions: moduleExtensions,
    runsCheckedFiles: true,
    async load(file, target, scope) {
      const { exports, files } = await loader.load(file, scope, target.checked);
      const api = { skill: target.skill, signal: scope.signal, onDispose: scope.onDispose };
      const { tools, diagnostics, ...others } = await definitionsOfModule(exports, file, api, scope);
      const made = makeTools(tools, file, target);
      const offered = await makeOffers(others, file, target, scope);
      return { ...offered, tools: made.tools, files, diagnostics: [...diagnostics, ...made.diagnostics, ...offered.diagnostics] };
    },
  };
}

/** The prompts and resources of a skill file. */
export interface Offered {
  readonly prompts: readonly Prompt[];
  readonly resources: readonly Resource[];
  readonly resourceTemplates: readonly ResourceTemplate[];
  readonly resourceLists: readonly ResourceSet[];
  readonly diagnostics: readonly Diagnostic[];
}

interface OfferDefinitions {
  readonly prompts: readonly DefinedPrompt[];
  readonly resources: readonly DefinedResource[];
}

/** Creates prompts and resources from the definitions of a skill file, and asks its templates for their lists. */
export async function makeOffers(definitions: OfferDefinitions, file: string, target: RunnerTarget, scope: Scope): Promise<Offered> {
  const { skill } = target;
  const diagnostics: Diagnostic[] = [];
  const origin = { kind: "skill", source: skill.name, file } as const;
  const generation = `${skill.folder}#${target.generation}`;
  const place: ResourcePlace = { origin, generation };
  const templates = definitions.resources.filter(({ template }) => template !== undefined);
  const report = (error: unknown, defined: DefinedResource): void => void diagnostics.push(listFailed(error, defined, origin));
  const lists = templates.flatMap((defined) => {
    const list = createResourceList(defined, place, { signal: scope.signal, onChange: () => target.onResourcesChanged?.() });
    return list === undefined ? [] : [{ list, defined }];
  });
  await Promise.all(lists.map(({ list, defined }) => list.refresh().catch((error) => report(error, defined))));
  return {
    prompts: definitions.prompts.map((defined) => createPrompt(defined, { ...origin, nativeName: defined.name }, generation)),
    resources: definitions.resources.filter(({ template }) => template === undefined).map((defined) => createResource(defined, place)),
    resourceTemplates: templates.map((defined) => createResourceTemplate(defined, place)),
    resourceLists: lists.map(({ list }) => list),
    diagnostics,
  };
}

function listFailed(error: unknown, { uri }: DefinedResource, { source, file }: Omit<ToolOrigin, "nativeName">): Diagnostic {
  const code = error instanceof HostError ? error.code : "RESOURCE_LIST";
  const message = `The list of the resources ${uri} is not available: ${toError(error).message}. They can still be read by their URIs.`;
  return { severity: "error", code, ...(file !== undefined && { file }), source, message };
}

/** Ends replaced units as soon as their calls have ended, and reports when all have. */
export class UnitRetirement {
  readonly #retiring = new Map<ToolUnit, Promise<void>>();
  readonly #log: Logger;

  constructor(log: Logger) {
    this.#log = log;
  }

  retire(units: readonly ToolUnit[]): void {
    for (const unit of units) {
      const retiring = unit.retire().then((errors) => {
        this.#retiring.delete(unit);
        this.#reportDisposers(unit, errors);
      });
      this.#retiring.set(unit, retiring);
    }
  }

  /**
   * Settles when everything retired so far has ended. Units that a call still uses `grace` milliseconds after its signal fired are ended
   * anyway: a handler that never returns cannot keep the host open.
   */
  async ended(grace: number): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const patience = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, grace);
    });
    await Promise.race([Promise.all(this.#retiring.values()), patience]);
    clearTimeout(timer);
    for (const unit of this.#retiring.keys()) {
      this.#log.warning("A call of this tool is still running and was abandoned.", { unit: unit.key });
      this.#reportDisposers(unit, await unit.abandon());
    }
  }

  #reportDisposers(unit: ToolUnit, errors: readonly Error[]): void {
    for (const error of errors) this.#log.warning("A disposer of a replaced tool failed.", { unit: unit.key, error });
  }
}
