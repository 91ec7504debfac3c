import { createHash } from "node:crypto";
import type { JsonSchema } from "../tools/tool.ts";
import { fitSchema } from "./fit-schema.ts";
import type { DocumentPart, ImagePart, ModelToolCall } from "./model.ts";
import type { SchemaTarget } from "./schema-rules.ts";

/**
 * The JSON text of a request body, without lone surrogates, which some servers cannot read. `JSON.stringify` writes them as escapes
 * (ECMA-262, 25.5.2.3), and writes no other characters in that range as escapes.
 */
export function toJsonBody(body: object): string {
  const text = JSON.stringify(body);
  return text.includes("\\ud")
    ? text.replace(/\\(?:ud[89a-f][0-9a-f]{2}|.)/g, (written) => (written.length > 2 ? "\ufffd" : written))
    : text;
}

/** The URL of an image: its own, or a data URL. */
export function imageUrl(part: ImagePart): string {
  return "url" in part ? part.url : `data:${part.mimeType};base64,${part.data}`;
}

/** What a model reads in the place of a document that its API does not take. */
export function documentNote({ title = "attachment", mimeType, data }: DocumentPart): string {
  return `(${title}: a document of type ${mimeType} with ${Buffer.byteLength(data, "base64")} bytes, which this model cannot read.)`;
}

export type AnthropicImageType = "image/png" | "image/jpeg" | "image/gif" | "image/webp";

const anthropicImageTypes: Readonly<Record<string, AnthropicImageType>> = {
  "image/png": "image/png",
  "image/jpeg": "image/jpeg",
  "image/jpg": "image/jpeg",
  "image/gif": "image/gif",
  "image/webp": "image/webp",
};

/** The media type by which Anthropic's API takes an image. Undefined: it does not take it. */
export function anthropicImageType(mimeType: string): AnthropicImageType | undefined {
  return Object.hasOwn(anthropicImageTypes, mimeType) ? anthropicImageTypes[mimeType] : undefined;
}

/** What a model reads in the place of an image that its API does not take. */
export function imageNote(mimeType: string): string {
  return `(An image of type ${mimeType.slice(0, 100)}, which this model does not support.)`;
}

/**
 * A parameter schema in the form that an API accepts. The call still validates against the original schema. With `strict` the schema is not
 * changed further: the caller wrote it for that, and the API names what it does not enforce.
 */
export function encodeParameters(parameters: JsonSchema | undefined, target: SchemaTarget = "openai"): JsonSchema {
  return fitSchema(parameters, target).schema;
}

/** The id itself if the endpoint accepts it, else a deterministic unique replacement. */
export function toCallId(id: string, rule: RegExp): string {
  if (rule.test(id)) return id;
  const digest = createHash("sha256").update(id).digest("hex").slice(0, 16);
  return `${id.slice(0, 40).replace(/[^a-zA-Z0-9_-]/g, "_")}_${digest}`;
}

/** The arguments of a model in a form that the endpoint accepts: the text of a JSON object. */
export function argumentsToSend({ argumentsText, argumentsError }: ModelToolCall): string {
  const text = argumentsText.trim() === "" ? "{}" : argumentsText;
  return argumentsError === undefined ? text : toJsonBody({ unreadable_arguments: text });
}
