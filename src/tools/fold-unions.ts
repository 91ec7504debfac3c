import type { ErrorObject } from "ajv";
import { isRecord, walkSchema } from "./walk-schema.ts";

/** A fault; that of a union (anyOf, oneOf) none of whose branches fits holds the faults of the branches. */
export interface Fault extends ErrorObject {
  readonly branches?: readonly Fault[];
}

/**
 * Folds the faults of a union's branches into the union's own; the validator lists them right before it. `root` is the
 * schema as compiled; without it, whatever of the same value stands before a union counts as its branch.
 */
export function foldUnions(errors: readonly ErrorObject[], root: unknown): readonly Fault[] {
  const isWithin = membershipIn(root);
  const folded: Fault[] = [];
  for (const error of errors) {
    if (error.keyword !== "anyOf" && error.keyword !== "oneOf") {
      folded.push(error);
      continue;
    }
    let first = folded.length;
    while (first > 0 && isBranch(folded[first - 1]!, error)) first--;
    folded.push({ ...error, branches: folded.splice(first) });
  }
  return folded;

  function isBranch(candidate: Fault, union: ErrorObject): boolean {
    return candidate.instancePath.startsWith(union.instancePath) && isWithin(candidate.parentSchema, union.schema);
  }
}

/** Paths cannot tell: within what a reference leads to, they start anew. The schema objects themselves can. */
function membershipIn(root: unknown): (schema: unknown, union: unknown) => boolean {
  const reached = new Map<unknown, ReadonlySet<unknown> | null>();
  return (schema, union) => {
    // The quick check of huge arguments does not say which schema object failed.
    if (root === undefined || schema === undefined || !Array.isArray(union)) return true;
    const known = reached.has(union) ? reached.get(union) : reachableFrom(union, root);
    reached.set(union, known ?? null);
    return known?.has(schema) ?? true;
  };
}

/** Null when a reference is of a kind that is not followed here: then anything may be reached. */
function reachableFrom(union: readonly unknown[], root: unknown): ReadonlySet<unknown> | null {
  const reached = new Set<unknown>();
  let isOpen = false;
  const waiting: unknown[] = [...union];
  while (waiting.length > 0) {
    const next = waiting.pop();
    if (reached.has(next)) continue;
    walkSchema(next, (schema) => {
      reached.add(schema);
      const reference = schema["$ref"];
      const target = typeof reference === "string" ? resolve(reference, root) : null;
      if (target === undefined) isOpen = true;
      else waiting.push(target);
    });
  }
  return isOpen ? null : reached;
}

function resolve(reference: string, root: unknown): unknown {
  if (reference === "#") return root;
  if (reference.startsWith("#/")) return resolvePointer(root, reference.slice(2));
  let found: unknown;
  walkSchema(root, (schema) => {
    if (schema["$id"] === reference || `#${schema["$anchor"]}` === reference) found ??= schema;
  });
  return found;
}

/** What a JSON pointer (without its first slash, as in a reference) leads to; undefined when it leads nowhere. */
export function resolvePointer(root: unknown, pointer: string): unknown {
  let at: unknown = root;
  for (const segment of pointer.split("/")) {
    const key = decoded(segment).replaceAll("~1", "/").replaceAll("~0", "~");
    if (!(isRecord(at) || Array.isArray(at)) || !Object.hasOwn(at, key)) return undefined;
    at = (at as Readonly<Record<string, unknown>>)[key];
  }
  return at;
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    // Not percent-encoded after all: it is taken as it stands.
    return segment;
  }
}
