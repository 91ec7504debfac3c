import { setFlagsFromString } from "node:v8";

/**
 * Keeps the heap for new objects at the size that it begins with. Loading is a burst of objects that live a moment, for
 * which V8 would make room many times as large, and keep it: 40 MB of a runtime that mostly waits.
 */
export function keepHeapSmall(): void {
  setFlagsFromString("--semi-space-growth-factor=1");
}

/** Lets the heap grow as V8 sees fit: for work that goes on and on, that is quicker. */
export function letHeapGrow(): void {
  setFlagsFromString("--semi-space-growth-factor=2");
}
