import type { Diagnostic, Tool } from "skillhost";
import { lintRegistration } from "./lint-registration.ts";
import { toRegistration } from "./to-registration.ts";
import type { ToolRegistration } from "./wire.ts";

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
