import type { ModuleSource, NodeOf, SyntaxNode } from "./module-source.ts";

/** The value of an expression, if it is certain without running code. */
export type StaticValue = { readonly isKnown: true; readonly value: unknown } | { readonly isKnown: false };

const unknownValue: StaticValue = { isKnown: false };
const mostDepth = 100;

/** Evaluates literals, objects and arrays of them, concatenated strings, and the module's own constants. */
export function staticValue(node: SyntaxNode, module: ModuleSource, depth = 0): StaticValue {
  if (depth > mostDepth) return unknownValue;
  const at = resolveNode(node, module);
  if (at.type === "Literal") return "regex" in at && at.regex ? unknownValue : known(at.value);
  if (at.type === "Identifier") return at.name === "undefined" ? known(undefined) : unknownValue;
  if (at.type === "TemplateLiteral" || at.type === "BinaryExpression") {
    const text = staticText(at, module, depth);
    return text === undefined ? unknownValue : known(text);
  }
  if (at.type === "UnaryExpression" && at.operator === "-") {
    const negated = staticValue(at.argument, module, depth + 1);
    return negated.isKnown && typeof negated.value === "number" ? known(-negated.value) : unknownValue;
  }
  if (at.type === "ArrayExpression") {
    const values: unknown[] = [];
    for (const element of at.elements) {
      const item = element === null || element.type === "SpreadElement" ? unknownValue : staticValue(element, module, depth + 1);
      if (!item.isKnown) return unknownValue;
      values.push(item.value);
    }
    return known(values);
  }
  return at.type === "ObjectExpression" ? staticObject(at, module, depth) : unknownValue;
}

/** The value of a string, of a template without expressions, and of concatenations of these. */
export function staticText(node: SyntaxNode, module: ModuleSource, depth = 0): string | undefined {
  if (depth > mostDepth) return undefined;
  const at = resolveNode(node, module);
  if (at.type === "Literal") return typeof at.value === "string" ? at.value : undefined;
  if (at.type === "TemplateLiteral") return at.expressions.length === 0 ? (at.quasis[0]?.value.cooked ?? undefined) : undefined;
  if (at.type !== "BinaryExpression" || at.operator !== "+") return undefined;
  const [left, right] = [staticText(at.left, module, depth + 1), staticText(at.right, module, depth + 1)];
  return left === undefined || right === undefined ? undefined : left + right;
}

/** Strips type-only syntax, and resolves a top-level name to its value. */
export function resolveNode(node: SyntaxNode, module: ModuleSource): SyntaxNode {
  let at = unwrap(node);
  for (let steps = 0; at.type === "Identifier" && steps < 10; steps++) {
    const target = module.topLevel.get(at.name);
    if (target === undefined) break;
    at = unwrap(target);
  }
  return at;
}

export function unwrap(node: SyntaxNode): SyntaxNode {
  let at = node;
  while (
    at.type === "TSAsExpression" ||
    at.type === "TSSatisfiesExpression" ||
    at.type === "TSNonNullExpression" ||
    at.type === "ChainExpression" ||
    at.type === "AwaitExpression"
  ) {
    at = at.type === "AwaitExpression" ? at.argument : at.expression;
  }
  return at;
}

/** A property of an object literal; undefined also if a spread may provide it. */
export function propertyOf(object: NodeOf<"ObjectExpression">, name: string): NodeOf<"Property"> | undefined {
  return object.properties.find(
    (property): property is NodeOf<"Property"> & typeof property => property.type === "Property" && keyOf(property) === name,
  ) as NodeOf<"Property"> | undefined;
}

export function hasSpread(object: NodeOf<"ObjectExpression">): boolean {
  return object.properties.some((property) => property.type === "SpreadElement");
}

export function keyOf(property: NodeOf<"Property">): string | undefined {
  const { key, computed } = property;
  if (!computed && key.type === "Identifier") return key.name;
  return key.type === "Literal" && typeof key.value === "string" ? key.value : undefined;
}

/** The last name of `a.b.c`, or the name itself. */
export function calleeName(node: SyntaxNode): string | undefined {
  const at = unwrap(node);
  if (at.type === "Identifier") return at.name;
  return at.type === "MemberExpression" && at.property.type === "Identifier" && !at.computed ? at.property.name : undefined;
}

function staticObject(object: NodeOf<"ObjectExpression">, module: ModuleSource, depth: number): StaticValue {
  const values: Record<string, unknown> = {};
  for (const property of object.properties) {
    const key = property.type === "Property" ? keyOf(property as NodeOf<"Property">) : undefined;
    if (property.type !== "Property" || key === undefined || key === "__proto__") return unknownValue;
    const field = staticValue(property.value as SyntaxNode, module, depth + 1);
    if (!field.isKnown) return unknownValue;
    if (field.value !== undefined) values[key] = field.value;
  }
  return known(values);
}

function known(value: unknown): StaticValue {
  return { isKnown: true, value };
}
