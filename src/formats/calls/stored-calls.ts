import { type Diagnostic, type Position, positionAt } from "../../base/diagnostic.ts";
import { isRecord, type Json } from "../../base/json.ts";
import { checkSchema } from "../../tools/schema/check-schema.ts";
import { boundedPattern } from "../../tools/schema/schema-pattern.ts";
import type { JsonSchema, ResultType } from "../../tools/tool.ts";
import { type JsonPath, parseJson } from "../text/json-document.ts";
import { createFieldReader, describe, type FieldReader, type JsonComplain } from "../text/json-fields.ts";

/** The file with the stored calls of a skill, in the skill's folder. */
export const callsFileName = "calls.json";

/** A call that is stored in a file of a skill, to be made again. */
export interface StoredCall {
  readonly name: string;
  readonly tool: string;
  readonly arguments: Json;
  readonly expect?: CallExpectation;
  /** Whether the user allows it to run after each save although its tool does not claim to read only. */
  readonly isAutomatic: boolean;
}

/**
 * What the result of a stored call must be. Each member that is present must hold. Without `ok` and `code` the call must succeed: parts of
 * a text are also found in the message of a failure.
 */
export interface CallExpectation {
  readonly ok?: boolean;
  readonly code?: ResultType;
  /** The whole text that the model reads. */
  readonly text?: string;
  /** Parts of that text. */
  readonly contains?: readonly string[];
  /** A regular expression for that text, matched in linear time. */
  readonly matches?: string;
  /** A part of the result as data: further members of objects are allowed, further elements of lists are not. */
  readonly structured?: unknown;
  /** A JSON Schema of the result as data. */
  readonly schema?: JsonSchema;
}

const resultCodes = ["success", "failure", "rejected", "denied", "timeout"] as const satisfies readonly ResultType[];

const maxCalls = 1_000;
const maxNameLength = 100;

export interface ReadCalls {
  readonly calls: readonly StoredCall[];
  readonly diagnostics: readonly Diagnostic[];
  /** Where each call stands in the file, by its name. */
  readonly positions: ReadonlyMap<string, Position>;
}

/**
 * Reads a file of stored calls. An entry with a fault is left out with a diagnostic that says where, and the others are read. An
 * expectation that is not known is a fault, because the call would otherwise pass without it. Never throws.
 */
export function parseStoredCalls(text: string, file: string): ReadCalls {
  const { document, faults } = parseJson(text);
  const diagnostics: Diagnostic[] = faults.map(({ severity, code, message, offset }) => ({
    severity,
    code,
    message,
    file,
    range: { start: positionAt(text, offset) },
  }));
  if (document === undefined) return { calls: [], diagnostics, positions: new Map() };
  const complain: JsonComplain = (severity, code, message, path) => {
    const offset = document.offsetOf(path);
    diagnostics.push({ severity, code, message, file, ...(offset !== undefined && { range: { start: positionAt(text, offset) } }) });
  };
  const entries = entriesOf(document.value, complain);
  const calls = entries.flatMap(([name, value]) => parseCall(name, value, complain) ?? []);
  const positions = calls.map(({ name }) => [name, positionAt(text, document.offsetOf(["calls", name]) ?? 0)] as const);
  return { calls, diagnostics, positions: new Map(positions) };
}

function entriesOf(root: unknown, complain: JsonComplain): readonly (readonly [string, unknown])[] {
  const calls = isRecord(root) && Object.hasOwn(root, "calls") ? root["calls"] : undefined;
  if (!isRecord(calls)) {
    complain("error", "CALLS_INVALID", 'Stored calls must be an object such as {"calls": {"in Oslo": {"tool": "get_weather"}}}.', [
      "calls",
    ]);
    return [];
  }
  for (const key of Object.keys(root as Json)) {
    if (key !== "calls" && key !== "$schema") complain("warning", "CALL_MEMBER_UNKNOWN", `"${key}" is not known and has no effect.`, [key]);
  }
  const entries = Object.entries(calls);
  if (entries.length <= maxCalls) return entries;
  const message = `The file has ${entries.length} calls; only the first ${maxCalls} are read. Move the others to another skill.`;
  complain("error", "CALLS_TOO_MANY", message, ["calls"]);
  return entries.slice(0, maxCalls);
}

function parseCall(name: string, value: unknown, complain: JsonComplain): StoredCall | undefined {
  const path: JsonPath = ["calls", name];
  let isFaulty = false;
  const note: JsonComplain = (severity, ...rest) => {
    isFaulty ||= severity === "error";
    complain(severity, ...rest);
  };
  const fault = callNameFault(name);
  if (fault !== undefined) note("error", "CALL_NAME", fault, path);
  if (!isRecord(value)) {
    note("error", "CALL_INVALID", `A stored call must be an object with a "tool", not ${describe(value)}.`, path);
    return undefined;
  }
  const fields = createFieldReader(value, note, { code: "CALL_INVALID", path });
  const tool = fields.text("tool");
  if (!fields.has("tool") || tool === "") fields.wrong("tool", 'The call has no "tool". Write the name of the tool that it calls.');
  const given = fields.object("arguments");
  const isAutomatic = fields.flag("automatic") ?? false;
  const expected = fields.object("expect");
  const expect = expected && parseExpectation(expected, note, [...path, "expect"]);
  for (const key of fields.others(["tool", "arguments", "automatic", "expect"])) {
    note("warning", "CALL_MEMBER_UNKNOWN", `"${key}" of a stored call is not known and has no effect.`, [...path, key]);
  }
  if (isFaulty || tool === undefined) return undefined;
  return { name, tool, arguments: given ?? {}, isAutomatic, ...(expect && { expect }) };
}

/** Why a text cannot be the name of a stored call. Names are printed on one line. */
export function callNameFault(name: string): string | undefined {
  if (name.trim() === "" || name.length > maxNameLength) return `The name of a stored call must have 1 to ${maxNameLength} characters.`;
  if (name === "__proto__") return 'A stored call cannot have the name "__proto__". Use another one.';
  // Also the characters that reorder text: a name must be read as it is written.
  if (/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.test(name)) return "The name of a stored call contains a control character. Remove it.";
  return undefined;
}

const expectationKeys = ["ok", "code", "text", "contains", "matches", "structured", "schema"];

function parseExpectation(value: Json, complain: JsonComplain, path: JsonPath): CallExpectation {
  const fields = createFieldReader(value, complain, { code: "CALL_EXPECTATION", path });
  for (const key of fields.others(expectationKeys)) {
    fields.wrong(key, `"${key}" is not an expectation. Use ${expectationKeys.join(", ")}.`);
  }
  const [ok, code, text] = [fields.flag("ok"), fields.oneOf("code", resultCodes), fields.text("text")];
  const contains = partsOf(fields);
  const matches = fields.text("matches");
  if (matches !== undefined && boundedPattern(matches) === null) {
    fields.wrong("matches", '"matches" is not a regular expression that is matched in linear time: it may not look around or refer back.');
  }
  const schema = fields.object("schema");
  // What cannot be checked would pass.
  const fault = schema && checkSchema(schema, { of: "result", untrustedPatterns: true })[0];
  if (fault !== undefined) fields.wrong("schema", fault.message);
  return {
    ...(ok !== undefined && { ok }),
    ...(code !== undefined && { code }),
    ...(text !== undefined && { text }),
    ...(contains !== undefined && { contains }),
    ...(matches !== undefined && { matches }),
    ...(fields.has("structured") && { structured: fields.raw("structured") }),
    ...(schema !== undefined && { schema }),
  };
}

/** One text or a list of texts. */
function partsOf(fields: FieldReader): readonly string[] | undefined {
  const value = fields.raw("contains");
  const parts = typeof value === "string" ? [value] : value;
  if (parts === undefined) return undefined;
  const isValid = Array.isArray(parts) && parts.every((part) => typeof part === "string" && part !== "");
  return isValid
    ? parts
    : fields.wrong("contains", `"contains" must be a text or a list of texts that are not empty, not ${describe(value)}.`);
}
