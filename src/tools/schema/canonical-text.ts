import { type EvaluationRun, TooDeep } from "./evaluation-run.ts";

const maxDepth = 1_000;

/** A text that is the same for equal JSON, whatever the order of its keys, and for nothing else. */
export function canonicalText(value: unknown, run?: EvaluationRun): string {
  return write(value, run, 0);
}

function write(value: unknown, run: EvaluationRun | undefined, depth: number): string {
  if (typeof value === "string") {
    run?.spend(1 + (value.length >> 4));
    return JSON.stringify(value);
  }
  run?.spend(1);
  if (typeof value !== "object" || value === null) return String(value);
  if (depth > maxDepth) throw new TooDeep();
  if (Array.isArray(value)) return `[${value.map((item) => write(item, run, depth + 1)).join()}]`;
  const record = value as Readonly<Record<string, unknown>>;
  const keys = Object.keys(record).sort();
  return `{${keys.map((key) => `${JSON.stringify(key)}:${write(record[key], run, depth + 1)}`).join()}}`;
}
