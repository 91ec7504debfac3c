import { errorMessage, HostError } from "../../base/errors.ts";
import type { RewindPoint } from "../conversation.ts";
import type { SessionRuntime } from "../session-runtime.ts";
import { diffFiles, type FileDiff } from "./diff-files.ts";
import type { RecordedEvent } from "./events.ts";
import type { CapturedChange } from "./file-changes.ts";
import { changesByFile, isRestorable, restoreFiles, type SkippedFile } from "./restore-files.ts";
import { findCut } from "./session-log.ts";

/** A place that a session can go back to, and the files that its tools have changed since. */
export interface FileRewindPoint extends RewindPoint {
  /** Whether a file that changed in this turn or later can be restored. */
  readonly canRestoreFiles: boolean;
  /** The files that changed in this turn or later. */
  readonly fileCount: number;
  readonly turnChangedFiles: boolean;
  /** Of this turn alone, from the first to the last line that differs. */
  readonly linesAdded: number;
  readonly linesRemoved: number;
}

/** A file that a rewind would restore. */
export interface RewindFile {
  readonly path: string;
  readonly changeType: "created" | "modified";
  readonly linesAdded: number;
  readonly linesRemoved: number;
}

export interface RewindOptions {
  /** Whether files that tools changed since are put back. Default: false. */
  readonly restoreFiles?: boolean | undefined;
}

export interface RewindResult {
  /**
   * `files-rolled-back`: a file could not be restored, and nothing was changed. `rollback-incomplete`: the files in `restoredFiles` stay
   * restored. `truncation-failed`: the files are restored, and the conversation is as it was.
   */
  readonly outcome: "success" | "files-rolled-back" | "rollback-incomplete" | "truncation-failed" | "snapshot-prune-failed";
  readonly eventsRemoved?: number;
  readonly restoredFiles: readonly string[];
  /** Files that were left as they are, and why. */
  readonly skippedFiles: readonly SkippedFile[];
  readonly error?: string;
}

type RewindParts = Pick<SessionRuntime, "recording" | "fileHistory" | "assertIdle" | "config">;

/** Takes back what was said from a message on, and on request what tools did to files. */
export class SessionRewind {
  readonly #host: RewindParts;

  constructor(host: RewindParts) {
    this.#host = host;
  }

  /** Adds to each point what the session knows of files; undefined when it does not track them. */
  async describe(points: readonly RewindPoint[]): Promise<readonly FileRewindPoint[] | undefined> {
    const { fileHistory, recording } = this.#host;
    if (fileHistory === undefined) return undefined;
    const [events, changes] = [await recording.read(), await fileHistory.all()];
    const starts = points.map(({ eventId }) => events.findIndex(({ id }) => id === eventId));
    return points.map((point, index) => {
      const later = changesIn(events.slice(starts[index]), changes);
      const own = changesIn(events.slice(starts[index], starts[index + 1]), changes);
      const files = [...changesByFile(later).values()];
      return {
        ...point,
        canRestoreFiles: files.some(isRestorable),
        fileCount: files.length,
        turnChangedFiles: own.length > 0,
        linesAdded: sum(own, "linesAdded"),
        linesRemoved: sum(own, "linesRemoved"),
      };
    });
  }

  /** The files that a rewind would restore, unless others change them meanwhile. Undefined: files are not tracked. @throws HostError `EVENT_UNKNOWN`. */
  async preview(eventId: string): Promise<readonly RewindFile[] | undefined> {
    const { fileHistory, recording } = this.#host;
    if (fileHistory === undefined) return undefined;
    const events = await recording.read();
    const byFile = changesByFile(changesIn(events.slice(findCut(events, eventId)), await fileHistory.all()));
    const files = [...byFile].filter(([, changes]) => isRestorable(changes)).map(([path, changes]) => toRewindFile(path, changes));
    return files.sort((a, b) => (a.path < b.path ? -1 : 1));
  }

  /** How files differ from what they contained before the session. Undefined: files are not tracked. */
  async diff(ignoresWhitespace = false): Promise<readonly FileDiff[] | undefined> {
    const { fileHistory, config } = this.#host;
    return fileHistory && diffFiles(fileHistory, config.workingDirectory, ignoresWhitespace);
  }

  /** @throws HostError `SESSION_BUSY`, `EVENT_UNKNOWN`, `FILES_NOT_TRACKED`; nothing is changed then. */
  async rewind(eventId: string, options: RewindOptions = {}): Promise<RewindResult> {
    this.#host.assertIdle();
    const { recording, fileHistory } = this.#host;
    const events = await recording.read();
    const cut = findCut(events, eventId);
    if (options.restoreFiles === true && fileHistory === undefined) throw notTracked();
    const discarded = fileHistory === undefined ? [] : changesIn(events.slice(cut), await fileHistory.all());
    this.#host.assertIdle();
    const restoration =
      options.restoreFiles === true
        ? await restoreFiles(fileHistory!, discarded)
        : { kind: "done" as const, restoredFiles: [], skippedFiles: [] };
    if (restoration.kind === "failed") {
      const { error, isRolledBack, restoredFiles } = restoration;
      return { outcome: isRolledBack ? "files-rolled-back" : "rollback-incomplete", restoredFiles, skippedFiles: [], error };
    }
    const { restoredFiles, skippedFiles } = restoration;
    const files = { restoredFiles, skippedFiles };
    let eventsRemoved: number;
    try {
      eventsRemoved = await recording.truncate(eventId, () => this.#host.assertIdle());
    } catch (error) {
      if (restoredFiles.length === 0) throw error;
      return { outcome: "truncation-failed", ...files, error: errorMessage(error) };
    }
    try {
      await fileHistory?.forget(discarded);
    } catch (error) {
      return { outcome: "snapshot-prune-failed", eventsRemoved, ...files, error: errorMessage(error) };
    }
    return { outcome: "success", eventsRemoved, ...files };
  }
}

function notTracked(): HostError {
  const advice = "Create the session with fileChangeTracking: true.";
  return new HostError("FILES_NOT_TRACKED", `This session does not keep what its tools change, so files cannot be restored. ${advice}`);
}

/** The changes that were made by the calls in these events. */
function changesIn(events: readonly RecordedEvent[], changes: readonly CapturedChange[]): readonly CapturedChange[] {
  const calls = new Set(events.filter(({ type }) => type === "tool.execution_start").map(({ data }) => data["toolCallId"]));
  return changes.filter(({ toolCallId }) => calls.has(toolCallId));
}

function toRewindFile(path: string, changes: readonly CapturedChange[]): RewindFile {
  return {
    path,
    changeType: changes[0]!.before === null ? "created" : "modified",
    linesAdded: sum(changes, "linesAdded"),
    linesRemoved: sum(changes, "linesRemoved"),
  };
}

function sum(changes: readonly CapturedChange[], field: "linesAdded" | "linesRemoved"): number {
  return changes.reduce((total, change) => total + change[field], 0);
}
