import { descend, type Node } from "./ast.ts";
import type { Unit } from "./unit.ts";

const pureTypes = new Set([
  "Identifier",
  "ThisExpression",
  "Super",
  "Literal",
  "TemplateElement",
  "TemplateLiteral",
  "MemberExpression",
  "PrivateIdentifier",
  "ChainExpression",
  "UnaryExpression",
  "BinaryExpression",
  "LogicalExpression",
  "TSNonNullExpression",
]);

/** True when evaluating this twice gives the same and does nothing else (getters are taken to be harmless). */
export function isPure(node: Node): boolean {
  for (const part of descend(node))
    if (!pureTypes.has(part.type) || (part.type === "UnaryExpression" && part.operator === "delete")) return false;
  return true;
}

/** True when both are written the same, white space apart. */
export function isSameText(unit: Unit, a: Node, b: Node): boolean {
  return squeeze(unit.source(a)) === squeeze(unit.source(b));
}

/** Text without the white space that means nothing between tokens; what stands in quotes is kept as it is. */
export function squeeze(text: string): string {
  return text
    .replace(/("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`(?:[^`\\]|\\.)*`)|\s+/g, (_, quoted: string | undefined) => quoted ?? " ")
    .trim();
}

/** The nearest of these words, if it is near enough to be what was meant. */
export function nearestWord(word: string, candidates: Iterable<string>, limit = 2): string | undefined {
  let best: string | undefined;
  let least = limit + 1;
  for (const candidate of candidates) {
    if (Math.abs(candidate.length - word.length) >= least) continue;
    const distance = editDistance(word, candidate);
    if (distance < least) [best, least] = [candidate, distance];
  }
  return best;
}

/** Edits (insert, delete, replace, swap of neighbours) from one word to the other. */
function editDistance(a: string, b: string): number {
  const rows: number[][] = [Array.from({ length: b.length + 1 }, (_, column) => column)];
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const above = rows[i - 1] as number[];
      const change = (above[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const swap =
        i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1] ? (rows[i - 2]?.[j - 2] ?? 0) + 1 : Number.POSITIVE_INFINITY;
      row.push(Math.min((above[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, change, swap));
    }
    rows.push(row);
  }
  return rows[a.length]?.[b.length] ?? 0;
}
