type Scalar = string | number | boolean;
type Value = Scalar | readonly Scalar[] | Readonly<Record<string, Scalar>>;

/**
 * Reads the front matter of a SKILL.md that uses only the simple forms of YAML, which needs no parser: texts of one or several lines,
 * numbers, lists, and maps of one level. Undefined: it has anything else, or a value that the Agent Skills specification does not allow,
 * so the SDK must read and judge it.
 */
export function readPlainFrontMatter(document: string, name: string): Readonly<Record<string, Value>> | undefined {
  const end = document.startsWith("---\n") ? document.indexOf("\n---\n", 3) : -1;
  const fields = end < 4 ? undefined : readFields(document.slice(4, end).split("\n"));
  if (fields === undefined || fields.name !== name || !isTextUpTo(fields.description, maxDescriptionLength)) return undefined;
  const { compatibility, metadata } = fields;
  if (compatibility !== undefined && !isTextUpTo(compatibility, maxCompatibilityLength)) return undefined;
  return metadata === undefined || isTextMap(metadata) ? { ...fields } : undefined;
}

const maxDescriptionLength = 1024;
const maxCompatibilityLength = 500;

function isTextUpTo(value: Value | undefined, limit: number): boolean {
  return typeof value === "string" && value !== "" && value.length <= limit;
}

function isTextMap(value: Value): boolean {
  return typeof value === "object" && !Array.isArray(value) && Object.values(value).every((item) => typeof item === "string");
}

/** Fields begin at the start of a line; the lines below that are indented, or are the items of a list, belong to them. */
function readFields(lines: readonly string[]): Readonly<Record<string, Value>> | undefined {
  const fields: Record<string, Value> = Object.create(null) as Record<string, Value>;
  for (let at = 0; at < lines.length; ) {
    const [, key = "", head] = fieldLine.exec(lines[at]!) ?? [];
    if (key === "" || key in fields || special.has(key)) return undefined;
    const start = ++at;
    while (at < lines.length && /^(?: |- )/.test(lines[at]!)) at++;
    const value = start === at ? (readScalar(head) ?? readFlow(head)) : readLines(head, lines.slice(start, at));
    if (value === undefined) return undefined;
    fields[key] = value;
  }
  return fields;
}

const fieldLine = /^([A-Za-z][A-Za-z0-9_-]*):(?: (.+))?$/;

/** Keys with a meaning in JavaScript. */
const special: ReadonlySet<string> = new Set(["constructor", "__proto__"]);

/** A text, number or truth value of one line. */
function readScalar(written = ""): Scalar | undefined {
  if (/^(?:0|[1-9]\d{0,8})(?:\.\d{1,6})?$/.test(written)) return Number(written);
  if (written === "true" || written === "false") return written === "true";
  if (isPlainText(written) || /^\d+(?:\.\d+){2,}$/.test(written)) return written;
  if (written.startsWith('"')) return quotedText.test(written) ? (JSON.parse(written) as string) : undefined;
  const [, singleQuoted] = singleQuotedText.exec(written) ?? [];
  return singleQuoted?.replaceAll("''", "'");
}

// Without control characters, and only with escapes that JSON and YAML read equally.
const quotedText = /^"(?:[^\p{C}\p{Zl}\p{Zp}"\\]|\\["\\nt])*"$/u;
const singleQuotedText = /^'((?:[^\p{C}\p{Zl}\p{Zp}']|'')*)'$/u;

/** A list of words in brackets, or a map of texts in the form of JSON. */
function readFlow(written = ""): Value | undefined {
  if (flatMap.test(written)) return readJsonMap(written);
  const words = /^\[[\w, -]+\]$/.test(written) ? written.slice(1, -1).split(", ") : [];
  return words.length > 0 && words.every((word) => /^[A-Za-z][\w-]*$/.test(word) && !otherValues.test(word)) ? words : undefined;
}

const flatMap = /^\{"[\w-]+":"[^\p{C}\p{Zl}\p{Zp}"\\]*"(?:,"[\w-]+":"[^\p{C}\p{Zl}\p{Zp}"\\]*")*\}$/u;

function readJsonMap(written: string): Value | undefined {
  const map = JSON.parse(written) as Record<string, string>;
  const keys = Object.keys(map);
  // JSON takes the last of equal keys.
  return keys.length === written.split('":"').length - 1 && !keys.some((key) => special.has(key)) ? map : undefined;
}

/** A value with lines below its key: a list, a map, a block of text, or a text that continues. */
function readLines(head: string | undefined, lines: readonly string[]): Value | undefined {
  const [indent = ""] = /^ */.exec(lines[0]!)!;
  const texts = lines.map((line) => (line.startsWith(indent) ? line.slice(indent.length) : ""));
  if (head === undefined) return texts[0]!.startsWith("- ") ? readList(texts) : indent === "" ? undefined : readMap(texts);
  if (indent === "") return undefined;
  if (/^[|>]-?$/.test(head)) return texts.every(isBlockLine) ? texts.join(head[0] === "|" ? "\n" : " ") + (head[1] ? "" : "\n") : undefined;
  return isPlainText(head) && texts.every(isPlainText) ? [head, ...texts].join(" ") : undefined;
}

function readList(texts: readonly string[]): readonly Scalar[] | undefined {
  const items: Scalar[] = [];
  for (const text of texts) {
    const item = text.startsWith("- ") ? readScalar(text.slice(2)) : undefined;
    if (item === undefined) return undefined;
    items.push(item);
  }
  return items;
}

function readMap(texts: readonly string[]): Readonly<Record<string, Scalar>> | undefined {
  const map: Record<string, Scalar> = Object.create(null) as Record<string, Scalar>;
  for (const text of texts) {
    const [, key = "", written] = fieldLine.exec(text) ?? [];
    const value = key === "" || key in map || special.has(key) ? undefined : readScalar(written);
    if (value === undefined) return undefined;
    map[key] = value;
  }
  return { ...map };
}

/** A line of a block of text that is neither indented further nor ends with white space. */
function isBlockLine(text: string): boolean {
  return /^[^\p{C}\p{Z}](?:[^\p{C}\p{Zl}\p{Zp}]*[^\p{C}\p{Z}])?$/u.test(text);
}

/** A text without quotes that nothing in YAML reads as anything else. */
function isPlainText(text: string): boolean {
  return /^\p{L}[^\p{C}\p{Zl}\p{Zp}]*$/u.test(text) && !/: |:$| #|\s$|\s\s/.test(text) && !otherValues.test(text);
}

/** Words that YAML reads as other values than texts. */
const otherValues = /^(?:true|false|null|yes|no|on|off|y|n)$/i;
