import { dirname, join, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { frameFile, type StackFrame } from "./stack-frames.ts";

export interface NamedFrame extends StackFrame {
  /** What ran; empty for code outside of functions. */
  readonly name: string;
}

/** The frames of a stack that lie in files other than this package's, from the innermost outwards. */
export function foreignFrames(stack: string): readonly NamedFrame[] {
  return namedFrames(stack).filter(({ file }) => !isOfHost(file));
}

/** Without the frames of this package and of Node.js, which say nothing about the code of a skill. */
export function withoutHostFrames(stack: string): string {
  const lines = stack.split("\n");
  return lines.filter((line) => !/^\s+at /.test(line) || foreignFrames(line).length > 0).join("\n");
}

function namedFrames(stack: string): NamedFrame[] {
  return [...stack.matchAll(FRAME)].map(([, name = "", path = "", line, column]) => ({
    name: name.replace(/^async |^Object\./g, ""),
    file: frameFile(path),
    line: Number(line),
    column: Number(column),
  }));
}

// "at greet (/a/greet.ts:10:9)", "at /a/greet.ts:10:9", "at async file:///a/greet.ts:10:9".
const FRAME = /^\s+at (?:(.*?) \()?(?:async )?((?:file:\/\/|\/|[A-Za-z]:[\\/])[^()\n]*?):(\d+):(\d+)\)?$/gm;

const packageRoot = join(dirname(fileURLToPath(import.meta.url)), "../../..");
const ownFolders: readonly string[] = ["src", "dist", "plugins", "node_modules"].map((name) => join(packageRoot, name) + sep);

function isOfHost(file: string): boolean {
  return ownFolders.some((folder) => file.startsWith(folder));
}
