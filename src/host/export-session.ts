import { HostError } from "../base/errors.ts";
import type { SessionEvent } from "../session/records/events.ts";

export type ExportFormat = "jsonl" | "markdown";

/**
 * Writes a session's events down: as they are, one JSON object a line, or as a page to read.
 * @throws HostError `EXPORT_FORMAT` for another format, `EXPORT_TOO_LARGE` for what no text can hold.
 */
export function exportEvents(sessionId: string, events: readonly SessionEvent[], format: ExportFormat): string {
  if (format !== "jsonl" && format !== "markdown")
    throw new HostError("EXPORT_FORMAT", `Sessions are exported as "jsonl" or "markdown", not as ${JSON.stringify(format)}.`);
  try {
    return format === "jsonl" ? toLines(events) : toPage(sessionId, events);
  } catch (cause) {
    if (!(cause instanceof RangeError)) throw cause;
    const message = `Session "${sessionId}" is too large for one text. Read its events.jsonl in the folder for sessions, line by line.`;
    throw new HostError("EXPORT_TOO_LARGE", message, { cause });
  }
}

function toLines(events: readonly SessionEvent[]): string {
  return events.map((event) => `${JSON.stringify(event)}\n`).join("");
}

function toPage(sessionId: string, events: readonly SessionEvent[]): string {
  const parts = events.flatMap((event) => sections.get(event.type)?.(event.data, titleOf(event)) ?? []);
  return `${[`# Session ${sessionId}`, ...parts].join("\n\n")}\n`;
}

type Data = Readonly<Record<string, unknown>>;
type Section = (data: Data, title: string) => readonly string[];

/** What a reader is shown of each type of event; of the others nothing. */
const sections: ReadonlyMap<string, Section> = new Map(
  Object.entries<Section>({
    "session.start": ({ startTime, options }, title) => [`Started ${textOf(startTime) || title}.`, fenced(json(options), "json")],
    "session.resume": ({ resumeTime }, title) => [`*Resumed ${textOf(resumeTime) || title}.*`],
    "user.message": ({ content, source }, title) => [
      `## ${source === undefined ? "User" : `Context (${textOf(source)})`}${title}`,
      textOf(content),
    ],
    "assistant.message": ({ content }, title) => [`## Assistant${title}`, ...(textOf(content) === "" ? [] : [textOf(content)])],
    "tool.execution_start": ({ toolName, arguments: args }, title) => [
      `### Call of ${code(textOf(toolName))}${title}`,
      fenced(json(args), "json"),
    ],
    "tool.execution_complete": ({ success, result }) => [
      success === true ? "Result:" : "Failed:",
      fenced(textOf((result as Data | undefined)?.["content"]), ""),
    ],
    "session.error": ({ message }, title) => [`## Error${title}`, textOf(message)],
  }),
);

function titleOf({ timestamp, agentId }: SessionEvent): string {
  return `${agentId === undefined ? "" : ` (agent ${agentId})`} · ${timestamp}`;
}

/** A fence longer than any in the text, so that the text cannot end it. */
function fenced(text: string, language: string): string {
  let fence = "```";
  for (const [run] of text.matchAll(/`{3,}/g)) if (run.length >= fence.length) fence = `${run}\``;
  return `${fence}${language}\n${text}\n${fence}`;
}

function code(text: string): string {
  return text.includes("`") ? text : `\`${text}\``;
}

function json(value: unknown): string {
  return JSON.stringify(value, undefined, 2) ?? "";
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}
