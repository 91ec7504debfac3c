import { isFunction, type Node, type NodeOf, type Tree } from "./ast.ts";
import { bindingNames, isReference, isTypePosition, usageOf } from "./references.ts";

export type VariableKind =
  | "var"
  | "let"
  | "const"
  | "using"
  | "await using"
  | "param"
  | "catch"
  | "function"
  | "class"
  | "import"
  | "type"
  | "enum"
  | "namespace"
  | "member";

export interface Variable {
  readonly name: string;
  readonly kind: VariableKind;
  readonly scope: Scope;
  /** The identifiers that declare it: several for `var` twice, overloads, or a type and a value of one name. */
  readonly declarations: readonly Node[];
  /** The nodes that define it: a declarator, a function, a class, an import specifier. */
  readonly definitions: readonly Node[];
  readonly references: readonly Reference[];
}

export interface Reference {
  readonly node: NodeOf<"Identifier" | "JSXIdentifier">;
  readonly isRead: boolean;
  readonly isWrite: boolean;
  /** Only types see it; nothing happens at run time. */
  readonly isType: boolean;
}

export interface Scope {
  readonly node: Node;
  readonly parent: Scope | undefined;
  readonly variables: ReadonlyMap<string, Variable>;
}

export interface Scopes {
  readonly variables: readonly Variable[];
  /** References to names that this file does not declare. */
  readonly unresolved: readonly Reference[];
  scopeOf(node: Node): Scope;
  /** The variable behind a name as seen from a node. */
  lookup(node: Node, name: string): Variable | undefined;
  /** The variable that this identifier refers to. */
  resolve(node: Node): Variable | undefined;
}

interface OpenScope extends Scope {
  readonly variables: Map<string, OpenVariable>;
}

interface OpenVariable extends Variable {
  readonly declarations: Node[];
  readonly definitions: Node[];
  readonly references: Reference[];
}

const scopeTypes = new Set(
  "Program BlockStatement ForStatement ForInStatement ForOfStatement SwitchStatement CatchClause StaticBlock ClassDeclaration ClassExpression FunctionDeclaration FunctionExpression ArrowFunctionExpression TSModuleBlock TSModuleDeclaration TSEnumDeclaration".split(
    " ",
  ),
);

/** Finds what every name in a file refers to. Type parameters are not followed. */
export function analyseScopes(tree: Tree): Scopes {
  const scopes = openScopes(tree);
  const scopeOf = (node: Node): OpenScope => {
    let at: Node | undefined = node;
    while (at !== undefined && !scopes.has(at)) at = tree.parent(at);
    return scopes.get(at ?? tree.program) as OpenScope;
  };
  const lookup = (node: Node, name: string): OpenVariable | undefined => {
    for (let scope: OpenScope | undefined = scopeOf(node); scope !== undefined; scope = scope.parent as OpenScope | undefined) {
      const variable = scope.variables.get(name);
      if (variable) return variable;
    }
    return undefined;
  };
  for (const node of tree.nodes) declare(tree, node, scopeOf);
  const { resolved, unresolved } = resolveAll(tree, lookup);
  return {
    variables: [...scopes.values()].flatMap((scope) => [...scope.variables.values()]),
    unresolved,
    scopeOf,
    lookup,
    resolve: (node) => resolved.get(node) ?? (node.type === "Identifier" ? declaredBy(lookup(node, node.name), node) : undefined),
  };
}

function declaredBy(variable: Variable | undefined, node: Node): Variable | undefined {
  return variable?.declarations.includes(node) ? variable : undefined;
}

function openScopes(tree: Tree): Map<Node, OpenScope> {
  const scopes = new Map<Node, OpenScope>();
  for (const node of tree.nodes) {
    if (!scopeTypes.has(node.type) || isFunctionBody(tree, node)) continue;
    let above = tree.parent(node);
    while (above !== undefined && !scopes.has(above)) above = tree.parent(above);
    scopes.set(node, { node, parent: above && scopes.get(above), variables: new Map() });
  }
  return scopes;
}

/** A function's parameters and body make one scope here; the difference only matters to default values. */
function isFunctionBody(tree: Tree, node: Node): boolean {
  return node.type === "BlockStatement" && isFunction(tree.parent(node));
}

function declare(tree: Tree, node: Node, scopeOf: (node: Node) => OpenScope): void {
  const outside = (): OpenScope => scopeOf(tree.parent(node) ?? tree.program);
  const add = (scope: OpenScope, kind: VariableKind, pattern: Node | null | undefined, definition = node): void => {
    for (const name of pattern ? bindingNames(pattern) : []) addVariable(scope, kind, name, definition);
  };
  if (node.type === "VariableDeclarator") {
    const { kind } = tree.parent(node) as NodeOf<"VariableDeclaration">;
    add(kind === "var" ? varScope(outside()) : outside(), kind, node.id);
  } else if (node.type === "FunctionDeclaration" || node.type === "TSDeclareFunction") add(outside(), "function", node.id);
  else if (node.type === "FunctionExpression") add(scopeOf(node), "function", node.id);
  else if (node.type === "ClassDeclaration") add(outside(), "class", node.id);
  else if (node.type === "ClassExpression") add(scopeOf(node), "class", node.id);
  else if (node.type === "CatchClause") add(scopeOf(node), "catch", node.param);
  else if (node.type === "ImportSpecifier" || node.type === "ImportDefaultSpecifier" || node.type === "ImportNamespaceSpecifier")
    add(outside(), "import", node.local);
  else if (node.type === "TSEnumDeclaration") add(outside(), "enum", node.id);
  else if (node.type === "TSEnumMember") add(outside(), "member", node.id.type === "Identifier" ? node.id : null);
  else if (node.type === "TSModuleDeclaration") add(outside(), "namespace", node.id.type === "Identifier" ? node.id : null);
  else if (node.type === "TSInterfaceDeclaration" || node.type === "TSTypeAliasDeclaration") add(outside(), "type", node.id);
  else if (node.type === "TSImportEqualsDeclaration") add(outside(), "import", node.id);
  if (isFunction(node)) for (const param of node.params) add(scopeOf(node), "param", param, param);
}

function addVariable(scope: OpenScope, kind: VariableKind, name: NodeOf<"Identifier">, definition: Node): void {
  const known = scope.variables.get(name.name);
  // A function expression's own name gives way to a parameter or variable of the same name.
  const isOwnName = known?.kind === "function" && known.definitions[0] === scope.node;
  const variable = known && !isOwnName ? known : { name: name.name, kind, scope, declarations: [], definitions: [], references: [] };
  variable.declarations.push(name);
  variable.definitions.push(definition);
  // A value gives its kind to a type of the same name.
  scope.variables.set(name.name, variable.kind === "type" && kind !== "type" ? { ...variable, kind } : variable);
}

function varScope(from: OpenScope): OpenScope {
  let scope = from;
  while (scope.parent && !isFunction(scope.node) && scope.node.type !== "StaticBlock" && scope.node.type !== "TSModuleBlock")
    scope = scope.parent as OpenScope;
  return scope;
}

function resolveAll(
  tree: Tree,
  lookup: (node: Node, name: string) => OpenVariable | undefined,
): { resolved: Map<Node, Variable>; unresolved: Reference[] } {
  const resolved = new Map<Node, Variable>();
  const unresolved: Reference[] = [];
  for (const node of [...tree.all("Identifier"), ...tree.all("JSXIdentifier")]) {
    if (!isReference(tree, node)) continue;
    const reference: Reference = { node, ...usageOf(tree, node), isType: isTypePosition(tree, node) };
    const variable = lookup(node, node.name);
    if (variable?.declarations.includes(node)) continue;
    if (variable) {
      variable.references.push(reference);
      resolved.set(node, variable);
    } else unresolved.push(reference);
  }
  return { resolved, unresolved };
}
