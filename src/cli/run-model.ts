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
    throw usageError(
      "No model endpoint is configured. Pass --base-url or set OPENAI_BASE_URL, and set OPENAI_API_KEY if the endpoint requires a key.",
    );
  }
  const model = given.model ?? (env["OPENAI_MODEL"] || undefined);
  if (model === undefined) throw usageError(`No model is chosen. Pass one that ${hostOf(baseUrl)} serves with --model.`);
  return { model, provider: { type: "openai", baseUrl, apiKey } };
}

function hostOf(baseUrl: string): string {
  return URL.canParse(baseUrl) ? new URL(baseUrl).host : "the endpoint";
}
