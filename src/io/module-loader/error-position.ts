import { SourceMap, type SourceMapPayload } from "node:module";
import type { Position } from "../../base/diagnostic.ts";
import { MODULE_LINE_OFFSET } from "./compile-module.ts";
import { type ModuleScript, scriptAt } from "./module-scripts.ts";
import { stackFrames } from "./stack-frames.ts";
import { transformSource } from "./transform-source.ts";

export interface Place extends Position {
  readonly file: string;
}

/**
 * A stack in terms of the sources, and its first place in a module that a loader ran. Maps are made here, from the text that
 * was compiled, because errors are rare and modules are many.
 */
export function mapStack(stack: string): { readonly stack: string; readonly place: Place | undefined } {
  const translators = new Map<string, { readonly script: ModuleScript; readonly translate: Translate } | undefined>();
  let place: Place | undefined;
  const mapped = stack.replace(FRAME, (all: string, address: string, line: string, column: string) => {
    if (!translators.has(address)) translators.set(address, translatorAt(address));
    const found = translators.get(address);
    const position = found?.translate({ line: Number(line), column: Number(column) });
    if (found === undefined || position === undefined) return all;
    place ??= { file: found.script.file, ...position };
    return `${found.script.file}:${position.line}:${position.column}`;
  });
  return { stack: mapped, place };
}

/** The first frame of a stack that lies in one of the files, for code whose lines are those of its source. */
export function placeIn(stack: string, files: ReadonlySet<string>): Place | undefined {
  return stackFrames(stack).find(({ file }) => files.has(file));
}

/** Leads from a position in compiled code to the one in the source that it came from. */
export type Translate = (position: Position) => Position | undefined;

/** Undefined: the text does not compile any more, or was never transformed. */
export function translatorOf({ file, text, settings }: ModuleScript): Translate | undefined {
  try {
    const { maps, kind } = transformSource(file, text, settings, true);
    const offset = kind === "esm" ? MODULE_LINE_OFFSET : 0;
    const shift: Translate = ({ line, column }) => ({ line: line - offset, column });
    const steps = [shift, ...maps.map((map) => step(typeof map === "string" ? (JSON.parse(map) as SourceMapPayload) : map))];
    return (position) => steps.reduce<Position | undefined>((at, next) => at && next(at), position);
  } catch {
    // It was compiled once, so this is a limit of the moment. The compiled positions have to do.
    return undefined;
  }
}

// Local modules carry their address; frames of packages look the same, and no script is known for them.
const FRAME = /(file:\/\/[^\s()]+?):(\d+):(\d+)/g;

function translatorAt(address: string): { readonly script: ModuleScript; readonly translate: Translate } | undefined {
  const script = scriptAt(address);
  const translate = script && translatorOf(script);
  return translate && { script, translate };
}

function step(map: object): Translate {
  const source = new SourceMap(map as SourceMapPayload);
  return ({ line, column }) => {
    const entry = source.findEntry(line - 1, column - 1);
    if (!("originalLine" in entry)) return undefined;
    return { line: entry.originalLine + 1, column: entry.originalColumn + 1 };
  };
}
