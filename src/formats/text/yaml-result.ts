/** A fault in a YAML text, at an offset in it. */
export interface YamlFault {
  readonly code: string;
  readonly message: string;
  readonly offset: number;
}

export interface YamlMapRead {
  readonly kind: "map";
  /** Without a prototype at the top; plain objects below, and no key anywhere is `__proto__`. */
  readonly data: Record<string, unknown>;
  /** The offset of each top-level key. */
  readonly keys: ReadonlyMap<string, number>;
  /** Tolerated faults: duplicate keys, refused keys. */
  readonly faults: readonly YamlFault[];
}

export type YamlMapResult =
  | YamlMapRead
  | { readonly kind: "empty" }
  | { readonly kind: "other" }
  | { readonly kind: "broken"; readonly fault: YamlFault };
