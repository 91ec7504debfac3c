import { extname } from "node:path";
import { type Comment, type OxcError, type ParserOptions, parseSync } from "oxc-parser";
import { type FunctionNode, indexTree, isFunction, type Node, type Tree } from "./ast.ts";
import { analyseScopes, type Scopes } from "./scope.ts";

export interface Place {
  readonly line: number;
  readonly column: number;
}

/** One parsed file, with everything a rule may ask of it. */
export interface Unit {
  readonly path: string;
  readonly text: string;
  readonly tree: Tree;
  readonly comments: readonly Comment[];
  readonly scopes: Scopes;
  readonly isModule: boolean;
  /** A test, fixture or example: a place where odd code is on purpose. */
  readonly isTest: boolean;
  /** Names that a relative import of this file brings in and whose calls return a promise. */
  readonly isAsyncImport: AsyncImports;
  source(node: Node): string;
  place(offset: number): Place;
}

/** Tells whether what a module exports under this name returns a promise when called. */
export type AsyncImports = (specifier: string, name: string) => boolean;

export interface SyntaxFault extends Place {
  readonly message: string;
}

/** A file that broke off has no unit. One that only says what it must not (a name declared twice) has both. */
export interface Parsed {
  readonly unit?: Unit;
  readonly faults: readonly SyntaxFault[];
}

const languages: Readonly<Record<string, ParserOptions["lang"]>> = {
  ".ts": "ts",
  ".mts": "ts",
  ".cts": "ts",
  ".tsx": "tsx",
  // JSX in a .js file is common, and nothing else reads differently with it on.
  ".js": "jsx",
  ".mjs": "jsx",
  ".cjs": "jsx",
  ".jsx": "jsx",
};

export const extensions: readonly string[] = Object.keys(languages);

/** Parses a source file. What does not parse comes back as faults with their places. */
export function parseUnit(path: string, source: string, isAsyncImport: AsyncImports = () => false): Parsed {
  const text = source.startsWith("\uFEFF") ? source.slice(1) : source;
  const place = placer(text);
  const result = parseSync(path, text, { ...optionsFor(path), preserveParens: false, showSemanticErrors: true });
  const faults = result.errors.filter((error) => error.severity === "Error").map((error) => toFault(error, place));
  if (faults.length > 0 && result.program.body.length === 0) return { faults };
  const tree = indexTree(result.program);
  const unit: Unit = {
    path,
    text,
    tree,
    comments: result.comments,
    scopes: analyseScopes(tree),
    isModule: result.module.hasModuleSyntax || result.program.sourceType === "module",
    isTest: testPath.test(path),
    isAsyncImport,
    source: (node) => text.slice(node.start, node.end),
    place,
  };
  return { unit, faults };
}

const testPath = /(^|\/)(tests?|__tests__|fixtures?|examples?|mocks?|__mocks__|spec)\/|\.(test|spec|bench)\.[cm]?[jt]sx?$/;

function optionsFor(path: string): ParserOptions {
  const extension = extname(path);
  const sourceType = /^\.m/.test(extension) ? "module" : /^\.c/.test(extension) ? "commonjs" : "unambiguous";
  return { lang: languages[extension] ?? "tsx", sourceType };
}

function toFault(error: OxcError, place: (offset: number) => Place): SyntaxFault {
  return { message: [error.message, error.helpMessage].filter(Boolean).join(". "), ...place(error.labels[0]?.start ?? 0) };
}

/** Turns offsets into places with one pass over the text, however often it is asked. */
function placer(text: string): (offset: number) => Place {
  const starts = [0];
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) starts.push(at + 1);
  return (offset) => {
    let low = 0;
    let high = starts.length - 1;
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if ((starts[middle] ?? 0) <= offset) low = middle;
      else high = middle - 1;
    }
    return { line: low + 1, column: offset - (starts[low] ?? 0) + 1 };
  };
}

/** How many pairs of parentheses stand right around a node. `if (a)` and `f(a)` count their own. */
export function parenthesesAround(unit: Unit, node: Node): number {
  let { start, end } = node;
  for (let pairs = 0; ; pairs++) {
    const before = unit.text.slice(0, start).trimEnd();
    const after = unit.text.slice(end);
    const gap = after.length - after.trimStart().length;
    if (!before.endsWith("(") || after[gap] !== ")") return pairs;
    start = before.length - 1;
    end += gap + 1;
  }
}

/** The function around a node, or undefined at the top level. Class field initialisers and static blocks count as none. */
export function enclosingFunction(unit: Unit, node: Node): FunctionNode | undefined {
  for (let at = unit.tree.parent(node); at !== undefined; at = unit.tree.parent(at)) {
    if (isFunction(at)) return at;
  }
  return undefined;
}

/** The nearest node above that passes the test, not leaving the function. */
export function ancestorInFunction(unit: Unit, node: Node, test: (node: Node, below: Node) => boolean): Node | undefined {
  let below = node;
  for (let at = unit.tree.parent(node); at !== undefined && !isFunction(at); at = unit.tree.parent(at)) {
    if (test(at, below)) return at;
    below = at;
  }
  return undefined;
}

/** True when a comment lies in this range and, if given, matches. */
export function hasComment(unit: Unit, start: number, end: number, pattern?: RegExp): boolean {
  return unit.comments.some((c) => c.start >= start && c.end <= end && (pattern === undefined || pattern.test(c.value)));
}

/** True when a comment stands in this node, on its line, or in the two lines before it. */
export function isExplained(unit: Unit, node: Node): boolean {
  let from = node.start;
  for (let lines = 0; lines < 3; lines++) from = unit.text.lastIndexOf("\n", from - 1);
  const lineEnd = unit.text.indexOf("\n", node.end);
  return unit.comments.some((comment) => comment.end > from && comment.start < (lineEnd === -1 ? unit.text.length : lineEnd));
}

/** Declarations only: nothing of it runs. */
export function isDeclarationFile(unit: Unit): boolean {
  return /\.d\.[cm]?ts$/.test(unit.path);
}
