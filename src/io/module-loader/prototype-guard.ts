/** What was added to a built-in prototype: `Array.prototype.last`. */
export type Pollution = readonly string[];

const PROTOTYPES: readonly (readonly [string, object])[] = [
  ["Object", Object.prototype],
  ["Function", Function.prototype],
  ["Array", Array.prototype],
  ["String", String.prototype],
  ["Number", Number.prototype],
  ["Boolean", Boolean.prototype],
  ["Symbol", Symbol.prototype],
  ["Promise", Promise.prototype],
  ["Map", Map.prototype],
  ["Set", Set.prototype],
  ["Date", Date.prototype],
  ["RegExp", RegExp.prototype],
  ["Error", Error.prototype],
];

export type PrototypeKeys = readonly (readonly PropertyKey[])[];

/** The keys of the built-in prototypes, as they are now. A few microseconds. */
export function prototypeKeys(): PrototypeKeys {
  return PROTOTYPES.map(([, prototype]) => Reflect.ownKeys(prototype));
}

/** What has been added since. Replaced methods are not seen: that would cost a comparison of each of them. */
export function addedSince(before: PrototypeKeys): Pollution {
  return PROTOTYPES.flatMap(([name, prototype], at) => {
    const keys = Reflect.ownKeys(prototype);
    const known = before[at] ?? [];
    if (keys.length === known.length) return [];
    return keys.filter((key) => !known.includes(key)).map((key) => `${name}.prototype.${String(key)}`);
  });
}
