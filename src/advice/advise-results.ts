import type { Diagnostic } from "../base/diagnostic.ts";
import {
  adviseAt,
  type FunctionNode,
  isFunction,
  type ModuleSource,
  type NodeOf,
  type SyntaxNode,
  withinFunction,
} from "../formats/modules/module-source.ts";
import { keyOf, propertyOf, staticText, staticValue, unwrap } from "../formats/modules/static-value.ts";

/** Advice about what a tool's handlers give back to a model. */
export function adviseResults(module: ModuleSource, handlers: ReadonlySet<FunctionNode>): readonly Diagnostic[] {
  return [
    ...[...handlers].flatMap((handler) => [...adviseNothing(module, handler), ...adviseBare(module, handler)]),
    ...adviseBareTexts(module, handlers),
  ];
}

function adviseNothing(module: ModuleSource, handler: FunctionNode): Diagnostic[] {
  if (handler.type !== "ArrowFunctionExpression" && handler.generator) return [];
  const message = "This handler returns nothing, which counts as a failure of the tool. Return a sentence that says what was done.";
  const { body } = handler;
  if (body === null) return [];
  if (body.type !== "BlockStatement") {
    const value = unwrap(body);
    const isNothing =
      (value.type === "UnaryExpression" && value.operator === "void") || (value.type === "Identifier" && value.name === "undefined");
    return isNothing ? adviseAt(module, handler, "ADVICE_RETURNS_NOTHING", message) : [];
  }
  if (body.body.at(-1)?.type === "ThrowStatement") return [];
  for (const node of withinFunction(body)) if (node.type === "ReturnStatement" && node.argument !== null) return [];
  return adviseAt(module, handler, "ADVICE_RETURNS_NOTHING", message);
}

const bareText = /^\s*(?:success(?:ful|fully)?|succeeded|ok(?:ay)?|done|finished|completed?|true)\s*[.!]*\s*$/i;
const bareMessage = "A model learns nothing from this result. Say what was done, to what, and what came of it.";

/** What a handler returns as it stands. */
function adviseBare(module: ModuleSource, handler: FunctionNode): Diagnostic[] {
  return returnedBy(handler).flatMap((value) => (isBare(value, module) ? adviseAt(module, value, "ADVICE_BARE_SUCCESS", bareMessage) : []));
}

function isBare(value: SyntaxNode, module: ModuleSource): boolean {
  const text = staticText(value, module);
  if (text !== undefined) return bareText.test(text);
  if (value.type !== "ObjectExpression" || value.properties.length !== 1) return false;
  const only = value.properties[0] as NodeOf<"Property">;
  if (only.type !== "Property" || !["success", "ok", "done", "status", "result", "message"].includes(keyOf(only) ?? "")) return false;
  const known = staticValue(only.value as SyntaxNode, module);
  return known.isKnown && (known.value === true || (typeof known.value === "string" && bareText.test(known.value)));
}

/** `textResultForLlm: "Success"`, wherever a helper makes it; what a handler returns directly has been looked at. */
function adviseBareTexts(module: ModuleSource, handlers: ReadonlySet<FunctionNode>): Diagnostic[] {
  const seen = new Set([...handlers].flatMap(returnedBy));
  return module.nodes.flatMap((node) => {
    if (node.type !== "Property" || keyOf(node as NodeOf<"Property">) !== "textResultForLlm" || seen.has(node.value as SyntaxNode))
      return [];
    const text = staticText(node.value as SyntaxNode, module);
    return text !== undefined && bareText.test(text) ? adviseAt(module, node.value as SyntaxNode, "ADVICE_BARE_SUCCESS", bareMessage) : [];
  });
}

/** The expressions that a function returns, the branches of `a ? b : c` one by one. */
export function returnedBy(handler: FunctionNode): readonly SyntaxNode[] {
  const { body } = handler;
  if (body === null) return [];
  if (body.type !== "BlockStatement") return branches(body);
  const values: SyntaxNode[] = [];
  for (const node of withinFunction(body)) if (node.type === "ReturnStatement" && node.argument) values.push(...branches(node.argument));
  return values;
}

function branches(node: SyntaxNode): readonly SyntaxNode[] {
  const at = unwrap(node);
  if (at.type === "ConditionalExpression") return [...branches(at.consequent), ...branches(at.alternate)];
  return isFunction(at) ? [] : [at];
}

/** The value that a model reads of a returned object, if it is one that keeps other things from the model. */
export function modelPart(object: NodeOf<"ObjectExpression">): SyntaxNode | undefined {
  return propertyOf(object, "textResultForLlm")?.value as SyntaxNode | undefined;
}
