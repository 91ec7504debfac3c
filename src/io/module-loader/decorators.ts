import type { JsxOptions, TransformOptions } from "oxc-transform";

type Decorator = (target: object, key?: PropertyKey, descriptor?: unknown) => unknown;
type Metadata = (key: string, value: unknown) => Decorator;
interface ReflectWithMetadata {
  readonly metadata?: Metadata;
}

/**
 * The helpers that compiled code with TypeScript's legacy decorators calls. Decorators apply from last to first; a returned
 * value replaces the class or the member. A property (descriptor undefined) cannot be replaced.
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
  // Metadata exists only if the module, or one that it imports, loaded a library such as reflect-metadata.
  decorateMetadata: (key: string, value: unknown): Decorator | undefined => (Reflect as ReflectWithMetadata).metadata?.(key, value),
});

// The compiler writes null for methods and accessors, whose descriptor is on the class already.
function memberDescriptor(target: object, key: PropertyKey, descriptor: unknown): unknown {
  return descriptor === null ? Object.getOwnPropertyDescriptor(target, key) : descriptor;
}

/** The options of a tsconfig.json that affect how a file is compiled. */
export interface CompilerOptions {
  readonly emitDecoratorMetadata?: boolean;
  readonly experimentalDecorators?: boolean;
  readonly jsx?: string;
  readonly jsxFactory?: string;
  readonly jsxFragmentFactory?: string;
  readonly jsxImportSource?: string;
  readonly target?: string;
  readonly useDefineForClassFields?: boolean;
  readonly verbatimModuleSyntax?: boolean;
}

/** Converts compiler options to transform options, once per tsconfig.json. */
export function toTransformOptions(options: CompilerOptions): TransformOptions {
  const assignsFields = !(options.useDefineForClassFields ?? !beforeClassFields.test(options.target ?? ""));
  const legacy = options.experimentalDecorators === true;
  return {
    decorator: { legacy, emitDecoratorMetadata: legacy && options.emitDecoratorMetadata === true },
    // Helpers come as a parameter of the compiled module, not as imports of a package.
    helpers: { mode: "External" as never },
    jsx: toJsx(options),
    typescript: {
      onlyRemoveTypeImports: options.verbatimModuleSyntax === true,
      removeClassFieldsWithoutInitializer: assignsFields,
      ...(options.jsx === "react" && options.jsxFactory ? { jsxPragma: options.jsxFactory.split(".")[0]! } : {}),
    },
    assumptions: { setPublicClassFields: assignsFields },
  };
}

const beforeClassFields = /^es(?:[356]|20(?:1\d|2[01]))$/i;

// "preserve" and "react-native" leave JSX to a later build step. Without one here, they mean the automatic runtime.
function toJsx(options: CompilerOptions): JsxOptions {
  if (options.jsx === "react") {
    return {
      runtime: "classic",
      pragma: options.jsxFactory ?? "React.createElement",
      pragmaFrag: options.jsxFragmentFactory ?? "React.Fragment",
    };
  }
  return { runtime: "automatic", ...(options.jsxImportSource ? { importSource: options.jsxImportSource } : {}) };
}
