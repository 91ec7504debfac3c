import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { toError } from "../../base/errors.ts";
import { writeFileAtomic } from "../../io/atomic-write.ts";
import type { ToolResult } from "../../tools/tool.ts";
import { largeOutputNote } from "../instructions/model-text.ts";
import { type CallHost, logFacts } from "./call-stages.ts";
import type { RunningCall } from "./running-call.ts";

// Enough to see what it is; the rest is read where it is needed.
const headBytes = 8192;

/** Where results are kept in a session's own folder. */
export const outputsFolder = "outputs";

/** Whether a text is over the limit of its session. */
export function isLargeOutput({ textResultForLlm: text }: ToolResult, host: CallHost): boolean {
  const { maxSizeBytes } = host.config.largeOutput;
  // UTF-8 takes at most three bytes for a UTF-16 unit: most texts need no counting.
  return text.length * 3 > maxSizeBytes && Buffer.byteLength(text) > maxSizeBytes;
}

/** Writes a result's text to a file and gives the model its head and the way to the rest. Never rejects. */
export async function spillLargeOutput(run: RunningCall, host: CallHost, result: ToolResult): Promise<ToolResult> {
  const bytes = Buffer.from(result.textResultForLlm);
  const file = await writeOutput(run, host, bytes);
  const head = headOf(bytes, Math.min(headBytes, host.config.largeOutput.maxSizeBytes));
  return { ...result, textResultForLlm: `${head}\n\n${largeOutputNote(bytes.length, file)}` };
}

async function writeOutput(run: RunningCall, host: CallHost, bytes: Buffer): Promise<string | undefined> {
  try {
    const folder = host.outputDirectory();
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const file = join(folder, `${fileNameOf(run.call.id)}.txt`);
    await writeFileAtomic(file, bytes, { mode: 0o600 });
    return file;
  } catch (error) {
    host.log.error("A result that is too long for the model could not be written to a file.", {
      ...logFacts(run, host),
      error: toError(error),
    });
    return undefined;
  }
}

/** The id comes from a model or a client: nothing in it may lead out of the folder. */
function fileNameOf(toolCallId: string): string {
  return `output-${toolCallId.replace(/[^a-zA-Z0-9_-]+/g, "_").slice(0, 100)}`;
}

/** The beginning of a UTF-8 text, cut between two characters. */
function headOf(bytes: Buffer, limit: number): string {
  let end = Math.min(limit, bytes.length);
  while (end > 0 && end < bytes.length && (bytes[end]! & 0xc0) === 0x80) end--;
  return bytes.toString("utf8", 0, end);
}
