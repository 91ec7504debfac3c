import type { ToolDefinition } from "../tools/tool.ts";

/** What a model sees of a tool as lines that a review can compare: one fact a line, in an order of their own. */
export function describeContract(definition: ToolDefinition, isKnown = true): readonly string[] {
  if (!isKnown) return ["(computed: known when its module runs)"];
  const { title, description, parameters, overridesBuiltInTool, skipPermission } = definition;
  return [
    ...(title === undefined ? [] : [`title: ${title}`]),
    ...(description === undefined ? [] : [`description: ${description}`]),
    ...(overridesBuiltInTool === true ? ["takes the place of a built-in tool"] : []),
    ...(skipPermission === true ? ["runs without a permission"] : []),
    ...schemaLines(parameters, "parameters", 0),
  ];
}

const deepest = 8;

function schemaLines(schema: unknown, path: string, depth: number): readonly string[] {
  if (schema === undefined) return [];
  if (!isRecord(schema) || depth > deepest) return [`${path}: ${JSON.stringify(schema)}`];
  const { properties, items, required, description, type, ...rest } = schema;
  const facts = Object.entries(rest)
    .filter(([key]) => key !== "$schema")
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, value]) => `${key} ${JSON.stringify(value)}`);
  const needed = Array.isArray(required) && required.length > 0 ? [`required ${required.toSorted().join(", ")}`] : [];
  const head = [typeof type === "string" ? type : type === undefined ? undefined : JSON.stringify(type), ...needed, ...facts];
  const told = typeof description === "string" ? [`— ${description}`] : [];
  const own = `${path}: ${[head.filter((part) => part !== undefined).join("; "), ...told].join(" ")}`.trimEnd();
  const members = isRecord(properties) ? Object.entries(properties).sort(([a], [b]) => (a < b ? -1 : 1)) : [];
  return [
    own,
    ...members.flatMap(([key, value]) => schemaLines(value, `${path}.${key}`, depth + 1)),
    ...schemaLines(items, `${path}[]`, depth + 1),
  ];
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
