import { HostError } from "../../../base/errors.ts";
import { isRecord } from "../../../base/json.ts";
import { readAttachments } from "../../../session/turns/user-attachments.ts";
import { badParams } from "../connection/params.ts";
import { readDisabledExtensions, switchUserExtensions } from "../extensions/disabled-extensions.ts";
import { discoverUserExtensions, type SessionExtensions } from "../extensions/session-extensions.ts";
import { findSession } from "../sessions/session-registry.ts";
import type { Call, MethodFamily } from "./method.ts";

/** Extensions: programs that attach to a session as clients. */
export const extensions: MethodFamily = {
  "session.extensions.list": ({ server, params }) => ({ extensions: findSession(server, params).extensions?.list() ?? [] }),
  async "session.extensions.reload"({ server, params }) {
    await findSession(server, params).extensions?.reload();
  },
  "extensions.discover": ({ server: { options } }) => ({
    extensions: listUserExtensions(options.extensionsDirectory),
    mode: "load_only",
  }),
  // Of later sessions; those that are open keep theirs.
  "extensions.enable": (call) => switchExtensions(call, true),
  "extensions.disable": (call) => switchExtensions(call, false),
  "session.extensions.enable": (call) => extensionsOf(call).enable(call.params.text("id")),
  "session.extensions.disable": (call) => extensionsOf(call).disable(call.params.text("id")),
  // The programs that users see offer the attachments, and send them with the next message.
  "session.extensions.sendAttachmentsToMessage"({ server, client, params }) {
    const { session } = findSession(server, params);
    const { extension } = client;
    if (extension?.sessionId !== session.id) {
      throw badParams(params.method, "only extensions of the session may push attachments. Send them with session.send.");
    }
    const extensionId = extension.id;
    if (params.get("instanceId") !== undefined) throw badParams(params.method, "skillhost has no canvases, so instanceId names none.");
    const capturedAt = new Date().toISOString();
    const attachments = params.records("attachments").map((given) => toPushed(given, { extensionId, capturedAt }));
    const { workingDirectory, turn } = session.config;
    // Each must be one that session.send takes.
    readAttachments(attachments, { workingDirectory, additionalDirectories: turn.additionalDirectories });
    session.events.append("session.extensions.attachments_pushed", { attachments });
    return null;
  },
};

/** An attachment with the fields that clients know, and what an extension adds with its origin. */
function toPushed({ type, ...given }: Readonly<Record<string, unknown>>, origin: { extensionId: string; capturedAt: string }): object {
  const { path, displayName, title, payload } = given;
  if (type === "extension_context") return { type, ...origin, title, payload: payload ?? null };
  if (type !== "file" && type !== "directory") return { type, ...given };
  const { lineRange } = given;
  const isRange = type === "file" && isRecord(lineRange);
  return {
    type,
    path,
    displayName: displayName ?? path,
    ...(isRange && { lineRange: { start: lineRange["start"], end: lineRange["end"] } }),
  };
}

function listUserExtensions(directory: string | undefined): readonly object[] {
  const disabled = readDisabledExtensions(directory);
  return discoverUserExtensions(directory).map(({ id, name, file, source }) => ({
    id,
    name,
    path: file,
    source,
    enabled: !disabled.has(id),
  }));
}

function switchExtensions({ server: { options }, params }: Call, isEnabled: boolean): Promise<null> {
  const { extensionsDirectory } = options;
  const known = discoverUserExtensions(extensionsDirectory).map(({ id }) => id);
  return switchUserExtensions(extensionsDirectory, { known, ids: params.texts("ids"), isEnabled });
}

function extensionsOf({ server, params }: Call): SessionExtensions {
  const { extensions } = findSession(server, params);
  if (extensions !== undefined) return extensions;
  const advice = "Create or resume it with requestExtensions: true.";
  throw new HostError("EXTENSION_UNKNOWN", `Extension not found: ${params.text("id")}. This session has no extensions. ${advice}`);
}
