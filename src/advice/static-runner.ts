import type { Diagnostic } from "../base/diagnostic.ts";
import { isRecord } from "../base/json.ts";
import { exportsOf, findTools, type WrittenTool } from "../formats/modules/module-exports.ts";
import { hasSpread, type ModuleSource, propertyOf, type SyntaxNode, staticText, staticValue } from "../formats/modules/module-source.ts";
import type { ModuleLoader } from "../io/module-loader/module-loader.ts";
import { makeTools } from "../skills/load/stage-tool.ts";
import { moduleExtensions } from "../skills/load/tool-entries.ts";
import { providedModules } from "../skills/load/tool-module.ts";
import type { LoadedTools, RunnerTarget, ToolRunner } from "../skills/load/tool-runner.ts";
import type { ToolLike } from "../tools/define/define-tool.ts";
import { exportFaults, importFaults, type ProvidedNames, shapeFault } from "./static-faults.ts";

/** Replaces the module runner: finds tools in source texts without running them. Statically unknown parts are assumed to be valid. */
export function createStaticRunner(
  loader: ModuleLoader,
  parse: (file: string) => ModuleSource | undefined,
  onUnknown: (file: string) => void = () => {},
): ToolRunner {
  return {
    extensions: moduleExtensions,
    async load(file, target) {
      const { files } = loader.prepare(file);
      const module = parse(file);
      if (module === undefined) return { tools: [], files, diagnostics: [] };
      const found = toolsOf(module, target, onUnknown);
      const modules = [...files].flatMap((path) => parse(path) ?? []);
      const faults = importFaults(modules, parse, await providedNames());
      return { tools: found.tools, diagnostics: [...found.diagnostics, ...faults], files };
    },
  };
}

function toolsOf(
  module: ModuleSource,
  target: RunnerTarget,
  onUnknown: (file: string) => void,
): Pick<LoadedTools, "tools" | "diagnostics"> {
  const written = findTools(module);
  const faults = exportFaults(module);
  const isComputed = written.some(({ name }) => name === undefined) || exportsOf(module).tools === "computed";
  if (isComputed) onUnknown(module.file);
  const made = written.flatMap((tool) => {
    const shape = shapeFault(module, tool);
    if (shape !== undefined) return [{ tools: [], diagnostics: [shape] }];
    const definition = toDefinition(tool, module);
    return definition ? [withPlaces(makeTools([definition], module.file, target), tool, module)] : [];
  });
  return { tools: made.flatMap(({ tools }) => tools), diagnostics: [...faults, ...made.flatMap(({ diagnostics }) => diagnostics)] };
}

let names: Promise<ProvidedNames> | undefined;

/** The host's modules that skills can import. They are part of the running program, so loading them runs no code of a skill. */
function providedNames(): Promise<ProvidedNames> {
  names ??= Promise.all(
    Object.entries(providedModules.hostModules).map(async ([specifier, module]) => {
      const namespace = typeof module === "function" ? await module() : module;
      return [specifier, new Set(Object.keys(namespace))] as const;
    }),
  ).then((entries) => new Map(entries));
  return names;
}

function toDefinition({ name, definition }: WrittenTool, module: ModuleSource): ToolLike | undefined {
  if (name === undefined) return undefined;
  const known: Record<string, unknown> = { name };
  const isOpen = definition === undefined || hasSpread(definition);
  const field = (key: string): SyntaxNode | undefined => definition && (propertyOf(definition, key)?.value as SyntaxNode | undefined);
  const description = field("description");
  if (description || isOpen) known["description"] = (description && staticText(description, module)) ?? "(computed)";
  const parameters = field("parameters") ?? field("inputSchema");
  const schema = parameters && staticValue(parameters, module);
  if (schema?.isKnown) known["parameters"] = schema.value;
  // Unique, so that two tools with the same name are never treated as copies of each other.
  else if (parameters || isOpen) known["parameters"] = { type: "object", $comment: `computed in ${module.file}` };
  for (const flag of ["title", "overridesBuiltInTool", "skipPermission"]) {
    const value = field(flag);
    const written = value && staticValue(value, module);
    if (written?.isKnown) known[flag] = written.value;
  }
  return isRecord(known["parameters"]) || known["parameters"] === undefined ? (known as unknown as ToolLike) : undefined;
}

function withPlaces(
  made: Pick<LoadedTools, "tools" | "diagnostics">,
  { node }: WrittenTool,
  module: ModuleSource,
): Pick<LoadedTools, "tools" | "diagnostics"> {
  const range = { start: module.positionOf(node.start) };
  return { tools: made.tools, diagnostics: made.diagnostics.map((diagnostic) => ({ range, ...diagnostic })) };
}

/** The static content of a Python file, provided by the plugin for Python tools. */
export type InspectPython = (file: string, signal: AbortSignal) => Promise<InspectedFile>;

type InspectedFile =
  | { readonly kind: "parsed"; readonly tools: readonly WrittenPythonTool[]; readonly isComputed: boolean }
  | { readonly kind: "faulty"; readonly code: string; readonly message: string; readonly line?: number; readonly column?: number }
  | { readonly kind: "unread" };

interface WrittenPythonTool {
  readonly name: string;
  readonly description: string | null;
  readonly line: number;
}

/** Replaces the runner of Python files: finds tools in source texts. */
export function createPythonInspector(inspect: InspectPython, onUnknown: (file: string) => void): ToolRunner {
  return {
    extensions: [".py"],
    runsCheckedFiles: true,
    async load(file, target, { signal }) {
      const files = new Set([file]);
      const found = await inspect(file, signal);
      if (found.kind !== "parsed") return { tools: [], files, diagnostics: [faultOf(file, found)] };
      if (found.isComputed) onUnknown(file);
      else if (found.tools.length === 0) return { tools: [], files, diagnostics: [noTools(file)] };
      const made = found.tools.map(({ name, description, line }) => {
        // Only Python can evaluate the annotations of parameters.
        const parameters = { type: "object", $comment: `computed in ${file}` };
        const { tools, diagnostics } = makeTools([{ name, description: description ?? "(computed)", parameters }], file, target);
        return { tools, diagnostics: diagnostics.map((each): Diagnostic => ({ range: { start: { line, column: 1 } }, ...each })) };
      });
      return { tools: made.flatMap(({ tools }) => tools), files, diagnostics: made.flatMap(({ diagnostics }) => diagnostics) };
    },
  };
}

function faultOf(file: string, found: Exclude<InspectedFile, { kind: "parsed" }>): Diagnostic {
  if (found.kind === "unread") {
    const message = "This file was not checked: no python3 on the PATH can parse it. Install Python 3.10 or later.";
    return { severity: "warning", code: "PYTHON_MISSING", file, message };
  }
  const { code, message, line, column = 1 } = found;
  return { severity: "error", code, file, message, ...(line !== undefined && { range: { start: { line, column } } }) };
}

function noTools(file: string): Diagnostic {
  const message =
    "This file defines no tool. Write SCHEMA and execute(tool_input, ctx), or decorate a function with define_tool of the module skillhost. Begin the name of a helper file with an underscore.";
  return { severity: "info", code: "PYTHON_NO_TOOLS", file, message };
}
