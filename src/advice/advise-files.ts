import type { Diagnostic } from "../base/diagnostic.ts";
import {
  adviseAt,
  calleeName,
  keyOf,
  type ModuleSource,
  type NodeOf,
  type SyntaxNode,
  staticText,
  unwrap,
} from "../formats/modules/module-source.ts";

/** Advice about paths that exist on one machine only. */
export function advisePaths(module: ModuleSource): readonly Diagnostic[] {
  return module.nodes.flatMap((node) => {
    const text = textOf(node);
    if (text === undefined || !isMachinePath(text) || isProse(node, module)) return [];
    return adviseAt(module, node, "ADVICE_ABSOLUTE_PATH", absolutePathMessage(text));
  });
}

export function absolutePathMessage(path: string): string {
  return `The path ${JSON.stringify(path.slice(0, 80))} exists only on one machine. Start at invocation.workingDirectory, at import.meta.dirname for the skill's own files, or at os.tmpdir().`;
}

/** A home, temporary or data folder, or a drive. Paths that exist on every machine with the same system are not included. */
export function isMachinePath(text: string): boolean {
  return (
    /^(?:\/(?:Users|home|root|tmp|var|opt|mnt|srv|private|Volumes)\/[^\s*?"<>|]+|[A-Za-z]:[\\/][^\s*?"<>|]+)/.test(text) &&
    text.length < 500
  );
}

const fileModules = new Set(["fs", "node:fs", "fs/promises", "node:fs/promises"]);
const writers = new Set(["writeFile", "writeFileSync", "appendFile", "appendFileSync", "createWriteStream", "copyFile", "copyFileSync"]);

/** Advice about writing files without notifying the session: editors and language servers would keep showing the old content. */
export function adviseWrites(module: ModuleSource): readonly Diagnostic[] {
  const imported = importedNames(module, fileModules);
  if (imported.members.size + imported.whole.size === 0) return [];
  // Temporary files do not need a notification.
  if (mentions(module, "tmpdir") || mentions(module, "mkdtemp") || mentions(module, "mkdtempSync")) return [];
  return module.nodes.flatMap((node) => {
    if (node.type !== "CallExpression" || !writers.has(calledMember(node.callee, imported) ?? "")) return [];
    const message =
      "This writes a file without reporting it. Call context.fileChanged(path, content) afterwards, so that editors and servers see the change.";
    return adviseAt(module, node, "ADVICE_WRITE_UNANNOUNCED", message);
  });
}

/** Whether a module uses a name, as a variable or as a member. */
export function mentions(module: ModuleSource, name: string): boolean {
  return module.nodes.some((node) => node.type === "Identifier" && node.name === name);
}

function textOf(node: SyntaxNode): string | undefined {
  if (node.type === "Literal") return typeof node.value === "string" ? node.value : undefined;
  return node.type === "TemplateLiteral" ? (node.quasis[0]?.value.cooked ?? undefined) : undefined;
}

/** An import specifier, or a text for people or models in which a path is an example. */
function isProse(node: SyntaxNode, module: ModuleSource): boolean {
  const parent = module.parentOf(node);
  if (parent === undefined) return false;
  if (/^(?:Import|Export)/.test(parent.type)) return true;
  if (parent.type === "CallExpression") return /^(?:describe|description|meta)$/.test(calleeName(parent.callee) ?? "");
  return parent.type === "Property" && ["description", "title", "example"].includes(keyOf(parent as NodeOf<"Property">) ?? "");
}

/** The local names of imported members and namespaces. */
interface ImportedNames {
  /** Local name to exported name. */
  readonly members: ReadonlyMap<string, string>;
  /** Local names of the namespaces. */
  readonly whole: ReadonlySet<string>;
}

/** Collects the imports and `require` calls of these specifiers. */
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

/** The name of the called member: `writeFile(…)`, `fs.writeFile(…)`, `fs.promises.writeFile(…)`. */
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
