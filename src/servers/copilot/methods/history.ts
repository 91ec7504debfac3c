import { errorMessage, HostError } from "../../../base/errors.ts";
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
    const files = { restoredFiles: [], skippedFiles: [] };
    if (session.conversation.isBusy) return { outcome: "session-busy", ...files };
    if (mode === "conversation-and-files") return { outcome: noFiles, ...files };
    if (mode !== "conversation") throw badParams(call.params.method, 'mode must be "conversation" or "conversation-and-files".');
    return { outcome: "success", eventsRemoved: await session.conversation.rewind(call.params.text("eventId")), ...files };
  },
  async "session.history.listRewindPoints"(call) {
    const { conversation } = sessionOf(call).session;
    if (conversation.isBusy) return { fileChangeTrackingEnabled: false, unavailableReason: "session-busy", points: [] };
    const points = await conversation.rewindPoints();
    const unknown = { canRestoreFiles: false, fileCount: 0, turnChangedFiles: false, linesAdded: 0, linesRemoved: 0 };
    return {
      fileChangeTrackingEnabled: false,
      points: points.map(({ prompt, ...point }) => ({ ...point, userMessage: prompt, ...unknown, isAutopilotContinuation: false })),
    };
  },
  "session.history.previewRewind"(call) {
    sessionOf(call);
    // Changes of files are not recorded, so only the conversation can be rewound.
    return { available: false, reason: noFiles, fileCount: 0, files: [] };
  },
  async "session.history.compact"(call) {
    const { session } = sessionOf(call);
    await chooseModel(call.server, session);
    const instructions = call.params.optionalText("customInstructions");
    const end = await session.conversation.compact({ instructions, signal: call.signal() });
    if (end.kind === "failed") throw new HostError("COMPACTION", `Compaction failed: ${errorMessage(end.error)}`);
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

const noFiles = "file-change-tracking-disabled";

function sessionOf({ server, params }: Call): CopilotSession {
  return findSession(server, params);
}
