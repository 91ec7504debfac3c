import type { ProviderOptions } from "../models/provider.ts";
import { usageError } from "./cli-error.ts";
import type { CliIo } from "./process-io.ts";

/** The model and its place, as the command line and the environment name them. The key comes from the environment only: others can read command lines. */
export function modelFrom(
  given: { readonly model?: string; readonly baseUrl?: string },
  env: CliIo["env"],
): { readonly model: string; readonly provider: ProviderOptions } {
  const apiKey = env["OPENAI_API_KEY"] || undefined;
  const baseUrl = given.baseUrl ?? (env["OPENAI_BASE_URL"] || undefined) ?? (apiKey && "https://api.openai.com/v1");
  if (baseUrl === undefined) {
    throw usageError("There is no model to ask. Give --base-url (or OPENAI_BASE_URL), and OPENAI_API_KEY where a key is needed.");
  }
  const model = given.model ?? (env["OPENAI_MODEL"] || undefined);
  if (model === undefined) throw usageError(`Which model? Name one of those that ${hostOf(baseUrl)} serves with --model.`);
  return { model, provider: { type: "openai", baseUrl, apiKey } };
}

function hostOf(baseUrl: string): string {
  return URL.canParse(baseUrl) ? new URL(baseUrl).host : "the endpoint";
}
