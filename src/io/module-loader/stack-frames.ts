import { fileURLToPath } from "node:url";

export interface StackFrame {
  readonly file: string;
  readonly line: number;
  readonly column: number;
}

/** The frames of a stack that lie in files, from the innermost outwards. */
export function stackFrames(stack: string): StackFrame[] {
  return [...stack.matchAll(FRAME)].map(([, path = "", line, column]) => ({
    file: frameFile(path),
    line: Number(line),
    column: Number(column),
  }));
}

const FRAME = /(file:\/\/[^\s()]+?|(?:\/|[A-Z]:\\)[^()\n]+?):(\d+):(\d+)\)?$/gm;

/** The path behind what a frame shows: compiled code carries URLs, Node.js and jiti show paths. */
export function frameFile(shown: string): string {
  if (!shown.startsWith("file:")) return shown;
  try {
    return fileURLToPath(shown);
  } catch {
    // Text of a message that only looks like a frame, or a name that code gave itself.
    return shown;
  }
}
