import type { Node } from "./ast.ts";
import type { Unit } from "./unit.ts";

/** `error`: wrong whenever it runs. `warning`: wrong in most programs. `advice`: works, with a known price. */
export type Severity = "error" | "warning" | "advice";

export interface Problem {
  readonly start: number;
  readonly end: number;
  readonly message: string;
  readonly fix: string;
}

export interface Rule {
  readonly name: string;
  readonly severity: Severity;
  readonly summary: string;
  check(unit: Unit): Iterable<Problem>;
}

/** A problem at a node: what is wrong, and what to write instead. */
export function problem(node: Pick<Node, "start" | "end">, message: string, fix: string): Problem {
  return { start: node.start, end: node.end, message, fix };
}

/** Source text short enough to quote in a sentence. */
export function quote(unit: Unit, node: Node): string {
  return `\`${brief(unit, node)}\``;
}

/** Source text on one line, cut when long. */
export function brief(unit: Unit, node: Node): string {
  const text = unit.source(node).replace(/\s+/g, " ");
  return text.length > 60 ? `${text.slice(0, 57)}…` : text;
}
