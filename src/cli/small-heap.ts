import { setFlagsFromString } from "node:v8";

/**
 * Keeps the young generation of the heap at its initial size. Loading creates many short-lived objects, for which V8 would enlarge it
 * permanently: 40 MB for a runtime that mostly waits.
 */
export function keepHeapSmall(): void {
  setFlagsFromString("--semi-space-growth-factor=1");
}

/** Lets V8 grow the young generation: faster for continuous work. */
export function letHeapGrow(): void {
  setFlagsFromString("--semi-space-growth-factor=2");
}
