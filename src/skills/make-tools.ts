import type { Diagnostic } from "../base/diagnostic.ts";
import { HostError, toError } from "../base/errors.ts";
import { createTool } from "../tools/create-tool.ts";
import type { ToolLike } from "../tools/define-tool.ts";
import type { Tool, ToolsFound } from "../tools/tool.ts";
import type { RunnerTarget } from "./tool-runner.ts";

export interface MakeToolsOptions {
  /** It stands in a JSON file: no code of the skill says what its schemas are. */
  readonly isDeclared?: boolean;
}

/** Makes tools of what a file of a skill defines. One that cannot be a tool becomes a diagnostic and keeps no other back. */
export function makeTools(
  definitions: readonly ToolLike[],
  file: string,
  { skill, generation }: RunnerTarget,
  { isDeclared = false }: MakeToolsOptions = {},
): ToolsFound {
  const diagnostics: Diagnostic[] = [];
  const tools = definitions.flatMap((definition): Tool[] => {
    const origin = { kind: "skill", source: skill.name, nativeName: definition.name, file } as const;
    try {
      const onDiagnostic = (diagnostic: Diagnostic): void => void diagnostics.push(diagnostic);
      return [createTool(definition, origin, { generation: `${skill.folder}#${generation}`, onDiagnostic, untrustedSchema: isDeclared })];
    } catch (error) {
      const code = error instanceof HostError ? error.code : "TOOL_INVALID";
      diagnostics.push({ severity: "error", code, file, source: skill.name, message: toError(error).message });
      return [];
    }
  });
  return { tools, diagnostics };
}
