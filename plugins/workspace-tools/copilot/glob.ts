import type { GlobPattern } from "../operations/glob-pattern.ts";
import { filesOf, namesHidden, parseNames } from "../operations/search-tree.ts";
import { SearchSteps } from "../operations/walk-files.ts";
import { boundsOf, type Call, failure, type WorkspaceTool } from "../workspace-tool.ts";
import { noFilesText } from "./copilot-texts.ts";
import { describeSearch, placeParameters, rootsFor, type SearchPlaces, type ShownRoot } from "./search-roots.ts";

interface GlobArgs extends SearchPlaces {
  readonly pattern: string;
}

export const globTool: WorkspaceTool<GlobArgs> = {
  name: "glob",
  description: `Finds files by a glob pattern, such as "**/*.ts" or "src/**/*.{js,jsx}".
- * and ? match within a name, ** matches any folders, {a,b} either alternative, [a-z] one character.
- Hidden files are found only by patterns that name them; files ignored by .gitignore are not found.`,
  parameters: {
    type: "object",
    properties: {
      pattern: { type: "string", description: "The pattern, relative to the searched folder." },
      ...placeParameters,
    },
    required: ["pattern"],
    additionalProperties: false,
  },
  annotations: { readOnlyHint: true },
  timeout: 60_000,
  describe: (args, call) => describeSearch(fromRoot(args), `Find files by ${JSON.stringify(args.pattern.slice(0, 200))}`, call),
  async run(args, call) {
    const search = fromRoot(args);
    const pattern = parseNames(`./${search.pattern}`);
    if (pattern === undefined) return failure("The pattern cannot be used: it is too long or has too many alternatives.");
    const roots = await rootsFor(search, call);
    if ("refusal" in roots) return failure(roots.refusal);
    return findFiles(pattern, namesHidden(search.pattern), roots, call);
  },
};

/** An absolute pattern starts at the folder that its names without wildcards lead to. */
function fromRoot(args: GlobArgs): GlobArgs {
  const pattern = args.pattern.replace(/^(\.\/+)+/, "");
  if (!pattern.startsWith("/")) return { ...args, pattern };
  const names = pattern.split("/");
  const wild = names.findIndex((name) => /[*?[{]/.test(name));
  const end = wild === -1 ? names.length - 1 : wild;
  return { pattern: names.slice(end).join("/"), paths: names.slice(0, end).join("/") || "/" };
}

const maxFiles = 5_000;

async function findFiles(pattern: GlobPattern, hidden: boolean, roots: readonly ShownRoot[], call: Call): Promise<string> {
  const found: string[] = [];
  const steps = new SearchSteps();
  let isPart = false;
  const filter = { hidden, accepts: (names: readonly string[]) => pattern.matches(names.join("/")) };
  for (const { root, prefix } of roots) {
    const files = filesOf(root, filter, boundsOf(call, steps));
    for (let step = await files.next(); ; step = await files.next()) {
      if (step.done === true || found.length >= maxFiles) {
        isPart ||= step.done !== true || step.value;
        break;
      }
      found.push(prefix + step.value.names.join("/"));
    }
  }
  const note = isPart ? ["[There may be more: name a narrower pattern or path.]"] : [];
  return found.length === 0 ? [noFilesText, ...note].join(" ") : [...found, ...note].join("\n");
}
