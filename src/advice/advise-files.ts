import type { Diagnostic } from "../base/diagnostic.ts";
import { adviseAt, type ModuleSource, type NodeOf, type SyntaxNode } from "../formats/modules/module-source.ts";
import { calleeName, keyOf } from "../formats/modules/static-value.ts";
import { calledMember, importedNames } from "./module-imports.ts";

/** Advice about paths that hold on one machine only. */
export function advisePaths(module: ModuleSource): readonly Diagnostic[] {
  return module.nodes.flatMap((node) => {
    const text = textOf(node);
    if (text === undefined || !isMachinePath(text) || isProse(node, module)) return [];
    return adviseAt(module, node, "ADVICE_ABSOLUTE_PATH", absolutePathMessage(text));
  });
}

export function absolutePathMessage(path: string): string {
  return `The path ${JSON.stringify(path.slice(0, 80))} is there on one machine only. Start at invocation.workingDirectory, at import.meta.dirname for the skill's own files, or at os.tmpdir().`;
}

/** Somebody's home, a temporary or data folder, or a drive: not what every system of a kind has in one place. */
export function isMachinePath(text: string): boolean {
  return (
    /^(?:\/(?:Users|home|root|tmp|var|opt|mnt|srv|private|Volumes)\/[^\s*?"<>|]+|[A-Za-z]:[\\/][^\s*?"<>|]+)/.test(text) &&
    text.length < 500
  );
}

const fileModules = new Set(["fs", "node:fs", "fs/promises", "node:fs/promises"]);
const writers = new Set(["writeFile", "writeFileSync", "appendFile", "appendFileSync", "createWriteStream", "copyFile", "copyFileSync"]);

/** Advice about writing files without telling the session: editors and language servers would go on showing what was there. */
export function adviseWrites(module: ModuleSource): readonly Diagnostic[] {
  const imported = importedNames(module, fileModules);
  if (imported.members.size + imported.whole.size === 0) return [];
  // A temporary file is nobody else's business.
  if (mentions(module, "tmpdir") || mentions(module, "mkdtemp") || mentions(module, "mkdtempSync")) return [];
  return module.nodes.flatMap((node) => {
    if (node.type !== "CallExpression" || !writers.has(calledMember(node.callee, imported) ?? "")) return [];
    const message =
      "This writes a file without reporting it. Call context.fileChanged(path, content) afterwards, so that editors and servers see the change.";
    return adviseAt(module, node, "ADVICE_WRITE_UNANNOUNCED", message);
  });
}

/** Whether a module uses a name anywhere: as a variable, or as a member of something. */
export function mentions(module: ModuleSource, name: string): boolean {
  return module.nodes.some((node) => node.type === "Identifier" && node.name === name);
}

function textOf(node: SyntaxNode): string | undefined {
  if (node.type === "Literal") return typeof node.value === "string" ? node.value : undefined;
  return node.type === "TemplateLiteral" ? (node.quasis[0]?.value.cooked ?? undefined) : undefined;
}

/** A specifier of an import, or a text for people and models, where a path is an example. */
function isProse(node: SyntaxNode, module: ModuleSource): boolean {
  const parent = module.parentOf(node);
  if (parent === undefined) return false;
  if (/^(?:Import|Export)/.test(parent.type)) return true;
  if (parent.type === "CallExpression") return /^(?:describe|description|meta)$/.test(calleeName(parent.callee) ?? "");
  return parent.type === "Property" && ["description", "title", "example"].includes(keyOf(parent as NodeOf<"Property">) ?? "");
}
