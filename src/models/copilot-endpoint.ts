import type { ProviderOptions } from "./provider.ts";

type Env = Readonly<Record<string, string | undefined>>;

/** Of these variables, the first that is set holds the token, in the order of the Copilot SDK. */
const tokenNames = ["GITHUB_COPILOT_API_TOKEN", "COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN"];

export interface CopilotEndpointOptions {
  /** Takes the place of the tokens of the environment. */
  readonly token?: string | undefined;
  /** Who asks, in the endpoint's words. */
  readonly integrationId?: string | undefined;
}

/**
 * The endpoint that `COPILOT_API_URL` names, where the Copilot runtime sends its requests (`/models` and
 * `/chat/completions` below it); undefined when it names none.
 */
export function copilotEndpoint(env: Env, { token, integrationId }: CopilotEndpointOptions = {}): ProviderOptions | undefined {
  const baseUrl = env["COPILOT_API_URL"];
  if (baseUrl === undefined || baseUrl === "") return undefined;
  const found = [token, ...tokenNames.map((name) => env[name])].find((text) => text !== undefined && text !== "");
  const headers = { "x-github-api-version": "2025-05-01", ...(integrationId && { "copilot-integration-id": integrationId }) };
  return { type: "openai", baseUrl, headers, ...(found === undefined ? {} : { bearerToken: found }) };
}
