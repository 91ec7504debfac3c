import { url as inspectorUrl } from "node:inspector";
import { SourceMap, type SourceMapPayload } from "node:module";
import { pathToFileURL } from "node:url";
import type { Position } from "../../base/diagnostic.ts";
import { errorMessage } from "../../base/errors.ts";
import { foreignFrames, ModuleError, stackFrames } from "./module-error.ts";
import { MODULE_LINE_OFFSET, type SourceSettings, transformSource } from "./transform-source.ts";

export interface SourcePlace extends Position {
  readonly file: string;
}

/**
 * A stack in terms of the sources, and its first place in a module that a loader ran. Maps are made here, from the text that
 * was compiled, because errors are rare and modules are many.
 */
export function mapStack(stack: string): { readonly stack: string; readonly place: SourcePlace | undefined } {
  const translators = new Map<string, { readonly script: ModuleScript; readonly translate: Translate } | undefined>();
  let place: SourcePlace | undefined;
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
export function placeIn(stack: string, files: ReadonlySet<string>): SourcePlace | undefined {
  return stackFrames(stack).find(({ file }) => files.has(file));
}

/** Leads from a position in compiled code to the one in the source that it came from. */
type Translate = (position: Position) => Position | undefined;

/** Undefined: the text does not compile any more, or was never transformed. */
function translatorOf({ file, text, settings }: ModuleScript): Translate | undefined {
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

/**
 * The comment that leads a debugger from compiled code to its source. Empty unless a debugger can be attached: only then is
 * the map worth its price. `head`: the lines that precede the code in what is compiled.
 */
export function debugComment(code: string, head: number, script: ModuleScript): string {
  if (inspectorUrl() === undefined) return "";
  const translate = translatorOf(script);
  if (translate === undefined) return "";
  const map = {
    version: 3,
    sources: [pathToFileURL(script.file).href],
    sourcesContent: [script.text],
    names: [],
    mappings: ";".repeat(head) + mappingsOf(code, head, translate),
  };
  const encoded = Buffer.from(JSON.stringify(map)).toString("base64");
  return `\n//# sourceMappingURL=data:application/json;charset=utf-8;base64,${encoded}`;
}

/** One segment for each word and sign whose source is not simply the next column. */
function mappingsOf(code: string, head: number, translate: Translate): string {
  let before = { line: 1, column: 1 };
  return code
    .split("\n")
    .map((text, index) => {
      let generated = 0;
      const segments: string[] = [];
      for (const { index: column } of text.matchAll(TOKEN)) {
        const at = translate({ line: index + 1 + head, column: column + 1 });
        if (at === undefined) continue;
        segments.push([column - generated, 0, at.line - before.line, at.column - before.column].map(toVlq).join(""));
        generated = column;
        before = at;
      }
      return segments.join(",");
    })
    .join(";");
}

const TOKEN = /[\w$]+|[^\s\w$]/g;
const DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/** A number as source maps write it: base 64, the sign in the lowest bit, five bits a digit. */
function toVlq(value: number): string {
  let rest = value < 0 ? (-value << 1) | 1 : value << 1;
  let digits = "";
  do {
    const digit = rest & 31;
    rest >>>= 5;
    digits += DIGITS[rest > 0 ? digit | 32 : digit];
  } while (rest > 0);
  return digits;
}

/** Finds a stack's first place in a module, and the stack in terms of the sources. */
type Locate = (stack: string) => { readonly stack: string; readonly place: SourcePlace | undefined };

/** Whatever went wrong while `entry` was loaded, as a `ModuleError` that knows which paths may mend it. */
export function toModuleError(thrown: unknown, entry: string, files: Iterable<string>, locate: Locate): ModuleError {
  if (thrown instanceof ModuleError) return thrown.withFiles(files);
  const place = relocate(thrown, locate);
  const where = place ? `${place.file}:${place.line}:${place.column}` : entry;
  const message = `${where} threw while ${place === undefined || place.file === entry ? "it" : entry} was loaded: ${errorMessage(thrown)}`;
  return new ModuleError("MODULE_THREW", message, { file: place?.file ?? entry, position: place, files, cause: thrown });
}

// Reading the stack also has V8 turn its frames into text; until then they keep the module's functions alive.
function relocate(thrown: unknown, locate: Locate): SourcePlace | undefined {
  try {
    if (!(thrown instanceof Error) || typeof thrown.stack !== "string") return undefined;
    const { stack, place } = locate(thrown.stack);
    thrown.stack = stack;
    return place;
  } catch {
    // A frozen error, or one with hostile getters: its message has to do.
    return undefined;
  }
}

/** A stack in terms of the sources. */
export interface ReadableStack {
  readonly stack: string;
  /** The innermost frame in a file that is not of this package or Node.js, and of no installed package if there is another. */
  readonly place: SourcePlace | undefined;
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

/** A text as it was compiled. */
export interface ModuleScript {
  readonly file: string;
  readonly text: string;
  readonly settings: SourceSettings;
  /** What stacks and debuggers show for its file. No other script of this process has the same. */
  readonly address: string;
}

/** How many replaced scripts are kept: calls that began before a reload may still throw. */
const maxReplaced = 32;

// Of the whole process, as stacks are: a frame does not say which loader ran its file.
const scripts = new Map<string, WeakRef<ModuleScript>>();
const counts = new Map<string, number>();
const replaced: ModuleScript[] = [];
const forgotten = new FinalizationRegistry<string>((address) => void scripts.delete(address));

/** Makes a script known. The first one of a URL has that for its address. Whoever holds the script keeps it known. */
export function registerScript(url: string, script: Omit<ModuleScript, "address">): ModuleScript {
  const count = (counts.get(url) ?? 0) + 1;
  counts.set(url, count);
  const registered = { ...script, address: count === 1 ? url : `${url}#${count}` };
  scripts.set(registered.address, new WeakRef(registered));
  forgotten.register(registered, registered.address);
  return registered;
}

/** Keeps a script known for a while though its module was replaced. */
export function keepReplaced(script: ModuleScript): void {
  replaced.push(script);
  if (replaced.length > maxReplaced) replaced.shift();
}

function scriptAt(address: string): ModuleScript | undefined {
  return scripts.get(address)?.deref();
}
