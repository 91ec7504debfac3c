import { errorMessage, HostError } from "../../../base/errors.ts";
import { minimalEnvironment } from "../../../io/process/child-environment.ts";
import type { SessionOptions } from "../../../session/session-config.ts";
import type { Client } from "../clients/client.ts";
import type { Params } from "../connection/params.ts";
import type { ServerContext } from "../context.ts";
import type { CopilotSession } from "../sessions/copilot-session.ts";
import { SessionExtensions } from "./session-extensions.ts";

/** Refuses an extension that joins another session than its own. @throws HostError `EXTENSION_REFUSED`. */
export function admitExtension(
  { extension }: Client,
  params: Params,
  sessionId: string,
  environment: ServerContext["options"]["environment"],
): void {
  if (extension === undefined) return;
  if (extension.sessionId !== sessionId) {
    throw new HostError(
      "EXTENSION_REFUSED",
      `Extension "${extension.id}" was started for session ${extension.sessionId} and cannot join another one.`,
    );
  }
  const given = minimalEnvironment();
  const kept = params
    .texts("requestedEnvironmentVariables")
    .filter((name) => environment[name] !== undefined && !Object.hasOwn(given, name));
  if (kept.length === 0) return;
  const advice = "skillhost does not pass its environment variables to extensions. Read the values from a file instead.";
  throw new HostError("EXTENSION_REFUSED", `Extension "${extension.id}" requests ${kept.join(", ")}, but ${advice}`);
}

/** Records why an extension could not join: it will exit, and the reason is reported then. */
export async function joining<T>({ extension }: Client, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (extension !== undefined) extension.refusal = errorMessage(error);
    throw error;
  }
}

/** The options that a joining client changes. An extension changes the model's provider only if it names one. */
export function changesOf({ extension }: Client, params: Params, options: SessionOptions): SessionOptions {
  if (extension === undefined || params.get("provider") !== undefined || params.get("providers") !== undefined) return options;
  const { provider: _provider, ...rest } = options;
  return rest;
}

/** Completes a join: an extension counts as running now, and a client that requests extensions gets them started. */
export function followJoin(server: ServerContext, session: CopilotSession, client: Client, params: Params): void {
  client.extension?.onJoined();
  if (client.extension !== undefined || !params.flag("requestExtensions") || session.extensions !== undefined) return;
  session.extensions = new SessionExtensions(server, session.session, params.optionalText("extensionSdkPath"));
  session.extensions.start();
}
