import { type CharSet, overlaps } from "./charset.ts";
import type { Pattern } from "./pattern.ts";

type Repeat = Extract<Pattern, { kind: "repeat" }>;

/**
 * Finds a repetition that can match one text in exponentially many ways, where what follows it may fail: the condition
 * for catastrophic backtracking. Decided on the position automaton: the repetition is exponentially ambiguous exactly
 * if a position can come back to itself over one text by two different paths (Weber and Seidl, 1991).
 */
export function findExponentialLoop(pattern: Pattern): Repeat | undefined {
  for (const loop of outermostLoops(pattern, false)) {
    if (!loop.canFail || holdsAssertion(loop.repeat.body)) continue;
    const automaton = buildAutomaton(loop.repeat);
    if (automaton && isAmbiguous(automaton)) return loop.repeat;
  }
  return undefined;
}

interface Loop {
  readonly repeat: Repeat;
  /** Something after it may fail, which is what makes the engine try the other ways. */
  readonly canFail: boolean;
}

function* outermostLoops(pattern: Pattern, canFailAfter: boolean): Generator<Loop> {
  if (pattern.kind === "choice") for (const part of pattern.parts) yield* outermostLoops(part, canFailAfter);
  if (pattern.kind === "sequence")
    for (const [at, part] of pattern.parts.entries())
      yield* outermostLoops(part, canFailAfter || pattern.parts.slice(at + 1).some(mayFail));
  if (pattern.kind !== "repeat") return;
  if (pattern.max === Number.POSITIVE_INFINITY) yield { repeat: pattern, canFail: canFailAfter };
  else yield* outermostLoops(pattern.body, canFailAfter || (pattern.max > 1 && mayFail(pattern.body)));
}

function mayFail(pattern: Pattern): boolean {
  switch (pattern.kind) {
    case "set":
    case "assert":
      return true;
    case "sequence":
      return pattern.parts.some(mayFail);
    case "choice":
      return pattern.parts.every(mayFail);
    case "repeat":
      return pattern.min > 0 && mayFail(pattern.body);
  }
}

function holdsAssertion(pattern: Pattern): boolean {
  if (pattern.kind === "assert") return true;
  if (pattern.kind === "repeat") return holdsAssertion(pattern.body);
  return pattern.kind !== "set" && pattern.parts.some(holdsAssertion);
}

interface Automaton {
  readonly sets: readonly CharSet[];
  /** For each position, where it can go on, and by how many different ways. */
  readonly follow: readonly ReadonlyMap<number, number>[];
}

interface Fragment {
  readonly nullable: boolean;
  readonly first: readonly number[];
  readonly last: readonly number[];
}

// Enough for what people write; a pattern beyond them is not judged rather than judged slowly.
const maxPositions = 40;
const maxSteps = 2000;
const maxEdges = 60_000;

/** The position automaton of a repetition; undefined when it is too large to analyse. */
function buildAutomaton(root: Pattern): Automaton | undefined {
  const sets: CharSet[] = [];
  const follow: Map<number, number>[] = [];
  const connect = (from: readonly number[], to: readonly number[]): void => {
    for (const a of from) for (const b of to) follow[a]?.set(b, (follow[a]?.get(b) ?? 0) + 1);
  };
  let steps = 0;
  const build = (pattern: Pattern): Fragment => {
    if (++steps > maxSteps) throw new TooLarge();
    switch (pattern.kind) {
      case "set":
        if (sets.length >= maxPositions) throw new TooLarge();
        follow.push(new Map());
        return { nullable: false, first: [sets.push(pattern.set) - 1], last: [sets.length - 1] };
      case "assert":
        return empty;
      case "choice":
        return pattern.parts.map(build).reduce(either);
      case "sequence":
        return chain(pattern.parts.map(build), connect);
      case "repeat":
        return repeat(pattern, build, connect);
    }
  };
  try {
    build(root);
  } catch (error) {
    if (error instanceof TooLarge) return undefined;
    throw error;
  }
  return { sets, follow };
}

class TooLarge extends Error {}

type Connect = (from: readonly number[], to: readonly number[]) => void;

const empty: Fragment = { nullable: true, first: [], last: [] };

function either(a: Fragment, b: Fragment): Fragment {
  return { nullable: a.nullable || b.nullable, first: [...a.first, ...b.first], last: [...a.last, ...b.last] };
}

function chain(parts: readonly Fragment[], connect: Connect): Fragment {
  return parts.reduce((before, after) => {
    connect(before.last, after.first);
    return {
      nullable: before.nullable && after.nullable,
      first: before.nullable ? [...before.first, ...after.first] : before.first,
      last: after.nullable ? [...before.last, ...after.last] : after.last,
    };
  }, empty);
}

/** `x{2,4}` is `x x (x (x)?)?`; without an upper end the last copy goes back to itself. */
function repeat(pattern: Repeat, build: (pattern: Pattern) => Fragment, connect: Connect): Fragment {
  const isEndless = pattern.max === Number.POSITIVE_INFINITY;
  const copies = isEndless ? Math.max(1, pattern.min) : pattern.max;
  if (copies > maxPositions) throw new TooLarge();
  let tail: Fragment = empty;
  // Built from the end: each optional copy holds those after it.
  for (let copy = copies; copy >= 1; copy--) {
    const body = build(pattern.body);
    if (isEndless && copy === copies) connect(body.last, body.first);
    const whole = chain([body, tail], connect);
    tail = copy > pattern.min ? { ...whole, nullable: true } : whole;
  }
  return tail;
}

/** True when some position comes back to itself over the same text by two different paths. */
function isAmbiguous(automaton: Automaton): boolean {
  const { sets, follow } = automaton;
  const count = sets.length;
  const graph = pairGraph(automaton);
  for (let state = 0; graph && state < count; state++) {
    const home = pair(state, state, count);
    const reached = reach(graph.forward, home);
    const returning = reach(graph.backward, home);
    for (const at of reached) if (Math.floor(at / count) !== at % count && returning.has(at)) return true;
    for (const [next, ways] of follow[state] ?? []) if (ways > 1 && returning.has(pair(next, next, count))) return true;
  }
  return false;
}

interface PairGraph {
  readonly forward: readonly (readonly number[])[];
  readonly backward: readonly (readonly number[])[];
}

/** Which pairs of positions two readers of the same text can go on to. */
function pairGraph({ sets, follow }: Automaton): PairGraph | undefined {
  const count = sets.length;
  const forward: number[][] = Array.from({ length: count * count }, () => []);
  const backward: number[][] = Array.from({ length: count * count }, () => []);
  let edges = 0;
  for (let a = 0; a < count; a++)
    for (let b = a; b < count; b++)
      for (const [nextA] of follow[a] ?? [])
        for (const [nextB] of follow[b] ?? []) {
          if (!overlaps(sets[nextA] ?? [], sets[nextB] ?? [])) continue;
          if (++edges > maxEdges) return undefined;
          const to = pair(nextA, nextB, count);
          forward[pair(a, b, count)]?.push(to);
          backward[to]?.push(pair(a, b, count));
        }
  return { forward, backward };
}

/** Pairs are unordered: (a, b) and (b, a) are one. */
function pair(a: number, b: number, count: number): number {
  return a < b ? a * count + b : b * count + a;
}

function reach(edges: readonly (readonly number[])[], from: number): Set<number> {
  const seen = new Set<number>();
  const open = [...(edges[from] ?? [])];
  for (let at = open.pop(); at !== undefined; at = open.pop()) {
    if (seen.has(at)) continue;
    seen.add(at);
    open.push(...(edges[at] ?? []));
  }
  return seen;
}
