import type { Diagnostic } from "../base/diagnostic.ts";
import type { WatchTrouble } from "./watch-feed.ts";

/** Levels below a root that are entered unless its owner says otherwise. */
export const maxLevels = 64;

const ADVICE: Readonly<Record<string, string>> = {
  ENOSPC: "Raise it (sysctl fs.inotify.max_user_watches=524288), close other programs that watch files, or give fewer folders.",
  EMFILE: "Raise it (sysctl fs.inotify.max_user_instances=1024, or ulimit -n for open files), or close other programs that watch files.",
};

/** The words for what can go wrong with watching. */
export function watchDiagnostic(trouble: WatchTrouble, file: string, code: string): Diagnostic {
  if (trouble === "limit") {
    const advice = ADVICE[code] ?? "Raise the limit of this system, or give fewer folders.";
    const message = `The system's limit on file watches is reached (${code}). Changes are still found, but later, by looking in intervals. ${advice}`;
    return { severity: "warning", code: "WATCH_LIMIT", message, file };
  }
  if (trouble === "too-many") {
    const message =
      "There are too many folders below the watched ones, so changes in this folder and others are not noticed. Give a deeper folder, or leave this one out.";
    return { severity: "warning", code: "WATCH_TOO_MANY", message, file };
  }
  if (trouble === "too-deep") {
    const message = `This folder lies more than ${maxLevels} levels below the watched one, so it is not entered, and changes in it are not noticed. Move it up, or leave it out.`;
    return { severity: "warning", code: "WATCH_TOO_DEEP", message, file };
  }
  const message = `This cannot be read${code === "" ? "" : ` (${code})`}, so changes in it are not noticed. Check its permissions.`;
  return { severity: "warning", code: "WATCH_UNREADABLE", message, file };
}
