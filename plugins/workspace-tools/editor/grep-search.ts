import { searchFile } from "../operations/search-files.ts";
import { parseSearchPattern, parseSearchText } from "../operations/search-pattern.ts";
import { parseFileFilter } from "../operations/search-tree.ts";
import { failure, type WorkspaceTool } from "../workspace-tool.ts";
import { baseOf, describeSearch, searchFiles } from "./search-base.ts";

interface GrepSearchArgs {
  readonly query: string;
  readonly isRegexp?: boolean;
  readonly includePattern?: string;
  readonly maxResults?: number;
}

const defaultResults = 50;
const maxResultsAtAll = 5_000;
const maxShownLine = 500;

export const grepSearchTool: WorkspaceTool<GrepSearchArgs> = {
  name: "grep_search",
  description: `Searches files for a text or regular expression, and returns each matching line with its file and line number. Case-sensitive.
Hidden files, binary files and files ignored by .gitignore are skipped.`,
  parameters: {
    type: "object",
    properties: {
      query: {
        type: "string",
        description: "The text or regular expression (RE2 syntax: no look-around, no back-references; (?i) for any case).",
      },
      isRegexp: { type: "boolean", description: "Whether query is a regular expression. Default: false." },
      includePattern: { type: "string", description: 'Only files whose paths meet this glob pattern, such as "*.ts" or "src/**".' },
      maxResults: { type: "number", description: `Maximum number of lines to return. Default: ${defaultResults}.` },
    },
    required: ["query"],
  },
  annotations: { readOnlyHint: true },
  timeout: 60_000,
  overridesBuiltInTool: true,
  describe: ({ query, includePattern = "" }, call) =>
    describeSearch(baseOf(includePattern).folder, `Search for ${JSON.stringify(query.slice(0, 200))}`, call),
  async run({ query, isRegexp = false, includePattern = "", maxResults = defaultResults }, call) {
    const wanted = isRegexp ? parseSearchPattern(query, { ignoreCase: false, multiline: false }) : parseSearchText(query);
    if (typeof wanted === "string") return failure(`The query cannot be used: ${wanted}.`);
    const { folder, pattern } = baseOf(includePattern);
    const filter = parseFileFilter({ glob: pattern === "" ? undefined : pattern });
    if (typeof filter === "string") return failure(`Nothing was searched: ${filter}.`);
    const most = Math.min(maxResultsAtAll, Math.max(1, Math.floor(maxResults)));
    const lines: string[] = [];
    const search = await searchFiles(folder, filter, call, async ({ shown, path, steps }) => {
      // One more than is returned shows whether there are more.
      const options = { pattern: wanted, multiline: false, before: 0, after: 0, maxLines: most + 1 - lines.length, steps };
      const found = await searchFile(path, options);
      lines.push(...(found?.lines.map(({ number, text }) => `${shown}:${number}:${shortened(text)}`) ?? []));
      return lines.length <= most;
    });
    if ("refusal" in search) return failure(search.refusal);
    return toText(query, lines.slice(0, most), search.isPart);
  },
};

function shortened(line: string): string {
  return line.length > maxShownLine ? `${line.slice(0, maxShownLine)} [Line truncated.]` : line;
}

function toText(query: string, lines: readonly string[], isPart: boolean): string {
  const note = isPart ? ["[There may be more: give a narrower query or includePattern, or a larger maxResults.]"] : [];
  if (lines.length === 0) return [`Searched text for ${query}, no results`, ...note].join(" ");
  const count = lines.length === 1 ? "1 result" : `${lines.length} results`;
  return [`Searched text for: ${query}, ${count}`, ...lines, ...note].join("\n");
}
