import type { Diagnostic, Tool, ToolDefinition } from "skillhost";
import { type SchemaChange, sanitizeSchema } from "./sanitize-schema.ts";
import { type Fields, isFields, type ToolRegistration } from "./wire.ts";

export interface Selection {
  /** What the server is given, by name. */
  readonly registrations: ReadonlyMap<string, ToolRegistration>;
  readonly diagnostics: readonly Diagnostic[];
}

/**
 * The server's own tools, and those that an editor is expected to bring. A tool of such a name takes the place of what
 * the server's instructions to the model speak of.
 * @internal Exported for tests.
 */
export const serverOwnedNames: ReadonlySet<string> = new Set([
  ...["list_dir", "read_file", "file_search", "grep_search", "validate_cves"],
  ...["insert_edit_into_file", "replace_string_in_file", "multi_replace_string", "create_file", "create_directory", "apply_patch"],
  ...["find_test_files", "run_in_terminal", "run_tests", "fetch_web_page", "get_errors"],
]);

/** What the model calls a tool by that is registered under a name. @internal Exported for tests. */
export function nameForModel(name: string): string {
  return name.replaceAll(/[^a-zA-Z0-9_-]/g, "_").slice(0, 64);
}

/**
 * Chooses what of a session's tools the server is given, and says why the others are not: each for itself, since the
 * server refuses a request as a whole.
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
  const message = `Tool "${name}" of ${origin.kind} "${origin.source}" is not offered to the language server, which has a tool of that name. Give it another name, or overridesBuiltInTool: true to take the other's place.`;
  return { severity: "error", code: "LANGUAGE_SERVER_NAME_TAKEN", source: name, message };
}

function collision(name: string, holder: string): Diagnostic {
  const message = `Tools "${holder}" and "${name}" are both "${nameForModel(name)}" to the language server's model, so the second is not offered. Rename one of them.`;
  return { severity: "error", code: "LANGUAGE_SERVER_NAME_COLLISION", source: name, message };
}

function changed(name: string, pointer: string, what: string): Diagnostic {
  const message = `Tool "${name}": ${pointer} ${what}, since the language server insists on it. The tool itself stays as it is.`;
  return { severity: "info", code: "LANGUAGE_SERVER_SCHEMA_CHANGED", source: name, message };
}

function invalid(name: string, pointer: string, problem: string): Diagnostic {
  const message = `Tool "${name}" is not offered to the language server, which would refuse it: ${pointer} ${problem}.`;
  return { severity: "error", code: "LANGUAGE_SERVER_TOOL_INVALID", source: name, message };
}

/** What is sent for a tool, and what had to be changed for that. It may still have issues. */
interface PreparedRegistration {
  readonly registration: ToolRegistration;
  readonly changes: readonly SchemaChange[];
}

/**
 * A tool as it is registered. `repair` fills in what the server insists on; otherwise it goes as its author wrote it.
 * `metadata.confirmationMessages` holds the texts with which servers up to 1.4xx ask whoever must confirm a call.
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
  // Whether it truly is one is for the lint to say.
  return { registration: registration as ToolRegistration, changes };
}

/** Why the server would refuse a tool. */
export interface RegistrationIssue {
  /** JSON pointer into the registration. */
  readonly pointer: string;
  readonly message: string;
}

/**
 * The reasons for which the server would reject a registration. It rejects a whole request for one of them, so nothing that has an issue is sent.
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
  if (!Array.isArray(required)) return [missing(pointer, required, "a list, if only an empty one")];
  return required.flatMap((name: unknown, index) => text(`${pointer}/${index}`, name));
}

function lintMessages(messages: unknown): readonly RegistrationIssue[] {
  if (!isFields(messages)) return [{ pointer: "/confirmationMessages", message: "must be an object" }];
  return [...text("/confirmationMessages/title", messages["title"]), ...text("/confirmationMessages/message", messages["message"])];
}

function text(pointer: string, value: unknown): readonly RegistrationIssue[] {
  return typeof value === "string" ? [] : [missing(pointer, value, "a text")];
}

function missing(pointer: string, value: unknown, what: string): RegistrationIssue {
  return { pointer, message: `${value === undefined ? "is missing: it " : ""}must be ${what}` };
}
