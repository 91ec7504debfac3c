import type { Diagnostic } from "../base/diagnostic.ts";
import type { ModuleLoader } from "../io/module-loader.ts";
import { makeTools } from "../skills/make-tools.ts";
import { moduleExtensions } from "../skills/module-runner.ts";
import type { LoadedTools, RunnerTarget, ToolRunner } from "../skills/tool-runner.ts";
import type { ToolLike } from "../tools/define-tool.ts";
import { isRecord } from "../tools/walk-schema.ts";
import type { ModuleSource, SyntaxNode } from "./module-source.ts";
import { findTools, type WrittenTool } from "./module-tools.ts";
import { hasSpread, propertyOf, staticText, staticValue } from "./static-value.ts";

/**
 * Takes the place of what runs modules: it finds their tools in their texts. What cannot be known without running them is
 * taken to be right.
 */
export function createStaticRunner(loader: ModuleLoader, parse: (file: string) => ModuleSource | undefined): ToolRunner {
  return {
    extensions: moduleExtensions,
    async load(file, target) {
      const { files } = loader.prepare(file);
      const module = parse(file);
      if (module === undefined) return { tools: [], files, diagnostics: [] };
      return { ...toolsOf(module, target), files };
    },
  };
}

function toolsOf(module: ModuleSource, target: RunnerTarget): Pick<LoadedTools, "tools" | "diagnostics"> {
  const written = findTools(module);
  if (written.length === 0 && !exportsSomething(module)) return { tools: [], diagnostics: [exportsNothing(module.file)] };
  const made = written.flatMap((tool) => {
    const definition = toDefinition(tool, module);
    return definition ? [withPlaces(makeTools([definition], module.file, target), tool, module)] : [];
  });
  return { tools: made.flatMap(({ tools }) => tools), diagnostics: made.flatMap(({ diagnostics }) => diagnostics) };
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
  // Equal to nobody's, so that two tools of one name never pass for copies of each other.
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

function exportsSomething(module: ModuleSource): boolean {
  return module.nodes.some(
    (node) => /^Export|^TSExportAssignment/.test(node.type) || (node.type === "Identifier" && /^(?:module|exports)$/.test(node.name)),
  );
}

function exportsNothing(file: string): Diagnostic {
  const message =
    "This module exports no tool. Export one made with defineTool(…), or begin its name with an underscore if it only helps others.";
  return { severity: "error", code: "MODULE_NO_TOOLS", file, message };
}
