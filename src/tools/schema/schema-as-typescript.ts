import { isRecord } from "../../base/json.ts";
import type { ToolDefinition } from "../tool.ts";
import { SchemaIndex, type SchemaNode } from "./schema-structure.ts";

/** A JSON Schema as TypeScript reads it. */
interface TypeScriptForm {
  /** A type expression: `{ city: string; units?: "celsius" | "fahrenheit" }`. */
  readonly type: string;
  /** The types that `$ref`s name (`type Node = …;`), in the order of their first use. */
  readonly declarations: readonly string[];
}

/** A schema that would print more subschemas or deeper ones ends in `unknown`. */
const maxNodes = 2_000;
const maxNesting = 40;
const lineWidth = 100;

/**
 * Writes a JSON Schema as a TypeScript type, for people and compilers. The type accepts every value that the schema accepts; what
 * TypeScript cannot express (patterns, ranges, `not`, `if`) becomes a tag of the property's comment or is left out. The schema may be
 * hostile: the work is limited, and texts cannot end a comment.
 * @internal Exported for tests.
 */
export function schemaAsTypeScript(schema: unknown): TypeScriptForm {
  const printer = new SchemaPrinter();
  return { type: printer.print(schema), declarations: printer.declarations };
}

/** A tool as a TypeScript signature with its description, after the types that it names. */
export function toolAsTypeScript({ name, description, parameters, outputSchema }: ToolDefinition): string {
  const printer = new SchemaPrinter();
  const { args, result } = signatureParts({ parameters, outputSchema }, printer);
  const called = isIdentifier(name) ? name : literal(name);
  const signature = `${called}(${args === noProperties ? "" : `args: ${args}`}): ${result};`;
  return [...printer.declarations, `${textComment(description, "")}${signature}`].join("\n");
}

/** The types of what a tool takes and returns. `depth`: how deep the place of the text is indented. */
export function signatureParts(
  { parameters, outputSchema }: { readonly parameters?: unknown; readonly outputSchema?: unknown },
  printer: SchemaPrinter,
  depth = 0,
): { readonly args: string; readonly result: string } {
  return {
    args: parameters === undefined ? noProperties : printer.print(parameters, depth),
    result: outputSchema === undefined ? "unknown" : printer.print(outputSchema, depth),
  };
}

/** A description as a comment, with the line break. Empty if there is none. */
export function textComment(description: string | undefined, indent: string): string {
  return comment({ description }, indent);
}

const noProperties = "{ [name: string]: never }";

export function isIdentifier(name: string): boolean {
  return /^[A-Za-z_$][\w$]*$/.test(name);
}

/** A type and how tightly its operator binds: `a | b` needs parentheses in `(a | b)[]`. */
interface Printed {
  readonly text: string;
  readonly operator?: "|" | "&";
}

type Schema = Readonly<Record<string, unknown>>;

/** Prints schemas whose named types have different names. */
export class SchemaPrinter {
  readonly declarations: string[] = [];
  /** The names of the schemas that references lead to. */
  readonly #names = new Map<object, string>();
  readonly #takenNames = new Set<string>();
  #index = new SchemaIndex(undefined);
  #nodes = 0;
  #nesting = 0;

  print(schema: unknown, depth = 0): string {
    this.#index = new SchemaIndex(schema);
    this.#nodes = 0;
    return this.#print(schema, depth).text;
  }

  #print(schema: unknown, depth: number): Printed {
    if (schema === false) return { text: "never" };
    this.#nodes += 1;
    if (!isRecord(schema) || this.#nesting >= maxNesting || this.#nodes > maxNodes) return { text: "unknown" };
    this.#nesting += 1;
    const printed = this.#printKeywords(schema, depth);
    this.#nesting -= 1;
    return printed;
  }

  #printKeywords(schema: SchemaNode, depth: number): Printed {
    const parts = [this.#reference(schema, depth), this.#values(schema) ?? this.#types(schema, depth)];
    for (const key of ["anyOf", "oneOf"]) {
      const choices = schema[key];
      if (Array.isArray(choices) && choices.length > 0) parts.push(union(choices.map((choice) => this.#print(choice, depth))));
    }
    if (Array.isArray(schema["allOf"])) parts.push(...schema["allOf"].map((part) => this.#print(part, depth)));
    const printed = intersection(parts.filter((part) => part !== undefined));
    return schema["nullable"] === true ? union([printed, { text: "null" }]) : printed;
  }

  #reference(schema: SchemaNode, depth: number): Printed | undefined {
    const { $ref: ref } = schema;
    if (typeof ref !== "string") return undefined;
    const target = this.#index.find(ref, schema);
    if (!isRecord(target)) return this.#print(target, depth);
    const known = this.#names.get(target);
    if (known !== undefined) return { text: known };
    const name = this.#newName(ref);
    // Known before it is printed: a definition may refer to itself.
    this.#names.set(target, name);
    const place = this.declarations.push("") - 1;
    this.declarations[place] = `${comment(target, "")}type ${name} = ${this.#print(target, depth + 1).text};`;
    return { text: name };
  }

  #newName(ref: string): string {
    const words = (ref.split(/[/#]/).at(-1) ?? "").split(/[^A-Za-z0-9]+/).filter((word) => word !== "");
    const plain = words.map((word) => word[0]!.toUpperCase() + word.slice(1)).join("") || "Root";
    const name = /^\d/.test(plain) ? `Type${plain}` : plain;
    for (let count = 1; ; count++) {
      const candidate = count === 1 ? name : `${name}${count}`;
      if (this.#takenNames.has(candidate)) continue;
      this.#takenNames.add(candidate);
      return candidate;
    }
  }

  #values(schema: Schema): Printed | undefined {
    if (Object.hasOwn(schema, "const")) return { text: literal(schema["const"]) };
    const values = schema["enum"];
    if (!Array.isArray(values) || values.length === 0) return undefined;
    return union(values.map((value) => ({ text: literal(value) })));
  }

  #types(schema: Schema, depth: number): Printed | undefined {
    const { type } = schema;
    const types = Array.isArray(type) ? type : typeof type === "string" ? [type] : impliedTypes(schema);
    if (types.length === 0) return undefined;
    return union(types.map((each) => this.#type(each, schema, depth)));
  }

  #type(type: unknown, schema: Schema, depth: number): Printed {
    if (type === "object") return this.#object(schema, depth);
    if (type === "array") return this.#array(schema, depth);
    if (type === "integer") return { text: "number" };
    return { text: type === "string" || type === "number" || type === "boolean" || type === "null" ? type : "unknown" };
  }

  #array(schema: Schema, depth: number): Printed {
    const { prefixItems, items, additionalItems, minItems } = schema;
    const first = Array.isArray(prefixItems) ? prefixItems : Array.isArray(items) ? items : undefined;
    if (first === undefined) return { text: arrayOf(items === undefined ? { text: "unknown" } : this.#print(items, depth + 1)) };
    const least = typeof minItems === "number" ? minItems : 0;
    const fixed = first.map((item, index) => {
      const printed = this.#print(item, depth + 1);
      return index < least ? printed.text : `${grouped(printed)}?`;
    });
    const others = Array.isArray(prefixItems) ? items : additionalItems;
    if (others === false) return { text: `[${fixed.join(", ")}]` };
    const rest = others === undefined ? { text: "unknown" } : this.#print(others, depth + 1);
    return { text: `[${[...fixed, `...${arrayOf(rest)}`].join(", ")}]` };
  }

  #object(schema: Schema, depth: number): Printed {
    const properties = isRecord(schema["properties"]) ? schema["properties"] : {};
    const required = Array.isArray(schema["required"]) ? schema["required"].filter((name) => typeof name === "string") : [];
    const indent = "  ".repeat(depth + 1);
    const members = [...new Set([...Object.keys(properties), ...required])].map((name) => {
      const property = Object.hasOwn(properties, name) ? properties[name] : {};
      const key = isIdentifier(name) ? name : literal(name);
      const text = `${key}${required.includes(name) ? "" : "?"}: ${this.#print(property, depth + 1).text};`;
      return { text, comment: comment(property, indent) };
    });
    const index = this.#indexSignature(schema, depth, members.length === 0);
    if (members.length === 0) return index ?? { text: noProperties };
    const line = `{ ${members
      .map(({ text }) => text)
      .join(" ")
      .slice(0, -1)} }`;
    const isShort = members.every((each) => each.comment === "") && !line.includes("\n") && indent.length + line.length <= lineWidth;
    const block = members.map((each) => `${each.comment}${indent}${each.text}`).join("\n");
    const object: Printed = { text: isShort ? line : `{\n${block}\n${indent.slice(2)}}` };
    return index === undefined ? object : intersection([object, index]);
  }

  /** Undefined: no other properties, or none worth a mention beside named ones. */
  #indexSignature(schema: Schema, depth: number, isAlone: boolean): Printed | undefined {
    const { additionalProperties: others, patternProperties } = schema;
    const patterns = isRecord(patternProperties) ? Object.values(patternProperties) : [];
    const isOpen = others === true || (others === undefined && patterns.length === 0);
    if (isOpen) return isAlone ? { text: "{ [name: string]: unknown }" } : undefined;
    const values = [...patterns, ...(others === false || others === undefined ? [] : [others])];
    if (values.length === 0) return undefined;
    // An index signature also applies to the named properties.
    if (!isAlone) return { text: "{ [name: string]: unknown }" };
    return { text: `{ [name: string]: ${union(values.map((value) => this.#print(value, depth + 1))).text} }` };
  }
}

/** The types that keywords imply where none is given. */
function impliedTypes(schema: Schema): readonly string[] {
  if (["properties", "required", "additionalProperties", "patternProperties"].some((key) => schema[key] !== undefined)) return ["object"];
  return schema["items"] !== undefined || schema["prefixItems"] !== undefined ? ["array"] : [];
}

function union(parts: readonly Printed[]): Printed {
  return joined(parts, "|", "unknown");
}

function intersection(parts: readonly Printed[]): Printed {
  // `unknown & T` is `T`.
  return joined(
    parts.filter(({ text }) => text !== "unknown"),
    "&",
  );
}

/** Joins different types; `absorbing` is the type that makes the others meaningless. */
function joined(parts: readonly Printed[], operator: "|" | "&", absorbing?: string): Printed {
  const different = new Map(parts.map((part) => [part.text, part]));
  const only = absorbing === undefined ? undefined : different.get(absorbing);
  if (only !== undefined) return only;
  const [first, ...others] = different.values();
  if (first === undefined) return { text: "unknown" };
  if (others.length === 0) return first;
  const texts = [first, ...others].map((part) => (part.operator === undefined || part.operator === operator ? part.text : grouped(part)));
  return { text: texts.join(` ${operator} `), operator };
}

function grouped({ text, operator }: Printed): string {
  return operator === undefined ? text : `(${text})`;
}

function arrayOf(item: Printed): string {
  return `${grouped(item)}[]`;
}

/** JSON is also the syntax of TypeScript's literal types. */
export function literal(value: unknown): string {
  return JSON.stringify(value) ?? "unknown";
}

/** Keywords that a type cannot express, as tags. */
const tags = ["default", "format", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"].concat([
  "minLength",
  "maxLength",
  "pattern",
  "minItems",
  "maxItems",
  "uniqueItems",
  "minProperties",
  "maxProperties",
]);

/** The comment above a property: its description, then what its type does not say. With the line break; empty if there is nothing to say. */
function comment(schema: unknown, indent: string): string {
  if (!isRecord(schema)) return "";
  const description = typeof schema["description"] === "string" ? schema["description"] : "";
  const lines = description.trim() === "" ? [] : description.trim().split(/\r\n?|\n/);
  if (schema["deprecated"] === true) lines.push("@deprecated");
  for (const tag of tags) {
    if (Object.hasOwn(schema, tag))
      lines.push(`@${tag} ${typeof schema[tag] === "string" && tag !== "default" ? schema[tag] : literal(schema[tag])}`);
  }
  // The end of a comment must not be in its text.
  const safe = lines.map((line) => line.trimEnd().replaceAll("*/", "*\\/"));
  if (safe.length === 0) return "";
  if (safe.length === 1) return `${indent}/** ${safe[0]} */\n`;
  return `${indent}/**\n${safe.map((line) => `${indent} *${line === "" ? "" : ` ${line}`}\n`).join("")}${indent} */\n`;
}
