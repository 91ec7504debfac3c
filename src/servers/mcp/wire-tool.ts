import type { ToolDefinition } from "../../tools/tool.ts";

/** A tool as `tools/list` has it. */
export interface WireTool {
  readonly name: string;
  readonly inputSchema: Readonly<Record<string, unknown>>;
  readonly [field: string]: unknown;
}

/** Definitions are frozen and shared by catalogs, so each is converted once. */
const converted = new WeakMap<ToolDefinition, WireTool>();

export function toWireTool(definition: ToolDefinition): WireTool {
  const known = converted.get(definition);
  if (known !== undefined) return known;
  const { name, title, description, parameters, outputSchema, annotations, metadata } = definition;
  const tool = Object.freeze({
    name,
    ...(title !== undefined && { title }),
    ...(description !== undefined && { description }),
    inputSchema: asObjectSchema(parameters),
    ...(outputSchema !== undefined && { outputSchema }),
    ...(annotations !== undefined && { annotations }),
    ...(metadata !== undefined && { _meta: metadata }),
  });
  converted.set(definition, tool);
  return tool;
}

/** The protocol wants an object at the root, and says so in `type`; some libraries leave that to the reader. */
function asObjectSchema(parameters: ToolDefinition["parameters"] = {}): Readonly<Record<string, unknown>> {
  return parameters["type"] === "object" ? parameters : { ...parameters, type: "object" };
}
