import type { Session } from "../../session/session.ts";
import { type BlobStore, redactSecrets } from "./blob-store.ts";
import { toFeedRecord, toFeedText } from "./feed-json.ts";
import type { FeedRequests } from "./feed-messages.ts";

type Result<M extends keyof FeedRequests> = FeedRequests[M]["result"];

const maxPoints = 200;
const maxFiles = 200;
const maxPrompt = 300;

/** The messages of the user that the session can go back to. */
export async function listRewindPoints({ conversation, config }: Session): Promise<Result<"session.listRewindPoints">> {
  const points = await conversation.rewindPoints();
  const first = Math.max(0, points.length - maxPoints);
  return {
    points: points
      .slice(first)
      .map(({ eventId, prompt, timestamp }, index) => ({ number: first + index + 1, eventId, prompt: shown(prompt), timestamp })),
    total: points.length,
    tracksFiles: config.options.fileChangeTracking === true,
  };
}

/** The files that going back to an event can restore. @throws HostError `EVENT_UNKNOWN`. */
export async function previewRewind(session: Session, eventId: string): Promise<Result<"session.previewRewind">> {
  const files = (await session.rewinding.preview(eventId)) ?? [];
  return { files: files.slice(0, maxFiles), fileCount: files.length };
}

/** @throws HostError as `Session.rewind`. */
export async function rewindSession(
  session: Session,
  eventId: string,
  restoreFiles: boolean,
  blobs: BlobStore,
): Promise<Result<"session.rewind">> {
  return toFeedRecord(await session.rewind(eventId, { restoreFiles }), blobs) as unknown as Result<"session.rewind">;
}

/** The summaries that were made of the conversation. */
export async function listCheckpoints({ workspace }: Session): Promise<Result<"session.listCheckpoints">> {
  const all = await workspace.listCheckpoints();
  return { checkpoints: all.slice(-maxPoints).map(({ number, title }) => ({ number, title: shown(title) })), total: all.length };
}

/** The text of a summary. Undefined: there is none with this number, or its file is gone. */
export async function readCheckpoint(
  { workspace }: Session,
  number: number,
  blobs: BlobStore,
): Promise<Result<"session.readCheckpoint"> | undefined> {
  const text = await workspace.readCheckpoint(number);
  return text === undefined ? undefined : { text: toFeedText(text, blobs) };
}

/** The beginning of a text. A secret at its end is replaced before the text is cut. */
function shown(text: string): string {
  return redactSecrets(text.slice(0, 4 * maxPrompt)).slice(0, maxPrompt);
}
