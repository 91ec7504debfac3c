import { RE2JS } from "re2js";
import type { Tool, ToolContext, ToolDefinition, ToolKind, ToolResult } from "../../tools/tool.ts";
import { failureResult, successResult } from "../../tools/tool-result.ts";
import { sessionCallOf } from "../calls/call-context.ts";
import { toolSearchText } from "../prompt/model-text.ts";
import type { ToolSearchSettings } from "./model-tool-options.ts";
import { createSessionTool } from "./session-tool.ts";
import type { ToolCatalog } from "./tool-catalog.ts";

/** What of a catalog is deferred, and what finds it. */
export interface Deferral {
  /** Whether a tool may be called but is not advertised. */
  isDeferred(tool: Tool): boolean;
  /** The tool that finds them, unless a source provides its own. */
  readonly search: Tool | undefined;
}

/**
 * Decides which tools are hidden from a model until it searches for them. Nothing is deferred that could never be found: where a
 * filter takes the search away, every tool is advertised.
 */
export function chooseDeferral(
  visible: readonly Tool[],
  { enabled, deferThreshold }: ToolSearchSettings,
  isHidden: (tool: Tool) => boolean,
): Deferral {
  if (!enabled || visible.length <= deferThreshold) return nothing;
  const hasOwn = visible.some(isSearch);
  if (!hasOwn && isHidden(toolSearch)) return nothing;
  return visible.some(isDeferred) ? { isDeferred, search: hasOwn ? undefined : toolSearch } : nothing;
}

const nothing: Deferral = Object.freeze({ isDeferred: () => false, search: undefined });

function isSearch({ definition }: Tool): boolean {
  return toolSearchNames.includes(definition.name);
}

// The kinds that come in large numbers. Built-in tools and plugins are chosen one by one.
const deferrableKinds: ReadonlySet<ToolKind> = new Set(["mcp", "external", "skill"]);

function isDeferred(tool: Tool): boolean {
  return deferrableKinds.has(tool.origin.kind) && tool.definition.defer !== "never" && !isSearch(tool);
}

/** What a pattern found among the deferred tools of a catalog. */
type ToolSearchOutcome =
  | {
      readonly kind: "found";
      /** Those whose name fits, then those whose description does, each in the order of the catalog. */
      readonly tools: readonly ToolDefinition[];
      /** There may be more that fit. */
      readonly isPart: boolean;
    }
  | { readonly kind: "refused"; readonly why: PatternFault };

type PatternFault = "too long" | "empty" | "not a regular expression" | "too large";

const maxPatternLength = 200;
const maxFound = 20;

// The beginning of a description says what a tool is for; a stranger's may be of any length. Ten thousand of these take
// about 25 ms, whatever the pattern.
const maxSearchedLength = 300;
// Compiled, `x{1000}` is a thousand steps that each character of a text may take. What people write has a few dozen.
const maxProgramSize = 1000;
// Characters, weighed by the size of what they are matched with. Ten thousand tools need no more, whatever the pattern.
const maxSteps = 100_000_000;

/**
 * Finds deferred tools by a regular expression over their names and descriptions, case ignored. The pattern comes from
 * a model: it is matched by an engine whose time grows with the text only (RE2), within a budget of steps: what is found depends on
 * the tools and the pattern, never on how busy the machine is.
 * @internal Exported for tests.
 */
export function searchTools(catalog: ToolCatalog, pattern: string): ToolSearchOutcome {
  if (pattern.trim() === "") return { kind: "refused", why: "empty" };
  if (pattern.length > maxPatternLength) return { kind: "refused", why: "too long" };
  const index = indexOf(catalog);
  if (isLiteral.test(pattern)) {
    const wanted = pattern.toLowerCase();
    return collect(index, { fits: (text) => text.includes(wanted), weight: 1 }, index.folded);
  }
  const compiled = compile(pattern);
  if (typeof compiled === "string") return { kind: "refused", why: compiled };
  return collect(index, { fits: (text) => compiled.test(text), weight: 1 + compiled.programSize() / 64 }, index.texts);
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
    // The engine's message would not help; the model reads which syntax is allowed.
    return "not a regular expression";
  }
}

interface Matcher {
  readonly fits: (text: string) => boolean;
  /** Steps for each character. */
  readonly weight: number;
}

function collect(index: SearchIndex, matcher: Matcher, { names, descriptions }: Texts): ToolSearchOutcome {
  const found = new Set<ToolDefinition>();
  const left = walk(names, index, matcher, found, maxSteps);
  const isWhole = left >= 0 && walk(descriptions, index, matcher, found, left) >= 0;
  return { kind: "found", tools: [...found].slice(0, maxFound), isPart: !isWhole };
}

/** Gives the steps that are left; below 0: it stopped before the end. */
function walk(
  texts: readonly string[],
  { tools }: SearchIndex,
  { fits, weight }: Matcher,
  found: Set<ToolDefinition>,
  steps: number,
): number {
  let left = steps;
  for (let at = 0; at < texts.length; at++) {
    const text = texts[at]!;
    left -= weight * (text.length + 1);
    if (left < 0) return left;
    if (fits(text)) found.add(tools[at]!);
    // One more than is shown: then it is known that there are more.
    if (found.size > maxFound) return -1;
  }
  return left;
}

/** Finds tools that the model has not seen. What it finds is advertised in the conversation from then on. */
export const toolSearch: Tool = createSessionTool({
  name: "tool_search_tool_regex",
  description:
    "Finds more tools. Not all tools are listed at first: search names and descriptions by regular expression. You can call the tools it finds from your next message on.",
  parameters: {
    type: "object",
    properties: {
      pattern: {
        type: "string",
        description: `Regular expression in RE2 syntax, up to ${maxPatternLength} characters, case-insensitive: "weather", "^github-", "(list|get)_.*invoice".`,
      },
    },
    required: ["pattern"],
    additionalProperties: false,
  },
  handler: ({ pattern }: { pattern: string }, _invocation: unknown, context: ToolContext): ToolResult => {
    const outcome = searchTools(sessionCallOf(context).catalog, pattern);
    if (outcome.kind === "refused") return failureResult(toolSearchText.refused(pattern, outcome.why));
    if (outcome.tools.length === 0) return successResult(toolSearchText.nothing(pattern, outcome.isPart));
    const toolReferences = outcome.tools.map(({ name }) => name);
    return { ...successResult(toolSearchText.found(outcome.tools, outcome.isPart)), toolReferences };
  },
});

/** The names that the search has: a client's tool of one of them, with `overridesBuiltInTool`, takes its place. */
export const toolSearchNames: readonly string[] = Object.freeze([toolSearch.definition.name, "tool_search_tool"]);
