import { type FileFilter, namesHidden, parseNames } from "../operations/search-tree.ts";
import { failure, type WorkspaceTool } from "../workspace-tool.ts";
import { baseOf, describeSearch, searchFiles } from "./search-base.ts";

interface FileSearchArgs {
  readonly query: string;
  readonly maxResults?: number;
}

const defaultResults = 50;
const maxResultsAtAll = 5_000;

export const fileSearchTool: WorkspaceTool<FileSearchArgs> = {
  name: "file_search",
  description: `Finds files by a glob pattern or a part of their paths, and returns their paths.
- **/*.{js,ts}: all js and ts files. src/**: all files below src. **/foo/**/*.js: all js files below any folder foo. *.md: all md files.
- button: all files whose paths contain "button", case-insensitive.
Hidden files are found only by patterns that name them; files ignored by .gitignore are not found.`,
  parameters: {
    type: "object",
    properties: {
      query: { type: "string", description: "The pattern, relative to the workspace or absolute, or the part of a path." },
      maxResults: { type: "number", description: `Maximum number of files to return. Default: ${defaultResults}.` },
    },
    required: ["query"],
  },
  annotations: { readOnlyHint: true },
  timeout: 60_000,
  overridesBuiltInTool: true,
  describe: ({ query }, call) => describeSearch(baseOf(query).folder, `Find files by ${JSON.stringify(query.slice(0, 200))}`, call),
  async run({ query, maxResults = defaultResults }, call) {
    const { folder, pattern } = baseOf(query);
    const filter = filterOf(pattern);
    if (filter === undefined) return failure("The query cannot be used: it is too long or has too many alternatives.");
    const most = Math.min(maxResultsAtAll, Math.max(1, Math.floor(maxResults)));
    const found: string[] = [];
    const search = await searchFiles(folder, filter, call, ({ shown }) => {
      if (found.length < most) found.push(shown);
      else return false;
      return true;
    });
    if ("refusal" in search) return failure(search.refusal);
    const note = search.isPart ? ["[There may be more: give a narrower query, or a larger maxResults.]"] : [];
    if (found.length === 0) return [`No files found matching query: ${query}`, ...note].join(" ");
    const title = found.length === 1 ? "Found 1 file" : `Found ${found.length} files`;
    return [`${title} matching query: ${query}`, ...found, ...note].join("\n");
  },
};

function filterOf(query: string): FileFilter | undefined {
  if (/[*?[{]/.test(query)) {
    const pattern = parseNames(query);
    return pattern && { hidden: namesHidden(query), accepts: (names) => pattern.matches(names.join("/")) };
  }
  const part = query.toLowerCase();
  return part.length > 1000 ? undefined : { hidden: namesHidden(query), accepts: (names) => names.join("/").toLowerCase().includes(part) };
}
