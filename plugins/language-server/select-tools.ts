import type { Diagnostic, Tool, ToolDefinition } from "skillhost";
import { type SchemaChange, sanitizeSchema } from "./sanitize-schema.ts";
import { type Fields, isFields, type ToolRegistration } from "./wire.ts";

export interface Selection {
  /** The tools to register, by name. */
  readonly registrations: ReadonlyMap<string, ToolRegistration>;
  readonly diagnostics: readonly Diagnostic[];
}

/**
 * The server's own tools and those that it expects of an editor. A tool with such a name replaces the one that the server's
 * instructions to the model describe.
 * @internal Exported for tests.
 */
export const serverOwnedNames: ReadonlySet<string> = new Set([
  ...["list_dir", "read_file", "file_search", "grep_search", "validate_cves"],
  ...["insert_edit_into_file", "replace_string_in_file", "multi_replace_string", "create_file", "create_directory", "apply_patch"],
  ...["find_test_files", "run_in_terminal", "run_tests", "fetch_web_page", "get_errors"],
]);

/** The name that the model uses for a registered tool. @internal Exported for tests. */
export function nameForModel(name: string): string {
  return name.replaceAll(/[^a-zA-Z0-9_-]/g, "_").slice(0, 64);
}

/**
 * Selects the session's tools to register, and reports why others are left out. Checks each tool separately, since the
 * server rejects a request as a whole.
 */
export function selectTools(tools: Iterable<Pick<Tool, "definition" | "origin">>, repair: boolean): Selection {
  const registrations = new Map<string, ToolRegistration>();
  const diagnostics: Diagnostic[] = [];
  const taken = new Map<string, string>();
  for (const tool of tools) {
    const { name } = tool.definition;
    const holder = taken.get(nameForModel(name));
    const refusal = guard(tool) ?? (holder === undefined ? undefined : collision(name, holder));
    if (refusal !== undefined) {
      diagnostics.push(refusal);
      continue;
    }
    const { registration, changes } = toRegistration(tool.definition, repair);
    const issues = lintRegistration(registration);
    diagnostics.push(...changes.map(({ pointer, what }) => changed(name, pointer, what)));
    diagnostics.push(...issues.map(({ pointer, message }) => invalid(name, pointer, message)));
    if (issues.length > 0) continue;
    taken.set(nameForModel(name), name);
    registrations.set(name, registration);
  }
  return { registrations, diagnostics };
}

function guard({ definition: { name, overridesBuiltInTool }, origin }: Pick<Tool, "definition" | "origin">): Diagnostic | undefined {
  if (!serverOwnedNames.has(name) || overridesBuiltInTool === true || origin.kind === "builtin") return undefined;
  const message = `Tool "${name}" of ${origin.kind} "${origin.source}" is not offered to the language server, which has a tool of that name. Rename it, or set overridesBuiltInTool: true to replace the server's tool.`;
  return { severity: "error", code: "LANGUAGE_SERVER_NAME_TAKEN", source: name, message };
}

function collision(name: string, holder: string): Diagnostic {
  const message = `Tools "${holder}" and "${name}" are both "${nameForModel(name)}" to the language server's model, so the second is not offered. Rename one of them.`;
  return { severity: "error", code: "LANGUAGE_SERVER_NAME_COLLISION", source: name, message };
}

function changed(name: string, pointer: string, what: string): Diagnostic {
  const message = `Tool "${name}": ${pointer} ${what}, as the language server requires. The tool itself is not changed.`;
  return { severity: "info", code: "LANGUAGE_SERVER_SCHEMA_CHANGED", source: name, message };
}

function invalid(name: string, pointer: string, problem: string): Diagnostic {
  const message = `Tool "${name}" is not offered to the language server, which would reject it: ${pointer} ${problem}.`;
  return { severity: "error", code: "LANGUAGE_SERVER_TOOL_INVALID", source: name, message };
}

/** The registration of a tool and the changes that it needed. It may still have issues. */
interface PreparedRegistration {
  readonly registration: ToolRegistration;
  readonly changes: readonly SchemaChange[];
}

/**
 * The registration of a tool. `repair` adds what the server requires; otherwise the definition is sent unchanged.
 * `metadata.confirmationMessages`: the texts with which servers up to 1.4xx ask the user to confirm a call.
 */
function toRegistration(definition: ToolDefinition, repair: boolean): PreparedRegistration {
  const { name, title, description, parameters, metadata } = definition;
  const sanitized = parameters === undefined ? undefined : repair ? sanitizeSchema(parameters) : { schema: parameters, changes: [] };
  const changes = [...(sanitized?.changes ?? [])];
  const isDescribed = typeof description === "string" || !repair;
  if (!isDescribed) changes.push({ pointer: "/description", what: "was missing" });
  const confirmationMessages = metadata?.["confirmationMessages"];
  const registration = {
    name,
    ...(isDescribed ? description !== undefined && { description } : { description: title ?? name }),
    ...(sanitized !== undefined && { inputSchema: sanitized.schema }),
    ...(isFields(confirmationMessages) && { confirmationMessages }),
  };
  // lintRegistration checks it.
  return { registration: registration as ToolRegistration, changes };
}

/** Why the server would reject a tool. */
export interface RegistrationIssue {
  /** JSON pointer into the registration. */
  readonly pointer: string;
  readonly message: string;
}

/**
 * The reasons why the server would reject a registration. It rejects the whole request for one issue, so a tool with an
 * issue is not sent.
 * @internal Exported for tests.
 */
export function lintRegistration(registration: unknown): readonly RegistrationIssue[] {
  if (!isFields(registration)) return [{ pointer: "", message: "must be an object" }];
  const { name, description, inputSchema, confirmationMessages } = registration;
  return [
    ...text("/name", name),
    ...text("/description", description),
    ...(inputSchema === undefined || inputSchema === null ? [] : lintSchema(inputSchema)),
    ...(confirmationMessages === undefined || confirmationMessages === null ? [] : lintMessages(confirmationMessages)),
  ];
}

function lintSchema(schema: unknown): readonly RegistrationIssue[] {
  if (!isFields(schema)) return [{ pointer: "/inputSchema", message: "must be an object" }];
  const { type, properties, required } = schema;
  return [
    ...text("/inputSchema/type", type),
    ...(isFields(properties) ? lintProperties(properties) : [missing("/inputSchema/properties", properties, "an object")]),
    ...lintRequired(required),
  ];
}

function lintProperties(properties: Fields): readonly RegistrationIssue[] {
  return Object.entries(properties).flatMap(([name, property]) => {
    const pointer = `/inputSchema/properties/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`;
    if (!isFields(property)) return [{ pointer, message: "must be an object" }];
    return [...text(`${pointer}/type`, property["type"]), ...text(`${pointer}/description`, property["description"])];
  });
}

function lintRequired(required: unknown): readonly RegistrationIssue[] {
  const pointer = "/inputSchema/required";
  if (!Array.isArray(required)) return [missing(pointer, required, "a list (may be empty)")];
  return required.flatMap((name: unknown, index) => text(`${pointer}/${index}`, name));
}

function lintMessages(messages: unknown): readonly RegistrationIssue[] {
  if (!isFields(messages)) return [{ pointer: "/confirmationMessages", message: "must be an object" }];
  return [...text("/confirmationMessages/title", messages["title"]), ...text("/confirmationMessages/message", messages["message"])];
}

function text(pointer: string, value: unknown): readonly RegistrationIssue[] {
  return typeof value === "string" ? [] : [missing(pointer, value, "a string")];
}

function missing(pointer: string, value: unknown, what: string): RegistrationIssue {
  return { pointer, message: `${value === undefined ? "is missing: it " : ""}must be ${what}` };
}
