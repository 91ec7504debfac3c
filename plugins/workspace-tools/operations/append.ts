/** Adds items to a list, however many: `push(...items)` takes no more of them than there is room on the stack. */
export function append<T>(list: T[], items: Iterable<T>): void {
  for (const item of items) list.push(item);
}
