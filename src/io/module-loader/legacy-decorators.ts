type Decorator = (target: object, key?: PropertyKey, descriptor?: unknown) => unknown;
type Metadata = (key: string, value: unknown) => Decorator;
interface ReflectWithMetadata {
  readonly metadata?: Metadata;
}

/**
 * What code with TypeScript's older decorators calls once it is compiled. Decorators apply from the last to the first;
 * what one returns replaces the class or the member. A property (descriptor undefined) has nothing to replace.
 */
export const decoratorHelpers: object = Object.freeze({
  decorate(decorators: readonly (Decorator | undefined)[], target: object, key?: PropertyKey, descriptor?: unknown): unknown {
    const member = key === undefined ? undefined : { key, descriptor: memberDescriptor(target, key, descriptor) };
    let result: unknown = member ? member.descriptor : target;
    for (const decorator of decorators.toReversed()) {
      if (member === undefined) result = decorator?.(result as object) ?? result;
      else if (member.descriptor === undefined) decorator?.(target, member.key);
      else result = decorator?.(target, member.key, result) ?? result;
    }
    if (member?.descriptor !== undefined) Object.defineProperty(target, member.key, result as PropertyDescriptor);
    return result;
  },
  decorateParam:
    (index: number, decorator: Decorator): Decorator =>
    (target, key) =>
      decorator(target, key, index),
  // There is metadata only if the module, or what it imports, brought a library for it.
  decorateMetadata: (key: string, value: unknown): Decorator | undefined => (Reflect as ReflectWithMetadata).metadata?.(key, value),
});

// The compiler writes null for methods and accessors, whose descriptor is on the class already.
function memberDescriptor(target: object, key: PropertyKey, descriptor: unknown): unknown {
  return descriptor === null ? Object.getOwnPropertyDescriptor(target, key) : descriptor;
}
