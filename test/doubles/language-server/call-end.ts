import type { OpenDocuments } from "./double-tools.ts";
import type { ToolTable } from "./tool-table.ts";

// biome-ignore lint/suspicious/noExplicitAny: whatever came over the wire
type Json = any;

/** What became of a call: how it is told to have ended, and what the model reads. */
export interface CallEnd {
  readonly status: "completed" | "error" | "cancelled";
  readonly text: string;
}

export interface CallPlace {
  readonly tools: ToolTable;
  readonly documents: OpenDocuments;
  /** `github.copilot.agent` of the settings. */
  readonly settings: Json;
  request(method: string, params: object): Promise<unknown>;
  /** Asks the model for a text, beside the conversation. */
  complete(prompt: string): Promise<string>;
  /** The call begins; not told for one that is dismissed. */
  running(): void;
}

/** What the answer to a call comes to, once it has the right form. */
export function ended({ content, status = "success" }: Json): CallEnd {
  const texts = content.flatMap(({ value }: Json) => (typeof value === "string" ? value : []));
  const text = texts.join("\n");
  if (status === "error") return { status, text: `Tool call failed with error: ${text}` };
  if (status === "cancelled") return { status, text: `Tool call is cancelled with result: ${text}` };
  return { status: "completed", text: text === "" ? "(empty)" : text };
}
