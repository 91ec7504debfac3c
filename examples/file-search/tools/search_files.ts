import { isAbsolute } from "node:path";
import { defineTool } from "skillhost";
import { glob } from "tinyglobby";

interface Arguments {
  readonly pattern: string;
  readonly limit: number;
}

// A plain JSON Schema types nothing by itself: the arguments are those that are named here.
export default defineTool<Arguments>("search_files", {
  description: "Finds files below the working directory whose path fits a glob pattern. Gives paths, not contents.",
  parameters: {
    type: "object",
    properties: {
      pattern: { type: "string", minLength: 1, description: 'A glob pattern such as "src/**/*.ts" or "**/README.md".' },
      limit: { type: "integer", minimum: 1, maximum: 1000, default: 100, description: "How many paths to give at most." },
    },
    required: ["pattern"],
    additionalProperties: false,
  },
  annotations: { readOnlyHint: true, idempotentHint: true, openWorldHint: false },
  async handler({ pattern, limit }, { workingDirectory, signal }) {
    if (isAbsolute(pattern) || pattern.split(/[\\/]/).includes(".."))
      return {
        textResultForLlm: "Only files below the working directory are searched: give a pattern relative to it.",
        resultType: "failure",
      };
    const options = { cwd: workingDirectory, ignore: ["**/node_modules/**", "**/.git/**"], followSymbolicLinks: false, signal };
    const found = (await glob(pattern, options)).sort();
    if (found.length === 0) return `No file fits ${pattern}.`;
    return [...found.slice(0, limit), ...(found.length > limit ? [`… and ${found.length - limit} more`] : [])].join("\n");
  },
});
