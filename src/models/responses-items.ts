import { isPlainRecord } from "../base/read-fields.ts";
import { copyJson } from "../tools/json-copy.ts";
import { textOf } from "./reply-assembly.ts";

export type Data = Readonly<Record<string, unknown>>;

/** What an item of a response's output is to us. */
export type OutputKind = "message" | "thought" | "call" | "other";

export function kindOf({ type }: Data): OutputKind {
  if (type === "message") return "message";
  if (type === "reasoning") return "thought";
  return type === "function_call" ? "call" : "other";
}

export function listOf(list: unknown): readonly Data[] {
  return Array.isArray(list) ? list.filter(isPlainRecord) : [];
}

/** All text of a message, refusals too. */
export function fullText({ content }: Data): string {
  return listOf(content)
    .map((part) => textOf(part["text"]) + textOf(part["refusal"]))
    .join("");
}

/** What can be read of a thought. */
export function thoughtText({ summary, content }: Data): string {
  return [...listOf(summary), ...listOf(content)].map((part) => textOf(part["text"])).join("\n\n");
}

/** A thought as it is to be given back. One that is neither encrypted nor open is kept by an endpoint only, which is told not to. */
export function thoughtOf({ id, summary, content, encrypted_content: encrypted }: Data): Data | undefined {
  const isEncrypted = typeof encrypted === "string" && encrypted !== "";
  if (!isEncrypted && listOf(content).length === 0) return undefined;
  const item = {
    type: "reasoning",
    ...(typeof id === "string" && { id }),
    summary: listOf(summary),
    ...(listOf(content).length > 0 && { content }),
    ...(isEncrypted && { encrypted_content: encrypted }),
  };
  const copy = copyJson(item);
  return copy.ok ? (copy.value as Data) : undefined;
}
