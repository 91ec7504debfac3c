import { type FunctionNode, isFunction, keyName, memberName, type Node, type NodeOf, stringOf, unwrap } from "./ast.ts";
import { returnsOf } from "./flow.ts";
import type { Variable } from "./scope.ts";
import type { Unit } from "./unit.ts";

/** What a name stands for when it can only ever be one thing: its definition, if nothing assigns to it. */
export function soleDefinition(unit: Unit, node: Node): Node | undefined {
  const variable = unit.scopes.resolve(node);
  return variable && isConstant(variable) ? variable.definitions[0] : undefined;
}

function isConstant(variable: Variable): boolean {
  return variable.definitions.length === 1 && !variable.references.some((reference) => reference.isWrite);
}

/** The expression a name was initialised with, through `const` only; other nodes are given back. */
export function initialValue(unit: Unit, node: Node): Node {
  const inner = unwrap(node);
  if (inner.type !== "Identifier") return inner;
  const definition = soleDefinition(unit, inner);
  if (definition?.type !== "VariableDeclarator" || definition.id.type !== "Identifier" || !definition.init) return inner;
  return unwrap(definition.init);
}

/** True for a function whose call gives a promise, as far as its text tells. */
export function returnsPromise(fn: FunctionNode): boolean {
  if (fn.generator) return false;
  if (fn.async) return true;
  if (fn.returnType) return isPromiseType(fn.returnType.typeAnnotation);
  if (fn.body === null) return false;
  if (fn.body.type !== "BlockStatement") return isNewPromise(fn.body);
  const returns = returnsOf(fn.body);
  return returns.length > 0 && returns.every((statement) => statement.argument !== null && isNewPromise(statement.argument));
}

function isPromiseType(type: Node): boolean {
  return type.type === "TSTypeReference" && type.typeName.type === "Identifier" && /^(Promise|PromiseLike)$/.test(type.typeName.name);
}

function isNewPromise(node: Node): boolean {
  const inner = unwrap(node);
  return inner.type === "NewExpression" && inner.callee.type === "Identifier" && inner.callee.name === "Promise";
}

/** True when this call surely gives a promise: an async function of this file, a promise API, or an import known to be async. */
export function isPromiseCall(unit: Unit, node: Node): boolean {
  const call = unwrap(node);
  if (call.type === "ImportExpression") return true;
  if (call.type !== "CallExpression") return isNewPromise(call) && !unit.scopes.lookup(call, "Promise");
  const callee = unwrap(call.callee);
  if (callee.type === "Identifier") return isAsyncName(unit, callee);
  if (callee.type === "MemberExpression") return isAsyncMember(unit, callee);
  return isFunction(callee) && returnsPromise(callee);
}

function isAsyncName(unit: Unit, callee: NodeOf<"Identifier">): boolean {
  if (callee.name === "fetch") return unit.scopes.resolve(callee) === undefined;
  const definition = soleDefinition(unit, callee);
  if (definition === undefined) return false;
  if (isFunction(definition)) return returnsPromise(definition);
  if (definition.type === "ImportSpecifier") return isAsyncImported(unit, definition);
  const value =
    definition.type === "VariableDeclarator" && definition.id.type === "Identifier" && definition.init
      ? unwrap(definition.init)
      : undefined;
  return isFunction(value) && returnsPromise(value);
}

function isAsyncImported(unit: Unit, specifier: NodeOf<"ImportSpecifier">): boolean {
  const imported = specifier.imported.type === "Identifier" ? specifier.imported.name : specifier.imported.value;
  return isAsyncExport(unit, importSource(unit, specifier), imported);
}

function isAsyncExport(unit: Unit, source: string, name: string): boolean {
  if (/^(node:)?(fs\/promises|timers\/promises|stream\/promises)$/.test(source))
    return !/^(constants|watch|setInterval|scheduler)$/.test(name);
  return unit.isAsyncImport(source, name);
}

/** The module that an import specifier takes its name from. */
export function importSource(unit: Unit, specifier: Node): string {
  const declaration = unit.tree.parent(specifier);
  return declaration?.type === "ImportDeclaration" ? declaration.source.value : "";
}

const promiseStatics = /^(all|allSettled|any|race|resolve|reject|try)$/;

function isAsyncMember(unit: Unit, callee: NodeOf<"MemberExpression">): boolean {
  const name = memberName(callee);
  const object = unwrap(callee.object);
  const privateName = callee.property.type === "PrivateIdentifier" ? `#${callee.property.name}` : undefined;
  const wanted = name ?? privateName;
  if (wanted === undefined) return false;
  if (object.type === "ThisExpression") return isAsyncMethod(enclosingClass(unit, object), wanted, object, unit);
  if (object.type !== "Identifier") return object.type === "NewExpression" && isAsyncMethod(classOf(unit, object), wanted);
  if (object.name === "Promise" && !unit.scopes.resolve(object)) return promiseStatics.test(wanted);
  const definition = soleDefinition(unit, object);
  if (definition?.type === "ImportNamespaceSpecifier" || definition?.type === "ImportDefaultSpecifier")
    return isAsyncExport(unit, importSource(unit, definition), wanted);
  const value = initialValue(unit, object);
  if (value.type === "ObjectExpression") return isAsyncProperty(value, wanted);
  return value.type === "NewExpression" && isAsyncMethod(classOf(unit, value), wanted);
}

function isAsyncProperty(object: NodeOf<"ObjectExpression">, name: string): boolean {
  const property = object.properties.findLast((p) => p.type === "Property" && keyName(p) === name);
  return property?.type === "Property" && isFunction(property.value) && returnsPromise(property.value);
}

type ClassNode = NodeOf<"ClassDeclaration">;

function classOf(unit: Unit, creation: NodeOf<"NewExpression">): ClassNode | undefined {
  const definition = creation.callee.type === "Identifier" ? soleDefinition(unit, creation.callee) : undefined;
  return definition?.type === "ClassDeclaration" ? definition : undefined;
}

/** The class whose instance (or self) `this` is here; plain functions in between have a `this` of their own. */
function enclosingClass(unit: Unit, node: Node): ClassNode | undefined {
  let below = node;
  for (let at = unit.tree.parent(node); at !== undefined; at = unit.tree.parent(at)) {
    if (at.type === "FunctionDeclaration") return undefined;
    if (at.type === "FunctionExpression" && unit.tree.parent(at)?.type !== "MethodDefinition") return undefined;
    if (at.type === "ClassBody" && (below.type === "MethodDefinition" || below.type === "PropertyDefinition"))
      return unit.tree.parent(at) as ClassNode;
    below = at;
  }
  return undefined;
}

function isAsyncMethod(owner: ClassNode | undefined, name: string, self?: Node, unit?: Unit): boolean {
  const isStatic = self !== undefined && unit !== undefined && isInStatic(unit, self);
  const members = owner?.body.body.filter((m) => (m.type === "MethodDefinition" || m.type === "PropertyDefinition") && keyName(m) === name);
  const member = members?.length === 1 ? members[0] : undefined;
  if (member?.type === "MethodDefinition") return member.static === isStatic && member.kind === "method" && isAsyncValue(member.value);
  return member?.type === "PropertyDefinition" && member.static === isStatic && isAsyncValue(member.value);
}

function isAsyncValue(value: Node | null): boolean {
  return isFunction(value) && returnsPromise(value);
}

function isInStatic(unit: Unit, node: Node): boolean {
  for (let at: Node | undefined = node; at !== undefined; at = unit.tree.parent(at))
    if (at.type === "MethodDefinition" || at.type === "PropertyDefinition") return at.static;
  return false;
}

const arrayMakers = /^(map|filter|slice|concat|flat|flatMap|toSorted|toReversed|toSpliced|splice|split)$/;

/** True when this expression is surely an array: a literal, an annotated name, or the result of a call that makes one. */
export function isArray(unit: Unit, node: Node, depth = 0): boolean {
  // A name may be defined through itself, so following definitions has to end somewhere.
  if (depth > 6) return false;
  const annotation = annotationOf(unit, node);
  if (annotation) return isArrayType(annotation);
  const value = initialValue(unit, node);
  if (value.type === "ArrayExpression") return true;
  if (value.type === "NewExpression") return value.callee.type === "Identifier" && value.callee.name === "Array";
  if (value.type !== "CallExpression" || value.callee.type !== "MemberExpression") return false;
  const name = memberName(value.callee) ?? "";
  const object = unwrap(value.callee.object);
  if (object.type === "Identifier" && /^(Array|Object)$/.test(object.name)) return /^(from|of|keys|values|entries)$/.test(name);
  if (name === "split") return stringOf(object) !== undefined || value.arguments.length > 0;
  return arrayMakers.test(name) && isArray(unit, object, depth + 1);
}

/** The type a variable or parameter is declared with. */
export function annotationOf(unit: Unit, node: Node): Node | undefined {
  const inner = unwrap(node);
  const declaration = inner.type === "Identifier" ? unit.scopes.resolve(inner)?.declarations : undefined;
  const id = declaration?.length === 1 ? declaration[0] : undefined;
  return id?.type === "Identifier" ? id.typeAnnotation?.typeAnnotation : undefined;
}

export function isArrayType(type: Node): boolean {
  if (type.type === "TSTypeOperator") return isArrayType(type.typeAnnotation);
  if (type.type === "TSArrayType" || type.type === "TSTupleType") return true;
  return type.type === "TSTypeReference" && type.typeName.type === "Identifier" && /^(Array|ReadonlyArray)$/.test(type.typeName.name);
}
