import type { JsxOptions, TransformOptions } from "oxc-transform";

/** What of a tsconfig.json decides how a file is compiled. */
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

/** Turns compiler options into the transform's, once per tsconfig.json. */
export function toTransformOptions(options: CompilerOptions): TransformOptions {
  const assignsFields = !(options.useDefineForClassFields ?? !BEFORE_CLASS_FIELDS.test(options.target ?? ""));
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

const BEFORE_CLASS_FIELDS = /^es(?:[356]|20(?:1\d|2[01]))$/i;

// "preserve" and "react-native" leave JSX to a later step; there is none here, so they are read as the automatic runtime.
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
