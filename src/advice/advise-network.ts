import type { Diagnostic } from "../base/diagnostic.ts";
import { adviseAt, type ModuleSource, type NodeOf, type SyntaxNode } from "../formats/modules/module-source.ts";
import { hasSpread, propertyOf, resolveNode, unwrap } from "../formats/modules/static-value.ts";
import { calledMember, importedNames } from "./module-imports.ts";

const message =
  "Nothing ends this request when the call is cancelled or its time is up. Give it `signal: invocation.signal`, or AbortSignal.timeout(ms).";
const httpModules = new Set(["http", "node:http", "https", "node:https"]);

/** Advice about requests that go on for as long as the other side likes. */
export function adviseNetwork(module: ModuleSource): readonly Diagnostic[] {
  const http = importedNames(module, httpModules);
  return module.nodes.flatMap((node) => {
    if (node.type !== "CallExpression") return [];
    const isBare = isFetch(node, module) ? !mayHave(node.arguments[1], ["signal"], module) : isUnboundRequest(node, http, module);
    return isBare ? adviseAt(module, node, "ADVICE_NO_TIMEOUT", message) : [];
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

/** Whether an options argument has one of these, or may: what is not written out may hold anything. */
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
