import { dirname, join } from "node:path";
import type { Diagnostic } from "../base/diagnostic.ts";
import { exportsOf, findUnexportedTools, type WrittenTool } from "../formats/modules/module-exports.ts";
import { type ModuleSource, propertyOf, type SyntaxNode, unwrap } from "../formats/modules/module-source.ts";

type Parse = (file: string) => ModuleSource | undefined;

/** The exports of the host's modules, by specifier. */
export type ProvidedNames = ReadonlyMap<string, ReadonlySet<string>>;

/** Certain load errors of a module: missing exports, and statements that throw or end the process. */
export function importFaults(modules: readonly ModuleSource[], parse: Parse, provided: ProvidedNames): readonly Diagnostic[] {
  const files = new Set(modules.map(({ file }) => file));
  return modules.flatMap((module) => [...missingNames(module, files, parse, provided), ...endings(module)]);
}

function missingNames(module: ModuleSource, files: ReadonlySet<string>, parse: Parse, provided: ProvidedNames): readonly Diagnostic[] {
  return module.nodes.flatMap((node): readonly Diagnostic[] => {
    if (node.type !== "ImportDeclaration" || node.importKind === "type") return [];
    const specifier = node.source.value;
    const known = provided.get(specifier) ?? namesOf(specifier, module.file, files, parse);
    if (known === undefined) return [];
    return node.specifiers.flatMap((imported) => {
      const name = importedName(imported);
      // TypeScript removes an import that is not used as a value.
      if (name === undefined || known.has(name) || !isUsed(imported.local.name, imported, module)) return [];
      return [missingName(module, imported, { specifier, name, known })];
    });
  });
}

function importedName(node: SyntaxNode): string | undefined {
  if (node.type === "ImportDefaultSpecifier") return "default";
  if (node.type !== "ImportSpecifier" || node.importKind === "type") return undefined;
  return node.imported.type === "Identifier" ? node.imported.name : undefined;
}

/** Undefined: its exports are statically unknown. */
function namesOf(specifier: string, importer: string, files: ReadonlySet<string>, parse: Parse): ReadonlySet<string> | undefined {
  if (!/^\.{1,2}\//.test(specifier)) return undefined;
  const path = join(dirname(importer), specifier);
  const swapped = path.replace(/\.([cm]?)js(x?)$/, ".$1ts$2");
  const candidates = [
    path,
    swapped,
    ...["ts", "tsx", "mts", "js", "jsx", "mjs"].flatMap((end) => [`${path}.${end}`, join(path, `index.${end}`)]),
  ];
  const file = candidates.find((candidate) => files.has(candidate));
  const module = file === undefined ? undefined : parse(file);
  // CommonJS always has a default export, and types have names too.
  return module === undefined || /\.c[jt]s$/.test(module.file) ? undefined : withTypes(module);
}

function withTypes(module: ModuleSource): ReadonlySet<string> | undefined {
  const { names, isAny } = exportsOf(module);
  if (names === undefined || !isAny) return undefined;
  const declared = module.nodes.flatMap((node) => {
    const isType = node.type === "TSInterfaceDeclaration" || node.type === "TSTypeAliasDeclaration" || node.type === "TSModuleDeclaration";
    return isType && node.id.type === "Identifier" ? [node.id.name] : [];
  });
  return new Set([...names, ...declared]);
}

function isUsed(name: string, specifier: SyntaxNode, module: ModuleSource): boolean {
  return module.nodes.some((node) => {
    if (node.type !== "Identifier" || node.name !== name) return false;
    const parent = module.parentOf(node);
    return parent !== specifier && parent !== undefined && !parent.type.startsWith("TSType") && !parent.type.startsWith("Import");
  });
}

interface MissingName {
  readonly specifier: string;
  readonly name: string;
  readonly known: ReadonlySet<string>;
}

function missingName(module: ModuleSource, node: SyntaxNode, { specifier, name, known }: MissingName): Diagnostic {
  const shown = [...known].sort().slice(0, 60).join(", ");
  const message = `"${specifier}" has no export "${name}". It exports ${shown || "nothing"}. Fix the name, or export it there.`;
  return { severity: "error", code: "MODULE_EXPORT_MISSING", message, file: module.file, range: { start: module.positionOf(node.start) } };
}

/** Top-level statements that prevent loading. */
function endings(module: ModuleSource): readonly Diagnostic[] {
  const found = endingOf(module);
  if (found === undefined) return [];
  const [code, what] = found.type === "ThrowStatement" ? ["MODULE_THREW", "throws"] : ["MODULE_EXITED", "ends the process"];
  const message = `This module ${what} when it loads, so nothing in it can be used. Move this into a handler.`;
  return [{ severity: "error", code, message, file: module.file, range: { start: module.positionOf(found.start) } }];
}

function endingOf(module: ModuleSource): SyntaxNode | undefined {
  return module.nodes.find((node) => module.parentOf(node)?.type === "Program" && (node.type === "ThrowStatement" || isExit(node)));
}

function isExit(node: SyntaxNode): boolean {
  if (node.type !== "ExpressionStatement") return false;
  const call = unwrap(node.expression);
  if (call.type !== "CallExpression" || call.callee.type !== "MemberExpression") return false;
  const { object, property } = call.callee;
  return (
    object.type === "Identifier" &&
    object.name === "process" &&
    property.type === "Identifier" &&
    /^(?:exit|abort|reallyExit)$/.test(property.name)
  );
}

/** Faults of a module's exports: certainly no tool, tools that are not exported, only `execute`. */
export function exportFaults(module: ModuleSource): readonly Diagnostic[] {
  const { isAny, names, tools, defaultValue } = exportsOf(module);
  if (endingOf(module) !== undefined) return [];
  const lost = findUnexportedTools(module);
  const noSchema = names?.has("execute") === true && !names.has("SCHEMA") ? [executeAlone(module)] : [];
  if (tools === "none" && noSchema.length === 0 && defaultValue !== undefined) return [notATool(module, defaultValue)];
  if (tools === "none" && noSchema.length === 0) return [nothingExported(module, isAny, lost)];
  return [...noSchema, ...lost.map((tool) => unexported(module, tool))];
}

function nothingExported(module: ModuleSource, isAny: boolean, lost: readonly WrittenTool[]): Diagnostic {
  const [first] = lost;
  const what = first?.name === undefined ? "" : ` It defines "${first.name}" but does not export it.`;
  const message = `${isAny ? "The export of this module is not a tool, prompt or resource." : "This module exports no tool."}${what} Export one made with defineTool(…), or begin the file's name with an underscore if it is a helper.`;
  const range = first === undefined ? {} : { range: { start: module.positionOf(first.node.start) } };
  return { severity: "error", code: "MODULE_NO_TOOLS", message, file: module.file, ...range };
}

function notATool(module: ModuleSource, node: SyntaxNode): Diagnostic {
  const what =
    node.type === "ArrayExpression"
      ? "an array without one"
      : node.type === "ObjectExpression"
        ? "an object without a name and handler"
        : "a plain value";
  const message = `The default export of this module is, or returns, ${what}, not a tool, prompt or resource. Create it with defineTool(name, { … }), definePrompt or defineResource.`;
  return { severity: "error", code: "MODULE_NOT_A_TOOL", message, file: module.file, range: { start: module.positionOf(node.start) } };
}

function unexported(module: ModuleSource, { name, node }: WrittenTool): Diagnostic {
  const message = `The tool ${name === undefined ? "here" : `"${name}"`} is not exported, so it cannot be used. Export it, or remove it.`;
  return { severity: "warning", code: "TOOL_NOT_EXPORTED", message, file: module.file, range: { start: module.positionOf(node.start) } };
}

function executeAlone(module: ModuleSource): Diagnostic {
  const message =
    "This module exports execute without a SCHEMA object that has a name. Export const SCHEMA = { name, description, inputSchema }.";
  return { severity: "error", code: "MODULE_NO_SCHEMA", message, file: module.file };
}

const schemaLibraries = /^(?:zod(?:\/.*)?|valibot|arktype|@sinclair\/typebox|typebox|yup|joi)$/;

/** A map of library schemas in place of an object schema. */
export function shapeFault(module: ModuleSource, { name, definition }: WrittenTool): Diagnostic | undefined {
  const property = definition && (propertyOf(definition, "parameters") ?? propertyOf(definition, "inputSchema"));
  const value = property && unwrap(property.value as SyntaxNode);
  if (value?.type !== "ObjectExpression" || propertyOf(value, "type") !== undefined) return undefined;
  const libraries = new Set(
    module.nodes.flatMap((node) =>
      node.type === "ImportDeclaration" && schemaLibraries.test(node.source.value) ? node.specifiers.map(({ local }) => local.name) : [],
    ),
  );
  const isSchema = value.properties.some((each) => each.type === "Property" && libraries.has(rootOf(each.value as SyntaxNode) ?? ""));
  if (!isSchema) return undefined;
  const message = `Tool "${name ?? "(computed)"}": parameters is a map of schemas, but must be one schema. Wrap it in z.object({ … }), or your library's equivalent.`;
  return { severity: "error", code: "TOOL_INVALID", message, file: module.file, range: { start: module.positionOf(value.start) } };
}

/** Returns `z` for `z.string().min(1)`. */
function rootOf(node: SyntaxNode): string | undefined {
  let at = unwrap(node);
  while (at.type === "CallExpression" || at.type === "MemberExpression") at = unwrap(at.type === "CallExpression" ? at.callee : at.object);
  return at.type === "Identifier" ? at.name : undefined;
}
