import { errorMessage, HostError } from "../../base/errors.ts";
import type { ChatModel } from "../../models/model.ts";
import type { ProviderOptions } from "../../models/provider.ts";
import { providerTypes } from "../../models/provider-route.ts";

/** Makes a chat model for a provider of this plugin's name for it. */
export type ModelFactory = (options: { readonly model: string; readonly [option: string]: unknown }) => ChatModel | Promise<ChatModel>;

/** Where a model is served: an endpoint, or a provider that a plugin brings, with the options that it knows. */
export type SessionProvider = ProviderOptions | PluginProvider;

export interface PluginProvider {
  /** The plugin's name for it. */
  readonly type: string;
  readonly [option: string]: unknown;
}

export type ModelProviders = ReadonlyMap<string, ModelFactory>;

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
  throw new HostError("MODEL_OPTIONS", `provider.type must be one of ${types}. Others come with plugins, by api.addModelProvider.`);
}

/** A model of a plugin's provider. It is made at once, and what goes wrong with that is told when it is asked something. */
export function createProvidedModel({ type, ...options }: PluginProvider, model: string, known: ModelProviders = new Map()): ChatModel {
  const create = known.get(type);
  if (create === undefined) throw new HostError("MODEL_MISSING", `The provider "${type}" of this session's model is not there any more.`);
  const made = new Promise<ChatModel>((resolve) => resolve(create({ ...options, model })));
  // Whoever asks the model hears of it.
  made.catch(() => {});
  return {
    id: model,
    address: type,
    async complete(request, completeOptions) {
      const chat = await made.catch((cause: unknown) => {
        throw new HostError("MODEL_MISSING", `The provider "${type}" made no model: ${errorMessage(cause)}`, { cause });
      });
      if (typeof (chat as Partial<ChatModel> | undefined)?.complete !== "function")
        throw new HostError("MODEL_MISSING", `The provider "${type}" made something that is not a chat model.`);
      return chat.complete(request, completeOptions);
    },
  };
}
