import type { Diagnostic } from "../base/diagnostic.ts";
import { parseToolJson, type ToolJson, toToolJson } from "../formats/skills/tool-json.ts";
import { decodeText } from "../formats/text/decode-text.ts";
import { maxJsonBytes } from "../formats/text/limits.ts";
import { type FileGuard, readTextFile } from "../io/read-bounded.ts";
import type { ToolEntry } from "./tool-entries.ts";

/** Reads the tool JSON of an entry, from its file or from the manifest. What is wrong with it becomes diagnostics. */
export function readToolJson(
  entry: Exclude<ToolEntry, { kind: "module" }>,
  seen: (file: string, bytes: Uint8Array) => void,
  guard?: FileGuard,
): { readonly tool?: ToolJson; readonly diagnostics: readonly Diagnostic[] } {
  if (entry.kind === "inline") return toToolJson(entry.value, entry.file);
  const read = readTextFile(entry.file, maxJsonBytes, guard);
  if (!read.ok) return { diagnostics: [read.diagnostic] };
  seen(entry.file, read.bytes);
  const { text, diagnostics } = decodeText(read.bytes, entry.file);
  const parsed = parseToolJson(text, entry.file);
  return { ...parsed, diagnostics: [...diagnostics, ...parsed.diagnostics] };
}
