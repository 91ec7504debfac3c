import { writeFile } from "node:fs/promises";
import { extname } from "node:path";
import { toError } from "../base/errors.ts";
import type { ExportFormat } from "../host/file-session-store.ts";
import { CliError, usageError } from "./cli-error.ts";
import { visibleLine } from "./terminal-style.ts";

const formats: Readonly<Record<string, ExportFormat>> = { ".jsonl": "jsonl", ".md": "markdown", ".markdown": "markdown" };

/** The format of an exported session, by the name of its file. */
export function formatOf(file: string): ExportFormat {
  const format = formats[extname(file).toLowerCase()];
  if (format === undefined)
    throw usageError(
      `The exported file needs a name that ends with .md (for reading) or .jsonl (every event), but got ${visibleLine(file)}.`,
    );
  return format;
}

/** Writes an exported session for this user only. */
export async function writeExport(file: string, text: string): Promise<void> {
  try {
    await writeFile(file, text, { mode: 0o600 });
  } catch (error) {
    throw new CliError("EXPORT_FAILED", `The session could not be written to ${file}: ${toError(error).message}`, 1);
  }
}
