import { type FileFault, openFile, readWhole } from "./open-file.ts";
import type { Place } from "./places.ts";
import { type DecodedText, decodeText } from "./text-encoding.ts";

/** Larger files are not edited: a model has no business with all of them at once. */
export const maxEditedBytes: number = 20 * 1024 * 1024;

/** Why a file cannot be read as a text that could be written again. */
export type TextFault = FileFault | "too-large" | "binary" | "encoding";

export interface TextFile {
  readonly decoded: DecodedText;
  /** Its permissions. */
  readonly mode: number;
}

/** The text of a file that is to be edited, or why it cannot be. */
export async function readText(place: Place): Promise<TextFile | TextFault> {
  const opened = await openFile(place);
  if (!opened.ok) return opened.fault;
  try {
    const bytes = await readWhole(opened.file, opened.size, maxEditedBytes);
    if (bytes === undefined) return "too-large";
    const decoded = decodeText(bytes);
    if (decoded === undefined) return "binary";
    // Written again it would be another file, also where nobody touched it.
    return decoded.isExact ? { decoded, mode: (await opened.file.stat()).mode & 0o777 } : "encoding";
  } finally {
    await opened.file.close();
  }
}
