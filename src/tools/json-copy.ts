/** A copy that is plain, frozen JSON, or where and why there cannot be one. */
export type JsonCopy =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly path: string; readonly reason: string };

const maxDepth = 100;
const maxNodes = 1_000_000;

interface Copying {
  /** The keys that lead to the value being copied; it stays where it was when a value is refused. */
  readonly trail: (string | number)[];
  nodes: number;
}

class Refusal extends Error {}

/**
 * Deep-copies data into frozen plain objects and arrays, each member read once. As JSON does, it drops undefined
 * members and turns NaN into null; what JSON would lose silently or choke on (functions, symbols, BigInt, maps, cycles,
 * getters that throw) refuses the whole, with the path. `__proto__` members are left out. Never throws.
 */
export function copyJson(value: unknown): JsonCopy {
  const copying: Copying = { trail: [], nodes: 0 };
  try {
    return { ok: true, value: copyValue(value, copying) };
  } catch (error) {
    const reason = error instanceof Refusal ? error.message : "cannot be read";
    return { ok: false, path: copying.trail.slice(0, 12).join("."), reason };
  }
}

function copyValue(value: unknown, copying: Copying): unknown {
  switch (typeof value) {
    case "string":
    case "boolean":
      return value;
    case "number":
      return Number.isFinite(value) ? value : null;
    case "object":
      return value === null ? null : copyObject(value, copying);
    default:
      throw new Refusal(`is ${describe(value)}, which JSON cannot hold`);
  }
}

function copyObject(value: object, copying: Copying): unknown {
  if (copying.trail.length >= maxDepth) throw new Refusal("is nested too deeply, or contains itself");
  if (++copying.nodes > maxNodes) throw new Refusal("is too large");
  if (Array.isArray(value)) return copyArray(value, copying);
  if (value instanceof Map || value instanceof Set) throw new Refusal(`is a ${value.constructor.name}, which JSON cannot hold`);
  if ("toJSON" in value && typeof value.toJSON === "function") return copyJsonForm(value as { toJSON(): unknown }, copying);
  const copy: Record<string, unknown> = {};
  for (const key of Object.keys(value)) {
    if (key === "__proto__") continue;
    copying.trail.push(key);
    const member = (value as Record<string, unknown>)[key];
    if (member !== undefined) copy[key] = copyValue(member, copying);
    copying.trail.pop();
  }
  return Object.freeze(copy);
}

function copyArray(value: readonly unknown[], copying: Copying): unknown {
  if (value.length > maxNodes) throw new Refusal("is too large");
  const copy: unknown[] = [];
  for (let index = 0; index < value.length; index++) {
    copying.trail.push(index);
    copy.push(value[index] === undefined ? null : copyValue(value[index], copying));
    copying.trail.pop();
  }
  return Object.freeze(copy);
}

function copyJsonForm(value: { toJSON(): unknown }, copying: Copying): unknown {
  const form = value.toJSON();
  if (form === null || typeof form !== "object") return copyValue(form, copying);
  // A toJSON that answers with something that has a toJSON again is read as data, as JSON.stringify does.
  const data = Array.isArray(form) ? form : Object.fromEntries(Object.entries(form).filter(([key]) => key !== "toJSON"));
  return copyObject(data, copying);
}

function describe(value: unknown): string {
  if (typeof value === "bigint") return "a BigInt";
  return value === undefined ? "undefined" : `a ${typeof value}`;
}
