import type { OpenDocuments } from "./double-tools.ts";
import type { ToolTable } from "./tool-table.ts";

// biome-ignore lint/suspicious/noExplicitAny: whatever came over the wire
type Json = any;

/** Outcome of a call: the reported status, and the text that the model reads. */
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
  /** Asks the model for a text outside the conversation. */
  complete(prompt: string): Promise<string>;
  /** Reports that the call begins; not called when the user dismissed it. */
  running(): void;
}

/** Converts a valid answer to a call into its outcome. */
export function ended({ content, status = "success" }: Json): CallEnd {
  const texts = content.flatMap(({ value }: Json) => (typeof value === "string" ? value : []));
  const text = texts.join("\n");
  if (status === "error") return { status, text: `Tool call failed with error: ${text}` };
  if (status === "cancelled") return { status, text: `Tool call is cancelled with result: ${text}` };
  return { status: "completed", text: text === "" ? "(empty)" : text };
}
