import { extname } from "node:path";
import { openFile, readWhole } from "./open-file.ts";
import { decodeText } from "./text-encoding.ts";

/** A problem in a file. */
export interface FileProblem {
  /** With links resolved. */
  readonly path: string;
  /** From 1. Undefined: unknown. */
  readonly line?: number | undefined;
  readonly column?: number | undefined;
  readonly severity: "error" | "warning";
  readonly message: string;
}

/** Result of checking files. */
export interface FilesChecked {
  /** How they were checked, such as `TypeScript (tsc -p tsconfig.json)`. */
  readonly by: string;
  readonly checked: readonly string[];
  /** Files that were not checked, with the reasons. */
  readonly unchecked: readonly { readonly path: string; readonly why: string }[];
  readonly problems: readonly FileProblem[];
}

const maxBytes = 5 * 1024 * 1024;

/** Finds problems by reading a file, without running anything. */
type ReadProblems = (text: string, path: string) => Promise<readonly Omit<FileProblem, "path">[]>;

export interface SyntaxCheck {
  readonly by: string;
  readonly find: ReadProblems;
}

/** Checks the syntax of each file. */
export async function checkSyntax(paths: readonly string[], { by, find }: SyntaxCheck, signal: AbortSignal): Promise<FilesChecked> {
  const [checked, problems]: [string[], FileProblem[]] = [[], []];
  const unchecked: { path: string; why: string }[] = [];
  for (const path of paths) {
    signal.throwIfAborted();
    const text = await textOf(path);
    if (text === undefined) unchecked.push({ path, why: `it cannot be read as text of at most ${maxBytes / 1024 / 1024} MB` });
    else {
      checked.push(path);
      problems.push(...(await find(text, path)).map((problem) => ({ path, ...problem })));
    }
  }
  return { by, checked, unchecked, problems };
}

/** Undefined: not a text of this size, missing, or not readable. */
async function textOf(path: string): Promise<string | undefined> {
  const opened = await openFile({ real: path });
  if (!opened.ok) return undefined;
  try {
    const bytes = await readWhole(opened.file, opened.size, maxBytes);
    return bytes === undefined ? undefined : decodeText(bytes)?.text;
  } finally {
    await opened.file.close();
  }
}

/** The check for a file's extension. Undefined: there is none. */
export function syntaxCheckOf(path: string): SyntaxCheck | undefined {
  return syntaxChecks[extname(path).toLowerCase()];
}

const json: SyntaxCheck = { by: "JSON syntax", find: async (text) => jsonProblems(text) };
const yaml: SyntaxCheck = { by: "YAML syntax", find: yamlProblems };
const script: SyntaxCheck = { by: "JavaScript and TypeScript syntax", find: scriptProblems };

const syntaxChecks: Readonly<Record<string, SyntaxCheck>> = Object.assign(Object.create(null), {
  ".json": json,
  ".yaml": yaml,
  ".yml": yaml,
  ...Object.fromEntries([".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx"].map((extension) => [extension, script])),
});

/** Line and column of an offset, from 1. */
function positionAt(text: string, at: number): { readonly line: number; readonly column: number } {
  const before = text.slice(0, at);
  return { line: before.split("\n").length, column: at - before.lastIndexOf("\n") };
}

function jsonProblems(text: string): readonly Omit<FileProblem, "path">[] {
  try {
    JSON.parse(text);
    return [];
  } catch (error) {
    // For some errors Node.js adds the position to the message, for others the surrounding text.
    const [, message = "It is not valid JSON"] =
      /^(.*?)(?: in JSON at position.*|, (?:\.\.\.)?".*)?$/s.exec((error as Error).message) ?? [];
    return [{ ...positionAt(text, jsonFaultAt(text)), severity: "error", message }];
  }
}

async function yamlProblems(text: string): Promise<readonly Omit<FileProblem, "path">[]> {
  const { parseAllDocuments } = await import("yaml");
  const documents = parseAllDocuments(text, { logLevel: "error", prettyErrors: false });
  return [...documents].flatMap(({ errors, warnings }) => [
    ...errors.map(({ pos, message }) => ({ ...positionAt(text, pos[0]), severity: "error" as const, message })),
    ...warnings.map(({ pos, message }) => ({ ...positionAt(text, pos[0]), severity: "warning" as const, message })),
  ]);
}

async function scriptProblems(text: string, path: string): Promise<readonly Omit<FileProblem, "path">[]> {
  const { parseSync } = await import("oxc-parser");
  // A file without imports may be a script or a module.
  const { errors } = parseSync(path, text, { sourceType: /\.c[jt]s$/.test(path) ? "commonjs" : "unambiguous" });
  return errors.map(({ message, labels }) => {
    const at = labels[0]?.start;
    return { ...(at === undefined ? {} : positionAt(text, at)), severity: "error" as const, message };
  });
}

/**
 * The offset of the first character that is not valid JSON; the length of the text if there is none, or if something is missing at its end.
 * @internal Exported for tests.
 */
export function jsonFaultAt(text: string): number {
  const open: ("{" | "[")[] = [];
  let [at, next]: [number, Expected] = [0, "value"];
  for (;;) {
    at = matchAt(/[ \t\r\n]*/y, text, at)!;
    const char = text[at];
    if (char === undefined) return at;
    const isEnd = char === (open.at(-1) === "{" ? "}" : "]") && open.length > 0;
    if (isEnd && (next === "comma" || next === "first key" || next === "first value")) {
      open.pop();
      at++;
      next = open.length === 0 ? "end" : "comma";
    } else if (next === "comma" && char === ",") {
      at++;
      next = open.at(-1) === "{" ? "key" : "value";
    } else if (next === "colon" && char === ":") {
      at++;
      next = "value";
    } else if (next === "key" || next === "first key") {
      const end = char === '"' ? endOfString(text, at) : at;
      if (text[end - 1] !== '"' || end === at) return end;
      [at, next] = [end, "colon"];
    } else if (next !== "value" && next !== "first value") return at;
    else if (char === "{" || char === "[") {
      open.push(char);
      at++;
      next = char === "{" ? "first key" : "first value";
    } else {
      const end = char === '"' ? endOfString(text, at) : matchAt(plain, text, at);
      if (end === undefined || (char === '"' && text[end - 1] !== '"')) return end ?? at;
      [at, next] = [end, open.length === 0 ? "end" : "comma"];
    }
  }
}

type Expected = "value" | "first value" | "key" | "first key" | "colon" | "comma" | "end";

const plain = /true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;

function matchAt(pattern: RegExp, text: string, at: number): number | undefined {
  pattern.lastIndex = at;
  return pattern.test(text) ? pattern.lastIndex : undefined;
}

/** The offset after the closing quote, of the first invalid character, or of the end of the text. */
function endOfString(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at++) {
    if (text[at] === '"') return at + 1;
    if (text.charCodeAt(at) < 0x20) return at;
    if (text[at] === "\\") {
      if (matchAt(/\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y, text, at) === undefined) return at;
      at += text[at + 1] === "u" ? 5 : 1;
    }
  }
  return text.length;
}
