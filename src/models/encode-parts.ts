import { createHash } from "node:crypto";
import { isRecord } from "../base/json.ts";
import type { JsonSchema } from "../tools/tool.ts";
import type { ImagePart, ModelToolCall } from "./model.ts";

/** Without lone surrogates, which some servers cannot read. */
export function wellFormed(text: string): string {
  return text.replace(/\p{Surrogate}/gu, "\uFFFD");
}

/** Without the fields that are undefined. */
export function defined(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

/** An image's address: its own, or one that holds its data. */
export function imageUrl(part: ImagePart): string {
  return "url" in part ? part.url : `data:${part.mimeType};base64,${part.data}`;
}

const combinators = ["anyOf", "oneOf", "allOf"];
const refusedOnTop = [...combinators, "enum", "not"];

/**
 * A schema for arguments that endpoints take: an object that names its properties, without choices at its top level. One
 * schema with such a choice has all tools of a request refused; what it would have ruled out is still checked at the call.
 */
export function encodeParameters(parameters: JsonSchema | undefined): JsonSchema {
  if (parameters === undefined) return { type: "object", properties: {} };
  const { type, properties } = parameters;
  if (type === "object" && isRecord(properties) && !refusedOnTop.some((word) => Object.hasOwn(parameters, word))) return parameters;
  const rest = Object.entries(parameters).filter(([word]) => !refusedOnTop.includes(word));
  return { ...Object.fromEntries(rest), type: "object", properties: { ...propertiesOfChoices(parameters), ...recordOf(properties) } };
}

function propertiesOfChoices(parameters: JsonSchema): Record<string, unknown> {
  const choices = combinators.flatMap((word) => (Array.isArray(parameters[word]) ? (parameters[word] as readonly unknown[]) : []));
  return Object.assign({}, ...choices.filter(isRecord).map((choice) => recordOf(choice["properties"])));
}

function recordOf(value: unknown): Readonly<Record<string, unknown>> {
  return isRecord(value) ? value : {};
}

/** The id itself if the endpoint takes it, else one made of it: the same one each time, and another for another. */
export function toCallId(id: string, rule: RegExp): string {
  if (rule.test(id)) return id;
  const digest = createHash("sha256").update(id).digest("hex").slice(0, 16);
  return `${id.slice(0, 40).replace(/[^a-zA-Z0-9_-]/g, "_")}_${digest}`;
}

/** What a model wrote for arguments, so that the endpoint takes it: text of a JSON object. */
export function argumentsToSend({ argumentsText, argumentsError }: ModelToolCall): string {
  const text = argumentsText.trim() === "" ? "{}" : wellFormed(argumentsText);
  return argumentsError === undefined ? text : JSON.stringify({ unreadable_arguments: text });
}
