/** Where a document's front matter lies: `text.slice(start, end)`; its body begins at `bodyStart`. */
export interface FrontMatterBlock {
  /**
   * `closed`: as it should be. `late`: after blank lines or comments. `indented`: the closing line is indented. `unclosed`,
   * `unopened`: one of the `---` lines is missing.
   */
  readonly kind: "closed" | "late" | "indented" | "unclosed" | "unopened";
  readonly start: number;
  readonly end: number;
  readonly bodyStart: number;
}

/** Finds the front matter of a text with `\n` line ends. It may turn out to be none: a document can begin with a thematic break. */
export function findFrontMatterBlock(text: string): FrontMatterBlock | undefined {
  const first = skipBlankAndComments(text);
  if (isRule(text, first)) {
    const start = nextLine(text, first);
    const closed = closedBlock(text, first === 0 ? "closed" : "late", start);
    return indentedBlock(text, start, closed?.end ?? text.length) ?? closed ?? unclosedBlock(text, start);
  }
  return /^(?:name|description)[ \t]*:/.test(text.slice(first, first + 40)) ? closedBlock(text, "unopened", first) : undefined;
}

/**
 * The block up to an indented `---`, when what follows that line is not YAML: it was meant to close the front matter, and YAML
 * would read it, and the text below it, as a part of the value above. Otherwise it is a line of a value.
 */
function indentedBlock(text: string, start: number, end: number): FrontMatterBlock | undefined {
  let found: FrontMatterBlock | undefined;
  for (let at = start; at < end; at = nextLine(text, at)) {
    const line = lineAt(text, at);
    if (found === undefined && /^[ \t]{1,8}---[ \t]{0,100}$/.test(line)) {
      found = { kind: "indented", start, end: at, bodyStart: nextLine(text, at) };
    } else if (found !== undefined && line.trim() !== "" && !yamlLine.test(line)) return found;
  }
  return end === text.length && found !== undefined ? found : undefined;
}

const yamlLine = /^(?:[A-Za-z_][\w .-]*:|[ \t]+\S|-[ \t]|#)/;

/**
 * The block as if its closing line were missing: it ends at the first line that is no YAML, or blank. Also for a block whose
 * "closing line" turns out to be a thematic break further down.
 */
export function unclosedBlock(text: string, start: number): FrontMatterBlock | undefined {
  let at = start;
  while (at < text.length && lineAt(text, at).trim() === "") at = nextLine(text, at);
  const first = at;
  while (at < text.length && yamlLine.test(lineAt(text, at))) at = nextLine(text, at);
  return at === first ? undefined : { kind: "unclosed", start, end: at, bodyStart: at };
}

/** True for a document that opens with a code fence around its front matter. */
export function isFenced(text: string): boolean {
  return /^\s{0,100}(?:```|~~~)[ \t]{0,10}\w{0,20}[ \t]{0,10}\n---[ \t]{0,10}\n/.test(text.slice(0, 200));
}

function skipBlankAndComments(text: string): number {
  let at = 0;
  while (at < text.length) {
    if (text.startsWith("<!--", at)) {
      const end = text.indexOf("-->", at);
      if (end === -1) return at;
      at = end + 3;
    } else if (/\s/.test(text[at]!)) at++;
    else return at;
  }
  return at;
}

function closedBlock(text: string, kind: FrontMatterBlock["kind"], start: number): FrontMatterBlock | undefined {
  for (let at = start; at < text.length; at = nextLine(text, at)) {
    if (isRule(text, at)) return { kind, start, end: at, bodyStart: nextLine(text, at) };
  }
  return undefined;
}

function isRule(text: string, at: number): boolean {
  return text.startsWith("---", at) && lineAt(text, at).trimEnd() === "---";
}

function lineAt(text: string, at: number): string {
  const end = text.indexOf("\n", at);
  return text.slice(at, end === -1 ? text.length : end);
}

function nextLine(text: string, at: number): number {
  const end = text.indexOf("\n", at);
  return end === -1 ? text.length : end + 1;
}
