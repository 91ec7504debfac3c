import type { Place } from "../io/module-loader/source-positions.ts";

/** A rejection or exception that nobody handled, in words. */
export interface StrayError {
  readonly message: string;
  readonly stack: string;
  /** Where it came from, if the stack tells. */
  readonly place: Place | undefined;
}

/** Names the file that an error came from. Where its stack names none, nobody is blamed: it may be ours. */
export async function describeStrayError(error: Error): Promise<StrayError> {
  // Most commands end without one, and what maps stacks takes a while to load.
  const { readableStack } = await import("../io/module-loader/source-positions.ts");
  const { stack, place } = readableStack(error);
  const message =
    place === undefined
      ? `An error was not handled: ${error.message}`
      : `${place.file}:${place.line}:${place.column} failed outside of any call: ${error.message} A promise is probably not awaited there.`;
  return { message, stack, place };
}
