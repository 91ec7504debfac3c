/** A plain, frozen JSON copy, or where and why the value cannot be copied. */
export type JsonCopy =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly path: string; readonly reason: string };

const maxDepth = 100;
const maxNodes = 1_000_000;

const fewNodes = 1_000;
/** Keyed by large copies themselves and by values copied ahead: nothing large is copied twice. */
const knownCopies = new WeakMap<object, JsonCopy>();

function rememberCopy(copy: JsonCopy, nodes: number): JsonCopy {
  if (copy.ok && nodes > fewNodes) knownCopies.set(copy.value as object, copy);
  return copy;
}

interface Copying {
  /** The keys that lead to the value being copied. Not popped when a value is refused, so that it names the place. */
  readonly trail: (string | number)[];
  nodes: number;
}

const tooDeep = "is nested too deeply, or contains itself";

class Refusal extends Error {}

/**
 * Deep-copies data into frozen plain objects and arrays, reading each member once. As JSON does, it drops undefined members and turns NaN
 * into null. Whatever JSON would lose silently or fail on (functions, symbols, BigInt, maps, cycles, throwing getters) refuses the whole
 * copy, with the path. `__proto__` members are left out. Never throws.
 */
export function copyJson(value: unknown): JsonCopy {
  const known = typeof value === "object" && value !== null ? knownCopies.get(value) : undefined;
  if (known !== undefined) return known;
  const copying: Copying = { trail: [], nodes: 0 };
  try {
    return rememberCopy({ ok: true, value: copyValue(value, copying) }, copying.nodes);
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
      return finiteOrNull(value);
    case "object":
      return value === null ? null : copyObject(value, copying);
    default:
      throw new Refusal(`is ${describe(value)}, which JSON does not support`);
  }
}

function copyObject(value: object, copying: Copying): unknown {
  if (copying.trail.length >= maxDepth) throw new Refusal(tooDeep);
  if (++copying.nodes > maxNodes) throw new Refusal("is too large");
  if (Array.isArray(value)) return copyArray(value, copying);
  if (value instanceof Map || value instanceof Set) throw new Refusal(`is a ${value.constructor.name}, which JSON does not support`);
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
  // A toJSON result that has a toJSON of its own is read as data, as JSON.stringify does.
  const data = Array.isArray(form) ? form : Object.fromEntries(Object.entries(form).filter(([key]) => key !== "toJSON"));
  return copyObject(data, copying);
}

function describe(value: unknown): string {
  if (typeof value === "bigint") return "a BigInt";
  return value === undefined ? "undefined" : `a ${typeof value}`;
}

const membersPerSlice = 5_000;

/**
 * Copies parsed, immutable JSON in slices between which the event loop runs; `copyJson` of the same object then returns that copy.
 * Returns a promise only for large values.
 */
export function copyAhead(parsed: unknown, perSlice: number = membersPerSlice): Promise<void> | undefined {
  if (typeof parsed !== "object" || parsed === null) return undefined;
  const copying = new SlicedCopy(parsed);
  if (!copying.advance(perSlice)) return finish(parsed, copying, perSlice);
  knownCopies.set(parsed, copying.outcome);
  return undefined;
}

async function finish(parsed: object, copying: SlicedCopy, perSlice: number): Promise<void> {
  do await new Promise(setImmediate);
  while (!copying.advance(perSlice));
  knownCopies.set(parsed, rememberCopy(copying.outcome, perSlice));
}

interface Frame {
  readonly source: Readonly<Record<string | number, unknown>>;
  readonly copy: Record<string | number, unknown>;
  /** Undefined for an array. */
  readonly keys: readonly string[] | undefined;
  readonly length: number;
  next: number;
}

/** Copies without recursion, so that it can pause within any array or object. */
class SlicedCopy {
  readonly #root: Frame;
  readonly #open: Frame[];
  #reason: string | undefined;

  constructor(root: object) {
    this.#root = frameOf(root);
    this.#open = [this.#root];
  }

  get outcome(): JsonCopy {
    if (this.#reason === undefined) return { ok: true, value: this.#root.copy };
    const trail = this.#open.slice(0, 12).map(({ keys, next }) => (keys === undefined ? next - 1 : keys[next - 1]));
    return { ok: false, path: trail.join("."), reason: this.#reason };
  }

  /** Copies at most this many members. Returns true when the copy is complete. */
  advance(members: number): boolean {
    for (let left = members; left > 0; ) {
      const frame = this.#open.at(-1);
      if (frame === undefined || this.#reason !== undefined) return true;
      left = this.#fill(frame, left);
    }
    return this.#open.length === 0;
  }

  /** Returns how many members may still be copied in this slice. */
  #fill(frame: Frame, members: number): number {
    let left = members;
    while (frame.next < frame.length && left > 0) {
      left--;
      const key = frame.keys === undefined ? frame.next : frame.keys[frame.next]!;
      frame.next++;
      const member = frame.source[key];
      if (key === "__proto__") continue;
      if (typeof member !== "object" || member === null) frame.copy[key] = typeof member === "number" ? finiteOrNull(member) : member;
      else {
        if (this.#open.length >= maxDepth) this.#reason = tooDeep;
        const inner = frameOf(member);
        frame.copy[key] = inner.copy;
        this.#open.push(inner);
        return left;
      }
    }
    if (frame.next === frame.length) {
      Object.freeze(frame.copy);
      this.#open.pop();
    }
    return left;
  }
}

function frameOf(source: object): Frame {
  const keys = Array.isArray(source) ? undefined : Object.keys(source);
  const copy = keys === undefined ? ([] as unknown as Frame["copy"]) : {};
  return { source: source as Frame["source"], copy, keys, length: keys?.length ?? (source as readonly unknown[]).length, next: 0 };
}

function finiteOrNull(value: number): number | null {
  return Number.isFinite(value) ? value : null;
}
