import { errorMessage, HostError } from "../../../base/errors.ts";
import type { Session } from "../../../session/session.ts";
import type { Compaction } from "../../../session/turns/compaction.ts";
import { badParams } from "../connection/params.ts";
import { chooseModel } from "../request/model-endpoint.ts";
import type { CopilotSession } from "../sessions/copilot-session.ts";
import { findSession } from "../sessions/session-registry.ts";
import type { Call, MethodFamily } from "./method.ts";

/** The conversation of a session: rewind and compaction. */
export const history: MethodFamily = {
  async "session.history.truncate"(call) {
    const session = sessionOf(call);
    return { eventsRemoved: await session.session.conversation.rewind(call.params.text("eventId")) };
  },
  async "session.history.rewind"(call) {
    const { session } = sessionOf(call);
    const mode = call.params.optionalText("mode") ?? "conversation";
    if (mode !== "conversation" && mode !== "conversation-and-files")
      throw badParams(call.params.method, 'mode must be "conversation" or "conversation-and-files".');
    try {
      return await session.rewind(call.params.text("eventId"), { restoreFiles: mode === "conversation-and-files" });
    } catch (error) {
      const outcome = error instanceof HostError ? refusals[error.code] : undefined;
      if (outcome === undefined) throw error;
      return { outcome, restoredFiles: [], skippedFiles: [] };
    }
  },
  async "session.history.listRewindPoints"(call) {
    const { conversation, rewinding, config } = sessionOf(call).session;
    const fileChangeTrackingEnabled = config.options.fileChangeTracking === true;
    if (conversation.isBusy) return { fileChangeTrackingEnabled, unavailableReason: "session-busy", points: [] };
    const points = await conversation.rewindPoints();
    const described = await rewinding.describe(points);
    const unknown = { canRestoreFiles: false, fileCount: 0, turnChangedFiles: false, linesAdded: 0, linesRemoved: 0 };
    return {
      fileChangeTrackingEnabled,
      points: (described ?? points).map(({ prompt, ...point }) => ({
        ...unknown,
        ...point,
        userMessage: prompt,
        isAutopilotContinuation: false,
      })),
    };
  },
  async "session.history.previewRewind"(call) {
    const { conversation, rewinding } = sessionOf(call).session;
    const unavailable = { available: false, fileCount: 0, files: [] };
    if (conversation.isBusy) return { ...unavailable, reason: refusals["SESSION_BUSY"] };
    const files = await rewinding.preview(call.params.text("eventId"));
    if (files === undefined) return { ...unavailable, reason: refusals["FILES_NOT_TRACKED"] };
    return { available: true, fileCount: files.length, files };
  },
  async "session.history.compact"(call) {
    const { session } = sessionOf(call);
    const end = await compactSession(call, session, call.params.optionalText("customInstructions"));
    if (end.kind === "cancelled") return { success: false, tokensRemoved: 0, messagesRemoved: 0 };
    const { summary, tokensRemoved, messagesRemoved } = end;
    const window = session.conversation.contextUse;
    return {
      success: true,
      tokensRemoved,
      messagesRemoved,
      summaryContent: summary,
      ...(window && { contextWindow: { ...window, messagesLength: session.history.messages().length } }),
    };
  },
  "session.history.abortManualCompaction": (call) => ({
    aborted: sessionOf(call).session.conversation.cancelCompaction("manual"),
  }),
  "session.history.cancelBackgroundCompaction": (call) => ({
    cancelled: sessionOf(call).session.conversation.cancelCompaction("background"),
  }),
  async "session.history.summarizeForHandoff"(call) {
    const { session } = sessionOf(call);
    await chooseModel(call.server, session);
    return { summary: await session.conversation.summarize(call.signal()) };
  },
  "session.history.clearContext"(call) {
    const { messagesCleared } = sessionOf(call).session.conversation.clear(call.params.text("prompt"));
    return { messagesCleared };
  },
};

/** Why files cannot be restored, by the code of the error. */
const refusals: Readonly<Record<string, string>> = {
  SESSION_BUSY: "session-busy",
  FILES_NOT_TRACKED: "file-change-tracking-disabled",
};

function sessionOf({ server, params }: Call): CopilotSession {
  return findSession(server, params);
}

/** Shortens a conversation on request. @throws HostError `COMPACTION` when no summary could be made. */
export async function compactSession(
  call: Call,
  session: Session,
  instructions: string | undefined,
  signal: AbortSignal = call.signal(),
): Promise<Exclude<Compaction, { kind: "failed" }>> {
  await chooseModel(call.server, session);
  const end = await session.conversation.compact({ instructions, signal });
  if (end.kind === "failed") throw new HostError("COMPACTION", `Compaction failed: ${errorMessage(end.error)}`);
  return end;
}
