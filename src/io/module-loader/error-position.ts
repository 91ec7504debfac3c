import { readFileSync } from "node:fs";
import { SourceMap, type SourceMapPayload } from "node:module";
import { sha256 } from "../../base/canonical-json.ts";
import type { Position } from "../../base/diagnostic.ts";
import { MODULE_LINE_OFFSET } from "./compile-module.ts";
import { frameFile, stackFrames } from "./stack-frames.ts";
import { type SourceSettings, transformSource } from "./transform-source.ts";

/** What is needed to find one generation's text again. */
interface Generation {
  readonly file: string;
  readonly hash: string | undefined;
  readonly settings: SourceSettings;
}

/** Finds the generation behind a file of a stack, undefined for files that the loader did not evaluate. */
export type FindGeneration = (file: string) => Generation | undefined;

export interface Place extends Position {
  readonly file: string;
}

/**
 * A stack in terms of the sources. Maps are made here, from the text that is still on disk, because errors are rare
 * and modules are many; if the file has changed since, its lines stay those of the compiled code.
 */
export function mapStack(stack: string, find: FindGeneration): { readonly stack: string; readonly place: Place | undefined } {
  const translators = new Map<string, Translate | undefined>();
  let place: Place | undefined;
  const mapped = stack.replace(FRAME, (all: string, url: string, line: string, column: string) => {
    const file = frameFile(url);
    if (!translators.has(file)) translators.set(file, translator(find(file)));
    const position = translators.get(file)?.({ line: Number(line), column: Number(column) });
    if (position === undefined) return all;
    place ??= { file, ...position };
    return `${file}:${position.line}:${position.column}`;
  });
  return { stack: mapped, place };
}

/** The first frame of a stack that lies in one of the files, for code whose lines are those of its source. */
export function placeIn(stack: string, files: ReadonlySet<string>): Place | undefined {
  return stackFrames(stack).find(({ file }) => files.has(file));
}

// Local modules carry their URL; a package's own frames look the same and are told apart by `find`.
const FRAME = /(file:\/\/[^\s()]+?):(\d+):(\d+)/g;

type Translate = (position: Position) => Position | undefined;

function translator(generation: Generation | undefined): Translate | undefined {
  if (generation === undefined) return undefined;
  const steps = readMaps(generation);
  if (steps === undefined) return undefined;
  return (position) => steps.reduce<Position | undefined>((at, step) => at && step(at), position);
}

function readMaps({ file, hash, settings }: Generation): readonly Translate[] | undefined {
  try {
    const text = readFileSync(file, "utf8").replace(/^\uFEFF/, "");
    if (sha256(text) !== hash) return undefined;
    const { maps, kind } = transformSource(file, text, settings, true);
    const offset = kind === "esm" ? MODULE_LINE_OFFSET : 0;
    const shift: Translate = ({ line, column }) => ({ line: line - offset, column });
    return [shift, ...maps.map((map) => step(typeof map === "string" ? (JSON.parse(map) as SourceMapPayload) : map))];
  } catch {
    // The file is gone or no longer what it was: the compiled positions have to do.
    return undefined;
  }
}

function step(map: object): Translate {
  const source = new SourceMap(map as SourceMapPayload);
  return ({ line, column }) => {
    const entry = source.findEntry(line - 1, column - 1);
    if (!("originalLine" in entry)) return undefined;
    return { line: entry.originalLine + 1, column: entry.originalColumn + 1 };
  };
}
