import type { Diagnostic, Position } from "../base/diagnostic.ts";
import { isRecord } from "../base/json.ts";
import type { WrittenTool } from "../formats/modules/module-exports.ts";
import {
  type ModuleSource,
  type NodeOf,
  propertyOf,
  resolveNode,
  type SyntaxNode,
  staticText,
  staticValue,
} from "../formats/modules/module-source.ts";
import type { ToolJson } from "../formats/skills/tool-json.ts";
import type { JsonDocument, JsonPath } from "../formats/text/json-document.ts";
import { wholePlaceholder } from "../skills/handlers/fill-template.ts";
import { adviseDefinition, type KnownDefinition } from "./advise-definition.ts";
import { absolutePathMessage, isMachinePath } from "./advise-files.ts";
import { adviseParameters, adviseRequired, libraryFacts, type ParameterFact, schemaFacts } from "./advise-parameters.ts";

/** The statically known part of a tool. */
export interface KnownTool {
  readonly definition: KnownDefinition;
  readonly facts: readonly ParameterFact[];
  /** The JSON Schema of the parameters, if they are written as one. */
  readonly schema: { readonly value: unknown; readonly position: Position | undefined } | undefined;
}

/** All advice about a tool's definition. */
export function adviseTool({ definition, facts, schema }: KnownTool): readonly Diagnostic[] {
  const place = { tool: definition.name, file: definition.file };
  return [
    ...adviseDefinition(definition),
    ...adviseParameters(facts, place),
    ...(schema ? adviseRequired(schema.value, place, schema.position) : []),
  ];
}

/** A tool of a JSON file, or of a manifest at a JSON path. */
export interface JsonPlace {
  readonly file: string;
  readonly document: JsonDocument;
  readonly positionOf: (offset: number) => Position;
  readonly path: JsonPath;
}

export function knownFromJson({ definition }: ToolJson, place: JsonPlace): KnownTool {
  const at = (...path: JsonPath): Position | undefined => {
    const offset = place.document.offsetOf([...place.path, ...path]);
    return offset === undefined ? undefined : place.positionOf(offset);
  };
  const key = at("parameters") ? "parameters" : "inputSchema";
  const { name, description, overridesBuiltInTool, parameters } = definition;
  return {
    definition: {
      name,
      description,
      overridesBuiltInTool,
      file: place.file,
      isAloneInFile: place.path.length === 0,
      position: (field) => at(field),
    },
    facts: schemaFacts(parameters, (path) => at(key, ...path.map(toStep))),
    schema: parameters && { value: parameters, position: at(key) },
  };
}

/** Advice about a command: machine-specific paths, and arguments that may be refused. */
export function adviseCommand({ definition, handler }: ToolJson, place: JsonPlace): readonly Diagnostic[] {
  if (handler?.kind !== "command") return [];
  const texts = [handler.command, ...handler.args, ...Object.values(handler.env ?? {})];
  const offset = place.document.offsetOf([...place.path, "handler"]);
  const range = offset === undefined ? {} : { range: { start: place.positionOf(offset) } };
  const paths = texts.filter(isMachinePath).map((text): Diagnostic => {
    return { severity: "warning", code: "ADVICE_ABSOLUTE_PATH", message: absolutePathMessage(text), file: place.file, ...range };
  });
  const names = possibleOptions(handler.args, definition.parameters);
  return names.length === 0 ? paths : [...paths, { ...refusedOptions(names), file: place.file, ...range }];
}

/** The parameters whose values may begin with a hyphen and are used in an option position. */
function possibleOptions(args: readonly string[], parameters: ToolJson["definition"]["parameters"]): readonly string[] {
  const end = args.indexOf("--");
  const names = args.slice(0, end === -1 ? undefined : end).flatMap((arg) => wholePlaceholder.exec(arg)?.[1] ?? []);
  const properties = isRecord(parameters?.["properties"]) ? parameters["properties"] : {};
  return names.filter((name) => {
    const schema = Object.hasOwn(properties, name) ? properties[name] : undefined;
    if (!isRecord(schema)) return true;
    const { type, enum: values, const: value, pattern } = schema;
    const isText = type === undefined || type === "string" || (Array.isArray(type) && type.includes("string"));
    const texts = Array.isArray(values) ? values : value === undefined ? undefined : [value];
    const isSafe = texts !== undefined && !texts.some((text) => String(text).startsWith("-"));
    return isText && !isSafe && !(typeof pattern === "string" && refusesHyphens(pattern));
  });
}

/** Short samples, so that no pattern can take long. */
const options = ["-", "-x", "-1", "--out=x"];

function refusesHyphens(pattern: string): boolean {
  try {
    const expression = new RegExp(pattern, "u");
    return !options.some((option) => expression.test(option));
  } catch {
    // Faults of the schema are reported elsewhere.
    return false;
  }
}

function refusedOptions(names: readonly string[]): Pick<Diagnostic, "severity" | "code" | "message"> {
  const shown = names.map((name) => `\${${name}}`).join(", ");
  const message = `A call in which ${shown} begins with a hyphen is rejected, because the program could treat it as an option. If the program understands "--", write it before that element of "args"; or pass the value on stdin.`;
  return { severity: "info", code: "ADVICE_ARGUMENT_OPTION", message };
}

/** Undefined: the name is computed. */
export function knownFromModule(
  module: ModuleSource,
  { name, node, definition }: WrittenTool,
  isAloneInFile: boolean,
): KnownTool | undefined {
  if (name === undefined) return undefined;
  const field = (key: string): SyntaxNode | undefined => definition && (propertyOf(definition, key)?.value as SyntaxNode | undefined);
  const description = field("description");
  const parameters = field("parameters") ?? field("inputSchema");
  const overrides = field("overridesBuiltInTool");
  const flag = overrides && staticValue(overrides, module);
  return {
    definition: {
      name,
      description: description && staticText(description, module),
      // A computed value may be true.
      overridesBuiltInTool: flag && (!flag.isKnown || flag.value === true),
      file: module.file,
      isAloneInFile,
      position: (which) => module.positionOf((which === "description" ? (description ?? node) : node).start),
    },
    ...parametersOf(parameters, module),
  };
}

function parametersOf(node: SyntaxNode | undefined, module: ModuleSource): Pick<KnownTool, "facts" | "schema"> {
  if (node === undefined) return { facts: [], schema: undefined };
  const written = staticValue(node, module);
  if (!written.isKnown) return { facts: libraryFacts(node, module) ?? [], schema: undefined };
  const position = module.positionOf(node.start);
  const facts = schemaFacts(written.value, (path) => positionIn(node, path, module) ?? position);
  return { facts, schema: { value: written.value, position } };
}

/** The position of a key in a literal. */
function positionIn(node: SyntaxNode, path: readonly string[], module: ModuleSource): Position | undefined {
  let at = resolveNode(node, module);
  let found: NodeOf<"Property"> | undefined;
  for (const step of path) {
    found = at.type === "ObjectExpression" ? propertyOf(at, step) : undefined;
    if (found === undefined) return undefined;
    at = resolveNode(found.value as SyntaxNode, module);
  }
  return found && module.positionOf(found.start);
}

function toStep(step: string): string | number {
  return /^\d+$/.test(step) ? Number(step) : step;
}
