import { errorMessage, HostError, toError } from "../../base/errors.ts";
import { isRecord } from "../../base/json.ts";
import { type DiskCache, openTransformCache } from "../../io/disk-cache.ts";
import { createModuleLoader, type OwnedModuleLoader } from "../../io/module-loader/create-module-loader.ts";
import { ModuleError } from "../../io/module-loader/module-error.ts";
import { mapStack } from "../../io/module-loader/source-positions.ts";
import type { CheckedTree } from "../../io/read-bounded.ts";
import { createScope, type OwnedScope } from "../../io/scope.ts";
import type { HostServices } from "../../tools/host-services.ts";
import type { FileChangeOptions, Tool, ToolContext, ToolInvocation, ToolResult } from "../../tools/tool.ts";
import { normalizeResult, toCallResult } from "../../tools/tool-result.ts";
import { CheckedFolder } from "../../trust/checked-folder.ts";
import type { FileDigest } from "../../trust/folder-digests.ts";
import { pickHandler } from "../handlers/tool-handler.ts";
import { makeTools } from "../load/stage-tool.ts";
import { definitionsOfModule, providedModules, registerDisposer } from "../load/tool-module.ts";
import type { RunnerTarget } from "../load/tool-runner.ts";
import { type ChildFrame, maxFrameLength } from "./child-frames.ts";
import { createRehearsal } from "./rehearsal.ts";
import { offerRequests, ServedOffers } from "./served-offers.ts";

type Handler = (args: never, invocation: ToolInvocation, context: ToolContext) => unknown;

/** A file that this child has loaded. */
interface Served {
  readonly scope: OwnedScope;
  readonly tools: readonly Tool[];
  readonly handler?: Handler;
  readonly offers?: ServedOffers;
  readonly answer: object;
}

interface Running {
  readonly abort: AbortController;
  readonly asks: Map<number, { resolve(value: unknown): void; reject(error: Error): void }>;
}

/** How often a spare child rehearses: the engine makes functions quicker that have run some times. */
const rehearsals = 10;

/** The child's end of the channel: loads the modules of one generation of a skill, and runs their handlers. */
export function serveSkill(send: (text: string) => void, { caches }: { readonly caches: boolean }): (text: string) => void {
  const service = new SkillService(send, caches ? openTransformCache() : undefined);
  return (text) => service.receive(JSON.parse(text) as ChildFrame);
}

class SkillService {
  readonly #sendText: (text: string) => void;
  readonly #loader: OwnedModuleLoader;
  readonly #served = new Map<string, Served>();
  readonly #running = new Map<number, Running>();
  #checked: CheckedFolder | undefined;
  #lastAsk = 0;
  #lastWork = 0;
  /** Whether something was asked of it. */
  #isUsed = false;

  constructor(send: (text: string) => void, cache: DiskCache | undefined) {
    this.#sendText = send;
    this.#loader = createModuleLoader({ ...providedModules, cache });
  }

  #send(frame: ChildFrame): void {
    this.#sendText(JSON.stringify(frame));
  }

  receive(frame: ChildFrame): void {
    const id = frame["id"] as number;
    const running = this.#running.get(id);
    if (frame["kind"] === "cancel") {
      running?.abort.abort(new Error(String(frame["reason"])));
      if (running !== undefined) this.#send({ kind: "cancelled", id });
    } else if (frame["kind"] === "answer") {
      const number = frame["ask"] as number;
      const ask = running?.asks.get(number);
      running?.asks.delete(number);
      if (typeof frame["error"] === "string") ask?.reject(new Error(frame["error"]));
      else ask?.resolve(frame["value"]);
    } else if (frame["kind"] === "prepare") {
      void this.#prepare(frame["files"] as readonly string[]);
    } else if (frame["kind"] === "compile") {
      this.#compile(frame["files"] as readonly string[]);
    } else {
      this.#isUsed = true;
      void this.#answer(id, frame);
    }
  }

  /**
   * Loads and calls a tool of skillhost, so that everything that this needs is loaded and compiled, and compiles the files that the generation before
   * used, most of which the next one uses unchanged. Does so until something is asked of it. Runs no code of the skill.
   */
  async #prepare(files: readonly string[]): Promise<void> {
    for (let round = 0; round < rehearsals && !this.#isUsed; round++) {
      await new SkillService(() => {}, undefined).#rehearse();
      if (round === 0) this.#compile(files);
      // What arrives meanwhile is not kept waiting.
      await new Promise(setImmediate);
    }
  }

  /** Keeps the compiled texts of files. Those that are saved again are compiled again when they are loaded. */
  #compile(files: readonly string[]): void {
    for (const file of files) this.#loader.check(file);
    this.#loader.invalidate(files);
  }

  async #rehearse(): Promise<void> {
    const { file, tree } = createRehearsal();
    const target = { skill: { name: "rehearsal", folder: tree.folder }, generation: 0, checked: tree };
    const scope = createScope();
    this.#served.set(file, await this.#loadDefinitions(file, target, scope));
    await this.#answer(1, { kind: "call", key: file, index: 0, args: { text: "" }, invocation: {} });
    await scope.dispose();
  }

  async #answer(id: number, frame: ChildFrame): Promise<void> {
    try {
      const value = await this.#run(id, frame);
      const text = JSON.stringify({ kind: "result", id, value: value ?? null });
      if (Buffer.byteLength(text) > maxFrameLength) throw new RangeError("The result is larger than 64 MB, so it cannot be sent.");
      this.#sendText(text);
    } catch (error) {
      this.#send({ kind: "error", id, error: plainError(error) });
    } finally {
      this.#running.delete(id);
    }
  }

  #run(id: number, frame: ChildFrame): unknown {
    const key = String(frame["key"]);
    switch (frame["kind"]) {
      case "load":
        return this.#load(key, frame);
      case "unload":
        return this.#unload(key);
      case "permission":
        return this.#permission(id, frame, this.#find(key));
      default:
        return offerRequests.has(frame["kind"]) ? this.#offer(id, frame, this.#find(key)) : this.#call(id, frame, this.#find(key));
    }
  }

  async #load(key: string, frame: ChildFrame): Promise<object> {
    const { file, target, pick } = frame as { file: string; target: object; pick?: { tool: string; export?: string } };
    const checked = this.#checkedTree(frame["checked"]);
    const scope = createScope();
    try {
      const served =
        pick === undefined
          ? await this.#loadDefinitions(file, { ...target, checked } as RunnerTarget, scope)
          : await this.#loadHandler(file, pick, { scope, checked });
      this.#served.set(key, served);
      return served.answer;
    } catch (error) {
      await scope.dispose();
      throw error;
    }
  }

  /** One tree for all files: the loader keeps what it has loaded by tree. The host has checked the signature. */
  #checkedTree(plain: unknown): CheckedTree | undefined {
    if (!isRecord(plain)) return undefined;
    const files = new Map(Object.entries(plain["files"] as Record<string, FileDigest>));
    this.#checked ??= new CheckedFolder(String(plain["folder"]), { files, now: Date.now });
    return this.#checked;
  }

  async #loadDefinitions(file: string, target: RunnerTarget, scope: OwnedScope): Promise<Served> {
    const { exports, files } = await this.#loader.load(file, scope, target.checked);
    const api = { skill: target.skill, signal: scope.signal, onDispose: scope.onDispose };
    const defined = await definitionsOfModule(exports, file, api, scope);
    const { tools, ...made } = makeTools(defined.tools, file, target);
    const offers = new ServedOffers(defined, scope.signal, (listener) => this.#send({ kind: "changed", id: 1, listener }));
    const described = tools.map(({ definition, hasHandler, permission }) => ({
      definition,
      hasHandler,
      hasPermission: permission !== undefined,
    }));
    const diagnostics = [...defined.diagnostics, ...made.diagnostics];
    return { scope, tools, offers, answer: { tools: described, files: [...files], diagnostics, offers: offers.describe() } };
  }

  async #loadHandler(
    file: string,
    pick: { tool: string; export?: string },
    { scope, checked }: { readonly scope: OwnedScope; readonly checked: CheckedTree | undefined },
  ): Promise<Served> {
    const { exports, files } = await this.#loader.load(file, scope, checked);
    registerDisposer(exports["dispose"], scope);
    const handler = pickHandler(exports, pick.tool, pick.export, file) as Handler;
    return { scope, tools: [], handler, answer: { files: [...files] } };
  }

  async #unload(key: string): Promise<void> {
    const served = this.#served.get(key);
    this.#served.delete(key);
    const [error] = (await served?.scope.dispose()) ?? [];
    if (error !== undefined) throw error;
  }

  #find(key: string): Served {
    const served = this.#served.get(key);
    if (served === undefined) throw new HostError("MODULE_ABANDONED", "The file of this tool is no longer loaded.");
    return served;
  }

  async #call(id: number, frame: ChildFrame, { tools, handler }: Served): Promise<ToolResult> {
    const context = this.#context(id, frame["invocation"]);
    if (handler !== undefined)
      return normalizeResult(await handler(frame["args"] as never, context(frame["args"]).invocation, context(frame["args"])));
    const tool = tools[Number(frame["index"])]!;
    // The host has checked the JSON form of the schema. A schema of a library may require more, and converts.
    const valid = await tool.validate(frame["args"]);
    if (!valid.ok) {
      const issues = valid.issues.map(({ path, message }) => (path === "" ? message : `${path}: ${message}`)).join("; ");
      const textResultForLlm = `Invalid arguments for tool '${tool.definition.name}': ${issues}`;
      return { resultType: "failure", textResultForLlm, error: textResultForLlm };
    }
    return normalizeResult(await tool.execute(valid.value, context(valid.value)));
  }

  async #permission(id: number, frame: ChildFrame, { tools }: Served): Promise<unknown> {
    const tool = tools[Number(frame["index"])]!;
    const context = this.#context(id, frame["invocation"])(frame["args"]);
    return tool.permission?.(frame["args"], context) ?? null;
  }

  #offer(id: number, frame: ChildFrame, { offers }: Served): unknown {
    const { ask, invocation } = this.#context(id, { context: frame["context"] })(undefined);
    return offers?.run(frame, { signal: invocation.signal, services: invocation.services, context: invocation.context, ask });
  }

  #context(id: number, plain: unknown): (args: unknown) => ToolContext {
    const abort = new AbortController();
    const asks: Running["asks"] = new Map();
    this.#running.set(id, { abort, asks });
    const ask = (frame: ChildFrame): Promise<never> =>
      new Promise((resolve, reject) => {
        const number = ++this.#lastAsk;
        asks.set(number, { resolve: resolve as (value: unknown) => void, reject });
        this.#send({ ...frame, id, ask: number });
      });
    const { services: names, ...fields } = isRecord(plain) ? plain : {};
    const services = absentServices(names);
    return (args) => ({
      invocation: { ...fields, arguments: args, signal: abort.signal, services } as unknown as ToolInvocation,
      ask: (what, data, options) => ask({ kind: "ask", what, data, options }),
      callTool: async (ref, given) => toCallResult(await ask({ kind: "callTool", ref, args: given })) as never,
      progress: (update) => this.#send({ kind: "progress", id, update }),
      fileChanged: (path, content, options) => this.#send({ kind: "file", id, path, content, options: plainOptions(options) }),
      background: (work) => this.#background(id, work),
    });
  }

  #background(id: number, work: PromiseLike<unknown>): void {
    const number = ++this.#lastWork;
    this.#send({ kind: "background", id, work: number });
    const settled = (): void => this.#send({ kind: "settled", id, work: number });
    Promise.resolve(work).then(settled, settled);
  }
}

/** A tool that needs a service of the application fails with the reason, instead of at an undefined value. */
function absentServices(names: unknown): HostServices {
  const services = {};
  for (const name of Array.isArray(names) ? names : []) {
    const get = (): never => {
      const advice = `Choose the isolation "off" for it, or have the application offer what it needs as a tool.`;
      throw new HostError(
        "ISOLATION_SERVICE",
        `This skill is isolated, so it does not have the application's service ${JSON.stringify(name)}. ${advice}`,
      );
    };
    Object.defineProperty(services, String(name), { get });
  }
  return services;
}

function plainOptions(options: FileChangeOptions | undefined): object | undefined {
  if (!(options?.before instanceof Uint8Array)) return options;
  const { before, ...others } = options;
  return { ...others, beforeBase64: Buffer.from(before).toString("base64") };
}

function plainError(thrown: unknown): object {
  const error = toError(thrown);
  const { file, position, files } = error instanceof ModuleError ? error : {};
  return {
    name: error.name,
    message: errorMessage(error),
    ...(error.stack !== undefined && { stack: mapStack(error.stack).stack }),
    ...(error instanceof HostError && { code: error.code }),
    ...(file !== undefined && { file }),
    ...(position !== undefined && { position }),
    ...(files !== undefined && { files: [...files] }),
  };
}
