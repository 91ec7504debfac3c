import type { Diagnostic } from "../base/diagnostic.ts";
import { decodeText } from "../formats/text/decode-text.ts";
import { type FileGuard, readTextFile } from "../io/read-bounded.ts";
import type { FolderView } from "../trust/folder-view.ts";

/** What has been read of a folder so far, and what was wrong with it. */
export interface Reading {
  readonly folder: string;
  readonly files: Set<string>;
  readonly diagnostics: Diagnostic[];
  readonly lost: { manifest: boolean; document: boolean; readonly prompts: string[] };
  readonly guard?: FileGuard | undefined;
  readonly view?: FolderView | undefined;
  seen(file: string, bytes: Uint8Array): void;
}

/** The text of a file of the skill; absent, with a diagnostic, if it cannot be read. */
export function readText(file: string, maxBytes: number, { files, diagnostics, seen, guard }: Reading): string | undefined {
  files.add(file);
  const read = readTextFile(file, maxBytes, guard);
  if (!read.ok) {
    diagnostics.push(read.diagnostic);
    return undefined;
  }
  seen(file, read.bytes);
  const { text, diagnostics: found } = decodeText(read.bytes, file);
  diagnostics.push(...found);
  return text;
}
