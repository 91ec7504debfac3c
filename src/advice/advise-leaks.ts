import type { Diagnostic } from "../base/diagnostic.ts";
import { adviseAt, descend, type FunctionNode, type ModuleSource, type NodeOf, type SyntaxNode } from "../formats/modules/module-source.ts";
import { calleeName, keyOf, unwrap } from "../formats/modules/static-value.ts";
import { modelPart, returnedBy } from "./advise-results.ts";

const code = "ADVICE_ERROR_IN_TEXT";
const message =
  "What an error says (paths, addresses, stacks) would be read by a model. Throw the error, which is logged, or give a text of your own in textResultForLlm and the error's in `error`.";

/** Advice about handlers that hand what a caught error says to a model. */
export function adviseLeaks(module: ModuleSource, handlers: ReadonlySet<FunctionNode>): readonly Diagnostic[] {
  const found = new Set<SyntaxNode>();
  const returned = new Set([...handlers].flatMap(returnedBy));
  for (const node of module.nodes) {
    const caught = node.type === "CatchClause" ? caughtNames(node) : undefined;
    if (node.type === "CatchClause" && caught) for (const leak of leaksIn(node, caught, returned)) found.add(leak);
    if (
      node.type === "Property" &&
      keyOf(node as NodeOf<"Property">) === "textResultForLlm" &&
      tells(node.value as SyntaxNode, usualNames)
    ) {
      found.add(node.value as SyntaxNode);
    }
  }
  return [...found].flatMap((node) => adviseAt(module, node, code, message));
}

/** Names that stand for an error, and those that stand for its text. */
interface ErrorNames {
  readonly errors: ReadonlySet<string>;
  readonly texts: ReadonlySet<string>;
}

// Outside of a catch clause only what is called like an error is taken for one.
const usualNames: ErrorNames = { errors: new Set(["e", "err", "error", "exception", "reason"]), texts: new Set() };

function caughtNames({ param, body }: NodeOf<"CatchClause">): ErrorNames | undefined {
  const errors = new Set<string>();
  const texts = new Set<string>();
  if (param?.type === "Identifier") errors.add(param.name);
  else if (param?.type === "ObjectPattern") for (const name of ["message", "stack"]) texts.add(name);
  else return undefined;
  // `const text = error instanceof Error ? error.message : String(error)`
  for (const node of descend(body)) {
    if (node.type !== "VariableDeclarator" || node.id.type !== "Identifier" || !node.init) continue;
    if (tells(node.init, { errors, texts })) texts.add(node.id.name);
    else if (unwrap(node.init).type === "Identifier" && errors.has((unwrap(node.init) as NodeOf<"Identifier"> & { name: string }).name))
      errors.add(node.id.name);
  }
  return { errors, texts };
}

function leaksIn(clause: NodeOf<"CatchClause">, names: ErrorNames, returned: ReadonlySet<SyntaxNode>): SyntaxNode[] {
  const leaks: SyntaxNode[] = [];
  for (const node of descend(clause.body)) {
    if (node.type === "Property" && keyOf(node as NodeOf<"Property">) === "textResultForLlm" && tells(node.value as SyntaxNode, names))
      leaks.push(node.value as SyntaxNode);
    if (returned.has(node) && leaksWhole(node, names)) leaks.push(node);
  }
  return leaks;
}

/** Whether a returned value, all of which a model reads, holds the error's text. */
function leaksWhole(value: SyntaxNode, names: ErrorNames): boolean {
  // What another function makes of it is not known.
  if (value.type === "CallExpression") return calleeName(value.callee) === "stringify" || isShown(value) ? tells(value, names) : false;
  if (value.type === "ObjectExpression" && modelPart(value) !== undefined) return false;
  return tells(value, names);
}

/** Whether an expression's value holds what an error says. */
function tells(root: SyntaxNode, names: ErrorNames): boolean {
  for (const node of descend(root)) {
    if (
      node.type === "MemberExpression" &&
      !node.computed &&
      node.property.type === "Identifier" &&
      /^(?:message|stack)$/.test(node.property.name)
    ) {
      if (isNamed(node.object, names.errors)) return true;
    }
    if (node.type === "TemplateLiteral" && node.expressions.some((part) => isNamed(part, names.errors) || isNamed(part, names.texts)))
      return true;
    if (
      node.type === "BinaryExpression" &&
      node.operator === "+" &&
      [node.left, node.right].some((side) => isNamed(side, names.errors) || isNamed(side, names.texts))
    )
      return true;
    if (node.type === "CallExpression" && isShown(node) && subjectsOf(node).some((subject) => isNamed(subject, names.errors))) return true;
    if (node.type === "Property" && isNamed(node.value as SyntaxNode, names.texts)) return true;
  }
  return isNamed(root, names.texts);
}

function isNamed(node: SyntaxNode, names: ReadonlySet<string>): boolean {
  const at = unwrap(node);
  return at.type === "Identifier" && names.has(at.name);
}

/** `String(error)`, `error.toString()` */
function isShown(call: NodeOf<"CallExpression">): boolean {
  return /^(?:String|toString|inspect)$/.test(calleeName(call.callee) ?? "");
}

function subjectsOf(call: NodeOf<"CallExpression">): readonly SyntaxNode[] {
  const on = call.callee.type === "MemberExpression" ? [call.callee.object as SyntaxNode] : [];
  return [...on, ...call.arguments.filter((argument) => argument.type !== "SpreadElement")];
}
