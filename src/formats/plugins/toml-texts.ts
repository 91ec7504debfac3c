interface TomlFault {
  readonly message: string;
  readonly offset: number;
}

interface TomlTexts {
  /** The texts at the top of the document, by key. */
  readonly texts: ReadonlyMap<string, string>;
  /** Empty, or what ended the reading. */
  readonly faults: readonly TomlFault[];
}

const blanks = /[ \t\r\n]*/y;
const comment = /#[^\n]*/y;
const keyAndEquals = /(?:"([^"\\\n]*)"|'([^'\n]*)'|([A-Za-z0-9_.-]+))[ \t]*=[ \t]*/y;
const otherValue = /[^\n]*/y;
const escapes: Readonly<Record<string, string>> = { b: "\b", t: "\t", n: "\n", f: "\f", r: "\r", e: "\u001b", '"': '"', "\\": "\\" };

/**
 * Reads the texts at the top of a TOML document, in all four forms that TOML has for them. It ends at the first table;
 * values of other types are passed over where they stand in one line. Never throws.
 */
export function parseTomlTexts(source: string): TomlTexts {
  const texts = new Map<string, string>();
  let at = source.startsWith("\uFEFF") ? 1 : 0;
  const match = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = at;
    const found = pattern.exec(source);
    at += found?.[0].length ?? 0;
    return found;
  };
  for (;;) {
    do match(blanks);
    while (match(comment) !== null);
    if (at >= source.length || source[at] === "[") return { texts, faults: [] };
    const start = at;
    const key = match(keyAndEquals);
    if (key === null) return { texts, faults: [{ message: "A key and = should stand here. Write `prompt = …`.", offset: start }] };
    const name = key[1] ?? key[2] ?? key[3]!;
    const value = readText(source, at);
    if (value === "other") match(otherValue);
    else if (value === undefined)
      return { texts, faults: [{ message: `The text of "${name}" has no end, or an escape that TOML does not know.`, offset: at }] };
    else {
      at = value.end;
      if (!texts.has(name)) texts.set(name, value.text);
    }
  }
}

type ReadText = { readonly text: string; readonly end: number } | "other" | undefined;

function readText(source: string, at: number): ReadText {
  const quote = source[at];
  if (quote !== '"' && quote !== "'") return "other";
  const isLong = source.startsWith(quote.repeat(3), at);
  const start = at + (isLong ? 3 : 1);
  const end = endOf(source, start, quote, isLong);
  if (end === undefined) return undefined;
  // A line break right after the opening quotes is not part of the text.
  const raw = source.slice(start, end).replace(isLong ? /^\r?\n/ : /(?!)/, "");
  const text = quote === "'" ? raw : unescaped(raw, isLong);
  return text === undefined ? undefined : { text, end: end + (isLong ? 3 : 1) };
}

function endOf(source: string, start: number, quote: string, isLong: boolean): number | undefined {
  for (let at = start; at < source.length; at++) {
    const next = source[at];
    if (next === "\\" && quote === '"') at++;
    else if (!isLong && next === "\n") return undefined;
    else if (next === quote && (!isLong || source.startsWith(quote.repeat(3), at))) {
      // Up to two quotes may stand right before the closing three.
      while (isLong && source[at + 3] === quote) at++;
      return at;
    }
  }
  return undefined;
}

function unescaped(raw: string, isLong: boolean): string | undefined {
  let isSound = true;
  const text = raw.replace(/\\(?:u([\da-fA-F]{4})|U([\da-fA-F]{8})|([ \t]*\r?\n\s*)|([\s\S]))/g, (_whole, short, long, lineEnd, letter) => {
    const code = Number.parseInt(short ?? long ?? "", 16);
    if (code <= 0x10ffff) return String.fromCodePoint(code);
    if (lineEnd !== undefined && isLong) return "";
    isSound &&= typeof letter === "string" && Object.hasOwn(escapes, letter);
    return escapes[letter as string] ?? "";
  });
  return isSound ? text : undefined;
}
