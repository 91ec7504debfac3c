import type { Limits } from "./operations/command-confinement.ts";
import type { FileFault } from "./operations/open-file.ts";
import type { Place } from "./operations/places.ts";

export const missingText = (path: string): string => `Path ${path} does not exist. Please provide a valid path.`;

export function outsideText(path: string, folders: readonly string[]): string {
  return `Path ${shown(path)} is outside the accessible folders: ${folders.join(", ")}. Use a path inside them.`;
}

export const unreadableText = (path: string): string =>
  `Path ${shown(path)} cannot be resolved: a link on it is broken or leads outside, or a folder cannot be opened.`;

function shown(path: string): string {
  return path.length > 300 || path.includes("\0") ? JSON.stringify(path.slice(0, 300)) : path;
}

/** A line that explains why a command may have failed only because of its limits, or nothing. */
export function limitsNote(exitCode: number | undefined, limits: Limits | undefined): string {
  if (exitCode === 0 || limits?.isOffline !== true) return "";
  return "\n[The command had no network access: rules for addresses apply, and the command line does not show which addresses it connects to.]";
}

/** Why a file cannot be read. */
export function faultText(fault: FileFault, { path }: Place): string {
  if (fault === "missing") return missingText(path);
  if (fault === "folder") return `Path ${path} is a folder. Name a file in it.`;
  return fault === "special" ? `Path ${path} is not a regular file and cannot be read.` : `Path ${path} cannot be read.`;
}
