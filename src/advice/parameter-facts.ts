import type { Position } from "../base/diagnostic.ts";
import { isRecord, walkSchema } from "../tools/walk-schema.ts";

/** What is known of one parameter of a tool, wherever its schema is written. */
export interface ParameterFact {
  /** `limit`, `range.start`. */
  readonly path: string;
  readonly isDescribed: boolean;
  readonly description: string | undefined;
  /** Text that nothing but its description bounds: no enum, constant, format or pattern. */
  readonly isFreeText: boolean;
  readonly position: Position | undefined;
}

export type PositionOf = (path: readonly string[]) => Position | undefined;

/** The parameters of a JSON Schema, nested ones too. */
export function schemaFacts(schema: unknown, positionOf: PositionOf): readonly ParameterFact[] {
  const facts: ParameterFact[] = [];
  walkSchema(schema, (part, path) => {
    if (path.at(-2) !== "properties" || isInDefinition(path)) return;
    const description = typeof part["description"] === "string" && part["description"].trim() !== "" ? part["description"] : undefined;
    facts.push({
      path: shownPath(path),
      // What a reference leads to may be described there.
      isDescribed: description !== undefined || typeof part["$ref"] === "string",
      description,
      isFreeText: isFreeText(part),
      position: positionOf(path),
    });
  });
  return facts;
}

function isInDefinition(path: readonly string[]): boolean {
  return path[0] === "$defs" || path[0] === "definitions";
}

function shownPath(path: readonly string[]): string {
  return path
    .filter((step, index) => path[index - 1] === "properties" || step === "items")
    .join(".")
    .replaceAll(".items", "[]");
}

const bounds = ["enum", "const", "format", "pattern", "anyOf", "oneOf", "allOf", "$ref", "examples"];

function isFreeText(part: Record<string, unknown>): boolean {
  const { type, items } = part;
  if (type === "array" && isRecord(items)) return isFreeText(items);
  return type === "string" && !bounds.some((keyword) => Object.hasOwn(part, keyword));
}
