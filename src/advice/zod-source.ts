import {
  calleeName,
  keyOf,
  type ModuleSource,
  type NodeOf,
  propertyOf,
  resolveNode,
  type SyntaxNode,
  staticText,
  staticValue,
} from "../formats/modules/module-source.ts";

type Schema = Readonly<Record<string, unknown>>;

const objects: ReadonlySet<string> = new Set(["object", "strictObject", "looseObject"]);
const optionals: ReadonlySet<string> = new Set(["optional", "nullish", "default", "prefault", "catch"]);
const types: Readonly<Record<string, string>> = { string: "string", number: "number", int: "integer", boolean: "boolean", array: "array" };

/**
 * The schema that a tool's `parameters: z.object({ … })` shows in its text: names, descriptions, choices and types, as far as they are
 * literals. Undefined: the parameters are written in another way. Good for hints, not for validation.
 */
export function schemaOfZodSource(definition: NodeOf<"ObjectExpression"> | undefined, module: ModuleSource): Schema | undefined {
  const parameters = definition && (propertyOf(definition, "parameters") ?? propertyOf(definition, "inputSchema"));
  const calls = parameters ? callsOf(parameters.value as SyntaxNode, module) : [];
  const shape = calls.find(({ name }) => objects.has(name))?.args[0];
  const at = shape && resolveNode(shape, module);
  if (at?.type !== "ObjectExpression") return undefined;
  const fields = at.properties.flatMap((property) => {
    const key = property.type === "Property" ? keyOf(property as NodeOf<"Property">) : undefined;
    return key === undefined ? [] : [[key, callsOf((property as NodeOf<"Property">).value as SyntaxNode, module)] as const];
  });
  return {
    type: "object",
    properties: Object.fromEntries(fields.map(([key, chain]) => [key, fieldSchema(chain, module)])),
    required: fields.filter(([, chain]) => chain.length > 0 && !chain.some(({ name }) => optionals.has(name))).map(([key]) => key),
  };
}

function fieldSchema(chain: readonly Call[], module: ModuleSource): Schema {
  const argumentOf = (wanted: string): SyntaxNode | undefined => chain.find(({ name }) => name === wanted)?.args[0];
  const about = argumentOf("describe");
  const description = about && staticText(about, module);
  const listed = argumentOf("enum") ?? argumentOf("literal");
  const choices = listed && staticValue(listed, module);
  const type = chain.flatMap(({ name }) => (Object.hasOwn(types, name) ? [types[name]] : []))[0];
  return {
    ...(type !== undefined && { type }),
    ...(choices?.isKnown === true && { enum: Array.isArray(choices.value) ? choices.value : [choices.value] }),
    ...(description !== undefined && { description }),
  };
}

interface Call {
  readonly name: string;
  readonly args: readonly SyntaxNode[];
}

/** The calls of `z.string().min(1).optional()`, the first one first. */
function callsOf(node: SyntaxNode, module: ModuleSource): readonly Call[] {
  const calls: Call[] = [];
  let at = resolveNode(node, module);
  while (at.type === "CallExpression" && calls.length < 50) {
    calls.unshift({ name: calleeName(at.callee as SyntaxNode) ?? "", args: at.arguments as SyntaxNode[] });
    const callee = at.callee as SyntaxNode;
    if (callee.type !== "MemberExpression") break;
    at = resolveNode(callee.object as SyntaxNode, module);
  }
  return calls;
}
