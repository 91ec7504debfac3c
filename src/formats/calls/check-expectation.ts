import { isNestedTooDeep, isRecord } from "../../base/json.ts";
import { shorten } from "../../base/text.ts";
import { compileSchema } from "../../tools/schema/json-schema-validator.ts";
import { boundedPattern } from "../../tools/schema/schema-pattern.ts";
import type { JsonSchema, ToolResult } from "../../tools/tool.ts";
import type { CallExpectation } from "./stored-calls.ts";

/** Compares a result with what is expected of it. Returns the reasons why it fails, one line each; none if it passes. */
export async function checkExpectation(expect: CallExpectation, result: ToolResult): Promise<readonly string[]> {
  const reasons: string[] = [];
  const { resultType: code, textResultForLlm: text } = result;
  const ok = expect.ok ?? (expect.code === undefined ? true : undefined);
  if (ok !== undefined && ok !== (code === "success")) {
    reasons.push(ok ? `The call did not succeed: ${code}: ${shown(result.error ?? text)}.` : "The call succeeded.");
  }
  if (expect.code !== undefined && expect.code !== code) reasons.push(`The code is ${code}, not ${expect.code}.`);
  if (expect.text !== undefined && expect.text !== text) reasons.push(differenceOf(text, expect.text));
  for (const part of expect.contains ?? []) {
    if (!text.includes(part)) reasons.push(`The text does not contain ${shown(part)}.`);
  }
  if (expect.matches !== undefined) reasons.push(...checkPattern(expect.matches, text));
  if ("structured" in expect || expect.schema !== undefined) reasons.push(...(await checkData(expect, result)));
  return reasons;
}

/** Matching is linear, but a hundred times slower than a search. */
const longestMatched = 1_000_000;

function checkPattern(pattern: string, text: string): readonly string[] {
  if (text.length > longestMatched) {
    return [`The text has ${text.length} characters; "matches" is for at most ${longestMatched}. Use "contains".`];
  }
  return boundedPattern(pattern)?.test(text) === true ? [] : [`The text does not match ${shown(pattern)}.`];
}

async function checkData(expect: CallExpectation, result: ToolResult): Promise<readonly string[]> {
  const data = dataOf(result);
  if (data === undefined) return ["The result has no data: it has no structured content, and its text is not JSON."];
  if (isNestedTooDeep(data)) return ["The data of the result is nested too deep to be compared."];
  const reasons: string[] = [];
  if ("structured" in expect) addDifferences(data, expect.structured, "", reasons);
  if (expect.schema !== undefined) reasons.push(...(await checkSchemaOf(data, expect.schema)));
  return reasons;
}

/** As `CallResult.json`: the structured content, else the text read as JSON. */
function dataOf({ structuredContent, textResultForLlm }: ToolResult): unknown {
  if (structuredContent !== undefined) return structuredContent;
  try {
    return JSON.parse(textResultForLlm);
  } catch {
    return undefined;
  }
}

const maxReasons = 8;

/** Further members of objects are allowed, further elements of lists are not. */
function addDifferences(actual: unknown, expected: unknown, path: string, reasons: string[]): void {
  if (reasons.length >= maxReasons) return;
  const place = path === "" ? "The data" : path;
  if (isRecord(expected) && isRecord(actual)) {
    for (const [key, value] of Object.entries(expected)) {
      const inner = path === "" ? key : `${path}.${key}`;
      if (Object.hasOwn(actual, key)) addDifferences(actual[key], value, inner, reasons);
      else reasons.push(`${inner} is missing; expected ${shown(value)}.`);
    }
  } else if (Array.isArray(expected) && Array.isArray(actual)) {
    if (expected.length !== actual.length) reasons.push(`${place} has ${actual.length} elements, not ${expected.length}.`);
    else for (const [index, value] of expected.entries()) addDifferences(actual[index], value, `${path}[${index}]`, reasons);
  } else if (actual !== expected) {
    // Equal only where neither is a container: those of one kind were compared above.
    reasons.push(`${place} is ${shown(actual)}, not ${shown(expected)}.`);
  }
}

/** The validator is one for arguments, which forgives a model that writes null for what it leaves out. A result is not forgiven. */
async function checkSchemaOf(data: unknown, schema: JsonSchema): Promise<readonly string[]> {
  if (data === null) return ["The data is null, which is not compared with a schema."];
  const validated = await compileSchema(schema, { untrustedPatterns: true })(data);
  if (!validated.ok) return validated.issues.map(({ path, message }) => `Schema: ${path === "" ? "" : `${path}: `}${message}`);
  const omitted = omittedNull(data, validated.value, "");
  return omitted === undefined ? [] : [`Schema: ${omitted} is null.`];
}

function omittedNull(data: unknown, kept: unknown, path: string): string | undefined {
  if (typeof data !== "object" || data === null || typeof kept !== "object" || kept === null) return undefined;
  for (const [key, value] of Object.entries(data)) {
    const inner = path === "" ? key : `${path}.${key}`;
    if (value === null && (kept as Record<string, unknown>)[key] !== null) return inner;
    const found = omittedNull(value, (kept as Record<string, unknown>)[key], inner);
    if (found !== undefined) return found;
  }
  return undefined;
}

function differenceOf(actual: string, expected: string): string {
  let at = 0;
  while (at < actual.length && actual[at] === expected[at]) at++;
  const from = Math.max(0, at - 10);
  return `The text differs at character ${at + 1}: ${shown(actual.slice(from))}, not ${shown(expected.slice(from))}.`;
}

/** On one line and short, whatever it is: a value of 50 MB is not written as text first. */
function shown(value: unknown): string {
  return shorten(JSON.stringify(pruned(value, 3)) ?? "nothing", 80);
}

function pruned(value: unknown, depth: number): unknown {
  if (typeof value === "string") return value.slice(0, 200);
  if (typeof value !== "object" || value === null) return value;
  if (depth === 0) return "…";
  if (Array.isArray(value)) return value.slice(0, 20).map((each) => pruned(each, depth - 1));
  const kept: [string, unknown][] = [];
  for (const key in value) {
    if (kept.length === 20) break;
    kept.push([key.slice(0, 200), pruned((value as Readonly<Record<string, unknown>>)[key], depth - 1)]);
  }
  return Object.fromEntries(kept);
}
