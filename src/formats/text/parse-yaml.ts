import { Composer, type CST, type Document, Parser } from "yaml";

/** A fault in a YAML text, at an offset in it. */
export interface YamlFault {
  readonly code: string;
  readonly message: string;
  readonly offset: number;
}

// Far beyond any real file.
const maxDepth = 64;

/**
 * Parses one YAML document, or says why it is none. The nesting is measured on the parser's tokens before anything
 * recurses over them: on a stack that is nearly used up, V8 does not throw but ends the process when it compiles a
 * regular expression. Duplicate keys are the caller's to find; there it costs the square of their number.
 */
export function parseYaml(source: string, schema: "core" | "failsafe"): Document.Parsed | YamlFault {
  const tokens = [...new Parser().parse(source)];
  const deep = findTooDeep(tokens);
  if (deep !== undefined) return { code: "TOO_DEEP", message: `The YAML is nested more than ${maxDepth} levels deep.`, offset: deep };
  // logLevel: "warn" would turn into process warnings.
  const composer = new Composer({ schema, uniqueKeys: false, resolveKnownTags: false, logLevel: "error" });
  const [document, second] = composer.compose(tokens, true, source.length);
  if (second !== undefined) return { code: "MULTIPLE_DOCS", message: "The YAML has more than one document.", offset: second.range[0] };
  const error = document!.errors[0];
  return error === undefined ? (document as Document.Parsed) : { code: error.code, message: error.message, offset: error.pos[0] };
}

function findTooDeep(tokens: readonly CST.Token[]): number | undefined {
  const open: { readonly token: CST.Token; readonly depth: number }[] = tokens.map((token) => ({ token, depth: 0 }));
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { token, depth } = next;
    if (depth > maxDepth) return token.offset;
    for (const inner of innerTokens(token)) open.push({ token: inner, depth: depth + 1 });
  }
  return undefined;
}

function innerTokens(token: CST.Token): readonly CST.Token[] {
  if (token.type === "document") return token.value ? [token.value] : [];
  if (!("items" in token)) return [];
  return token.items.flatMap((item) => [item.key, item.value].filter((part) => part != null));
}
