import { mapStack, type Place } from "./error-position.ts";
import { foreignFrames } from "./host-frames.ts";

/** A stack in terms of the sources. */
export interface ReadableStack {
  readonly stack: string;
  /** The innermost frame in a file that is not of this package or Node.js, and of no installed package if there is another. */
  readonly place: Place | undefined;
}

/** The stack of something that was thrown, with the lines and columns of the files that people wrote. Never throws. */
export function readableStack(thrown: unknown): ReadableStack {
  const { stack } = mapStack(stackOf(thrown));
  const frames = foreignFrames(stack);
  const found = frames.find(({ file }) => !/[\\/]node_modules[\\/]/.test(file)) ?? frames[0];
  return { stack, place: found && { file: found.file, line: found.line, column: found.column } };
}

function stackOf(thrown: unknown): string {
  try {
    const stack = thrown instanceof Error ? thrown.stack : undefined;
    return typeof stack === "string" ? stack : "";
  } catch {
    // A getter that throws.
    return "";
  }
}
