/** A list made of another one: the same array, of the same objects, for as long as what it says is the same. */
export class StableList<Item extends object, Definition extends object> {
  readonly #definitionOf: (item: Item) => Definition;
  readonly #contractOf: (definition: Definition) => unknown;
  #of: readonly Item[] | undefined;
  #definitions: readonly Definition[] = Object.freeze([]);
  #version = 0;

  /** `contractOf`: what of a definition makes another list of it; the rest may change without anybody being told. */
  constructor(definitionOf: (item: Item) => Definition, contractOf: (definition: Definition) => unknown = (definition) => definition) {
    this.#definitionOf = definitionOf;
    this.#contractOf = contractOf;
  }

  /** Whether it was ever read. */
  get isKnown(): boolean {
    return this.#of !== undefined;
  }

  /** Rises when the list becomes another one. */
  get version(): number {
    return this.#version;
  }

  read(items: readonly Item[]): readonly Definition[] {
    if (items === this.#of) return this.#definitions;
    const before = this.#definitions;
    const now = items.map(this.#definitionOf);
    const isFirst = this.#of === undefined;
    this.#of = items;
    if (!isFirst && areEqual(before, now, (definition) => definition)) return before;
    if (!isFirst && !areEqual(before, now, this.#contractOf)) this.#version++;
    this.#definitions = Object.freeze(now);
    return this.#definitions;
  }
}

function areEqual<T>(before: readonly T[], now: readonly T[], partOf: (definition: T) => unknown): boolean {
  return (
    before.length === now.length &&
    now.every((item, index) => item === before[index] || JSON.stringify(partOf(item)) === JSON.stringify(partOf(before[index] as T)))
  );
}
