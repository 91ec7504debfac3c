import { RE2JS } from "re2js";
import type { ToolDefinition } from "../../tools/tool.ts";
import type { ToolCatalog } from "./tool-catalog.ts";

/** What a pattern found among the deferred tools of a catalog. */
export type ToolSearchOutcome =
  | {
      readonly kind: "found";
      /** Those whose name fits, then those whose description does, each in the order of the catalog. */
      readonly tools: readonly ToolDefinition[];
      /** There may be more that fit. */
      readonly isPart: boolean;
    }
  | { readonly kind: "refused"; readonly why: PatternFault };

export type PatternFault = "too long" | "empty" | "not a regular expression" | "too large";

export const maxPatternLength = 200;
const maxFound = 20;

// The beginning of a description says what a tool is for; a stranger's may be of any length. Ten thousand of these take
// about 25 ms, whatever the pattern.
const maxSearchedLength = 300;
// Compiled, `x{1000}` is a thousand steps that each character of a text may take. What people write has a few dozen.
const maxProgramSize = 1000;
// Not reached by what is allowed above, unless there are a hundred thousand tools or the machine is very busy.
const budgetMs = 250;
const clockEvery = 128;

/**
 * Finds deferred tools by a regular expression over their names and descriptions, case ignored. The pattern comes from
 * a model: it is matched by an engine whose time grows with the text only (RE2), within a budget.
 */
export function searchTools(catalog: ToolCatalog, pattern: string): ToolSearchOutcome {
  if (pattern.trim() === "") return { kind: "refused", why: "empty" };
  if (pattern.length > maxPatternLength) return { kind: "refused", why: "too long" };
  const index = indexOf(catalog);
  if (isLiteral.test(pattern)) {
    const wanted = pattern.toLowerCase();
    return collect(index, (text) => text.includes(wanted), index.folded);
  }
  const compiled = compile(pattern);
  return typeof compiled === "string" ? { kind: "refused", why: compiled } : collect(index, (text) => compiled.test(text), index.texts);
}

const isLiteral = /^[\w \-/:,']+$/;

interface Texts {
  readonly names: readonly string[];
  readonly descriptions: readonly string[];
}

interface SearchIndex {
  readonly tools: readonly ToolDefinition[];
  readonly texts: Texts;
  readonly folded: Texts;
}

const indexes = new WeakMap<ToolCatalog, SearchIndex>();

/** Made at a catalog's first search, and gone with the catalog. */
function indexOf(catalog: ToolCatalog): SearchIndex {
  const known = indexes.get(catalog);
  if (known !== undefined) return known;
  const tools = Array.from(catalog.deferred, (name) => catalog.executables.get(name)!.definition);
  const texts = {
    names: tools.map(({ name }) => name),
    descriptions: tools.map(({ description = "" }) => description.slice(0, maxSearchedLength)),
  };
  const fold = (text: string): string => text.toLowerCase();
  const index = { tools, texts, folded: { names: texts.names.map(fold), descriptions: texts.descriptions.map(fold) } };
  indexes.set(catalog, index);
  return index;
}

function compile(pattern: string): RE2JS | PatternFault {
  try {
    const compiled = RE2JS.compile(pattern, RE2JS.CASE_INSENSITIVE);
    return compiled.programSize() > maxProgramSize ? "too large" : compiled;
  } catch {
    // Whatever it says is about the engine; the model is told what it may write.
    return "not a regular expression";
  }
}

function collect(index: SearchIndex, fits: (text: string) => boolean, { names, descriptions }: Texts): ToolSearchOutcome {
  const found = new Set<ToolDefinition>();
  const deadline = performance.now() + budgetMs;
  const isWhole = walk(names, index, fits, found, deadline) && walk(descriptions, index, fits, found, deadline);
  return { kind: "found", tools: [...found].slice(0, maxFound), isPart: !isWhole || found.size > maxFound };
}

/** False: it stopped before the end. */
function walk(
  texts: readonly string[],
  { tools }: SearchIndex,
  fits: (text: string) => boolean,
  found: Set<ToolDefinition>,
  deadline: number,
): boolean {
  for (let at = 0; at < texts.length; at++) {
    if (fits(texts[at]!)) found.add(tools[at]!);
    // One more than is shown: then it is known that there are more.
    if (found.size > maxFound) return false;
    if (at % clockEvery === 0 && performance.now() > deadline) return false;
  }
  return true;
}
