import type { ModuleSource, NodeOf, SyntaxNode } from "../formats/modules/module-source.ts";
import { calleeName, keyOf, propertyOf, resolveNode, staticText, unwrap } from "../formats/modules/static-value.ts";
import type { ParameterFact } from "./parameter-facts.ts";

/**
 * The parameters of a schema that is written with a library (Zod, Valibot, TypeBox and their like): the fields of a call of
 * `object` with an object literal. Undefined: it is not written that way.
 */
export function libraryFacts(node: SyntaxNode, module: ModuleSource, prefix = ""): readonly ParameterFact[] | undefined {
  const fields = fieldsOf(resolveNode(node, module));
  if (fields === undefined || prefix.length > 200) return undefined;
  return fields.properties.flatMap((property): ParameterFact[] => {
    const key = property.type === "Property" ? keyOf(property as NodeOf<"Property">) : undefined;
    if (property.type !== "Property" || key === undefined) return [];
    const value = resolveNode(property.value as SyntaxNode, module);
    // A schema from another module: nothing is known about it.
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

/** Every call of a chain such as `z.string().min(1).describe("…")`, and those among the arguments of its calls. */
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
