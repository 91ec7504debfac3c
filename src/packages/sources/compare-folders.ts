import { join } from "node:path";
import { readFileBytes } from "../../io/read-bounded.ts";

/** A file that differs between a skill's folder and its new version. */
export interface CopiedFileChange {
  readonly path: string;
  readonly kind: "added" | "changed" | "removed";
  /** A unified diff. Absent: the file is not text, or it is too large or differs in too many lines. */
  readonly diff?: string;
}

interface ComparedFolder {
  readonly folder: string;
  /** The digest of every file. */
  readonly files: Readonly<Record<string, string>>;
}

const maxTextBytes = 512 * 1024;
const maxEditLength = 2_000;
const maxDiffs = 200;

/** The files that differ, with the lines that differ, sorted by path. */
export async function compareFolders(before: ComparedFolder, now: ComparedFolder): Promise<readonly CopiedFileChange[]> {
  const paths = [...new Set([...Object.keys(before.files), ...Object.keys(now.files)])].sort();
  const different = paths.filter((path) => before.files[path] !== now.files[path]);
  const changes: CopiedFileChange[] = [];
  for (const path of different) {
    const kind = before.files[path] === undefined ? "added" : now.files[path] === undefined ? "removed" : "changed";
    // What a removed file contained has no effect any more.
    const diff = kind === "removed" || changes.length >= maxDiffs ? undefined : await diffOf(path, before, now);
    changes.push({ path, kind, ...(diff !== undefined && { diff }) });
  }
  return changes;
}

async function diffOf(path: string, before: ComparedFolder, now: ComparedFolder): Promise<string | undefined> {
  const [old, current] = [before, now].map(({ folder, files }) => (files[path] === undefined ? "" : textOf(join(folder, path))));
  if (old === undefined || current === undefined) return undefined;
  const { createTwoFilesPatch } = await import("diff");
  const patch = createTwoFilesPatch(`a/${path}`, `b/${path}`, old, current, undefined, undefined, { context: 3, maxEditLength });
  return patch?.replace(/^=+\n/, "").trimEnd();
}

function textOf(file: string): string | undefined {
  const read = readFileBytes(file, maxTextBytes);
  if (!read.ok || read.bytes.includes(0)) return undefined;
  return new TextDecoder().decode(read.bytes);
}
