import { HostError } from "../../base/errors.ts";
import type { ChatModel } from "../../models/model.ts";
import { createModel, type ProviderOptions } from "../../models/provider.ts";
import { createProvidedModel, isPluginProvider, type SessionProvider, type TurnConfig } from "./turn-options.ts";

/** A model as a turn uses it. */
export interface TurnModel {
  readonly chat: ChatModel;
  /** Whose protocol it speaks, for telemetry; `custom` for a model of this program. */
  readonly provider: string;
  readonly seesImages: boolean;
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
