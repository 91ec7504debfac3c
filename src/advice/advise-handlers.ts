import type { Diagnostic } from "../base/diagnostic.ts";
import {
  adviseAt,
  calleeName,
  descend,
  type FunctionNode,
  hasSpread,
  isFunction,
  keyOf,
  type ModuleSource,
  type NodeOf,
  propertyOf,
  resolveNode,
  type SyntaxNode,
  staticText,
  staticValue,
  unwrap,
  withinFunction,
} from "../formats/modules/module-source.ts";
import { calledMember, importedNames } from "./advise-files.ts";

/** Advice about the results of a tool's handlers. */
export function adviseResults(module: ModuleSource, handlers: ReadonlySet<FunctionNode>): readonly Diagnostic[] {
  return [
    ...[...handlers].flatMap((handler) => [...adviseNothing(module, handler), ...adviseBare(module, handler)]),
    ...adviseBareTexts(module, handlers),
  ];
}

function adviseNothing(module: ModuleSource, handler: FunctionNode): Diagnostic[] {
  if (handler.type !== "ArrowFunctionExpression" && handler.generator) return [];
  const message = "This handler returns nothing, which counts as a failed call. Return a sentence that says what was done.";
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
const bareMessage = "This result says nothing to a model. Say what was done, to what, and with which outcome.";

/** The expressions that a handler returns. */
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

/** `textResultForLlm: "Success"` in helpers; direct results of handlers are checked separately. */
function adviseBareTexts(module: ModuleSource, handlers: ReadonlySet<FunctionNode>): Diagnostic[] {
  const seen = new Set([...handlers].flatMap(returnedBy));
  return module.nodes.flatMap((node) => {
    if (node.type !== "Property" || keyOf(node as NodeOf<"Property">) !== "textResultForLlm" || seen.has(node.value as SyntaxNode))
      return [];
    const text = staticText(node.value as SyntaxNode, module);
    return text !== undefined && bareText.test(text) ? adviseAt(module, node.value as SyntaxNode, "ADVICE_BARE_SUCCESS", bareMessage) : [];
  });
}

/** The expressions that a function returns; the branches of `a ? b : c` are separate. */
function returnedBy(handler: FunctionNode): readonly SyntaxNode[] {
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

/** The value that a model reads, if the returned object has further fields. */
function modelPart(object: NodeOf<"ObjectExpression">): SyntaxNode | undefined {
  return propertyOf(object, "textResultForLlm")?.value as SyntaxNode | undefined;
}

const code = "ADVICE_ERROR_IN_TEXT";
const leakMessage =
  "This shows the text of an error (paths, addresses, stacks) to the model. Throw the error, which is logged, or put your own text into textResultForLlm and the error's into `error`.";

/** Advice about handlers that pass the message of a caught error to a model. */
export function adviseLeaks(module: ModuleSource, handlers: ReadonlySet<FunctionNode>): readonly Diagnostic[] {
  const found = new Set<SyntaxNode>();
  const returned = new Set([...handlers].flatMap(returnedBy));
  for (const node of module.nodes) {
    const caught = node.type === "CatchClause" ? caughtNames(node) : undefined;
    if (node.type === "CatchClause" && caught) for (const leak of leaksIn(node, caught, returned)) found.add(leak);
    if (
      node.type === "Property" &&
      keyOf(node as NodeOf<"Property">) === "textResultForLlm" &&
      containsErrorText(node.value as SyntaxNode, usualNames)
    ) {
      found.add(node.value as SyntaxNode);
    }
  }
  return [...found].flatMap((node) => adviseAt(module, node, code, leakMessage));
}

/** The names of error variables, and of variables with an error's text. */
interface ErrorNames {
  readonly errors: ReadonlySet<string>;
  readonly texts: ReadonlySet<string>;
}

// Outside of a catch clause only a variable with a name like "error" counts as one.
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
    if (containsErrorText(node.init, { errors, texts })) texts.add(node.id.name);
    else if (unwrap(node.init).type === "Identifier" && errors.has((unwrap(node.init) as NodeOf<"Identifier"> & { name: string }).name))
      errors.add(node.id.name);
  }
  return { errors, texts };
}

function leaksIn(clause: NodeOf<"CatchClause">, names: ErrorNames, returned: ReadonlySet<SyntaxNode>): SyntaxNode[] {
  const leaks: SyntaxNode[] = [];
  for (const node of descend(clause.body)) {
    if (
      node.type === "Property" &&
      keyOf(node as NodeOf<"Property">) === "textResultForLlm" &&
      containsErrorText(node.value as SyntaxNode, names)
    )
      leaks.push(node.value as SyntaxNode);
    if (returned.has(node) && leaksWhole(node, names)) leaks.push(node);
  }
  return leaks;
}

/** Whether a returned value that the model reads completely contains the error's text. */
function leaksWhole(value: SyntaxNode, names: ErrorNames): boolean {
  // The result of another function is unknown.
  if (value.type === "CallExpression")
    return calleeName(value.callee) === "stringify" || isShown(value) ? containsErrorText(value, names) : false;
  if (value.type === "ObjectExpression" && modelPart(value) !== undefined) return false;
  return containsErrorText(value, names);
}

/** Whether an expression's value contains an error's message. */
function containsErrorText(root: SyntaxNode, names: ErrorNames): boolean {
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

const networkMessage =
  "This request continues after the call is cancelled or times out. Pass `signal: invocation.signal`, or AbortSignal.timeout(ms).";
const httpModules = new Set(["http", "node:http", "https", "node:https"]);

/** Advice about requests without a time limit or signal. */
export function adviseNetwork(module: ModuleSource): readonly Diagnostic[] {
  const http = importedNames(module, httpModules);
  return module.nodes.flatMap((node) => {
    if (node.type !== "CallExpression") return [];
    const isBare = isFetch(node, module) ? !mayHave(node.arguments[1], ["signal"], module) : isUnboundRequest(node, http, module);
    return isBare ? adviseAt(module, node, "ADVICE_NO_TIMEOUT", networkMessage) : [];
  });
}

function isFetch(call: NodeOf<"CallExpression">, module: ModuleSource): boolean {
  const callee = unwrap(call.callee);
  if (callee.type === "Identifier") return callee.name === "fetch" && !module.topLevel.has("fetch") && call.arguments.length > 0;
  return (
    callee.type === "MemberExpression" &&
    callee.object.type === "Identifier" &&
    callee.object.name === "globalThis" &&
    callee.property.type === "Identifier" &&
    callee.property.name === "fetch"
  );
}

function isUnboundRequest(call: NodeOf<"CallExpression">, http: ReturnType<typeof importedNames>, module: ModuleSource): boolean {
  if (!/^(?:get|request)$/.test(calledMember(call.callee, http) ?? "")) return false;
  return !call.arguments.some(
    (argument) => unwrap(argument as SyntaxNode).type !== "Literal" && mayHave(argument, ["signal", "timeout"], module),
  );
}

/** Whether an options argument has one of these keys, or may have it because it is not a literal. */
function mayHave(
  options: NodeOf<"CallExpression">["arguments"][number] | undefined,
  names: readonly string[],
  module: ModuleSource,
): boolean {
  if (options === undefined) return false;
  if (options.type === "SpreadElement") return true;
  const value = resolveNode(options, module);
  if (
    value.type === "TemplateLiteral" ||
    value.type === "BinaryExpression" ||
    value.type === "ArrowFunctionExpression" ||
    value.type === "FunctionExpression"
  )
    return false;
  if (value.type === "NewExpression") return false;
  if (value.type !== "ObjectExpression") return true;
  return hasSpread(value) || names.some((name) => propertyOf(value, name) !== undefined);
}
