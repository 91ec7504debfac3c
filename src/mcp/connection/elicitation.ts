import { isPlainRecord } from "../../base/read-fields.ts";
import type { Asks } from "../../tools/tool.ts";

type Json = Readonly<Record<string, unknown>>;
export type Elicitation = Asks["elicitation"]["data"];
export type ElicitationAnswer = Asks["elicitation"]["answer"];

const longestRequest = 100_000;

/** Reads the parameters of `elicitation/create`; a text says what is wrong with them. */
export function readElicitation(params: unknown): Elicitation | string {
  if (!isPlainRecord(params)) return "the parameters are not an object";
  const { message, mode, url, requestedSchema } = params;
  if (typeof message !== "string") return "it has no message";
  if (JSON.stringify(params).length > longestRequest) return "it is too long";
  if (mode === "url") return isWebAddress(url) ? { message, url } : "its url is not an http or https address";
  if (mode !== undefined && mode !== "form") return "its mode is neither form nor url";
  if (!isFormSchema(requestedSchema)) return "its requestedSchema is not an object schema with properties";
  return { message, requestedSchema };
}

/**
 * An answer as the protocol has it: for a form that was accepted, what was left out is filled with the schema's defaults,
 * and what a form cannot hold is left out.
 */
export function toElicitResult(request: Elicitation, answer: ElicitationAnswer): Json {
  const { action, content } = answer;
  if (action !== "accept" && action !== "decline") return { action: "cancel" };
  if (action === "decline" || request.requestedSchema === undefined) return { action };
  const given = isPlainRecord(content) ? Object.entries(content).filter(([, value]) => isFormValue(value)) : [];
  // Object.fromEntries makes own properties of any name, "__proto__" included.
  return { action, content: Object.fromEntries([...defaultsOf(request.requestedSchema), ...given]) };
}

function defaultsOf(schema: Json): [string, unknown][] {
  const properties = Object.entries(schema["properties"] as Json);
  return properties.flatMap(([name, property]) =>
    isPlainRecord(property) && isFormValue(property["default"]) ? [[name, property["default"]]] : [],
  );
}

function isFormSchema(value: unknown): value is Json {
  return isPlainRecord(value) && value["type"] === "object" && isPlainRecord(value["properties"]);
}

function isFormValue(value: unknown): boolean {
  if (Array.isArray(value)) return value.every((item) => typeof item === "string");
  return typeof value === "string" || typeof value === "boolean" || (typeof value === "number" && Number.isFinite(value));
}

function isWebAddress(value: unknown): value is string {
  return typeof value === "string" && URL.canParse(value) && /^https?:$/.test(new URL(value).protocol);
}
