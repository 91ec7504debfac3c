import { join } from "node:path";
import type { Diagnostic } from "../base/diagnostic.ts";
import { callsFileName } from "../formats/calls/stored-calls.ts";
import { readSkillCalls } from "../host/stored-calls/skill-calls.ts";

interface SkillWithTools {
  readonly name: string;
  readonly folder: string;
  /** The names of its tools that are known. */
  readonly tools: readonly string[];
  /** Its modules whose tools are not known. */
  readonly computed: readonly string[];
}

/** The faults of a skill's stored calls, and those whose tool does not exist. */
export function findCallProblems(skill: SkillWithTools): readonly Diagnostic[] {
  const { calls, diagnostics } = readSkillCalls(skill);
  if (skill.computed.length > 0) return diagnostics;
  const known = new Set(skill.tools);
  const unknown = calls.flatMap(({ call: { name, tool }, position }): readonly Diagnostic[] => {
    // With a slash it is that of an MCP server, which only the server knows.
    if (known.has(tool) || tool.includes("/")) return [];
    const message = `Stored call ${JSON.stringify(name)}: skill "${skill.name}" has no tool "${tool}".`;
    const file = join(skill.folder, callsFileName);
    return [{ severity: "warning", code: "CALL_TOOL_UNKNOWN", message, file, ...(position && { range: { start: position } }) }];
  });
  return [...diagnostics, ...unknown];
}
