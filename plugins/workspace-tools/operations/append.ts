/** Adds items to a list. With many items `push(...items)` would overflow the stack. */
export function append<T>(list: T[], items: Iterable<T>): void {
  for (const item of items) list.push(item);
}
