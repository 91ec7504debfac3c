import type { Diagnostic, Position } from "../base/diagnostic.ts";
import { isRecord } from "../tools/walk-schema.ts";
import type { ParameterFact } from "./parameter-facts.ts";

interface Place {
  readonly tool: string;
  readonly file: string;
}

/** Advice about parameters one by one. */
export function adviseParameters(facts: readonly ParameterFact[], place: Place): readonly Diagnostic[] {
  return facts.flatMap((fact) => [...adviseUndescribed(fact, place), ...adviseProse(fact, place)]);
}

/** A schema that requires nothing and says nothing about it: everything is optional, which is seldom meant. */
export function adviseRequired(schema: unknown, place: Place, position: Position | undefined): readonly Diagnostic[] {
  if (!isRecord(schema) || schema["required"] !== undefined || !isRecord(schema["properties"])) return [];
  const names = Object.entries(schema["properties"]).filter(([, part]) => !(isRecord(part) && isOptional(part)));
  if (names.length === 0) return [];
  const message = `The parameters of "${place.tool}" have no "required", so a model may leave out all of them. List what the tool needs, or write "required": [] if it needs none.`;
  return [advice("ADVICE_REQUIRED_MISSING", message, place, position)];
}

function isOptional(part: Record<string, unknown>): boolean {
  if (Object.hasOwn(part, "default")) return true;
  return (
    typeof part["description"] === "string" &&
    /\b(?:optional|default|defaults|if (?:absent|omitted|missing|not given)|absent)\b/i.test(part["description"])
  );
}

function adviseUndescribed({ path, isDescribed, position }: ParameterFact, place: Place): Diagnostic[] {
  if (isDescribed) return [];
  const message = `The parameter "${path}" of "${place.tool}" has no description. Say what it is, with its unit or an example where that helps a model.`;
  return [advice("ADVICE_PARAMETER_UNDESCRIBED", message, place, position)];
}

function adviseProse({ path, description, isFreeText, position }: ParameterFact, place: Place): Diagnostic[] {
  const values = isFreeText && description !== undefined ? valuesInProse(description) : [];
  if (values.length < 2) return [];
  const message = `The description of the parameter "${path}" of "${place.tool}" lists its values (${values.slice(0, 5).join(", ")}). Put them into an enum, which a model cannot miss and the host checks.`;
  return [advice("ADVICE_VALUES_IN_PROSE", message, place, position)];
}

const separator = String.raw`\s*(?:,\s*(?:or\b|and\b)?|\||\/|\bor\b)\s*`;
const quotedList = new RegExp(String.raw`(["'\x60])[\w.-]{1,40}\1(?:${separator}(["'\x60])[\w.-]{1,40}\2)+`);
const announcedList = new RegExp(
  String.raw`\b(?:one of|(?:possible|valid|allowed|accepted|supported|available)\s+(?:values|options|choices)(?:\s+are)?)\s*:?\s*((?:[\w.-]{1,40})(?:${separator}[\w.-]{1,40})+)`,
  "i",
);
const barredList = /(?<![\w|])([a-z][\w-]{0,30}(?:\|[a-z][\w-]{0,30})+)(?![\w|])/i;
const isExample = /(?:\be\.?g\.?|for example|for instance|such as|\blike|examples?)[\s,:(]*$/i;

/** The values that a text enumerates as the only ones; examples are none. */
function valuesInProse(text: string): readonly string[] {
  const short = text.slice(0, 2_000);
  for (const pattern of [quotedList, announcedList, barredList]) {
    const match = pattern.exec(short);
    if (match === null || isExample.test(short.slice(0, match.index))) continue;
    const list = pattern === quotedList ? match[0] : match[1]!;
    return list
      .split(new RegExp(separator))
      .map((value) => value.replace(/["'`.]/g, ""))
      .filter((value) => value !== "");
  }
  return [];
}

function advice(code: string, message: string, { file }: Place, start: Position | undefined): Diagnostic {
  return { severity: "warning", code, message, file, ...(start && { range: { start } }) };
}
