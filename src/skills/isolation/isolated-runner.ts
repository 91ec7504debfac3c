import { isAbsolute } from "node:path";
import { canonicalJson } from "../../base/canonical-json.ts";
import type { Diagnostic } from "../../base/diagnostic.ts";
import { HostError } from "../../base/errors.ts";
import { isRecord } from "../../base/json.ts";
import { callableTools } from "../../formats/skills/skill-permissions.ts";
import type { Scope } from "../../io/scope.ts";
import type { ToolLike } from "../../tools/define/define-tool.ts";
import type { ToolContext, ToolInvocation } from "../../tools/tool.ts";
import { makeOffers, makeTools } from "../load/stage-tool.ts";
import { moduleExtensions } from "../load/tool-entries.ts";
import type { HandlerPick, LoadedTools, RunnerTarget, ToolRunner } from "../load/tool-runner.ts";
import type { ChildFrame } from "./child-frames.ts";
import { type ChildListener, type ChildPlace, type ChildTransport, type OpenChild, openProcess, openWorker } from "./child-transport.ts";
import { type ChangeListener, defineOffers, type OffersChild } from "./isolated-offers.ts";
import { IsolatedSkill } from "./isolated-skill.ts";
import type { IsolationTier } from "./isolation-policy.ts";
import { findProtection, refusal } from "./protection.ts";
import type { ChildRequestOptions } from "./skill-channel.ts";
import { limitsOf } from "./skill-limits.ts";
import { SpareChildren } from "./spare-children.ts";

export interface IsolatedRunnerOptions {
  /** The working directory of the host. */
  readonly workingDirectory: string;
  /** Saved changes are loaded, so the next generation of a skill can begin at any time. */
  readonly isWatched: boolean;
  /** Starts children; tests play them. @internal */
  readonly start?: OpenChild | undefined;
}

/**
 * Runs TypeScript and JavaScript of skills in a child: a worker thread or a process for each generation of a skill. The tools are the same
 * as in this process, except that arguments and results are copied as JSON, and that a call that does not stop is ended with its child.
 */
export function createIsolatedRunner(
  tier: Exclude<IsolationTier, "off">,
  { workingDirectory, isWatched, start = openerOf(tier) }: IsolatedRunnerOptions,
): ToolRunner {
  const children = new SpareChildren(start, { areLikely: isWatched });
  const skills = new Map<string, IsolatedSkill>();
  const skillOf = (target: RunnerTarget): IsolatedSkill => {
    const id = `${target.skill.folder}#${target.generation}`;
    const known = skills.get(id);
    if (known !== undefined) return known;
    const created = new IsolatedSkill(children, placeOf(tier, target, workingDirectory), () => {
      if (skills.get(id) === created) skills.delete(id);
    });
    skills.set(id, created);
    return created;
  };
  const use = (key: string, request: Loading, target: RunnerTarget, scope: Scope): IsolatedFile => {
    const skill = skillOf(target);
    skill.retain();
    const file = new IsolatedFile(skill, key, request);
    scope.onDispose(() => file.end());
    return file;
  };
  return {
    extensions: moduleExtensions,
    // A child compares each file with the digests that it is given.
    runsCheckedFiles: true,
    async load(file, target, scope) {
      const limited = tier === "process" ? await reportProtection(target.skill.folder) : [];
      const isolated = use(file, { file, ...plainTarget(target) }, target, scope);
      const loaded = readLoaded(await isolated.load());
      isolated.uses(loaded.files);
      const definitions = loaded.tools.map(({ definition, hasHandler, hasPermission }, index) => ({
        ...definition,
        ...(hasHandler && { handler: isolated.handler(index) }),
        ...(hasPermission && { permission: isolated.permission(index) }),
      }));
      const made = makeTools(definitions as unknown as readonly ToolLike[], file, target, { isDeclared: true });
      const known = new Set(loaded.diagnostics.map(({ code }) => code));
      const defined = defineOffers(loaded.offers, isolated, file);
      const offered = await makeOffers(defined, file, target, scope);
      const ofTools = made.diagnostics.filter(({ code }) => !known.has(code));
      const diagnostics = [...limited, ...loaded.diagnostics, ...ofTools, ...defined.diagnostics, ...offered.diagnostics];
      return { ...offered, tools: made.tools, files: new Set([file, ...loaded.files]), diagnostics } satisfies LoadedTools;
    },
    handler(file, pick, target, scope) {
      const key = `${file}#${pick.tool}#${pick.export ?? ""}`;
      return use(key, { file, ...plainTarget(target), pick }, target, scope).handler(0);
    },
  };
}

function openerOf(tier: IsolationTier): OpenChild {
  if (tier === "worker") return openWorker;
  return tier === "strict" ? openStrictly : openProcess;
}

/**
 * A function of its own, because `limits` lives as long as the spare that was started with it, which is the child of the next generation. If it
 * shared the variables of what made the generation, each generation would keep the one before it, with its child's streams, for ever.
 */
function placeOf(tier: IsolationTier, { skill: { folder }, permissions }: RunnerTarget, workingDirectory: string): ChildPlace {
  const { env: environment = [] } = permissions ?? {};
  if (tier === "worker") return { folder, environment };
  return {
    folder,
    environment,
    tools: callableTools(permissions ?? {}),
    limits: () => limitsOf(permissions, { folder, workingDirectory }),
  };
}

interface Loading {
  readonly file: string;
  readonly target: object;
  /** The digests of the only files that may run. */
  readonly checked?: object;
  readonly pick?: HandlerPick;
}

function plainTarget({ skill, generation, checked }: RunnerTarget): Pick<Loading, "target" | "checked"> {
  const target = { skill: { name: skill.name, folder: skill.folder }, generation };
  return checked === undefined ? { target } : { target, checked: { folder: checked.folder, files: Object.fromEntries(checked.files) } };
}

/** Starts a child only where the operating system enforces the limits. */
async function openStrictly(place: ChildPlace, listener: ChildListener): Promise<ChildTransport> {
  const { state, reason } = await findProtection();
  if (state === "enforced") return openProcess(place, listener);
  throw refusal("Modules", reason);
}

/** Reports a machine that does not enforce all limits. */
async function reportProtection(folder: string): Promise<readonly Diagnostic[]> {
  const { state, reason } = await findProtection();
  if (state === "enforced") return [];
  const how = state === "partly" ? "only partly enforced" : "not enforced";
  const message = `The limits of this skill are ${how} on this machine: ${reason}.`;
  return [{ severity: "warning", code: "ISOLATION_PARTLY", file: folder, message }];
}

/** One file in the child of its skill. */
class IsolatedFile implements OffersChild {
  readonly #skill: IsolatedSkill;
  readonly #key: string;
  readonly #request: Loading;
  #isLoading = false;
  /** The definitions when the file was first loaded: a restarted child must offer the same. */
  #contract: string | undefined;
  /** What was compared with it last: once for each child, not at each call. */
  #compared: unknown;

  constructor(skill: IsolatedSkill, key: string, request: Loading) {
    this.#skill = skill;
    this.#key = key;
    this.#request = request;
  }

  async load(): Promise<unknown> {
    this.#isLoading = true;
    try {
      const loaded = await this.#skill.prepare(this.#key, { ...this.#request });
      if (loaded === this.#compared) return loaded;
      const contract = canonicalJson(isRecord(loaded) ? (loaded["tools"] ?? null) : null);
      this.#contract ??= contract;
      if (this.#contract === contract) {
        this.#compared = loaded;
        return loaded;
      }
      const message = `${this.#request.file} defines other tools than when it was loaded, so the call did not run. Save the file again to reload it.`;
      throw new HostError("MODULE_CHANGED", message);
    } finally {
      this.#isLoading = false;
    }
  }

  /** Names the files that it was loaded from. */
  uses(files: readonly string[]): void {
    this.#skill.uses(files);
  }

  handler(index: number) {
    return async (args: unknown, invocation: ToolInvocation, context: ToolContext): Promise<unknown> => {
      await this.load();
      const data = { key: this.#key, index, args, invocation: plainInvocation(invocation) };
      return this.#skill.request("call", data, { context, signal: invocation.signal });
    };
  }

  permission(index: number): NonNullable<ToolLike["permission"]> {
    return async (args: unknown, context: ToolContext) => {
      const { invocation } = context;
      await this.load();
      const data = { key: this.#key, index, args, invocation: plainInvocation(invocation) };
      const request = await this.#skill.request("permission", data, { context, signal: invocation.signal });
      if (request === null) return null;
      if (isRecord(request) && typeof request["kind"] === "string") return request as { kind: string };
      throw new TypeError("permission() must return an object with a kind, or null.");
    };
  }

  /** A request about a prompt or a resource of the file. */
  async request(kind: string, data: ChildFrame, options: ChildRequestOptions): Promise<unknown> {
    await this.load();
    return this.#skill.request(kind, { ...data, key: this.#key }, options);
  }

  listen(listener: ChangeListener): number {
    return this.#skill.listen(listener);
  }

  forget(listener: number): void {
    this.#skill.forget(listener);
  }

  async end(): Promise<void> {
    if (this.#isLoading) await this.#skill.interrupt("a module did not finish loading");
    await this.#skill.release(this.#key);
  }
}

/** What a child gets of a call beside its arguments. The application's services stay in its process; the child gets their names, to say so. */
function plainInvocation(invocation: ToolInvocation): object {
  const { sessionId, toolCallId, toolName, workingDirectory, traceparent, tracestate, context, services } = invocation;
  return { sessionId, toolCallId, toolName, workingDirectory, traceparent, tracestate, context, services: Object.keys(services) };
}

interface LoadedInChild {
  readonly tools: readonly { readonly definition: object; readonly hasHandler: boolean; readonly hasPermission: boolean }[];
  readonly files: readonly string[];
  readonly diagnostics: readonly Diagnostic[];
  /** The prompts and resources, not checked. */
  readonly offers: unknown;
}

const maxListed = 10_000;

/** Reads what a child says about a file. The child's code is untrusted, so only what has the right form counts. */
function readLoaded(value: unknown): LoadedInChild {
  const { tools, files, diagnostics, offers } = isRecord(value) ? value : {};
  return {
    tools: list(tools).flatMap((tool) => {
      if (!isRecord(tool) || !isRecord(tool["definition"]) || typeof tool["definition"]["name"] !== "string") return [];
      return [{ definition: tool["definition"], hasHandler: tool["hasHandler"] === true, hasPermission: tool["hasPermission"] === true }];
    }),
    files: list(files).filter((file): file is string => typeof file === "string" && isAbsolute(file)),
    diagnostics: list(diagnostics).flatMap(readDiagnostic),
    offers,
  };
}

function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value.slice(0, maxListed) : [];
}

function readDiagnostic(value: unknown): Diagnostic[] {
  if (!isRecord(value)) return [];
  const { severity, code, message, file } = value;
  if (severity !== "error" && severity !== "warning" && severity !== "info") return [];
  if (typeof code !== "string" || !/^[A-Z][A-Z_]{2,60}$/.test(code) || typeof message !== "string") return [];
  return [{ severity, code, message: message.slice(0, 5_000), ...(typeof file === "string" && { file }) }];
}
