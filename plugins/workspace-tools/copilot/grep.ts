import { type FoundLine, searchFile } from "../operations/search-files.ts";
import { parseSearchPattern, type SearchPattern } from "../operations/search-pattern.ts";
import { type FileFilter, filesOf, parseFileFilter } from "../operations/search-tree.ts";
import { SearchSteps } from "../operations/walk-files.ts";
import { boundsOf, type Call, failure, type WorkspaceTool } from "../workspace-tool.ts";
import { noMatchesText } from "./copilot-texts.ts";
import { describeSearch, placeParameters, rootsFor, type SearchPlaces, type ShownRoot } from "./search-roots.ts";

interface GrepArgs extends SearchPlaces {
  readonly pattern: string;
  readonly output_mode?: "content" | "files_with_matches" | "count";
  readonly glob?: string;
  readonly type?: string;
  readonly "-i"?: boolean;
  readonly "-n"?: boolean;
  readonly "-A"?: number;
  readonly "-B"?: number;
  readonly "-C"?: number;
  readonly head_limit?: number;
  readonly multiline?: boolean;
}

const contextLines = { type: "integer", minimum: 0, maximum: 100 } as const;

export const grepTool: WorkspaceTool<GrepArgs> = {
  name: "grep",
  description: `Searches the text of files for a regular expression (RE2 syntax: no look-around, no back-references).
- Hidden files, binary files and files ignored by .gitignore are skipped.
- output_mode selects the result: file names (default), matching lines, or the number of matches per file.`,
  parameters: {
    type: "object",
    properties: {
      pattern: {
        type: "string",
        description: 'The regular expression. Write \\ before characters with a meaning of their own, as in "interface\\{\\}".',
      },
      ...placeParameters,
      output_mode: { type: "string", enum: ["content", "files_with_matches", "count"], description: "Default: files_with_matches." },
      glob: { type: "string", description: 'Only files whose names meet this pattern, such as "*.ts" or "src/**/*.{ts,tsx}".' },
      type: { type: "string", description: 'Only files of this type, such as "ts", "py", "rust", "java".' },
      "-i": { type: "boolean", description: "Case-insensitive." },
      "-n": { type: "boolean", description: "Shows line numbers, with output_mode content." },
      "-A": { ...contextLines, description: "Lines to show after each match, with output_mode content." },
      "-B": { ...contextLines, description: "Lines to show before each match, with output_mode content." },
      "-C": { ...contextLines, description: "Lines to show before and after each match, with output_mode content." },
      head_limit: { type: "integer", minimum: 1, description: "Maximum number of lines or files to return." },
      multiline: { type: "boolean", description: "Lets the pattern span lines and . match line breaks. Default: false." },
    },
    required: ["pattern"],
    additionalProperties: false,
  },
  annotations: { readOnlyHint: true },
  timeout: 60_000,
  describe: (args, call) => describeSearch(args, `Search for ${JSON.stringify(args.pattern.slice(0, 200))}`, call),
  async run(args, call) {
    const { "-i": ignoreCase = false, multiline = false, glob, type } = args;
    const pattern = parseSearchPattern(args.pattern, { ignoreCase, multiline });
    if (typeof pattern === "string") return failure(`The pattern cannot be used: ${pattern}.`);
    const filter = parseFileFilter({ glob, type });
    if (typeof filter === "string") return failure(`Nothing was searched: ${filter}.`);
    const roots = await rootsFor(args, call);
    return "refusal" in roots ? failure(roots.refusal) : search(args, pattern, { roots, filter, call });
  },
};

/** The limit if the call does not set one. */
const maxEntries = 5_000;
const maxChars = 400_000;
const maxShownLine = 2_000;

interface Scope {
  readonly roots: readonly ShownRoot[];
  readonly filter: FileFilter;
  readonly call: Call;
}

async function search(args: GrepArgs, pattern: SearchPattern, { roots, filter, call }: Scope): Promise<unknown> {
  const { multiline = false, "-C": around = 0, "-A": after = around, "-B": before = around } = args;
  const report = new Report(args);
  const steps = new SearchSteps();
  let isPart = false;
  for (const { root, prefix } of roots) {
    const files = filesOf(root, filter, boundsOf(call, steps));
    for (let step = await files.next(); ; step = await files.next()) {
      if (step.done === true) {
        isPart ||= step.value;
        break;
      }
      if (report.isFull || steps.areSpent) return report.text(true);
      const options = { pattern, multiline, before, after, maxLines: report.wantsLines ? report.room : 0, steps };
      const found = await searchFile(step.value.path, options);
      if (found !== undefined) report.add(prefix + step.value.names.join("/"), found.count, found.lines);
    }
  }
  return report.text(isPart);
}

class Report {
  readonly wantsLines: boolean;
  readonly #mode: NonNullable<GrepArgs["output_mode"]>;
  readonly #numbers: boolean;
  readonly #limit: number;
  readonly #hasContext: boolean;
  readonly #entries: string[] = [];
  #shown = 0;
  #chars = 0;

  constructor(args: GrepArgs) {
    this.#mode = args.output_mode ?? "files_with_matches";
    this.wantsLines = this.#mode === "content";
    this.#numbers = args["-n"] === true;
    this.#limit = args.head_limit ?? maxEntries;
    this.#hasContext = [args["-A"], args["-B"], args["-C"]].some((lines) => (lines ?? 0) > 0);
  }

  get room(): number {
    return this.#limit - this.#shown;
  }

  get isFull(): boolean {
    return this.room <= 0 || this.#chars > maxChars;
  }

  add(path: string, count: number, lines: readonly FoundLine[]): void {
    if (!this.wantsLines) this.#put(this.#mode === "count" ? `${path}:${count}` : path);
    else this.#addLines(path, lines);
  }

  text(isPart: boolean): string {
    // The caller knows about a limit that it set.
    const isCut = isPart && this.#shown !== this.#limit;
    const note = isCut || this.#shown === maxEntries ? "[There may be more: name a narrower pattern, path or glob.]" : "";
    if (this.#entries.length === 0) return isCut ? `${noMatchesText} ${note}` : noMatchesText;
    return [...this.#entries, ...(note === "" ? [] : [note])].join("\n");
  }

  #addLines(path: string, lines: readonly FoundLine[]): void {
    let last: number | undefined;
    for (const { number, text, fits } of lines) {
      const isApart = last === undefined ? this.#entries.length > 0 : number !== last + 1;
      if (this.#hasContext && isApart) this.#entries.push("--");
      const sign = fits ? ":" : "-";
      const shown = text.length > maxShownLine ? `${text.slice(0, maxShownLine)} [Line truncated.]` : text;
      this.#put(`${path}${sign}${this.#numbers ? `${number}${sign}` : ""}${shown}`);
      last = number;
    }
  }

  #put(entry: string): void {
    this.#entries.push(entry);
    this.#shown++;
    this.#chars += entry.length + 1;
  }
}
