import { exportsOf, handlerNode, isPlainTool } from "./module-exports.ts";
import { type FunctionNode, isFunction, type ModuleSource, type NodeOf, type SyntaxNode } from "./module-source.ts";
import { calleeName, propertyOf, resolveNode, staticText } from "./static-value.ts";

/** A tool that a module defines, as far as its text shows it. */
export interface WrittenTool {
  /** Undefined: computed. */
  readonly name: string | undefined;
  /** The position for diagnostics about the whole tool. */
  readonly node: SyntaxNode;
  readonly definition: NodeOf<"ObjectExpression"> | undefined;
  readonly handler: FunctionNode | undefined;
}

/** Finds the tools that a module exports as literals: calls of `defineTool`, `SCHEMA` with `execute`, objects with name and handler. */
export function findTools(module: ModuleSource): readonly WrittenTool[] {
  const { isReachable } = exportsOf(module);
  return allTools(module).filter(({ node }) => isReachable(node));
}

/** The tools that are not exported, so that they are never available. */
export function findUnexportedTools(module: ModuleSource): readonly WrittenTool[] {
  const { isReachable } = exportsOf(module);
  return allTools(module).filter(({ node }) => !isReachable(node));
}

function allTools(module: ModuleSource): readonly WrittenTool[] {
  const tools: WrittenTool[] = [];
  const schema = exportedSchema(module);
  if (schema) tools.push(schema);
  for (const node of module.nodes) {
    if (node.type === "CallExpression" && calleeName(node.callee) === "defineTool") tools.push(definedTool(node, module));
    else if (node.type === "ObjectExpression" && isPlainTool(node, module)) tools.push(plainTool(node, module));
  }
  return tools;
}

/** The handler in a module of a tool that is defined in a JSON file. */
export function findHandler(module: ModuleSource, toolName: string, exportName: string | undefined): FunctionNode | undefined {
  const names = exportName === undefined ? ["default", "handler", toolName, "execute"] : [exportName];
  for (const name of names) {
    const node = exportedNode(module, name);
    if (isFunction(node)) return node;
    if (node?.type === "ObjectExpression") return handlerFunction(node, module);
    if (node?.type === "CallExpression" && calleeName(node.callee) === "defineTool") return definedTool(node, module).handler;
  }
  return undefined;
}

function definedTool(call: NodeOf<"CallExpression">, module: ModuleSource): WrittenTool {
  const [first, second] = call.arguments;
  const options = second && second.type !== "SpreadElement" ? resolveNode(second, module) : undefined;
  const definition = options?.type === "ObjectExpression" ? options : undefined;
  return {
    name: first && first.type !== "SpreadElement" ? staticText(first, module) : undefined,
    node: first ?? call,
    definition,
    handler: definition && handlerFunction(definition, module),
  };
}

function handlerFunction(object: NodeOf<"ObjectExpression">, module: ModuleSource): FunctionNode | undefined {
  const found = handlerNode(object, module);
  return isFunction(found) ? found : undefined;
}

function plainTool(object: NodeOf<"ObjectExpression">, module: ModuleSource): WrittenTool {
  const name = propertyOf(object, "name")!.value as SyntaxNode;
  return { name: staticText(name, module), node: name, definition: object, handler: handlerFunction(object, module) };
}

function exportedSchema(module: ModuleSource): WrittenTool | undefined {
  const schema = exportedNode(module, "SCHEMA");
  const execute = exportedNode(module, "execute");
  if (schema?.type !== "ObjectExpression" || execute === undefined) return undefined;
  const name = propertyOf(schema, "name")?.value as SyntaxNode | undefined;
  return {
    name: name && staticText(name, module),
    node: name ?? schema,
    definition: schema,
    handler: isFunction(execute) ? execute : undefined,
  };
}

/** The exported node with a name, if the text shows it. */
function exportedNode(module: ModuleSource, name: string): SyntaxNode | undefined {
  for (const node of module.nodes) {
    if (name === "default" && node.type === "ExportDefaultDeclaration") return resolveNode(node.declaration as SyntaxNode, module);
    if (node.type !== "ExportNamedDeclaration") continue;
    const declared = node.declaration;
    if (declared?.type === "FunctionDeclaration" && declared.id?.name === name) return declared;
    if (declared?.type === "VariableDeclaration" && declared.declarations.some(({ id }) => id.type === "Identifier" && id.name === name)) {
      const value = module.topLevel.get(name);
      return value && resolveNode(value, module);
    }
    const specifier = node.source === null ? node.specifiers.find(({ exported }) => nameOf(exported) === name) : undefined;
    const local = specifier && module.topLevel.get(nameOf(specifier.local) ?? "");
    if (local) return resolveNode(local, module);
  }
  return undefined;
}

function nameOf(node: SyntaxNode): string | undefined {
  if (node.type === "Identifier") return node.name;
  return node.type === "Literal" && typeof node.value === "string" ? node.value : undefined;
}
