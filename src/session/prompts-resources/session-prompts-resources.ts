import { Emitter } from "../../base/emitter.ts";
import { HostError, toError } from "../../base/errors.ts";
import { waitFor } from "../../base/wait.ts";
import { unknownResource } from "../../tools/create/create-resource.ts";
import type { Completion, OfferContext, Prompt, PromptDefinition, PromptResult } from "../../tools/prompt.ts";
import type { Resource, ResourceContents, ResourceDefinition, ResourceTemplate, ResourceTemplateDefinition } from "../../tools/resource.ts";
import type { ToolOrigin } from "../../tools/tool.ts";
import { type AskServices, askAround } from "../calls/call-context.ts";
import type { AskHandlers } from "../clients/client-requests.ts";
import type { SessionEnvironment } from "../environment.ts";
import type { SessionContext } from "../session-context.ts";
import {
  assemblePromptsAndResources,
  type PromptAndResourceSource,
  type PromptsAndResources,
  StableList,
} from "./prompts-and-resources.ts";

/**
 * How a prompt is asked for, or a resource.
 *
 * @example
 * ```ts
 * const options: OfferOptions = { signal: AbortSignal.timeout(5_000) };
 * ```
 */
export interface OfferOptions {
  /** Ends the wait when it fires. */
  readonly signal?: AbortSignal | undefined;
  /** Asked first what the handler asks; what it leaves with `noResult` goes to those who are attached. */
  readonly answers?: AskHandlers | undefined;
}

export interface ReadOptions extends OfferOptions {
  /** Reads only what this MCP server offers, also where something else has its address. */
  readonly serverName?: string | undefined;
}

/** What a completion is wanted for: an argument of a prompt, or a variable of a template. */
export type CompletionRef =
  | { readonly type: "ref/prompt"; readonly name: string }
  | { readonly type: "ref/resource"; readonly uri: string };

/**
 * Options for completing an argument of a prompt or resource.
 *
 * @example
 * ```ts
 * const options: CompletionOptions = { arguments: { country: "Norway" } };
 * ```
 */
export interface CompletionOptions {
  /** What else is filled in. */
  readonly arguments?: Readonly<Record<string, string>> | undefined;
  /** Ends the wait when it fires. Default: none. */
  readonly signal?: AbortSignal | undefined;
}

/** Which lists are others now. */
export interface OffersChange {
  readonly prompts: boolean;
  readonly resources: boolean;
  readonly resourceTemplates: boolean;
}

interface PromptsAndResourcesContext extends SessionContext, AskServices {
  readonly environment: SessionEnvironment;
  /** @throws HostError `SESSION_CLOSED`. */
  assertOpen(): void;
  /** Emits when the environment may provide something else now. */
  readonly changes: Emitter<{ changed: undefined }>;
}

/** The prompts and resources of one session: what they are now, their use, and the news of them. */
export class SessionPromptsAndResources {
  readonly #host: PromptsAndResourcesContext;
  readonly #changes: Emitter<{ changed: OffersChange }>;
  readonly #closing = new AbortController();
  readonly #watches = new Set<ResourceWatch>();
  readonly #prompts = new StableList<Prompt, PromptDefinition>(({ definition }) => definition);
  readonly #templates = new StableList<ResourceTemplate, ResourceTemplateDefinition>(({ definition }) => definition);
  // How large a file is may be different with every save.
  readonly #resources = new StableList<Resource, ResourceDefinition>(
    ({ definition }) => definition,
    ({ size: _size, ...definition }) => definition,
  );
  #sources: readonly PromptAndResourceSource[] | undefined;
  #current: PromptsAndResources | undefined;
  #announced: Versions = { prompts: 0, resources: 0, resourceTemplates: 0 };

  constructor(host: PromptsAndResourcesContext) {
    this.#host = host;
    this.#changes = new Emitter((error) => host.log.error("A listener for prompts and resources failed.", { error }));
    host.changes.on("changed", () => {
      // Lists are compared only if there are listeners.
      if (this.#closing.signal.aborted) return;
      if (this.#changes.has("changed")) {
        const [before, now] = [this.#announced, this.#versions()];
        this.#announced = now;
        const change: OffersChange = {
          prompts: now.prompts !== before.prompts,
          resources: now.resources !== before.resources,
          resourceTemplates: now.resourceTemplates !== before.resourceTemplates,
        };
        if (change.prompts || change.resources || change.resourceTemplates) this.#changes.emit("changed", change);
      }
      for (const watch of this.#watches) watch.check();
    });
  }

  /** With origin and revision. */
  get current(): PromptsAndResources {
    this.#host.assertOpen();
    const sources = this.#host.environment.offerSources?.(this.#host.config.view) ?? noSources;
    if (sources !== this.#sources || this.#current === undefined) this.#current = assemblePromptsAndResources(sources);
    this.#sources = sources;
    return this.#current;
  }

  prompts(): readonly PromptDefinition[] {
    return this.#prompts.read(this.current.prompts);
  }

  resources(): readonly ResourceDefinition[] {
    return this.#resources.read(this.current.resources);
  }

  resourceTemplates(): readonly ResourceTemplateDefinition[] {
    return this.#templates.read(this.current.resourceTemplates);
  }

  async getPrompt(name: string, args: Readonly<Record<string, string>>, options: OfferOptions): Promise<PromptResult> {
    const prompt = this.current.findPrompt(name);
    if (prompt === undefined) throw unknownPrompt(name);
    return this.#use(prompt.origin, options, (context) => prompt.get(args, context));
  }

  async readResource(uri: string, options: ReadOptions): Promise<readonly ResourceContents[]> {
    const { serverName } = options;
    const offers = serverName === undefined ? this.current : this.current.ofServer(serverName);
    const source = offers.findResource(uri);
    if (source === undefined) throw unknownResource(uri);
    // The one address that the resource knows itself by.
    const address = "uri" in source.definition ? source.definition.uri : uri;
    return this.#use(source.origin, options, (context) => source.read(address, context));
  }

  async complete(
    ref: CompletionRef,
    argument: { readonly name: string; readonly value: string },
    options: CompletionOptions,
  ): Promise<Completion> {
    const source = ref.type === "ref/prompt" ? this.current.findPrompt(ref.name) : this.current.findTemplate(ref.uri);
    if (source === undefined) throw ref.type === "ref/prompt" ? unknownPrompt(ref.name) : unknownResource(ref.uri);
    if (source.complete === undefined) return noCompletion;
    const { complete } = source;
    const others = options.arguments ?? {};
    return this.#use(source.origin, options, ({ signal }) => complete(argument.name, argument.value, { arguments: others, signal }));
  }

  async watchResource(uri: string, listener: () => void): Promise<AsyncDisposable> {
    const onError = (error: unknown): void => {
      this.#host.log.warning("Watching a resource failed.", { sessionId: this.#host.sessionId, uri, error: toError(error) });
    };
    const watch = new ResourceWatch({ uri, find: () => this.current.findResource(uri), listener, onError });
    this.#host.assertOpen();
    this.#watches.add(watch);
    try {
      await watch.start();
    } catch (error) {
      onError(error);
    }
    return {
      [Symbol.asyncDispose]: async () => {
        this.#watches.delete(watch);
        await watch[Symbol.asyncDispose]();
      },
    };
  }

  onChanged(listener: (change: OffersChange) => void): Disposable {
    this.#host.assertOpen();
    if (!this.#changes.has("changed")) this.#announced = this.#versions();
    return this.#changes.on("changed", listener);
  }

  async close(): Promise<void> {
    this.#closing.abort(new HostError("SESSION_CLOSED", `Session ${this.#host.sessionId} is closed.`));
    this.#changes.clear();
    await Promise.all([...this.#watches].map((watch) => watch[Symbol.asyncDispose]()));
    this.#watches.clear();
  }

  #versions(): Versions {
    this.prompts();
    this.resourceTemplates();
    // Finding the files of every skill takes time, and who never saw the list has none that could be out of date.
    if (this.#resources.isKnown) this.resources();
    return { prompts: this.#prompts.version, resources: this.#resources.version, resourceTemplates: this.#templates.version };
  }

  /** Runs something of a source's until it settles, the caller gives up, or the session ends. */
  async #use<T>(origin: ToolOrigin, { signal: given, answers }: OfferOptions, run: (context: OfferContext) => Promise<T>): Promise<T> {
    const ended = new AbortController();
    const signals = [this.#closing.signal, ended.signal, ...(given === undefined ? [] : [given])];
    const signal = AbortSignal.any(signals);
    signal.throwIfAborted();
    const serverName = origin.kind === "mcp" ? origin.source : undefined;
    const { services, context: caller } = this.#host.config;
    const context: OfferContext = {
      signal,
      services,
      context: caller,
      ask: async (kind, data, { key } = {}) => {
        if (signal.aborted) throw new HostError("ASK_UNANSWERED", "This call has ended, so it cannot ask any more. Ask before it ends.");
        return askAround({ signal: () => signal, answers, serverName, key }, this.#host, kind, data);
      },
    };
    try {
      return await waitFor(run(context), { signal });
    } finally {
      ended.abort();
    }
  }
}

type Versions = { readonly [K in keyof OffersChange]: number };

const noSources: readonly PromptAndResourceSource[] = Object.freeze([]);
const noCompletion: Completion = Object.freeze({ values: Object.freeze([]) });

function unknownPrompt(name: string): HostError {
  const shown = JSON.stringify(String(name).slice(0, 200));
  return new HostError("PROMPT_UNKNOWN", `Prompt ${shown} does not exist. List the prompts to see the available ones.`);
}

interface ResourceWatchOptions {
  readonly uri: string;
  /** What is at the address now. */
  readonly find: () => Resource | ResourceTemplate | undefined;
  /** Hears that a read may give something else: because of the resource, or because another one or none is there now. */
  readonly listener: () => void;
  readonly onError: (error: unknown) => void;
}

/** A watch on an address, whatever stands there: it goes over to what takes the place of a resource. */
export class ResourceWatch implements AsyncDisposable {
  readonly #options: ResourceWatchOptions;
  #source: Resource | ResourceTemplate | undefined;
  #end: (() => Promise<void>) | undefined;
  #isDue = false;
  #isOver = false;
  /** Counts the subscriptions that were begun: only the latest is kept. */
  #turn = 0;

  constructor(options: ResourceWatchOptions) {
    this.#options = options;
  }

  /** Settles when changes are heard from now on. */
  async start(): Promise<void> {
    this.#source = this.#options.find();
    await this.#begin();
  }

  /** Looks whether something else is there now. */
  check(): void {
    if (this.#isOver) return;
    const before = this.#source;
    this.#source = this.#options.find();
    if (this.#source === before) return;
    if (this.#source?.revision !== before?.revision) this.#notify();
    this.#begin().catch((error) => this.#options.onError(error));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    await this.#stop();
  }

  async #begin(): Promise<void> {
    const source = this.#source;
    const turn = ++this.#turn;
    await this.#stop();
    // A resource knows itself by one spelling of its address.
    const uri = source !== undefined && "uri" in source.definition ? source.definition.uri : this.#options.uri;
    const watch = await source?.watch?.(uri, () => {
      if (this.#source === source) this.#notify();
    });
    if (watch === undefined) return;
    const end = async (): Promise<void> =>
      void (await (Symbol.asyncDispose in watch ? watch[Symbol.asyncDispose]() : watch[Symbol.dispose]()));
    // Meanwhile the watch may have ended, or moved to another resource, even there and back.
    if (this.#isOver || turn !== this.#turn) await end();
    else this.#end = end;
  }

  async #stop(): Promise<void> {
    const end = this.#end;
    this.#end = undefined;
    try {
      await end?.();
    } catch (error) {
      this.#options.onError(error);
    }
  }

  /** Once for all that happens at the same time: a file changes, and with it what is listed. */
  #notify(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    setImmediate(() => {
      this.#isDue = false;
      if (!this.#isOver) this.#options.listener();
    });
  }
}
