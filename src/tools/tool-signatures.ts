/**
 * The arguments and results of tools by their names, for the compiler: `skillhost types` writes a file that declares those of a
 * project's tools here. Names that are not declared take any arguments.
 *
 * ```ts
 * declare module "skillhost" {
 *   interface ToolSignatures {
 *     get_weather: { args: { city: string }; result: unknown };
 *   }
 * }
 * ```
 */
// biome-ignore lint/suspicious/noEmptyInterface: projects add their tools by module augmentation.
export interface ToolSignatures {}

/** The name of a tool: one that is declared, which editors suggest, or any other. */
export type ToolName = (keyof ToolSignatures & string) | (string & {});

/** The arguments of a tool. `unknown` unless they are declared. */
export type ToolArguments<Name> = Name extends keyof ToolSignatures
  ? ToolSignatures[Name] extends { readonly args: infer Args }
    ? Args
    : unknown
  : unknown;

/** The data that a tool answers with, for `result.json()`. `unknown` unless it is declared. */
export type ToolData<Name> = Name extends keyof ToolSignatures
  ? ToolSignatures[Name] extends { readonly result: infer Answer }
    ? Answer
    : unknown
  : unknown;

/** The arguments as what follows the name in a call: they can be left out where the tool requires none. */
export type CallArguments<Name> =
  Record<never, never> extends ToolArguments<Name> ? [args?: ToolArguments<Name> | undefined] : [args: ToolArguments<Name>];

/** What follows the name in a call with options. */
export type CallParameters<Name, Options> = [...CallArguments<Name>, options?: Options | undefined];
