import type { Diagnostic, Position } from "../base/diagnostic.ts";
import { isRecord } from "../base/json.ts";
import {
  calleeName,
  keyOf,
  type ModuleSource,
  type NodeOf,
  propertyOf,
  resolveNode,
  type SyntaxNode,
  staticText,
  unwrap,
} from "../formats/modules/module-source.ts";
import { walkSchema } from "../tools/schema/schema-structure.ts";

interface Place {
  readonly tool: string;
  readonly file: string;
}

/** Advice about single parameters. */
export function adviseParameters(facts: readonly ParameterFact[], place: Place): readonly Diagnostic[] {
  return facts.flatMap((fact) => [...adviseUndescribed(fact, place), ...adviseProse(fact, place)]);
}

/** A schema without `required`: all parameters are optional, which is rarely intended. */
export function adviseRequired(schema: unknown, place: Place, position: Position | undefined): readonly Diagnostic[] {
  if (!isRecord(schema) || schema["required"] !== undefined || !isRecord(schema["properties"])) return [];
  const names = Object.entries(schema["properties"]).filter(([, part]) => !(isRecord(part) && isOptional(part)));
  if (names.length === 0) return [];
  const message = `The parameters of "${place.tool}" have no "required", so a model may leave out all of them. List the parameters that the tool needs, or write "required": [] if it needs none.`;
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
  const message = `The parameter "${path}" of "${place.tool}" has no description. Describe it, with its unit or an example where that helps a model.`;
  return [advice("ADVICE_PARAMETER_UNDESCRIBED", message, place, position)];
}

function adviseProse({ path, description, isFreeText, position }: ParameterFact, place: Place): Diagnostic[] {
  const values = isFreeText && description !== undefined ? valuesInProse(description) : [];
  if (values.length < 2) return [];
  const message = `The description of the parameter "${path}" of "${place.tool}" lists its values (${values.slice(0, 5).join(", ")}). Use an enum, which the model sees and the host checks.`;
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

/** The values that a text lists as the only valid ones. Examples do not count. */
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

/** One parameter of a tool, independent of how its schema is written. */
export interface ParameterFact {
  /** Such as `limit` or `range.start`. */
  readonly path: string;
  readonly isDescribed: boolean;
  readonly description: string | undefined;
  /** A string without enum, constant, format or pattern. */
  readonly isFreeText: boolean;
  readonly position: Position | undefined;
}

type PositionOf = (path: readonly string[]) => Position | undefined;

/** The parameters of a JSON Schema, including nested ones. */
export function schemaFacts(schema: unknown, positionOf: PositionOf): readonly ParameterFact[] {
  const facts: ParameterFact[] = [];
  walkSchema(schema, (part, path) => {
    if (path.at(-2) !== "properties" || isInDefinition(path)) return;
    const description = typeof part["description"] === "string" && part["description"].trim() !== "" ? part["description"] : undefined;
    facts.push({
      path: shownPath(path),
      // The target of a reference may have the description.
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

/**
 * The parameters of a schema of a library (Zod, Valibot, TypeBox and similar): the fields of a call of `object` with an object
 * literal. Undefined for any other form.
 */
export function libraryFacts(node: SyntaxNode, module: ModuleSource, prefix = ""): readonly ParameterFact[] | undefined {
  const fields = fieldsOf(resolveNode(node, module));
  if (fields === undefined || prefix.length > 200) return undefined;
  return fields.properties.flatMap((property): ParameterFact[] => {
    const key = property.type === "Property" ? keyOf(property as NodeOf<"Property">) : undefined;
    if (property.type !== "Property" || key === undefined) return [];
    const value = resolveNode(property.value as SyntaxNode, module);
    // A schema from another module is unknown.
    if (value.type !== "CallExpression") return [];
    const calls = callsOf(value, module);
    const description = descriptionOf(calls, module);
    const path = `${prefix}${key}`;
    const position = module.positionOf(property.start);
    const isDescribed = calls.some(({ name }) => describers.has(name)) || description !== undefined;
    return [
      {
        path,
        isDescribed,
        description,
        isFreeText: calls.some(({ name }) => /^string$/i.test(name)) && !calls.some(({ name }) => bounders.has(name)),
        position,
      },
      ...(libraryFacts(value, module, `${path}.`) ?? []),
    ];
  });
}

const describers = new Set(["describe", "description", "meta", "register", "metadata"]);
const bounders = new Set(
  "enum enum_ nativeEnum literal Literal union Union picklist variant regex pattern email url uuid datetime date time ip iso startsWith endsWith Enum TemplateLiteral transform".split(
    " ",
  ),
);

interface Call {
  readonly name: string;
  readonly args: readonly SyntaxNode[];
}

/** All calls in a chain such as `z.string().min(1).describe("…")`, including those in arguments. */
function callsOf(node: SyntaxNode, module: ModuleSource, depth = 0): readonly Call[] {
  const calls: Call[] = [];
  let at = unwrap(node);
  while (at.type === "CallExpression") {
    const name = calleeName(at.callee) ?? "";
    const args = at.arguments.filter(
      (argument): argument is Exclude<typeof argument, NodeOf<"SpreadElement">> => argument.type !== "SpreadElement",
    );
    calls.push({ name, args });
    if (!isObject(name) && depth < 10) {
      for (const argument of args) {
        const inner = resolveNode(argument, module);
        if (inner.type === "CallExpression") calls.push(...callsOf(inner, module, depth + 1));
      }
    }
    at = at.callee.type === "MemberExpression" ? unwrap(at.callee.object) : at.callee;
  }
  return calls;
}

function descriptionOf(calls: readonly Call[], module: ModuleSource): string | undefined {
  for (const { name, args } of calls) {
    for (const argument of args) {
      const text = describers.has(name) ? staticText(argument, module) : undefined;
      if (text !== undefined) return text;
      const options = resolveNode(argument, module);
      const written = options.type === "ObjectExpression" && !isObject(name) ? propertyOf(options, "description") : undefined;
      if (written) return staticText(written.value as SyntaxNode, module) ?? "";
    }
  }
  return undefined;
}

function isObject(name: string): boolean {
  return /^(?:object|strictObject|looseObject|Object)$/.test(name);
}

function fieldsOf(node: SyntaxNode): NodeOf<"ObjectExpression"> | undefined {
  let at = unwrap(node);
  while (at.type === "CallExpression") {
    const first = at.arguments[0];
    if (isObject(calleeName(at.callee) ?? "") && first?.type === "ObjectExpression") return first;
    if (at.callee.type !== "MemberExpression") return undefined;
    at = unwrap(at.callee.object);
  }
  return undefined;
}
