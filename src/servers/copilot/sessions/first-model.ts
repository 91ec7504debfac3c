import { HostError } from "../../../base/errors.ts";
import type { ProviderOptions } from "../../../models/provider.ts";
import { listModels } from "../../../models/provider.ts";
import { isPluginProvider, type SessionProvider } from "../../../session/turns/provided-model.ts";

/** What the runtime of the Copilot SDK takes when nothing is said. */
const usualModel = "claude-sonnet-4.5";

/** The model to take where nobody named one: the usual one if the endpoint has it, else its first. */
export async function firstModel(provider: SessionProvider): Promise<string> {
  if (isPluginProvider(provider)) throw new HostError("MODEL_MISSING", "The session names no model. Give it one.");
  try {
    const models = await listModels({ ...(provider as ProviderOptions), retries: 0 }, { signal: AbortSignal.timeout(10_000) });
    return models.find(({ id }) => id === usualModel)?.id ?? models[0]?.id ?? usualModel;
  } catch {
    // An endpoint without a list may still have the model; what it says to a message is told then.
    return usualModel;
  }
}
