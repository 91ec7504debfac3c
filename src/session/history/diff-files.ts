import { relative, sep } from "node:path";
import { type FileChanges, readRegularFile } from "./file-changes.ts";
import { changesByFile } from "./restore-files.ts";

/** How a file differs from what it contained before the session changed it. */
export interface FileDiff {
  /** Relative to the working directory, with "/" between its parts. */
  readonly path: string;
  /** A unified diff. Empty when it was left out. */
  readonly diff: string;
  readonly changeType: "added" | "modified" | "deleted";
  /** True: the file is too large, is not text, or differs in too many lines, so its diff was left out. */
  readonly isTruncated?: true;
}

const maxDiffChars = 200_000;
const maxTextBytes = 2 * 1024 * 1024;
/** Texts that differ in more lines have no diff: finding them takes too many steps. */
const maxEditLength = 2_000;

/** The files that the session's tools changed, as far as their former content was captured and is another one now. */
export async function diffFiles(store: FileChanges, workingDirectory: string, ignoresWhitespace: boolean): Promise<readonly FileDiff[]> {
  const diffs: FileDiff[] = [];
  for (const [path, changes] of changesByFile(await store.all())) {
    const before = await store.contentBefore(changes[0]!);
    const now = await readRegularFile(path);
    if (before === undefined || now === undefined || (before === null && now === null)) continue;
    if (before !== null && now !== null && before.equals(now)) continue;
    const shown = relative(workingDirectory, path).split(sep).join("/") || path;
    const diff = await unifiedDiff(shown, before, now, ignoresWhitespace);
    if (diff === "") continue;
    const changeType = before === null ? "added" : now === null ? "deleted" : "modified";
    diffs.push({ path: shown, changeType, ...(diff === undefined ? { diff: "", isTruncated: true } : { diff }) });
  }
  return diffs.sort((a, b) => (a.path < b.path ? -1 : 1));
}

/** Empty: the texts differ in whitespace only. Undefined: the diff was left out. */
async function unifiedDiff(
  name: string,
  before: Buffer | null,
  now: Buffer | null,
  ignoreWhitespace: boolean,
): Promise<string | undefined> {
  if ([before, now].some((content) => content !== null && (content.length > maxTextBytes || content.includes(0)))) return undefined;
  const { createTwoFilesPatch } = await import("diff");
  const [old, current] = [before?.toString("utf8") ?? "", now?.toString("utf8") ?? ""];
  const options = { context: 3, maxEditLength, ignoreWhitespace };
  const [from, to] = [before === null ? "/dev/null" : `a/${name}`, now === null ? "/dev/null" : `b/${name}`];
  const patch = createTwoFilesPatch(from, to, old, current, undefined, undefined, options);
  if (patch === undefined || patch.length > maxDiffChars) return undefined;
  return patch.includes("\n@@ ") ? patch.replace(/^=+\n/, "") : emptyFileDiff(from, to, before, now);
}

/** A file without lines that was created or deleted has no lines to show. */
function emptyFileDiff(from: string, to: string, before: Buffer | null, now: Buffer | null): string {
  return before === null || now === null ? `--- ${from}\n+++ ${to}\n` : "";
}
