import { extname } from "node:path";
import { type Node, type ParserOptions, parseSync, visitorKeys } from "oxc-parser";
import type { Diagnostic, Position } from "../../base/diagnostic.ts";
import { looksDeep } from "../../io/module-loader/guards.ts";
import { createTextReport } from "../skills/text-report.ts";

export type SyntaxNode = Node;
export type NodeOf<K extends Node["type"]> = Node extends infer N ? (N extends Node ? (K extends N["type"] ? N : never) : never) : never;
export type FunctionNode = NodeOf<"ArrowFunctionExpression"> | NodeOf<"FunctionDeclaration">;

/** A parsed module with access to its nodes and their parents. */
export interface ModuleSource {
  readonly file: string;
  /** All nodes in source order, parents before children. */
  readonly nodes: readonly SyntaxNode[];
  parentOf(node: SyntaxNode): SyntaxNode | undefined;
  positionOf(offset: number): Position;
  /** The top-level variables and functions of the module, by name. */
  readonly topLevel: ReadonlyMap<string, SyntaxNode>;
  /** Whether a comment `skillhost-ignore CODE` on this line or the one before suppresses this advice. */
  ignores(code: string, line: number): boolean;
}

const languages: Readonly<Record<string, ParserOptions["lang"]>> = {
  ".ts": "ts",
  ".mts": "ts",
  ".cts": "ts",
  ".tsx": "tsx",
  ".js": "jsx",
  ".mjs": "jsx",
  ".cjs": "jsx",
  ".jsx": "jsx",
};

/**
 * Parses a module. Undefined: it does not parse, is not a module, or nests so deeply that parsing could end the process. The
 * loader reports these, so advice does not.
 */
export function parseModule(file: string, source: string): ModuleSource | undefined {
  const lang = languages[extname(file)];
  const text = source.startsWith("\uFEFF") ? source.slice(1) : source;
  if (lang === undefined || looksDeep(text)) return undefined;
  const { program, comments, errors } = parseSync(file, text, { lang, astType: "ts", sourceType: "module", preserveParens: false });
  if (errors.some((error) => error.severity === "Error")) return undefined;
  const parents = new Map<SyntaxNode, SyntaxNode>();
  const nodes = collectNodes(program, parents);
  const { position } = createTextReport(text, file);
  const ignored = ignoredLines(comments, position);
  return {
    file,
    nodes,
    parentOf: (node) => parents.get(node),
    positionOf: position,
    topLevel: topLevelOf(program),
    ignores: (code, line) => ignored.has(`${line} ${code}`) || ignored.has(`${line - 1} ${code}`),
  };
}

/** A node and its descendants in source order; if `enters` returns false for a node, its descendants are skipped. */
export function* descend(root: SyntaxNode, enters: (node: SyntaxNode) => boolean = () => true): Generator<SyntaxNode> {
  const open: SyntaxNode[] = [root];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    yield node;
    if (node !== root && !enters(node)) continue;
    for (const child of childrenOf(node).reverse()) open.push(child);
  }
}

/** The nodes of a function's own body. Nested functions are included but not entered. */
export function withinFunction(root: SyntaxNode): Generator<SyntaxNode> {
  return descend(root, (node) => !isFunction(node));
}

export function isFunction(node: SyntaxNode | null | undefined): node is FunctionNode {
  return node?.type === "FunctionDeclaration" || node?.type === "FunctionExpression" || node?.type === "ArrowFunctionExpression";
}

/** Creates a diagnostic at a node's position, unless a comment there suppresses it. */
export function adviseAt(
  module: ModuleSource,
  node: SyntaxNode,
  code: string,
  message: string,
  severity: Diagnostic["severity"] = "warning",
): Diagnostic[] {
  const start = module.positionOf(node.start);
  if (module.ignores(code, start.line)) return [];
  return [{ severity, code, message, file: module.file, range: { start, end: module.positionOf(node.end) } }];
}

// Iterative, because a parsed module may nest deeper than the JavaScript stack.
function collectNodes(program: SyntaxNode, parents: Map<SyntaxNode, SyntaxNode>): SyntaxNode[] {
  const nodes: SyntaxNode[] = [];
  for (const node of descend(program)) {
    nodes.push(node);
    for (const child of childrenOf(node)) parents.set(child, node);
  }
  return nodes;
}

function childrenOf(node: SyntaxNode): SyntaxNode[] {
  return (visitorKeys[node.type] ?? []).flatMap((key) => {
    const value = (node as unknown as Record<string, unknown>)[key];
    return (Array.isArray(value) ? value : [value]).filter(isNode);
  });
}

function isNode(value: unknown): value is SyntaxNode {
  return typeof value === "object" && value !== null && typeof (value as { type?: unknown }).type === "string";
}

function topLevelOf(program: NodeOf<"Program">): Map<string, SyntaxNode> {
  const names = new Map<string, SyntaxNode>();
  for (const statement of program.body) {
    const exported =
      statement.type === "ExportNamedDeclaration" || statement.type === "ExportDefaultDeclaration" ? statement.declaration : statement;
    if (exported?.type === "FunctionDeclaration" && exported.id) names.set(exported.id.name, exported);
    if (exported?.type !== "VariableDeclaration") continue;
    for (const { id, init } of exported.declarations) if (id.type === "Identifier" && init) names.set(id.name, init);
  }
  return names;
}

function ignoredLines(
  comments: readonly { readonly value: string; readonly end: number }[],
  position: (offset: number) => Position,
): Set<string> {
  const ignored = new Set<string>();
  for (const { value, end } of comments) {
    const codes = /\bskillhost-ignore\s+([A-Z_,\s]+)/.exec(value)?.[1] ?? "";
    for (const code of codes.split(/[,\s]+/).filter((word) => word !== "")) ignored.add(`${position(end).line} ${code}`);
  }
  return ignored;
}
