import { useSignal, useSignalEffect } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { FeedRequests, FeedRewindPoint, FeedSession } from "../../src/servers/inspector/feed-messages.ts";
import { requestHost } from "../feed/host-requests.ts";
import type { ReceivedEvent } from "../feed/received-event.ts";
import { announce, attempt, store } from "../page-state.ts";
import { formatTime, TextValue } from "../parts/values.tsx";
import { rewindType } from "./taken-back.ts";

type Result<M extends keyof FeedRequests> = FeedRequests[M]["result"];

interface History {
  readonly rewind: Result<"session.listRewindPoints">;
  readonly summaries: Result<"session.listCheckpoints">;
}

/** After these events, the messages or summaries of a session are others. */
const changing: ReadonlySet<string> = new Set(["user.message", "session.compaction_complete", rewindType]);

interface HistoryProps {
  readonly session: FeedSession;
  readonly entries: readonly ReceivedEvent[];
}

/** The messages of the user, each a place to go back to, and the summaries of the conversation. */
export function SessionHistory({ session, entries }: HistoryProps): JSX.Element {
  const { id, state } = session;
  return (
    <>
      <div class="buttons">
        <button type="button" disabled={store.isReadOnly.value} onClick={() => attempt(copySession(id))}>
          Copy session
        </button>
      </div>
      {state === "closed" ? (
        <p>The session has ended, so nothing of it can be taken back here.</p>
      ) : (
        <OpenHistory session={session} entries={entries} />
      )}
    </>
  );
}

function OpenHistory({ session: { id: sessionId }, entries }: HistoryProps): JSX.Element {
  const history = useSignal<History | undefined>(undefined);
  const chosen = useSignal<string | undefined>(undefined);
  const lastChange = useSignal("");
  lastChange.value = entries.findLast(({ type }) => changing.has(type))?.event.id ?? "";
  useSignalEffect(() => {
    const change = lastChange.value;
    attempt(
      Promise.all([requestHost("session.listRewindPoints", { sessionId }), requestHost("session.listCheckpoints", { sessionId })]).then(
        ([rewind, summaries]) => {
          // A later change has asked again.
          if (lastChange.peek() === change) history.value = { rewind, summaries };
        },
      ),
    );
  });
  if (history.value === undefined) return <p>Reading the history …</p>;
  const { points, total, tracksFiles } = history.value.rewind;
  return (
    <>
      <h3>Messages</h3>
      {total === 0 ? <p>Nothing was said yet.</p> : null}
      {points.length < total ? (
        <p class="hint">
          The last {points.length} of {total} messages
        </p>
      ) : null}
      <ol class="conversation" aria-label="Messages">
        {points.map((point) => (
          <li key={point.eventId} class="said user-message">
            <p class="said-head">
              <strong>Message {point.number}</strong> <span class="hint">{formatTime(point.timestamp)}</span>
            </p>
            <p class="cut">{point.prompt}</p>
            {chosen.value === point.eventId ? (
              <Confirmation
                sessionId={sessionId}
                point={point}
                count={total - point.number + 1}
                tracksFiles={tracksFiles}
                onEnd={() => (chosen.value = undefined)}
              />
            ) : (
              <PointButtons sessionId={sessionId} point={point} onChosen={() => (chosen.value = point.eventId)} />
            )}
          </li>
        ))}
      </ol>
      <Summaries sessionId={sessionId} summaries={history.value.summaries} />
    </>
  );
}

interface PointProps {
  readonly sessionId: string;
  readonly point: FeedRewindPoint;
}

function PointButtons({ sessionId, point: { number, eventId }, onChosen }: PointProps & { readonly onChosen: () => void }): JSX.Element {
  const isReadOnly = store.isReadOnly.value;
  return (
    <div class="buttons">
      <button type="button" class="small" disabled={isReadOnly} aria-label={`Take back to here: message ${number}`} onClick={onChosen}>
        Take back to here
      </button>
      <button
        type="button"
        class="small"
        disabled={isReadOnly}
        aria-label={`Copy what is before message ${number}`}
        onClick={() => attempt(copySession(sessionId, eventId))}
      >
        Copy what is before
      </button>
    </div>
  );
}

interface ConfirmationProps extends PointProps {
  /** How many messages are taken back. */
  readonly count: number;
  readonly tracksFiles: boolean;
  readonly onEnd: () => void;
}

/** Nothing is taken back before it is confirmed here, beside what will be gone. */
function Confirmation({ sessionId, point: { number, eventId }, count, tracksFiles, onEnd }: ConfirmationProps): JSX.Element {
  const preview = useSignal<Result<"session.previewRewind"> | undefined>(undefined);
  const restoreFiles = useSignal(false);
  const cancel = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    // The button that had the focus is gone.
    cancel.current?.focus();
    if (!tracksFiles) return;
    attempt(
      requestHost("session.previewRewind", { sessionId, eventId }).then((answer) => {
        preview.value = answer;
      }),
    );
  }, []);
  const { files = [], fileCount = 0 } = preview.value ?? {};
  const rewind = async (): Promise<void> => {
    const result = await requestHost("session.rewind", { sessionId, eventId, restoreFiles: restoreFiles.value });
    announce(describe(result, number));
    onEnd();
  };
  return (
    <section class="card" aria-label={`Take back message ${number}`}>
      <p>
        {count === 1 ? "This message" : `This message and the ${count - 1} after it`} and all answers and calls since are taken back. This
        cannot be undone; a copy of the session keeps them.
      </p>
      {fileCount === 0 ? null : (
        <>
          <label>
            <input
              type="checkbox"
              checked={restoreFiles.value}
              onChange={({ currentTarget }) => (restoreFiles.value = currentTarget.checked)}
            />{" "}
            Restore {fileCount === 1 ? "the file" : `the ${fileCount} files`} that tools changed since, except what others have changed
          </label>
          <ul>
            {files.map(({ path, changeType, linesAdded, linesRemoved }) => (
              <li key={path}>
                {path}{" "}
                <span class="hint">
                  {changeType}, +{linesAdded} −{linesRemoved}
                </span>
              </li>
            ))}
          </ul>
        </>
      )}
      <div class="buttons">
        <button type="button" class="primary" disabled={store.isReadOnly.value} onClick={() => attempt(rewind())}>
          Take back
        </button>
        <button type="button" ref={cancel} onClick={onEnd}>
          Cancel
        </button>
      </div>
    </section>
  );
}

function describe({ outcome, eventsRemoved, restoredFiles, skippedFiles, error }: Result<"session.rewind">, number: number): string {
  if (eventsRemoved === undefined) return `The conversation is as it was (${outcome}): ${error ?? "files could not be restored"}.`;
  const restored = restoredFiles.length === 0 ? "" : ` Restored: ${restoredFiles.join(", ")}.`;
  const skipped = skippedFiles.map(({ path, reason }) => ` ${path} stays as it is: ${reason}.`).join("");
  return `Message ${number} and what followed it are taken back.${restored}${skipped}`;
}

async function copySession(sessionId: string, toEventId?: string): Promise<void> {
  const copy = await requestHost("session.fork", { sessionId, ...(toEventId === undefined ? {} : { toEventId }) });
  announce(
    `Stored as ${copy.sessionId}. A program continues it with host.resumeSession, and a terminal with: skillhost chat --resume ${copy.sessionId}`,
  );
}

function Summaries({ sessionId, summaries }: { readonly sessionId: string; readonly summaries: History["summaries"] }): JSX.Element {
  const { checkpoints, total } = summaries;
  return (
    <>
      <h3>Checkpoints</h3>
      {total === 0 ? <p>The conversation was not summarized yet.</p> : null}
      {checkpoints.length < total ? (
        <p class="hint">
          The last {checkpoints.length} of {total} summaries
        </p>
      ) : null}
      <ol class="conversation" aria-label="Checkpoints">
        {checkpoints.map(({ number, title }) => (
          <li key={number} class="said">
            <p class="said-head">
              <strong>{number}</strong> {title}
            </p>
            <Summary sessionId={sessionId} number={number} />
          </li>
        ))}
      </ol>
    </>
  );
}

function Summary({ sessionId, number }: { readonly sessionId: string; readonly number: number }): JSX.Element {
  const read = useSignal<Result<"session.readCheckpoint"> | undefined>(undefined);
  if (read.value !== undefined) return <TextValue value={read.value.text} label={`Checkpoint ${number}`} />;
  const load = (): void =>
    attempt(
      requestHost("session.readCheckpoint", { sessionId, number }).then((answer) => {
        read.value = answer;
      }),
    );
  return (
    <button type="button" class="small" aria-label={`Show checkpoint ${number}`} onClick={load}>
      Show
    </button>
  );
}
