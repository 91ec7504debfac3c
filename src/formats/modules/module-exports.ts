import {
  calleeName,
  descend,
  type FunctionNode,
  isFunction,
  type ModuleSource,
  type NodeOf,
  propertyOf,
  resolveNode,
  type SyntaxNode,
  staticText,
  unwrap,
  withinFunction,
} from "./module-source.ts";

/** The exports of a module, as far as its text shows them. */
interface ModuleExports {
  /** Undefined: the text does not show all of them, because the module has `export *` or is CommonJS. */
  readonly names: ReadonlySet<string> | undefined;
  /** Whether the module has any export. */
  readonly isAny: boolean;
  /** Whether a node is part of an export, or of a declaration that an export refers to. */
  isReachable(node: SyntaxNode): boolean;
  /**
   * `none`: the exports certainly contain no tool. `written`: at least one tool is a literal. `computed`: only running the
   * module shows its tools.
   */
  readonly tools: "none" | "written" | "computed";
  /** If `tools` is `none`: a description of the default export, or of the value that its function returns. Absent: there is none. */
  readonly defaultValue: SyntaxNode | undefined;
}

const known = new WeakMap<ModuleSource, ModuleExports>();

export function exportsOf(module: ModuleSource): ModuleExports {
  const found = known.get(module) ?? readExports(module);
  known.set(module, found);
  return found;
}

function readExports(module: ModuleSource): ModuleExports {
  const roots: Roots = { values: [], names: new Set(), isOpen: false, declarations: declarationsOf(module) };
  for (const node of module.nodes) addExport(node, roots);
  const reachable = closure(roots, module);
  const verdicts = roots.values.map((root) => toolsIn(root, module));
  const isWritten = module.nodes.some((node) => reachable.has(node) && isWrittenTool(node, module));
  const hasForm = roots.names.has("SCHEMA") && roots.names.has("execute");
  const isComputed = roots.isOpen || verdicts.includes("computed");
  return {
    names: roots.isOpen ? undefined : roots.names,
    isAny: roots.values.length > 0 || roots.names.size > 0 || roots.isOpen,
    isReachable: (node) => reachable.has(node),
    tools: isWritten || hasForm ? "written" : isComputed ? "computed" : "none",
    defaultValue: defaultValueOf(roots, module),
  };
}

function defaultValueOf({ values }: Roots, module: ModuleSource): SyntaxNode | undefined {
  const node = values.find(({ isDefault }) => isDefault)?.node;
  const at = node && resolveNode(node, module);
  const [value] = at === undefined ? [] : isFunction(at) ? returned(at, module) : [at];
  const isNothing =
    value === undefined ||
    (value.type === "ArrayExpression" && value.elements.length === 0) ||
    (value.type === "Literal" && value.value === null && isFunction(at));
  return isNothing ? undefined : value;
}

interface Exported {
  readonly node: SyntaxNode;
  readonly isDefault: boolean;
}

interface Roots {
  readonly values: Exported[];
  readonly names: Set<string>;
  readonly declarations: ReadonlyMap<string, SyntaxNode>;
  isOpen: boolean;
}

function addExport(node: SyntaxNode, roots: Roots): void {
  if (node.type === "ExportDefaultDeclaration") {
    roots.names.add("default");
    roots.values.push({ node: node.declaration as SyntaxNode, isDefault: true });
  } else if (node.type === "ExportAllDeclaration" || node.type === "TSExportAssignment") {
    roots.isOpen = true;
    if (node.type === "TSExportAssignment") roots.values.push({ node: node.expression, isDefault: true });
  } else if (node.type === "ExportNamedDeclaration") addNamed(node, roots);
  else if (node.type === "AssignmentExpression" && isCommonJsExport(node.left as SyntaxNode)) {
    roots.isOpen = true;
    roots.values.push({ node: node.right, isDefault: true });
  }
}

function addNamed(node: NodeOf<"ExportNamedDeclaration">, roots: Roots): void {
  const { declaration, specifiers, source } = node;
  if (node.exportKind === "type") return;
  for (const { id, init } of declaration?.type === "VariableDeclaration" ? declaration.declarations : []) {
    for (const name of namesIn(id)) roots.names.add(name);
    if (init) roots.values.push({ node: init, isDefault: false });
  }
  if ((declaration?.type === "FunctionDeclaration" || declaration?.type === "ClassDeclaration") && declaration.id) {
    roots.names.add(declaration.id.name);
    roots.values.push({ node: declaration, isDefault: false });
  }
  // Enums and namespaces are values too.
  if (declaration?.type === "TSEnumDeclaration" && declaration.id.type === "Identifier") roots.names.add(declaration.id.name);
  for (const { exported, local } of specifiers) {
    const name = textOf(exported);
    if (name === undefined) continue;
    roots.names.add(name);
    const own = source === null ? roots.declarations.get(textOf(local) ?? "") : undefined;
    if (own === undefined) roots.isOpen = true;
    else roots.values.push({ node: own, isDefault: name === "default" });
  }
}

function isCommonJsExport(target: SyntaxNode): boolean {
  const at = unwrap(target);
  if (at.type !== "MemberExpression") return false;
  const object = unwrap(at.object);
  if (object.type === "Identifier" && object.name === "exports") return true;
  return isModuleExports(at) || (object.type === "MemberExpression" && isModuleExports(object));
}

function isModuleExports(node: SyntaxNode): boolean {
  if (node.type !== "MemberExpression" || calleeName(node) !== "exports") return false;
  const object = unwrap(node.object);
  return object.type === "Identifier" && object.name === "module";
}

/** The top-level declarations of a module by name: values, functions and classes. */
function declarationsOf(module: ModuleSource): ReadonlyMap<string, SyntaxNode> {
  const found = new Map<string, SyntaxNode>();
  for (const node of module.nodes) {
    if ((node.type === "FunctionDeclaration" || node.type === "ClassDeclaration") && node.id && isTop(node, module))
      found.set(node.id.name, node);
    if (node.type !== "VariableDeclarator" || !node.init) continue;
    const declaration = module.parentOf(node);
    if (declaration !== undefined && isTop(declaration, module)) for (const name of namesIn(node.id)) found.set(name, node.init);
  }
  return found;
}

function isTop(node: SyntaxNode, module: ModuleSource): boolean {
  const parent = module.parentOf(node);
  return parent?.type === "Program" || parent?.type === "ExportNamedDeclaration" || parent?.type === "ExportDefaultDeclaration";
}

function namesIn(pattern: SyntaxNode): readonly string[] {
  return [...descend(pattern)].flatMap((node) => (node.type === "Identifier" ? [node.name] : []));
}

/**
 * The exported nodes and all declarations they refer to. Top-level statements that use one of these are included, because they
 * may add a tool to a list.
 */
function closure({ values, declarations }: Roots, module: ModuleSource): ReadonlySet<SyntaxNode> {
  const statements = statementsByName(module);
  const reachable = new Set<SyntaxNode>();
  const names = new Set<string>();
  const waiting = values.map(({ node }) => node);
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    if (reachable.has(next)) continue;
    for (const node of descend(next)) {
      reachable.add(node);
      if (node.type !== "Identifier" || names.has(node.name)) continue;
      names.add(node.name);
      const target = declarations.get(node.name);
      if (target !== undefined) waiting.push(target, ...(statements.get(node.name) ?? []));
    }
  }
  return reachable;
}

/** The top-level statements of a module, by each name they contain. */
function statementsByName(module: ModuleSource): ReadonlyMap<string, ReadonlySet<SyntaxNode>> {
  const found = new Map<string, Set<SyntaxNode>>();
  for (const statement of module.nodes.filter((node) => isTop(node, module) && /Statement$/.test(node.type))) {
    for (const node of descend(statement)) {
      if (node.type !== "Identifier") continue;
      const statements = found.get(node.name) ?? new Set();
      found.set(node.name, statements.add(statement));
    }
  }
  return found;
}

/** A defining call, or an object literal of a tool. */
function isWrittenTool(node: SyntaxNode, module: ModuleSource): boolean {
  if (node.type === "CallExpression") return /^define(?:Tool|Prompt|Resource)$/.test(calleeName(node.callee) ?? "");
  return node.type === "ObjectExpression" && isPlainTool(node, module);
}

/** An object with a name and a handler. */
function isPlainTool(object: NodeOf<"ObjectExpression">, module: ModuleSource): boolean {
  const name = propertyOf(object, "name");
  if (name === undefined || staticText(name.value as SyntaxNode, module) === undefined) return false;
  return handlerNode(object, module) !== undefined;
}

/** The handler of a tool, under either key. */
function handlerNode(object: NodeOf<"ObjectExpression">, module: ModuleSource): SyntaxNode | undefined {
  for (const name of ["handler", "execute"]) {
    const property = propertyOf(object, name);
    const value = property && resolveNode(property.value as SyntaxNode, module);
    if (isFunction(value)) return value;
  }
  return undefined;
}

function toolsIn({ node, isDefault }: Exported, module: ModuleSource): "none" | "computed" {
  const at = resolveNode(node, module);
  // A default function is called, so its result counts; results of other functions do not.
  if (isFunction(at)) return isDefault && returned(at, module).some((value) => !isNoTool(value, module)) ? "computed" : "none";
  return isNoTool(at, module) ? "none" : "computed";
}

function returned(node: SyntaxNode, module: ModuleSource): readonly SyntaxNode[] {
  if (node.type === "ArrowFunctionExpression" && node.body.type !== "BlockStatement") return [resolveNode(node.body as SyntaxNode, module)];
  return [...withinFunction(node)].flatMap((inner) =>
    inner.type === "ReturnStatement" && inner.argument ? [resolveNode(inner.argument, module)] : [],
  );
}

/** Whether a value certainly is not a tool and contains none. */
function isNoTool(node: SyntaxNode, module: ModuleSource): boolean {
  const at = unwrap(node);
  if (at.type === "Literal" || at.type === "TemplateLiteral" || at.type === "ClassDeclaration" || at.type === "ClassExpression")
    return true;
  if (at.type === "BinaryExpression" || at.type === "UnaryExpression" || at.type === "UpdateExpression") return true;
  if (at.type === "ArrayExpression")
    return at.elements.every(
      (element) => element === null || (element.type !== "SpreadElement" && isNoTool(resolveNode(element, module), module)),
    );
  return at.type === "ObjectExpression" && isData(at, module);
}

/** A bundle contains lists of tools; a tool has a name. */
function isData(object: NodeOf<"ObjectExpression">, module: ModuleSource): boolean {
  if (object.properties.some((property) => property.type === "SpreadElement" || property.computed)) return false;
  if (["tools", "prompts", "resources"].some((key) => propertyOf(object, key) !== undefined)) return false;
  return propertyOf(object, "name") === undefined || !isPlainTool(object, module);
}

function textOf(node: SyntaxNode): string | undefined {
  if (node.type === "Identifier") return node.name;
  return node.type === "Literal" && typeof node.value === "string" ? node.value : undefined;
}

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
