/** A named item that requires others by name. */
export interface Dependent {
  readonly name: string;
  readonly requires: readonly { readonly name: string }[];
}

export interface DependencyOrder {
  /** Indexes: each item after its requirements, otherwise in the given order. */
  readonly order: readonly number[];
  /** The items on a cycle, each with the cycle's path, which all its members share: `a`, `b`, `a`. */
  readonly cycles: ReadonlyMap<number, readonly string[]>;
}

/** Orders items by their requirements. A missing requirement is ignored; if names repeat, the last item wins. */
export function orderByRequirements(items: readonly Dependent[]): DependencyOrder {
  const indexes = new Map(items.map(({ name }, index) => [name, index]));
  const cycles = new Map<number, readonly string[]>();
  const order: number[] = [];
  const seen = new Set<number>();
  for (const start of items.keys()) {
    // An explicit stack, because a chain may be longer than the engine's stack.
    const way: Step[] = seen.has(start) ? [] : [{ index: start, next: 0 }];
    for (let step = way.at(-1); step !== undefined; step = way.at(-1)) {
      seen.add(step.index);
      const requirement = items[step.index]!.requires[step.next++];
      const required = requirement && indexes.get(requirement.name);
      if (requirement === undefined) order.push(way.pop()!.index);
      else if (required !== undefined && !seen.has(required)) way.push({ index: required, next: 0 });
      else if (required !== undefined) noteCycle(cycles, way, required, items);
    }
  }
  return { order, cycles };
}

interface Step {
  readonly index: number;
  /** The index of the next requirement to visit. */
  next: number;
}

/** The requirement closes a cycle only if it is on the current path. */
function noteCycle(cycles: Map<number, readonly string[]>, way: readonly Step[], required: number, items: readonly Dependent[]): void {
  const start = way.findIndex(({ index }) => index === required);
  const members = start === -1 ? [] : way.slice(start).map(({ index }) => index);
  if (members.every((index) => cycles.has(index))) return;
  const names = [...members, required].map((index) => items[index]!.name);
  for (const index of members) if (!cycles.has(index)) cycles.set(index, names);
}
