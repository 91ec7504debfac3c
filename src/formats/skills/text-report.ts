import type { Diagnostic, Position, Severity } from "../../base/diagnostic.ts";

/** Collects the diagnostics of one text, and converts offsets to lines and columns. */
export interface TextReport {
  readonly diagnostics: readonly Diagnostic[];
  add(severity: Severity, code: string, message: string, offset?: number): void;
  /** Adds diagnostics of other readers, with this report's file and limit. */
  take(diagnostics: readonly Diagnostic[]): void;
  position(offset: number): Position;
}

// A hostile file can have a fault on every line; only the first ones are useful.
const maxDiagnostics = 100;

export function createTextReport(text: string, file?: string): TextReport {
  const diagnostics: Diagnostic[] = [];
  const position = createPositions(text);
  const push = (diagnostic: Diagnostic): void => {
    if (diagnostics.length < maxDiagnostics) diagnostics.push(file === undefined ? diagnostic : { ...diagnostic, file });
  };
  return {
    diagnostics,
    position,
    add(severity, code, message, offset) {
      push(offset === undefined ? { severity, code, message } : { severity, code, message, range: { start: position(offset) } });
    },
    take: (found) => found.forEach(push),
  };
}

// Line starts are computed once, as far as they are needed, and searched by bisection, so that many faults cost a single pass.
function createPositions(text: string): (offset: number) => Position {
  const starts = [0];
  let searched = 0;
  return (offset) => {
    const at = Math.min(Math.max(0, offset), text.length);
    while (searched <= at) {
      const end = text.indexOf("\n", searched);
      if (end !== -1) starts.push(end + 1);
      searched = end === -1 ? Number.POSITIVE_INFINITY : end + 1;
    }
    let low = 0;
    for (let high = starts.length; high - low > 1; ) {
      const middle = (low + high) >> 1;
      if (starts[middle]! <= at) low = middle;
      else high = middle;
    }
    return { line: low + 1, column: at - starts[low]! + 1 };
  };
}
