import { errorMessage, HostError } from "../../base/errors.ts";
import { isRecord } from "../../base/json.ts";
import { fieldsReader, mustBe, readCallback, readFlag, readOneOf, readPositive, readText, readTexts } from "../../base/read-fields.ts";
import type { ChatModel } from "../../models/model.ts";
import { createModel, type ProviderOptions } from "../../models/provider.ts";
import { providerTypes } from "../../models/provider-route.ts";
import type { AskHandler } from "../clients/client-requests.ts";
import type { CurrentDateTimeOption } from "../prompt/current-time.ts";
import { readSystemMessage, type SystemMessageOptions } from "../prompt/customize-prompt.ts";
import { type CustomInstructionOptions, readCustomInstructions } from "../prompt/instruction-files.ts";
import type { AgentMode } from "../prompt/system-prompt.ts";

/** What a model can do, with the field names of the Copilot SDK. What is absent is guessed from the model's name. */
export interface ModelCapabilities {
  readonly supports?: { readonly vision?: boolean | undefined } | undefined;
  readonly limits?: { readonly max_context_window_tokens?: number | undefined } | undefined;
}

/**
 * The options of a session that its conversation with a model depends on.
 *
 * @example
 * ```ts
 * const options: TurnOptions = { streaming: true, provider: { baseUrl: "http://localhost:11434/v1" } };
 * ```
 */
export interface TurnOptions {
  /** Where `model` is served: an endpoint, or by its type a provider that a plugin brings. */
  readonly provider?: SessionProvider | undefined;
  /** A model of this program; takes the place of `provider`. */
  readonly chatModel?: ChatModel | undefined;
  /** What the model can do, where the endpoint does not say it. Default: what is known of the model. */
  readonly modelCapabilities?: ModelCapabilities | undefined;
  /** As the endpoint calls it: `low`, `medium`, `high` and the like. */
  readonly reasoningEffort?: string | undefined;
  /** Answers arrive in pieces, by `assistant.message_delta` and similar events. Default: false. */
  readonly streaming?: boolean | undefined;
  /** Additions to skillhost's own instructions, or other ones. Default: none. */
  readonly systemMessage?: SystemMessageOptions | undefined;
  /** How much of the system message the list of skills may take. Default: 4,000 tokens. */
  readonly skillListing?: { readonly maxTokens?: number | undefined } | undefined;
  /** How often the model is asked in one turn before it is stopped. Default: 100. */
  readonly maxIterations?: number | undefined;
  /**
   * Whether the model reads the date and time with each message; a function gives it, for tests and replays. Default: true.
   * It stands in the message, so that what comes before it stays the same for prompt caches.
   */
  readonly currentDateTime?: CurrentDateTimeOption | undefined;
  /** Whether a model that reads PDF documents also cites them. Default: false. */
  readonly enableCitations?: boolean | undefined;
  /** Folders beside the working directory that files may be attached from. */
  readonly additionalDirectories?: readonly string[] | undefined;
  /** Conversations that become too long for their model continue with a summary. Default: they do. */
  readonly infiniteSessions?: InfiniteSessionOptions | undefined;
  /** What the project, the user and their organisation want of every agent. */
  readonly customInstructions?: CustomInstructionOptions | undefined;
  /** `plan`: the model works out a plan and changes nothing. `autopilot`: it works without asking. Default: `interactive`. */
  readonly agentMode?: AgentMode | undefined;
  /** How the model asks the user: a question, or a form. Default: `legacy`, a question. */
  readonly askUserVariant?: "legacy" | "elicitation" | undefined;
  /** Decides about the plan of a model in plan mode. */
  readonly onExitPlanModeRequest?: AskHandler<"exitPlanMode"> | undefined;
}

interface InfiniteSessionOptions {
  readonly enabled?: boolean | undefined;
  /** How full the model's context is when a summary is begun, while the conversation continues. Default: 0.8. */
  readonly backgroundCompactionThreshold?: number | undefined;
  /** How full it is when the conversation waits for the summary. Default: 0.95. */
  readonly bufferExhaustionThreshold?: number | undefined;
}

/** The same, checked and complete. */
export interface TurnConfig {
  readonly model: string | undefined;
  readonly provider: SessionProvider | undefined;
  readonly modelProviders: ModelProviders | undefined;
  readonly chatModel: ChatModel | undefined;
  readonly capabilities: ModelCapabilities;
  readonly reasoningEffort: string | undefined;
  readonly streaming: boolean;
  /** The session's, then the model's. */
  readonly systemMessages: readonly SystemMessageOptions[];
  readonly listingTokens: number;
  readonly maxIterations: number;
  readonly currentDateTime: CurrentDateTimeOption;
  readonly citesDocuments: boolean;
  readonly additionalDirectories: readonly string[];
  readonly agentMode: AgentMode;
  readonly asksByForm: boolean;
  readonly customInstructions: CustomInstructionOptions;
  /** When conversations are made shorter; undefined: never. */
  readonly infinite: { readonly backgroundThreshold: number; readonly exhaustionThreshold: number } | undefined;
}

/** Fills in what options leave open. */
export function resolveTurnConfig(
  given: TurnOptions & { readonly model?: string | undefined; readonly modelProviders?: ModelProviders | undefined },
  overrides: Pick<TurnOptions, "systemMessage">,
): TurnConfig {
  const customizations = [given.systemMessage, overrides.systemMessage];
  return Object.freeze({
    model: given.model,
    provider: given.provider,
    modelProviders: given.modelProviders,
    chatModel: given.chatModel,
    capabilities: given.modelCapabilities ?? {},
    reasoningEffort: given.reasoningEffort,
    streaming: given.streaming ?? false,
    systemMessages: Object.freeze(customizations.filter((each) => each !== undefined)),
    listingTokens: given.skillListing?.maxTokens ?? 4_000,
    maxIterations: given.maxIterations ?? 100,
    currentDateTime: given.currentDateTime ?? true,
    citesDocuments: given.enableCitations ?? false,
    additionalDirectories: given.additionalDirectories ?? [],
    agentMode: given.agentMode ?? "interactive",
    asksByForm: given.askUserVariant === "elicitation",
    customInstructions: given.customInstructions ?? none,
    infinite: toInfinite(given.infiniteSessions ?? {}),
  });
}

const none = Object.freeze({});

function toInfinite({
  enabled,
  backgroundCompactionThreshold = 0.8,
  bufferExhaustionThreshold = 0.95,
}: InfiniteSessionOptions): TurnConfig["infinite"] {
  if (enabled === false) return undefined;
  return Object.freeze({ backgroundThreshold: backgroundCompactionThreshold, exhaustionThreshold: bufferExhaustionThreshold });
}

type Readers = { readonly [K in keyof TurnOptions]-?: (value: unknown, field: string) => Exclude<TurnOptions[K], undefined> };

/** Readers for each option. @throws HostError `MODEL_OPTIONS` for a provider. */
export const turnReaders: Readers = {
  provider: readProvider,
  chatModel: (value, path) => (isChatModel(value) ? value : mustBe(path, "an object with id, address and complete")),
  modelCapabilities: readCapabilities,
  reasoningEffort: readText,
  streaming: readFlag,
  systemMessage: readSystemMessage,
  skillListing: fieldsReader<NonNullable<TurnOptions["skillListing"]>>({ maxTokens: readPositive }),
  maxIterations: readPositive,
  currentDateTime: (value, path) =>
    typeof value === "boolean" || typeof value === "function"
      ? (value as CurrentDateTimeOption)
      : mustBe(path, "true, false or a function"),
  enableCitations: readFlag,
  additionalDirectories: readTexts,
  customInstructions: readCustomInstructions,
  agentMode: readOneOf(["interactive", "plan", "autopilot"]),
  askUserVariant: readOneOf(["legacy", "elicitation"]),
  onExitPlanModeRequest: readCallback,
  infiniteSessions: fieldsReader<InfiniteSessionOptions>({
    enabled: readFlag,
    backgroundCompactionThreshold: readShare,
    bufferExhaustionThreshold: readShare,
  }),
};

function readShare(value: unknown, path: string): number {
  return typeof value === "number" && value > 0 && value <= 1 ? value : mustBe(path, "a number greater than 0 and at most 1");
}

// The same object comes back once it was checked, so that an update of other options keeps the connection's knowledge.
function readProvider(value: unknown): SessionProvider {
  // What a plugin's provider takes is its own to check.
  if (!isPluginProvider(value)) createModel({ ...(value as ProviderOptions), model: "any" });
  return Object.isFrozen(value) ? (value as SessionProvider) : Object.freeze({ ...(value as SessionProvider) });
}

function isChatModel(value: unknown): value is ChatModel {
  const isModel = typeof value === "object" && value !== null && typeof (value as ChatModel).complete === "function";
  return isModel && typeof (value as ChatModel).id === "string" && typeof (value as ChatModel).address === "string";
}

// Clients send all that they know of a model; what is not needed here is ignored.
function readCapabilities(value: unknown, path: string): ModelCapabilities {
  if (!isRecord(value)) return mustBe(path, "an object with supports and limits");
  const { supports = {}, limits = {} } = value;
  if (!isRecord(supports) || !isRecord(limits)) return mustBe(path, "an object with supports and limits");
  const vision = supports["vision"];
  const context = limits["max_context_window_tokens"];
  return Object.freeze({
    supports: { vision: vision === undefined ? undefined : readFlag(vision, `${path}.supports.vision`) },
    limits: {
      max_context_window_tokens: context === undefined ? undefined : readPositive(context, `${path}.limits.max_context_window_tokens`),
    },
  });
}

/** Makes a chat model for a provider of this plugin's name for it. */
export type ModelFactory = (options: { readonly model: string; readonly [option: string]: unknown }) => ChatModel | Promise<ChatModel>;

/** Where a model is served: an endpoint, or a provider that a plugin brings, with the options that it knows. */
export type SessionProvider = ProviderOptions | PluginProvider;

/** A model provider of a plugin, by its name, with the options that the plugin reads. */
export interface PluginProvider {
  /** The plugin's name for it. */
  readonly type: string;
  readonly [option: string]: unknown;
}

type ModelProviders = ReadonlyMap<string, ModelFactory>;

/** The types that are the host's own to read. No plugin can take one. */
export const ownProviderTypes: ReadonlySet<string> = new Set(providerTypes);

/** Whether a provider is one that a plugin would have to bring. */
export function isPluginProvider(provider: unknown): provider is PluginProvider {
  const type = typeof provider === "object" && provider !== null ? (provider as { readonly type?: unknown }).type : undefined;
  return typeof type === "string" && !ownProviderTypes.has(type);
}

/** @throws HostError `MODEL_OPTIONS` when no plugin brings such a provider. */
export function assertProvider(provider: SessionProvider | undefined, known: ModelProviders = new Map()): void {
  if (!isPluginProvider(provider) || known.has(provider.type)) return;
  const types = [...ownProviderTypes, ...known.keys()].map((type) => JSON.stringify(type)).join(", ");
  throw new HostError("MODEL_OPTIONS", `provider.type must be one of ${types}. Plugins can add others with api.addModelProvider.`);
}

/** A model of a plugin's provider. It is created at once; an error in that is reported with the first request. */
function createProvidedModel({ type, ...options }: PluginProvider, model: string, known: ModelProviders = new Map()): ChatModel {
  const create = known.get(type);
  if (create === undefined) throw new HostError("MODEL_MISSING", `The provider "${type}" of this session's model is no longer registered.`);
  const made = new Promise<ChatModel>((resolve) => resolve(create({ ...options, model })));
  // The caller of the model receives it.
  made.catch(() => {});
  return {
    id: model,
    address: type,
    async complete(request, completeOptions) {
      const chat = await made.catch((cause: unknown) => {
        throw new HostError("MODEL_MISSING", `The provider "${type}" could not create a model: ${errorMessage(cause)}`, { cause });
      });
      if (typeof (chat as Partial<ChatModel> | undefined)?.complete !== "function")
        throw new HostError("MODEL_MISSING", `The provider "${type}" returned a value that is not a chat model.`);
      return chat.complete(request, completeOptions);
    },
  };
}

/** A model as a turn uses it. */
export interface TurnModel {
  readonly chat: ChatModel;
  /** Whose protocol it speaks, for telemetry; `custom` for a model of this program. */
  readonly provider: string;
  readonly seesImages: boolean;
  /** Whether it takes PDF documents as they are, and cites them. */
  readonly readsDocuments: boolean;
  readonly citesDocuments: boolean;
  readonly contextTokens: number;
  readonly reasoningEffort: string | undefined;
}

/** Makes the model that a configuration names, and keeps it while it names the same. */
export class ModelCache {
  #made: { readonly provider: SessionProvider; readonly chat: ChatModel } | undefined;
  #known: { readonly config: TurnConfig; readonly model: TurnModel } | undefined;

  /** @throws HostError `MODEL_MISSING` when there is none. */
  modelOf(config: TurnConfig): TurnModel {
    // A turn asks several times; the options are one object until they change.
    if (this.#known?.config !== config) this.#known = { config, model: this.#read(config) };
    return this.#known.model;
  }

  #read(config: TurnConfig): TurnModel {
    const { supports, limits } = config.capabilities;
    const chat = config.chatModel ?? this.#connect(config);
    return {
      chat,
      provider: config.chatModel === undefined ? (config.provider?.type ?? "openai") : "custom",
      seesImages: supports?.vision ?? seeing.test(wellKnownName(config) ?? chat.id),
      readsDocuments: config.chatModel === undefined && config.provider?.type === "anthropic",
      citesDocuments: config.citesDocuments,
      contextTokens: limits?.max_context_window_tokens ?? chat.contextWindow ?? 128_000,
      reasoningEffort: config.reasoningEffort,
    };
  }

  #connect({ model, provider, modelProviders }: TurnConfig): ChatModel {
    if (model === undefined || provider === undefined) {
      const missing = model === undefined ? "model" : "provider";
      const advice = 'Give the session model and provider: { type: "openai", baseUrl, apiKey }, or a chatModel.';
      throw new HostError("MODEL_MISSING", `This session has no model: ${missing} is missing. ${advice}`);
    }
    if (this.#made?.provider !== provider || this.#made.chat.id !== model) {
      const chat = isPluginProvider(provider)
        ? createProvidedModel(provider, model, modelProviders)
        : createModel({ ...(provider as ProviderOptions), model });
      this.#made = { provider, chat };
    }
    return this.#made.chat;
  }
}

// Deployments have names of their own.
function wellKnownName({ chatModel, provider }: TurnConfig): string | undefined {
  return chatModel === undefined && !isPluginProvider(provider) ? (provider as ProviderOptions | undefined)?.modelId : undefined;
}

// Families whose members see. An endpoint refuses pictures for one that does not, so what is not known does not.
const seeing = /gpt-(?:4o|4\.1|4-turbo|5)|(?:^|\/)o[134](?:-|$)|claude|gemini|llava|pixtral|vision|[-.]vl\b|llama-?4|gemma-?3/i;
