import { isAbsolute } from "node:path";
import { defineTool } from "skillhost";
import { glob } from "tinyglobby";

interface Arguments {
  readonly pattern: string;
  readonly limit: number;
}

// A plain JSON Schema does not type the arguments, so their type is given here.
export default defineTool<Arguments>("search_files", {
  description: "Finds files below the working directory whose path matches a glob pattern. Returns paths, not contents.",
  parameters: {
    type: "object",
    properties: {
      pattern: { type: "string", minLength: 1, description: 'Glob pattern such as "src/**/*.ts" or "**/README.md".' },
      limit: { type: "integer", minimum: 1, maximum: 1000, default: 100, description: "Maximum number of paths to return." },
    },
    required: ["pattern"],
    additionalProperties: false,
  },
  annotations: { readOnlyHint: true, idempotentHint: true, openWorldHint: false },
  async handler({ pattern, limit }, { workingDirectory, signal }) {
    if (isAbsolute(pattern) || pattern.split(/[\\/]/).includes(".."))
      return {
        textResultForLlm: 'The pattern must be relative to the working directory and must not contain "..".',
        resultType: "failure",
      };
    const options = { cwd: workingDirectory, ignore: ["**/node_modules/**", "**/.git/**"], followSymbolicLinks: false, signal };
    const found = (await glob(pattern, options)).sort();
    if (found.length === 0) return `No file matches ${pattern}.`;
    return [...found.slice(0, limit), ...(found.length > limit ? [`… and ${found.length - limit} more`] : [])].join("\n");
  },
});
