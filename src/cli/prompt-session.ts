import type { ProviderOptions } from "../models/provider.ts";
import type { SessionOptions } from "../session/session-config.ts";
import { approveAll } from "../tools/tool.ts";
import { usageError } from "./cli-error.ts";
import type { CommandContext } from "./command-context.ts";
import { promptPermission, userInputHandler } from "./confirm.ts";
import type { CliIo } from "./process-io.ts";
import type { ChosenAgent } from "./project-agents.ts";

/** The options of the commands that have a session with a model. */
export interface PromptCommandOptions {
  readonly agent?: string;
  readonly model?: string;
  readonly baseUrl?: string;
  readonly system?: string;
  readonly allow?: readonly string[];
  readonly deny?: readonly string[];
  readonly yes?: boolean;
  readonly available?: readonly string[];
  readonly excluded?: readonly string[];
  readonly stream: boolean;
  /** Whether the session is stored, so that it can be resumed. */
  readonly save: boolean;
  /** Whether the model has a database with its todos. */
  readonly todos?: boolean;
}

/** The options of a session for prompts. Calls that no rule decides are asked for on a terminal, and denied elsewhere. */
export function toSessionOptions(options: PromptCommandOptions, context: CommandContext, chosen: ChosenAgent | undefined): SessionOptions {
  const excluded = [...(chosen?.options.excludedTools ?? []), ...(options.excluded ?? [])];
  return {
    ...chosen?.options,
    ...modelFrom(options, context.io.env),
    persist: options.save,
    ...(options.todos === true && { sessionDatabase: true }),
    streaming: options.stream,
    systemMessage: options.system === undefined ? undefined : { content: options.system },
    availableTools: options.available,
    excludedTools: excluded.length > 0 ? excluded : undefined,
    permissions: { allow: options.allow, deny: options.deny },
    onPermissionRequest: options.yes === true ? approveAll : promptPermission(context),
    onUserInputRequest: userInputHandler(context),
  };
}

/**
 * The model and its endpoint from the command line and the environment. The key comes only from the environment: other users can read
 * command lines.
 */
function modelFrom(
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
