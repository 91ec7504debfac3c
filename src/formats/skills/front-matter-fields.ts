import { withoutHidden } from "../../base/untrusted-text.ts";

/** Called when a field has an invalid value, which is then omitted. */
export type FieldWarning = (key: string, message: string) => void;

type Data = Readonly<Record<string, unknown>>;

/** Text, trimmed; blank counts as absent. Numbers and booleans are converted to text: `version: 2` means "2". */
export function textField(data: Data, key: string, warn: FieldWarning): string | undefined {
  const value = data[key] ?? undefined;
  if (value === undefined) return undefined;
  if (typeof value === "object") {
    warn(key, `\`${key}\` must be a string, so it is ignored. Put quotes around it if it is meant as text.`);
    return undefined;
  }
  return withoutHidden(String(value)).trim() || undefined;
}

/** Booleans, and their common spellings. */
export function booleanField(data: Data, key: string, warn: FieldWarning): boolean | undefined {
  const value = data[key] ?? undefined;
  if (value === undefined) return undefined;
  const word = typeof value === "object" ? "" : String(value).trim().toLowerCase();
  if (["true", "yes", "on", "1"].includes(word)) return true;
  if (["false", "no", "off", "0"].includes(word)) return false;
  warn(key, `\`${key}\` must be true or false, so it is ignored.`);
  return undefined;
}

export function mapField(data: Data, key: string, warn: FieldWarning): Readonly<Record<string, unknown>> | undefined {
  const value = data[key] ?? undefined;
  if (value === undefined) return undefined;
  if (typeof value === "object" && !Array.isArray(value)) return value as Readonly<Record<string, unknown>>;
  warn(key, `\`${key}\` must be a mapping of keys to values, so it is ignored.`);
  return undefined;
}

/** Names of tools, from a list or from text with spaces or commas between them; parenthesised parts are kept together. */
export function toolListField(data: Data, key: string, warn: FieldWarning): readonly string[] | undefined {
  return listField(data, key, warn)?.flatMap(splitToolList);
}

/** Words, from a list or from text with white space or commas between them. */
function wordListField(data: Data, key: string, warn: FieldWarning): readonly string[] | undefined {
  return listField(data, key, warn)?.flatMap((text) => text.split(/[\s,]+/).filter((word) => word !== ""));
}

/** An argument that a prompt declares. */
export interface ArgumentField {
  readonly name: string;
  readonly description?: string;
  readonly required?: boolean;
}

/**
 * Arguments: names as `wordListField` reads them, or a list of names and of objects with a name. Entries without a name, and
 * repeated names, are omitted.
 */
export function argumentsField(data: Data, key: string, warn: FieldWarning): readonly ArgumentField[] | undefined {
  const value = data[key] ?? undefined;
  if (!Array.isArray(value) || value.every(isScalar)) return unique(wordListField(data, key, warn)?.map((name) => ({ name })));
  const found = value.flatMap((item: unknown) => (isScalar(item) ? [{ name: visible(item).trim() }] : argumentOf(item, key, warn)));
  return unique(found.filter(({ name }) => name !== ""));
}

/** A hint such as `[file] [line]`. YAML parses it as a list when it is not quoted; this converts the list back. */
export function argumentHintField(data: Data, key: string, warn: FieldWarning): string | undefined {
  const value = data[key];
  if (!Array.isArray(value)) return textField(data, key, warn);
  return value.every(isScalar) ? `[${value.map(visible).join(", ")}]` : textField(data, key, warn);
}

function listField(data: Data, key: string, warn: FieldWarning): readonly string[] | undefined {
  const value = data[key] ?? undefined;
  if (value === undefined) return undefined;
  const items: readonly unknown[] = Array.isArray(value) ? value : [value];
  if (items.every(isScalar)) return items.map(visible);
  warn(key, `\`${key}\` must be a string or a list of strings; other values are ignored.`);
  return items.filter(isScalar).map(visible);
}

function visible(value: unknown): string {
  return withoutHidden(String(value));
}

function argumentOf(item: unknown, key: string, warn: FieldWarning): ArgumentField[] {
  const fields = typeof item === "object" && item !== null && !Array.isArray(item) ? (item as Data) : {};
  const complain: FieldWarning = (field, message) => warn(key, message.replace(`\`${field}\``, `\`${field}\` of an argument`));
  const name = textField(fields, "name", complain);
  if (name === undefined) {
    warn(key, `\`${key}\` must contain only names and objects with a name; other values are ignored.`);
    return [];
  }
  const [description, required] = [textField(fields, "description", complain), booleanField(fields, "required", complain)];
  return [{ name, ...(description !== undefined && { description }), ...(required !== undefined && { required }) }];
}

function unique(found: readonly ArgumentField[] | undefined): readonly ArgumentField[] | undefined {
  const names = new Set<string>();
  return found?.filter(({ name }) => !names.has(name) && names.add(name));
}

function isScalar(value: unknown): boolean {
  return value !== null && typeof value !== "object";
}

function splitToolList(text: string): string[] {
  const items: string[] = [];
  let depth = 0;
  let start = 0;
  for (let at = 0; at <= text.length; at++) {
    const character = text[at];
    if (character === "(") depth++;
    else if (character === ")") depth = Math.max(0, depth - 1);
    if (character !== undefined && (depth > 0 || !/[\s,]/.test(character))) continue;
    if (at > start) items.push(text.slice(start, at));
    start = at + 1;
  }
  return items;
}
