import type { Node, NodeOf, Tree } from "./ast.ts";

type Identifier = NodeOf<"Identifier">;

/** The identifiers that a declaration's pattern binds. */
export function bindingNames(pattern: Node): readonly Identifier[] {
  switch (pattern.type) {
    case "Identifier":
      return [pattern];
    case "ArrayPattern":
      return pattern.elements.flatMap((element) => (element ? bindingNames(element) : []));
    case "ObjectPattern":
      return pattern.properties.flatMap((property) => bindingNames(property.type === "Property" ? property.value : property));
    case "RestElement":
      return bindingNames(pattern.argument);
    case "AssignmentPattern":
      return bindingNames(pattern.left);
    case "TSParameterProperty":
      return bindingNames(pattern.parameter);
    default:
      return [];
  }
}

/** Where an identifier under this parent and key is a mere label, not a use of a variable; unless the parent is computed. */
const labels: Readonly<Record<string, readonly string[]>> = {
  LabeledStatement: ["label"],
  BreakStatement: ["label"],
  ContinueStatement: ["label"],
  ImportSpecifier: ["imported", "local"],
  ImportDefaultSpecifier: ["local"],
  ImportNamespaceSpecifier: ["local"],
  ImportAttribute: ["key"],
  ExportAllDeclaration: ["exported"],
  MetaProperty: ["meta", "property"],
  TSQualifiedName: ["right"],
  TSNamedTupleMember: ["label"],
  TSTypeParameter: ["name"],
  TSModuleDeclaration: ["id"],
  TSEnumDeclaration: ["id"],
  TSEnumMember: ["id"],
  TSInterfaceDeclaration: ["id"],
  TSTypeAliasDeclaration: ["id"],
  TSImportEqualsDeclaration: ["id"],
  TSNamespaceExportDeclaration: ["id"],
  TSImportType: ["qualifier"],
  TSImportTypeQualifiedName: ["left", "right"],
  TSIndexSignature: ["parameters"],
  TSTypePredicate: ["parameterName"],
  TSMappedType: ["key"],
  TSFunctionType: ["params"],
  TSConstructorType: ["params"],
  TSCallSignatureDeclaration: ["params"],
  TSConstructSignatureDeclaration: ["params"],
  TSDeclareFunction: ["id", "params"],
  TSEmptyBodyFunctionExpression: ["id", "params"],
  FunctionDeclaration: ["id"],
  FunctionExpression: ["id"],
  ClassDeclaration: ["id"],
  ClassExpression: ["id"],
  JSXAttribute: ["name"],
  JSXNamespacedName: ["namespace", "name"],
  JSXMemberExpression: ["property"],
};
const keyed = new Set(
  "Property MethodDefinition PropertyDefinition AccessorProperty TSPropertySignature TSMethodSignature TSAbstractMethodDefinition TSAbstractPropertyDefinition TSAbstractAccessorProperty".split(
    " ",
  ),
);

/** True for an identifier that stands for a variable, false for labels, keys and declared names of types. */
export function isReference(tree: Tree, node: NodeOf<"Identifier" | "JSXIdentifier">): boolean {
  const parent = tree.parent(node);
  const key = tree.key(node);
  if (parent === undefined || node.name === "this") return false;
  if (parent.type === "MemberExpression") return key === "object" || parent.computed;
  if (keyed.has(parent.type)) return key === "key" ? (parent as { computed?: boolean }).computed === true : key !== "params";
  if (parent.type === "ExportSpecifier") return key === "local" && !isReExport(tree, parent);
  if (parent.type === "RestElement" && isSignature(tree.parent(parent))) return false;
  if (node.type === "JSXIdentifier" && /^JSX(Opening|Closing)Element$/.test(parent.type)) return !/^[a-z]/.test(node.name);
  return labels[parent.type]?.includes(key) !== true;
}

function isReExport(tree: Tree, specifier: Node): boolean {
  const declaration = tree.parent(specifier);
  return declaration?.type === "ExportNamedDeclaration" && declaration.source !== null;
}

function isSignature(node: Node | undefined): boolean {
  return node !== undefined && labels[node.type]?.includes("params") === true;
}

/** How an identifier is used. A value that is only updated (`n++;`, `n += 1;`) is written, not read. */
export function usageOf(tree: Tree, node: Node): { readonly isRead: boolean; readonly isWrite: boolean } {
  const { target, holder } = assignmentTarget(tree, node);
  if (holder?.type === "UpdateExpression") return { isRead: !isDiscarded(tree, holder), isWrite: true };
  if (holder?.type === "AssignmentExpression" && holder.left === target)
    return { isRead: holder.operator !== "=" && !isDiscarded(tree, holder), isWrite: true };
  if ((holder?.type === "ForInStatement" || holder?.type === "ForOfStatement") && holder.left === target)
    return { isRead: false, isWrite: true };
  return { isRead: true, isWrite: false };
}

/** Climbs out of a destructuring pattern to what assigns to it. */
function assignmentTarget(tree: Tree, node: Node): { target: Node; holder: Node | undefined } {
  let target = node;
  let holder = tree.parent(node);
  while (holder !== undefined && isPatternPart(tree, holder, target)) {
    target = holder;
    holder = tree.parent(holder);
  }
  return { target, holder };
}

function isPatternPart(tree: Tree, holder: Node, part: Node): boolean {
  switch (holder.type) {
    case "ArrayPattern":
    case "ObjectPattern":
    case "RestElement":
    case "TSNonNullExpression":
    case "TSAsExpression":
      return true;
    case "AssignmentPattern":
      return tree.key(part) === "left";
    case "Property":
      return tree.key(part) === "value" && tree.parent(holder)?.type === "ObjectPattern";
    default:
      return false;
  }
}

function isDiscarded(tree: Tree, node: Node): boolean {
  const parent = tree.parent(node);
  if (parent?.type === "ExpressionStatement") return true;
  return parent?.type === "ForStatement" && tree.key(node) === "update";
}

/** Nodes of TypeScript below which values are still evaluated. */
const valueNodes = new Set(
  "TSAsExpression TSSatisfiesExpression TSNonNullExpression TSTypeAssertion TSInstantiationExpression TSEnumMember TSEnumBody TSEnumDeclaration TSExportAssignment TSParameterProperty TSModuleBlock TSModuleDeclaration TSAbstractMethodDefinition TSAbstractPropertyDefinition".split(
    " ",
  ),
);

/** True where only types are meant: annotations, type arguments, `implements`, `typeof x` in a type. */
export function isTypePosition(tree: Tree, node: Node): boolean {
  for (let at = tree.parent(node); at !== undefined; at = tree.parent(at)) {
    if (at.type.startsWith("TS") && !valueNodes.has(at.type)) return true;
    if (/Statement$|^Program$|Declaration$/.test(at.type)) return false;
  }
  return false;
}
