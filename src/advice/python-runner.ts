import type { Diagnostic } from "../base/diagnostic.ts";
import { makeTools } from "../skills/load/stage-tool.ts";
import type { ToolRunner } from "../skills/load/tool-runner.ts";

/** What the text of a Python file shows; the plugin for tools in Python finds it. */
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

/** Takes the place of what runs Python files: it finds their tools in their texts. */
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
        // What annotations make of the parameters, only Python knows.
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
    const message = "This file was not checked: there is no python3 on the PATH that parses it. Install Python 3.10 or later.";
    return { severity: "warning", code: "PYTHON_MISSING", file, message };
  }
  const { code, message, line, column = 1 } = found;
  return { severity: "error", code, file, message, ...(line !== undefined && { range: { start: { line, column } } }) };
}

function noTools(file: string): Diagnostic {
  const message =
    "This file defines no tool. Write SCHEMA and execute(tool_input, ctx), or decorate a function with define_tool of the module skillhost; a helper's name starts with an underscore.";
  return { severity: "info", code: "PYTHON_NO_TOOLS", file, message };
}
