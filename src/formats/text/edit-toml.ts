/** A table of a TOML text: `["mcp_servers", "skillhost"]` is `[mcp_servers.skillhost]`. */
export type TomlPath = readonly string[];

/** The values that a table may get. */
export type TomlTable = Readonly<Record<string, string | boolean | readonly string[] | Readonly<Record<string, string>>>>;

/** Appends a table to a TOML text. All characters of the text stay. The table must not exist yet. */
export function appendTomlTable(text: string, path: TomlPath, table: TomlTable): string {
  const eol = text.includes("\r\n") ? "\r\n" : "\n";
  const gap = text.trim() === "" ? "" : text.endsWith("\n") ? eol : eol + eol;
  return text + gap + writeTomlTable(path, table).replaceAll("\n", eol);
}

/** A table as TOML, with its header. */
export function writeTomlTable(path: TomlPath, table: TomlTable): string {
  const lines = Object.entries(table).map(([key, value]) => `${toKey(key)} = ${toValue(value)}\n`);
  return `[${path.map(toKey).join(".")}]\n${lines.join("")}`;
}

function toKey(key: string): string {
  return /^[\w-]+$/.test(key) ? key : toText(key);
}

function toValue(value: TomlTable[string]): string {
  if (typeof value === "string") return toText(value);
  if (typeof value === "boolean") return String(value);
  if (Array.isArray(value)) return `[${(value as readonly string[]).map(toText).join(", ")}]`;
  const members = Object.entries(value as Readonly<Record<string, string>>).map(([key, text]) => `${toKey(key)} = ${toText(text)}`);
  return `{ ${members.join(", ")} }`;
}

// The escapes of JSON are escapes of TOML too, except that TOML wants DEL escaped.
function toText(text: string): string {
  return JSON.stringify(text).replaceAll("\u007F", "\\u007f");
}

/**
 * Removes a table and the tables below it, with the empty line before it. Undefined: the text has no such header, because the table is written
 * in another form. The caller must parse the result and compare it: the text is read line by line.
 */
export function removeTomlTable(text: string, path: TomlPath): string | undefined {
  const lines = text.split(/(?<=\n)/);
  const headers = findHeaders(lines);
  const isOwn = (header: TomlPath): boolean => path.every((part, index) => header[index] === part);
  const first = headers.find(({ name }) => isOwn(name));
  if (first === undefined) return undefined;
  const kept: string[] = [];
  let isRemoving = false;
  for (const [index, line] of lines.entries()) {
    const header = headers.find((each) => each.line === index);
    if (header !== undefined) {
      const removes = isOwn(header.name);
      // Comments directly above a header belong to it.
      if (isRemoving && !removes) kept.push(...commentsBefore(lines, index));
      if (removes && !isRemoving && kept.at(-1)?.trim() === "") kept.pop();
      isRemoving = removes;
    }
    if (!isRemoving) kept.push(line);
  }
  return kept.join("");
}

function commentsBefore(lines: readonly string[], index: number): readonly string[] {
  let from = index;
  while (from > 0 && /^\s*(?:#.*)?$/.test(lines[from - 1]!.trimEnd())) from--;
  return lines.slice(from, index);
}

interface Header {
  readonly line: number;
  readonly name: TomlPath;
}

/** The lines that are headers: those inside of multi-line strings and arrays are not. */
function findHeaders(lines: readonly string[]): readonly Header[] {
  const headers: Header[] = [];
  let quote: string | undefined;
  let depth = 0;
  for (const [index, line] of lines.entries()) {
    if (quote === undefined && depth === 0) {
      const name = readHeader(line);
      if (name !== undefined) {
        headers.push({ line: index, name });
        continue;
      }
    }
    [quote, depth] = skipLine(line, quote, depth);
  }
  return headers;
}

function readHeader(line: string): TomlPath | undefined {
  const [, inner] = /^\s*\[\[?\s*(.+?)\s*\]\]?\s*(?:#.*)?$/.exec(line.trimEnd()) ?? [];
  if (inner === undefined) return undefined;
  const parts = [...inner.matchAll(/"((?:[^"\\]|\\.)*)"|'([^']*)'|([\w-]+)/g)];
  return parts.map(([, double, single, bare]) => (double === undefined ? (single ?? bare!) : readEscapes(double)));
}

function readEscapes(text: string): string {
  try {
    return JSON.parse(`"${text}"`) as string;
  } catch {
    // An escape that only TOML has: no header of ours is written so.
    return text;
  }
}

/** The state after a line: the quote of a multi-line string that is open, and the number of open brackets. */
function skipLine(line: string, open: string | undefined, brackets: number): [string | undefined, number] {
  let quote = open;
  let depth = brackets;
  for (let at = 0; at < line.length; at++) {
    const here = line.slice(at, at + 3);
    if (quote !== undefined) {
      if (quote.startsWith('"') && line[at] === "\\") at++;
      else if (line.startsWith(quote, at)) {
        at += quote.length - 1;
        quote = undefined;
      }
    } else if (here === '"""' || here === "'''") {
      quote = here;
      at += 2;
    } else if (line[at] === '"' || line[at] === "'") quote = line[at];
    else if (line[at] === "#") break;
    else if (line[at] === "[" || line[at] === "{") depth++;
    else if (line[at] === "]" || line[at] === "}") depth--;
  }
  // A string of one line ends with it.
  return [quote?.length === 1 ? undefined : quote, Math.max(depth, 0)];
}
