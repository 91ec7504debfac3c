import type { CallOutcome, ToolResult } from "skillhost";
import type { ClientToolResult, Reply } from "./wire.ts";

/** The outcome of a call in the format of the server: always a list of two, with text only. */
export function toReply({ code, result, messages, toolName }: CallOutcome, limit: number, written?: string): Reply<ClientToolResult> {
  const isContent = written !== undefined && result.resultType === "success" && writesFile.has(toolName);
  const text = [isContent ? written : textOf(result), ...messages].filter((part) => part !== "").join("\n\n");
  return reply(code === "cancelled" ? "cancelled" : statusOf(result), limited(text, limit, tellsLast.has(toolName)));
}

/** The server shows its model the text of these as the current content of the file. */
const writesFile: ReadonlySet<string> = new Set(["create_file", "insert_edit_into_file"]);

/** The important part of these results comes last. */
const tellsLast: ReadonlySet<string> = new Set(["run_in_terminal", "run_tests"]);

export function errorReply(text: string): Reply<ClientToolResult> {
  return reply("error", text);
}

export function cancelledReply(): Reply<ClientToolResult> {
  return reply("cancelled", "The call was cancelled.");
}

/** Shortens a text to the limit, including a note about what is omitted. @internal Exported for tests. */
export function limited(text: string, limit: number, keepsEnd = false): string {
  if (text.length <= limit) return text;
  // The note counts the omitted characters, with at most as many digits as the length of the whole text.
  const room = Math.max(0, limit - note(text.length).length);
  const head = headOf(text, keepsEnd ? Math.floor(room / 3) : room);
  const tail = keepsEnd ? tailOf(text, room - head.length) : "";
  return `${head}${note(text.length - head.length - tail.length)}${tail}`.slice(0, limit);
}

function reply(status: ClientToolResult["status"], text: string): Reply<ClientToolResult> {
  return [{ content: [{ value: text }], status }, null];
}

function statusOf({ resultType }: ToolResult): ClientToolResult["status"] {
  return resultType === "success" ? "success" : "error";
}

/** The server passes on text only, so other content is replaced by a note. */
function textOf({ textResultForLlm, binaryResultsForLlm = [] }: ToolResult): string {
  const notes = binaryResultsForLlm.map(({ mimeType, description, data }) => {
    const bytes = Math.floor((data.length * 3) / 4);
    return `[${description === undefined ? "" : `${description}: `}${mimeType}, about ${bytes} bytes, which cannot be shown here.]`;
  });
  return [textResultForLlm, ...notes].filter((part) => part !== "").join("\n");
}

function note(missing: number): string {
  return `\n[${missing} more characters were left out. Ask for a smaller part.]\n`;
}

/** Does not split surrogate pairs. */
function headOf(text: string, length: number): string {
  return text.slice(0, /[\ud800-\udbff]/.test(text.charAt(length - 1)) ? length - 1 : length);
}

function tailOf(text: string, length: number): string {
  const start = text.length - length;
  return text.slice(/[\udc00-\udfff]/.test(text.charAt(start)) ? start + 1 : start);
}
