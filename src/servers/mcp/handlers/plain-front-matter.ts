/**
 * Reads the front matter of a SKILL.md whose lines are all a key and a simple text, which needs no parser of YAML. Undefined: it has
 * anything else, or a value that the Agent Skills specification does not allow, so the SDK must read and judge it.
 */
export function readPlainFrontMatter(document: string, name: string): Readonly<Record<string, string>> | undefined {
  const end = document.startsWith("---\n") ? document.indexOf("\n---\n", 3) : -1;
  if (end < 4) return undefined;
  const fields: Record<string, string> = Object.create(null) as Record<string, string>;
  for (const line of document.slice(4, end).split("\n")) {
    const [, key = "", plain, quoted, singleQuoted] = fieldLine.exec(line) ?? [];
    const value = plain ?? quoted ?? singleQuoted?.replaceAll("''", "'");
    if (value === undefined || key in fields || special.has(key)) return undefined;
    if (plain !== undefined && !isPlainText(plain)) return undefined;
    fields[key] = value;
  }
  const { name: written, description = "" } = fields;
  if (written !== name || description === "" || description.length > maxDescriptionLength) return undefined;
  return { ...fields };
}

const maxDescriptionLength = 1024;

// A text of one line without control characters: plain, in double quotes without escapes, or in single quotes.
const fieldLine =
  /^([A-Za-z][A-Za-z0-9_-]*): (?:([A-Za-z][^\p{C}\p{Zl}\p{Zp}]*)|"([^\p{C}\p{Zl}\p{Zp}"\\]*)"|'((?:[^\p{C}\p{Zl}\p{Zp}']|'')*)')$/u;

/** Fields whose values have rules of their own, and keys with a meaning in JavaScript. */
const special: ReadonlySet<string> = new Set(["compatibility", "metadata", "constructor", "__proto__"]);

/** Words that YAML reads as other values than texts. */
const otherValues = /^(?:true|false|null|yes|no|on|off|y|n)$/i;

function isPlainText(text: string): boolean {
  return !/: |:$| #|\s$|\s\s/.test(text) && !otherValues.test(text);
}
