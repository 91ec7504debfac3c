import type { CallOutcome, ToolResult } from "skillhost";
import type { ClientToolResult, Reply } from "./wire.ts";

/** What a call came to, in the form that the server takes: always a list of two, with text only. */
export function toReply({ code, result, messages, toolName }: CallOutcome, limit: number, written?: string): Reply<ClientToolResult> {
  const isContent = written !== undefined && result.resultType === "success" && writesFile.has(toolName);
  const text = [isContent ? written : textOf(result), ...messages].filter((part) => part !== "").join("\n\n");
  return reply(code === "cancelled" ? "cancelled" : statusOf(result), limited(text, limit, tellsLast.has(toolName)));
}

/** The server shows its model the text of these as what the file holds now. */
const writesFile: ReadonlySet<string> = new Set(["create_file", "insert_edit_into_file"]);

/** What matters of these comes last. */
const tellsLast: ReadonlySet<string> = new Set(["run_in_terminal", "run_tests"]);

export function errorReply(text: string): Reply<ClientToolResult> {
  return reply("error", text);
}

export function cancelledReply(): Reply<ClientToolResult> {
  return reply("cancelled", "The call was cancelled.");
}

/** What fits of a text that is too long, with a note of what is missing; both together keep to the limit. @internal Exported for tests. */
export function limited(text: string, limit: number, keepsEnd = false): string {
  if (text.length <= limit) return text;
  // The note says how many characters are missing, which takes as many digits as the whole has at most.
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

/** The server passes text on and nothing else, so that of everything else there is a note. */
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

/** Characters of two units are not torn apart. */
function headOf(text: string, length: number): string {
  return text.slice(0, /[\ud800-\udbff]/.test(text.charAt(length - 1)) ? length - 1 : length);
}

function tailOf(text: string, length: number): string {
  const start = text.length - length;
  return text.slice(/[\udc00-\udfff]/.test(text.charAt(start)) ? start + 1 : start);
}
