import { dirname, extname, resolve } from "node:path";
import type { Diagnostic } from "../base/diagnostic.ts";
import { findHandler, findTools } from "../formats/modules/module-exports.ts";
import type { FunctionNode, ModuleSource } from "../formats/modules/module-source.ts";
import { createTextReport } from "../formats/skills/text-report.ts";
import type { ToolJson } from "../formats/skills/tool-json.ts";
import { decodeText } from "../formats/text/decode-text.ts";
import { parseJson } from "../formats/text/json-document.ts";
import { maxJsonBytes } from "../formats/text/limits.ts";
import { readTextFile } from "../io/read-bounded.ts";
import { readToolJson } from "../skills/load/read-skill.ts";
import { moduleExtensions, type ToolEntry } from "../skills/load/tool-entries.ts";
import { advisePaths, adviseWrites, mentions } from "./advise-files.ts";
import { adviseLeaks, adviseNetwork, adviseResults } from "./advise-handlers.ts";
import type { ToolPlaces } from "./advise-targets.ts";
import { adviseCommand, adviseTool, type JsonPlace, knownFromJson, knownFromModule } from "./known-tool.ts";

/** The content of one entry file of a skill. */
export interface AdvisedEntry {
  readonly entry: ToolEntry;
  /** All its files, including local imports of modules. */
  readonly files: ReadonlySet<string>;
}

type Parse = (file: string) => ModuleSource | undefined;

/** Advice about the definitions and the code of a skill's tools. */
export function adviseSkill(entries: readonly AdvisedEntry[], parse: Parse): readonly Diagnostic[] {
  return entries.flatMap(({ entry, files }) => {
    const modules = [...files].filter(isOwnModule).flatMap((file) => parse(file) ?? []);
    if (entry.kind === "module") {
      const module = parse(entry.file);
      return module === undefined ? [] : [...adviseModuleTools(module), ...adviseCode(modules, handlersIn(module))];
    }
    const json = readJsonTool(entry);
    if (json === undefined) return [];
    const { tool, place } = json;
    return [
      ...adviseTool(knownFromJson(tool, place)),
      ...adviseCommand(tool, place),
      ...adviseCode(modules, handlersOf(tool, entry, parse)),
    ];
  });
}

/** Where the tools of a skill's entries are written, as far as that is known without running them. */
export function placesOf(entries: readonly AdvisedEntry[], parse: Parse): ToolPlaces {
  const known = entries.flatMap(({ entry }) => {
    if (entry.kind !== "module") {
      const json = readJsonTool(entry);
      return json === undefined ? [] : [knownFromJson(json.tool, json.place)];
    }
    const module = parse(entry.file);
    return module === undefined ? [] : findTools(module).flatMap((tool) => knownFromModule(module, tool, false) ?? []);
  });
  return new Map(
    known.map(({ definition, schema }) => [
      definition.name,
      { file: definition.file, start: schema?.position ?? definition.position("name") },
    ]),
  );
}

function adviseModuleTools(module: ModuleSource): readonly Diagnostic[] {
  const tools = findTools(module);
  return tools.flatMap((tool) => {
    const known = knownFromModule(module, tool, tools.length === 1);
    return known ? adviseTool(known).filter(({ code, range }) => !module.ignores(code, range?.start.line ?? 0)) : [];
  });
}

function adviseCode(modules: readonly ModuleSource[], handlers: ReadonlySet<FunctionNode>): readonly Diagnostic[] {
  // One file may write and another notify the session.
  const notifies = modules.some((module) => mentions(module, "fileChanged"));
  return modules.flatMap((module) => {
    const own = new Set(module.nodes.filter((node): node is FunctionNode => handlers.has(node as FunctionNode)));
    return [
      ...adviseResults(module, own),
      ...adviseLeaks(module, own),
      ...advisePaths(module),
      ...adviseNetwork(module),
      ...(notifies ? [] : adviseWrites(module)),
    ];
  });
}

function handlersIn(module: ModuleSource): ReadonlySet<FunctionNode> {
  return new Set(findTools(module).flatMap(({ handler }) => handler ?? []));
}

function handlersOf({ definition, handler }: ToolJson, entry: ToolEntry, parse: Parse): ReadonlySet<FunctionNode> {
  const sibling = entry.kind === "json" ? entry.sibling : undefined;
  const file = handler?.kind === "module" ? resolve(dirname(entry.file), handler.module) : handler === undefined ? sibling : undefined;
  const module = file === undefined ? undefined : parse(file);
  const found = module && findHandler(module, definition.name, handler?.kind === "module" ? handler.export : undefined);
  return new Set(found ? [found] : []);
}

function readJsonTool(entry: Exclude<ToolEntry, { kind: "module" }>): { readonly tool: ToolJson; readonly place: JsonPlace } | undefined {
  const { tool } = readToolJson(entry, () => {});
  const read = readTextFile(entry.file, maxJsonBytes);
  if (tool === undefined || !read.ok) return undefined;
  const { text } = decodeText(read.bytes, entry.file);
  const { document } = parseJson(text);
  if (document === undefined) return undefined;
  const path = entry.kind === "inline" ? ["tools", Number(entry.key.slice("inline:".length))] : [];
  return { tool, place: { file: entry.file, document, positionOf: createTextReport(text).position, path } };
}

/** Whether a file is a module of the skill itself, not of a package. */
export function isOwnModule(file: string): boolean {
  return moduleExtensions.includes(extname(file)) && !/[\\/]node_modules[\\/]/.test(file);
}
