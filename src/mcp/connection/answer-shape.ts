import { isPlainRecord } from "../../base/read-fields.ts";

type Json = Readonly<Record<string, unknown>>;

interface Shape {
  /** The list that the answer is about. */
  readonly key: string;
  readonly isRequired: boolean;
}

const shapes: ReadonlyMap<string, Shape> = new Map([
  ["tools/list", { key: "tools", isRequired: true }],
  ["prompts/list", { key: "prompts", isRequired: true }],
  ["resources/list", { key: "resources", isRequired: true }],
  ["resources/templates/list", { key: "resourceTemplates", isRequired: true }],
  // Servers that only have structured content, or an error, leave it out.
  ["tools/call", { key: "content", isRequired: false }],
  ["prompts/get", { key: "messages", isRequired: true }],
  ["resources/read", { key: "contents", isRequired: true }],
]);

/** What is wrong with an answer, as seen from the protocol; undefined: it is what was asked for. */
export function faultOfAnswer(method: string, answer: unknown): string | undefined {
  if (!isPlainRecord(answer)) return "it is not an object";
  const shape = shapes.get(method);
  if (shape === undefined) return undefined;
  const list = answer[shape.key];
  if (list === undefined && !shape.isRequired) return undefined;
  return Array.isArray(list) ? undefined : `its "${shape.key}" is not a list`;
}

/**
 * What the SDK is given to check in place of an answer. It would refuse a whole list, or a good result, for one entry
 * that is not to the letter, and looks through each byte of it; what we hand on is looked at where it is used.
 */
export function standInFor(method: string, answer: Json): Json | undefined {
  const shape = shapes.get(method);
  if (shape === undefined) return undefined;
  const type = answer["resultType"];
  return { ...(type !== undefined && { resultType: type }), ttlMs: 0, cacheScope: "private", [shape.key]: [] };
}
