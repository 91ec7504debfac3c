import type { ModuleSource, SyntaxNode } from "../formats/modules/module-source.ts";
import { calleeName, staticText, unwrap } from "../formats/modules/static-value.ts";

/** What a module calls the members and the whole of some other modules. */
export interface ImportedNames {
  /** Local name to the name it has there. */
  readonly members: ReadonlyMap<string, string>;
  /** Local names of the whole module. */
  readonly whole: ReadonlySet<string>;
}

/** Follows the imports, and the `require` calls, of modules whose specifiers are among these. */
export function importedNames(module: ModuleSource, specifiers: ReadonlySet<string>): ImportedNames {
  const members = new Map<string, string>();
  const whole = new Set<string>();
  for (const node of module.nodes) {
    if (node.type === "ImportDeclaration" && specifiers.has(node.source.value)) {
      for (const specifier of node.specifiers) {
        if (specifier.type === "ImportSpecifier") members.set(specifier.local.name, nameOf(specifier.imported));
        else whole.add(specifier.local.name);
      }
    }
    if (node.type === "VariableDeclarator" && node.init && isRequireOf(node.init, specifiers, module)) addPattern(node.id, members, whole);
  }
  return { members, whole };
}

/** The name of the member that a call calls: `writeFile(…)`, `fs.writeFile(…)`, `fs.promises.writeFile(…)`. */
export function calledMember(callee: SyntaxNode, { members, whole }: ImportedNames): string | undefined {
  const at = unwrap(callee);
  if (at.type === "Identifier") return members.get(at.name);
  if (at.type !== "MemberExpression") return undefined;
  const object = unwrap(at.object);
  const inner = object.type === "MemberExpression" && calleeName(object) === "promises" ? unwrap(object.object) : object;
  if (inner.type !== "Identifier") return undefined;
  return whole.has(inner.name) || members.get(inner.name) === "promises" ? calleeName(at) : undefined;
}

function isRequireOf(init: SyntaxNode, specifiers: ReadonlySet<string>, module: ModuleSource): boolean {
  const at = unwrap(init);
  if (at.type !== "CallExpression" && at.type !== "ImportExpression") return false;
  const isRequire = at.type === "CallExpression" && at.callee.type === "Identifier" && at.callee.name === "require";
  const argument = at.type === "ImportExpression" ? at.source : at.arguments[0];
  if ((!isRequire && at.type !== "ImportExpression") || !argument || argument.type === "SpreadElement") return false;
  return specifiers.has(staticText(argument, module) ?? "");
}

function addPattern(pattern: SyntaxNode, members: Map<string, string>, whole: Set<string>): void {
  if (pattern.type === "Identifier") whole.add(pattern.name);
  if (pattern.type !== "ObjectPattern") return;
  for (const property of pattern.properties) {
    if (property.type === "Property" && property.value.type === "Identifier") members.set(property.value.name, nameOf(property.key));
  }
}

function nameOf(node: SyntaxNode): string {
  if (node.type === "Identifier") return node.name;
  return node.type === "Literal" ? String(node.value) : "";
}
