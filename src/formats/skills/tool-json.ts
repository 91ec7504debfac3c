import type { Diagnostic } from "../../base/diagnostic.ts";
import { isRecord } from "../../base/json.ts";
import { copyJson } from "../../tools/json-copy.ts";
import type { JsonSchema, ToolAnnotations, ToolDefinition } from "../../tools/tool.ts";
import { parseJson } from "../text/json-document.ts";
import { createFieldReader, describe, type FieldReader, type JsonComplain } from "../text/json-fields.ts";
import { fileTooLarge, maxJsonBytes } from "../text/limits.ts";
import { createTextReport } from "./text-report.ts";
import { readToolHandler, type ToolHandlerSpec } from "./tool-handler-spec.ts";

/** A tool defined in JSON. Without a handler it is a declaration, unless a module with the same name exists beside it. */
export interface ToolJson {
  readonly definition: ToolDefinition;
  readonly handler?: ToolHandlerSpec;
}

interface ToolJsonRead {
  readonly tool?: ToolJson;
  readonly diagnostics: readonly Diagnostic[];
}

/** Reads a tool's JSON file. Any error yields no tool, because a partial definition would be a different tool. */
export function parseToolJson(text: string, file: string): ToolJsonRead {
  if (text.length > maxJsonBytes) return { diagnostics: [fileTooLarge(file, text.length, maxJsonBytes)] };
  const report = createTextReport(text, file);
  const { document, faults } = parseJson(text);
  for (const fault of faults) report.add(fault.severity, fault.code, fault.message, fault.offset);
  if (document === undefined) return { diagnostics: report.diagnostics };
  return readTool(document.value, report.diagnostics, (severity, code, message, path) =>
    report.add(severity, code, message, document.offsetOf(path)),
  );
}

/** Like `parseToolJson`, for a parsed value such as an inline tool of `skill.json`. The diagnostics have no position. */
export function toToolJson(value: unknown, file: string): ToolJsonRead {
  const report = createTextReport("", file);
  const copy = copyJson(value);
  if (!copy.ok) {
    const where = copy.path === "" ? "" : ` at ${copy.path}`;
    report.add("error", "TOOL_FIELD_TYPE", `The tool is not valid JSON: its value${where} ${copy.reason}.`);
    return { diagnostics: report.diagnostics };
  }
  return readTool(copy.value, report.diagnostics, (severity, code, message) => report.add(severity, code, message));
}

const knownKeys = [
  "$schema",
  "name",
  "title",
  "description",
  "parameters",
  "inputSchema",
  "outputSchema",
  "annotations",
  "overridesBuiltInTool",
  "skipPermission",
  "defer",
  "isTerminal",
  "metadata",
  "timeout",
  "handler",
];

// The longest delay of a Node.js timer.
const maxTimeout = 2_147_483_647;

function readTool(value: unknown, diagnostics: readonly Diagnostic[], complain: JsonComplain): ToolJsonRead {
  if (!isRecord(value)) {
    complain("error", "TOOL_FIELD_TYPE", `A tool must be an object, not ${describe(value)}. Use { "name": "…", "description": "…" }.`, []);
    return { diagnostics };
  }
  const fields = createFieldReader(value, complain, { code: "TOOL_FIELD_TYPE", path: [] });
  const definition = readDefinition(fields, complain);
  const handler = fields.has("handler") ? readToolHandler(fields.raw("handler"), definition.parameters, complain) : undefined;
  adviseOnKeys(fields, complain);
  if (diagnostics.some(({ severity }) => severity === "error")) return { diagnostics };
  return { tool: { definition, ...(handler && { handler }) }, diagnostics };
}

function readDefinition(fields: FieldReader, complain: JsonComplain): ToolDefinition {
  fields.text("$schema");
  const all = {
    title: fields.text("title"),
    description: fields.text("description"),
    parameters: readParameters(fields, complain),
    outputSchema: fields.object("outputSchema"),
    annotations: readAnnotations(fields, complain),
    overridesBuiltInTool: fields.flag("overridesBuiltInTool"),
    skipPermission: fields.flag("skipPermission"),
    defer: fields.oneOf("defer", ["auto", "never"]),
    isTerminal: fields.flag("isTerminal"),
    metadata: fields.object("metadata"),
    timeout: readTimeout(fields),
  };
  return { name: readName(fields, complain), ...Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined)) };
}

function readName(fields: FieldReader, complain: JsonComplain): string {
  const name = fields.text("name");
  if (name === "" || !fields.has("name")) complain("error", "TOOL_NAME_MISSING", `A tool needs a name.${wrapperHint(fields)}`, ["name"]);
  return name ?? "";
}

function wrapperHint(fields: FieldReader): string {
  return isRecord(fields.raw("function"))
    ? ' Move the contents of "function" to the top level and remove "type" and "function".'
    : ' Add "name": "…".';
}

function readParameters(fields: FieldReader, complain: JsonComplain): JsonSchema | undefined {
  const given = readSchema(fields, "parameters");
  const alias = readSchema(fields, "inputSchema");
  if (fields.has("parameters") && fields.has("inputSchema")) {
    complain(
      "warning",
      "TOOL_PARAMETERS_TWICE",
      'A tool must not have both "parameters" and "inputSchema"; "parameters" is used. Remove the other.',
      ["inputSchema"],
    );
  }
  return fields.has("parameters") ? given : alias;
}

function readSchema(fields: FieldReader, key: string): JsonSchema | undefined {
  const schema = fields.object(key);
  if (schema === undefined || schema["type"] === undefined || schema["type"] === "object") return schema;
  return fields.wrong(key, `"${key}" must be a JSON Schema of type "object"; its type is ${describe(schema["type"])}.`);
}

function readAnnotations(fields: FieldReader, complain: JsonComplain): ToolAnnotations | undefined {
  const value = fields.object("annotations");
  if (value === undefined) return undefined;
  const annotations = createFieldReader(value, complain, { code: "TOOL_FIELD_TYPE", path: ["annotations"] });
  annotations.text("title");
  for (const hint of ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"]) annotations.flag(hint);
  return value;
}

function readTimeout(fields: FieldReader): number | undefined {
  const timeout = fields.raw("timeout");
  if (timeout === undefined) return undefined;
  if (typeof timeout === "number" && timeout > 0 && timeout <= maxTimeout) return timeout;
  return fields.wrong("timeout", `"timeout" must be a number of milliseconds from 1 to ${maxTimeout}, not ${describe(timeout)}.`);
}

function adviseOnKeys(fields: FieldReader, complain: JsonComplain): void {
  const keys = fields.others(knownKeys);
  if (keys.length === 0) return;
  const shown = keys
    .slice(0, 20)
    .map((key) => JSON.stringify(key.slice(0, 60)))
    .join(", ");
  complain(
    "info",
    "TOOL_UNKNOWN_KEYS",
    `These keys of a tool are unknown and have no effect: ${shown}. Put your own data under "metadata".`,
    [keys[0]!],
  );
}
