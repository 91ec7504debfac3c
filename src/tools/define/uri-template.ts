import { HostError } from "../../base/errors.ts";

/** A URI template: RFC 6570 up to level 3, and `{name*}` for a rest that contains slashes. */
export interface UriTemplate {
  readonly text: string;
  /** The names of its variables, in their order. */
  readonly variables: readonly string[];
  /**
   * The percent-decoded values in a matching URI; undefined when it does not match. Query names that were not given are absent, all other
   * values are non-empty. The time grows linearly with the length of the URI. Values may contain anything: the client writes the URI.
   */
  match(uri: string): Readonly<Record<string, string>> | undefined;
}

const maxTemplateLength = 2000;
const maxUriLength = 8192;
const maxExpressions = 50;

/**
 * Parses a template such as `notes://{year}/{name}` or `search://all{?query,page}`.
 * @throws HostError `URI_TEMPLATE` for unmatched braces, invalid or repeated names, a prefix such as `{name:3}`, and too long a template.
 */
export function parseUriTemplate(text: string): UriTemplate {
  if (text.length > maxTemplateLength) throw invalid(text, `is longer than ${maxTemplateLength} characters`);
  const parts = [...partsOf(text)];
  const variables = parts.flatMap((part) => (part.kind === "text" ? [] : part.kind === "value" ? [part.name] : part.names));
  const repeated = variables.find((name, index) => variables.indexOf(name) < index);
  if (repeated !== undefined) throw invalid(text, `has the variable "${repeated}" twice`);
  return Object.freeze({ text, variables: Object.freeze(variables), match: (uri: string) => match(parts, uri) });
}

type Part =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "value"; readonly name: string; readonly accepts: (code: number) => boolean }
  /** `?a=1&b=2` with any of the names, in any order, or nothing at all. */
  | { readonly kind: "query"; readonly mark: "?" | "&"; readonly names: readonly string[] };

function* partsOf(text: string): Generator<Part> {
  let count = 0;
  for (const [piece] of text.matchAll(/\{[^{}]*\}|[^{}]+|[{}]/g)) {
    if (piece === "{" || piece === "}") throw invalid(text, `has an unmatched "${piece}"`);
    if (!piece.startsWith("{")) yield { kind: "text", text: piece };
    else if (++count > maxExpressions) throw invalid(text, `has more than ${maxExpressions} variables in braces`);
    else yield* expressionParts(piece.slice(1, -1), text);
  }
}

// The text before the first value and between values, and the characters that end a value.
const operators: Readonly<Record<string, { readonly first: string; readonly between: string; readonly ends: string }>> = {
  "": { first: "", between: ",", ends: "/?#," },
  "+": { first: "", between: ",", ends: "" },
  "#": { first: "#", between: ",", ends: "" },
  ".": { first: ".", between: ".", ends: "/?#,." },
  "/": { first: "/", between: "/", ends: "/?#," },
  ";": { first: ";", between: ";", ends: "/?#,;" },
};

function* expressionParts(expression: string, text: string): Generator<Part> {
  const operator = /^[+#./;?&=,!@|]/.exec(expression)?.[0] ?? "";
  const names = expression.slice(operator.length).split(",");
  for (const name of names) if (!/^[A-Za-z_][\w.]{0,99}\*?$/.test(name)) throw invalid(text, `has no variable name in {${expression}}`);
  if (operator === "?" || operator === "&") {
    yield { kind: "query", mark: operator, names: names.map((name) => name.replace("*", "")) };
    return;
  }
  const rule = operators[operator];
  if (rule === undefined) throw invalid(text, `has the unknown operator "${operator}" in {${expression}}`);
  for (const [index, written] of names.entries()) {
    const name = written.replace("*", "");
    const before = (index === 0 ? rule.first : rule.between) + (operator === ";" ? `${name}=` : "");
    if (before !== "") yield { kind: "text", text: before };
    // The rest of a path, as MCP servers use it.
    const ends = written.endsWith("*") ? "?#" : names.length === 1 ? rule.ends.replace(",", "") : rule.ends;
    const codes = new Set([...ends].map((character) => character.charCodeAt(0)));
    yield { kind: "value", name, accepts: (code) => !codes.has(code) };
  }
}

/**
 * Works from the last part to the first and records, for each index of the URI, whether the rest matches from there and where the part
 * then ends. Each part visits each index once, so the time stays linear.
 */
function match(parts: readonly Part[], uri: string): Readonly<Record<string, string>> | undefined {
  const first = parts[0];
  if (uri.length > maxUriLength || (first?.kind === "text" && !uri.startsWith(first.text))) return undefined;
  const ends: Int32Array[] = [];
  let rest = new Int32Array(uri.length + 1).fill(-1);
  rest[uri.length] = uri.length;
  for (const part of parts.toReversed()) {
    rest = endsOf(part, uri, rest);
    ends.unshift(rest);
  }
  const values: Record<string, string> = Object.create(null);
  let at = 0;
  for (const [index, part] of parts.entries()) {
    const end = ends[index]![at]!;
    if (end < 0 || !take(part, uri.slice(at, end), values)) return undefined;
    at = end;
  }
  return at === uri.length ? values : undefined;
}

/** For each index where the part can begin: the latest end from which the rest matches, otherwise -1. */
function endsOf(part: Part, uri: string, rest: Int32Array): Int32Array<ArrayBuffer> {
  const ends = new Int32Array(uri.length + 1).fill(-1);
  const fits = (at: number): boolean => rest[at]! >= 0;
  if (part.kind === "text") {
    for (let at = uri.indexOf(part.text); at >= 0; at = uri.indexOf(part.text, at + 1))
      if (fits(at + part.text.length)) ends[at] = at + part.text.length;
    return ends;
  }
  const accepts = part.kind === "value" ? part.accepts : (code: number) => code !== hash;
  let farthest = -1;
  for (let at = uri.length - 1; at >= 0; at--) {
    if (!accepts(uri.charCodeAt(at))) farthest = -1;
    else if (farthest < 0 && fits(at + 1)) farthest = at + 1;
    ends[at] = farthest;
  }
  if (part.kind === "query") {
    for (let at = 0; at <= uri.length; at++) if (uri[at] !== part.mark || ends[at]! < 0) ends[at] = fits(at) ? at : -1;
  }
  return ends;
}

const hash = "#".charCodeAt(0);

function take(part: Part, text: string, values: Record<string, string>): boolean {
  if (part.kind === "text") return true;
  if (part.kind === "query") return takeQuery(part.names, text, values);
  const value = decode(text);
  if (value !== undefined) values[part.name] = value;
  return value !== undefined;
}

function takeQuery(names: readonly string[], text: string, values: Record<string, string>): boolean {
  for (const pair of text.slice(1).split("&")) {
    if (pair === "") continue;
    const equals = pair.indexOf("=");
    const name = equals < 0 ? pair : pair.slice(0, equals);
    const value = equals < 0 ? "" : decode(pair.slice(equals + 1));
    if (value === undefined || !names.includes(name) || values[name] !== undefined) return false;
    values[name] = value;
  }
  return true;
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    // An invalid percent escape, which no template produces.
    return undefined;
  }
}

function invalid(text: string, what: string): HostError {
  const shown = JSON.stringify(text.slice(0, 100));
  return new HostError("URI_TEMPLATE", `The template ${shown} ${what}. Use the syntax of RFC 6570, such as "notes://{year}/{name}".`);
}
