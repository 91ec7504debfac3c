import { url as inspectorUrl } from "node:inspector";
import { SourceMap, type SourceMapPayload } from "node:module";
import { pathToFileURL } from "node:url";
import type { Position } from "../../base/diagnostic.ts";
import { foreignFrames, type SourcePlace } from "./module-error.ts";
import { moduleLineOffset, type SourceSettings, transformSource } from "./transform-source.ts";

/**
 * Maps a stack to positions in the sources, and finds its first place in a module that a loader ran. Source maps are created
 * only here, from the compiled text, because errors are rare and modules are many.
 */
export function mapStack(stack: string): { readonly stack: string; readonly place: SourcePlace | undefined } {
  const translators = new Map<string, { readonly script: ModuleScript; readonly translate: Translate } | undefined>();
  let place: SourcePlace | undefined;
  const mapped = stack.replace(frameAddress, (all: string, address: string, line: string, column: string) => {
    if (!translators.has(address)) {
      const script = scriptAt(address);
      const translate = script && translatorOf(script);
      translators.set(address, translate && { script, translate });
    }
    const found = translators.get(address);
    const position = found?.translate({ line: Number(line), column: Number(column) });
    if (found === undefined || position === undefined) return all;
    place ??= { file: found.script.file, ...position };
    return `${found.script.file}:${position.line}:${position.column}`;
  });
  return { stack: mapped, place };
}

/** Maps a position in compiled code to its position in the source. */
type Translate = (position: Position) => Position | undefined;

/** Undefined when the text does not compile any longer, or was never transformed. */
function translatorOf({ file, text, settings }: ModuleScript): Translate | undefined {
  try {
    const { maps, kind } = transformSource(file, text, settings, true);
    const offset = kind === "esm" ? moduleLineOffset : 0;
    const shift: Translate = ({ line, column }) => ({ line: line - offset, column });
    const steps = [shift, ...maps.map((map) => translatorFor(typeof map === "string" ? (JSON.parse(map) as SourceMapPayload) : map))];
    return (position) => steps.reduce<Position | undefined>((at, next) => at && next(at), position);
  } catch {
    // It compiled once, so this failure is temporary. The compiled positions are shown instead.
    return undefined;
  }
}

// Frames of packages have the same form, but no registered script.
const frameAddress = /(file:\/\/[^\s()]+?):(\d+):(\d+)/g;

function translatorFor(map: object): Translate {
  const source = new SourceMap(map as SourceMapPayload);
  return ({ line, column }) => {
    const entry = source.findEntry(line - 1, column - 1);
    if (!("originalLine" in entry)) return undefined;
    return { line: entry.originalLine + 1, column: entry.originalColumn + 1 };
  };
}

/**
 * The inline source map for debuggers. Empty unless a debugger is active, because the map is expensive. `head`: the number of
 * lines before the code in the compiled text.
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

/** One segment for each word and sign with a known position in the source. */
function mappingsOf(code: string, head: number, translate: Translate): string {
  let before = { line: 1, column: 1 };
  return code
    .split("\n")
    .map((text, index) => {
      let generated = 0;
      const segments: string[] = [];
      for (const { index: column } of text.matchAll(wordOrSign)) {
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

const wordOrSign = /[\w$]+|[^\s\w$]/g;
const base64Digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/** A base 64 VLQ, the number format of source maps: the sign in the lowest bit, five bits per digit. */
function toVlq(value: number): string {
  let rest = value < 0 ? (-value << 1) | 1 : value << 1;
  let digits = "";
  do {
    const digit = rest & 31;
    rest >>>= 5;
    digits += base64Digits[rest > 0 ? digit | 32 : digit];
  } while (rest > 0);
  return digits;
}

/** A stack with positions in the sources. */
export interface ReadableStack {
  readonly stack: string;
  /** The innermost frame outside of this package and Node.js; frames outside of installed packages take precedence. */
  readonly place: SourcePlace | undefined;
}

/** The stack of a thrown value, with positions in the source files. Never throws. */
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
    // The getter of `stack` threw.
    return "";
  }
}

/** The text of a module as it was compiled. */
export interface ModuleScript {
  readonly file: string;
  readonly text: string;
  readonly settings: SourceSettings;
  /** The location that stacks and debuggers show. Unique in this process. */
  readonly address: string;
}

/** The number of replaced scripts to keep, because calls that began before a reload may still throw. */
const maxReplaced = 32;

// Global to the process, because a stack frame does not identify the loader of its file.
const scripts = new Map<string, WeakRef<ModuleScript>>();
/** Of each URL: how many scripts had it, and how many of these are referenced. */
const counts = new Map<string, { all: number; referenced: number }>();
const replaced: ModuleScript[] = [];
const forgotten = new FinalizationRegistry<{ url: string; address: string }>(({ url, address }) => {
  scripts.delete(address);
  const count = counts.get(url);
  if (count !== undefined && --count.referenced === 0) counts.delete(url);
});

/** The script with an address, as long as it is referenced. */
function scriptAt(address: string): ModuleScript | undefined {
  return scripts.get(address)?.deref();
}

/** Registers a script while it is referenced. The first script of a URL, or the first after all others are gone, has the URL as its address. */
export function registerScript(url: string, script: Omit<ModuleScript, "address">): ModuleScript {
  const count = counts.get(url) ?? { all: 0, referenced: 0 };
  count.all++;
  count.referenced++;
  counts.set(url, count);
  const registered = { ...script, address: count.all === 1 ? url : `${url}#${count.all}` };
  const { address } = registered;
  scripts.set(address, new WeakRef(registered));
  forgotten.register(registered, { url, address });
  return registered;
}

/** Keeps the script of a replaced module registered for a while. */
export function keepReplaced(script: ModuleScript): void {
  replaced.push(script);
  if (replaced.length > maxReplaced) replaced.shift();
}
