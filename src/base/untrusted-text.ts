import { sha256 } from "./canonical-json.ts";

/**
 * Characters that are invisible, or that change the display of others: control characters, direction controls, and characters
 * without a glyph (including "tags" and variation selectors, which can hide whole texts). Line breaks and tabs are not
 * included.
 */
const hidden = String.raw`[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800\ufff9-\ufffb]`;

// Scripts that use joiners to connect or separate letters (Unicode 16, 9.2, 12.1 and 16.3).
const joining = [
  ..."Arabic Syriac Nko Mongolian Devanagari Bengali Gurmukhi Gujarati Oriya Tamil Telugu Kannada Malayalam Sinhala".split(" "),
  ..."Khmer Myanmar Tibetan Balinese Javanese".split(" "),
];
const withoutSpaces = "Thai Lao Khmer Myanmar Tibetan Tai_Tham Javanese Balinese".split(" ");
const rightToLeft = "Arabic Hebrew Syriac Thaana Nko".split(" ");

function anyOf(scripts: readonly string[]): string {
  return `[${scripts.map((script) => String.raw`\p{Script=${script}}`).join("")}]`;
}

/** Legitimate uses of these characters. Each alternative matches one character, or a whole flag. */
const legitimate = [
  // The emoji form of a character, keycaps, and emoji of several parts.
  String.raw`(?<=\p{Extended_Pictographic})[\ufe0e\ufe0f]|(?<=\ufffd)\ufe0f`,
  String.raw`(?<=[#*0-9])\ufe0f(?=\u20e3)`,
  String.raw`(?<=[\p{Extended_Pictographic}\p{Emoji_Modifier}]\ufe0f?)\u200d(?=\p{Extended_Pictographic})`,
  // The flags of England, Scotland and Wales: the only sequences of tags that are recommended for general interchange.
  String.raw`(?<=\u{1f3f4})(?:\u{e0067}\u{e0062}(?:\u{e0065}\u{e006e}\u{e0067}|\u{e0073}\u{e0063}\u{e0074}|\u{e0077}\u{e006c}\u{e0073}))\u{e007f}`,
  `(?<=${anyOf(joining)})[\u200c\u200d](?![\u200c\u200d])`,
  `(?<=${anyOf(withoutSpaces)})\u200b(?=${anyOf(withoutSpaces)})`,
  String.raw`(?<=\p{L})\u00ad(?=\p{L})`,
  String.raw`(?<=\p{Script=Mongolian})[\u180b-\u180f]`,
  String.raw`[\u115f\u1160](?=[\u1100-\u11ff])|(?<=[\u1100-\u115f])\u1160`,
  String.raw`(?<=[\u2801-\u28ff]\u2800{0,99})\u2800|\u2800(?=\u2800{0,99}[\u2801-\u28ff])`,
];
/** Marks that only order bidirectional text: harmless to a model, but they can change the display. */
const directionMarks = [
  `(?<=${anyOf(rightToLeft)}[^\\p{L}]{0,2})[\\u200e\\u200f\\u061c]`,
  `[\\u200e\\u200f\\u061c](?=[^\\p{L}]{0,2}${anyOf(rightToLeft)})`,
];

// V8 takes milliseconds to read these expressions, and most programs never meet a character that needs them.
const anyHidden = once(() => new RegExp(hidden, "u"));
// Nearly all characters of most texts are plain, and the class above is twenty times slower per character, so it is applied
// only to the others.
const otherText = /[^\t\n\r\x20-\x7e]+/g;
const shownToPeople = once(() => hiddenBut(legitimate, hidden));
const givenToModels = once(() => hiddenBut([...legitimate, ...directionMarks], hidden));
// Control and format characters, unassigned and private ones, separators except the space, and characters without a visible
// glyph.
const inexact = String.raw`[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800\ufff9-\ufffb]|(?! )\p{Zs}`;
const notExact = once(() => new RegExp(inexact, "gu"));
const notExactInLines = once(() => hiddenBut([...legitimate.slice(0, 4), "[\\n\\t]"], inexact));

/**
 * Matches hidden characters; the first group contains legitimate ones. Each legitimate sequence begins with a hidden character,
 * which is matched first, because the look-behind of each alternative is fifty times slower per character.
 */
function hiddenBut(kept: readonly string[], characters: string): RegExp {
  return new RegExp(`(?=${characters})(?:(${kept.join("|")})|${characters})`, "gu");
}

function once<T>(create: () => T): () => T {
  let created: T | undefined;
  return () => (created ??= create());
}

/** Untrusted text for display: invisible characters are escaped; line breaks, tabs and emoji stay. */
export function escapeHidden(text: string): string {
  if (!mayHide(text)) return text;
  return text.replace(shownToPeople(), (found, kept: string | undefined) => kept ?? escaped(found));
}

/** A value as one line of JSON for a user's approval: all characters that are not plain are escaped. */
export function exactJson(value: unknown): string {
  return (JSON.stringify(value) ?? "nothing").replace(notExact(), (character) => `\\u{${character.codePointAt(0)!.toString(16)}}`);
}

/** Like `exactJson`, for text of several lines: line breaks, tabs and whole emoji stay. */
export function exactText(text: string): string {
  return text.replace(/\r\n/g, "\n").replace(notExactInLines(), (found, kept: string | undefined) => kept ?? escaped(found));
}

/** Escapes the invisible characters of a JSON text; the parsed value is the same. */
export function escapeJsonText(json: string): string {
  if (!mayHide(json)) return json;
  return json.replace(shownToPeople(), (found, kept: string | undefined) => kept ?? [...unitsOf(found)].map(unitEscape).join(""));
}

/** Untrusted text for models, without hidden characters. */
export function withoutHidden(text: string): string {
  if (!mayHide(text)) return text;
  return text.replace(givenToModels(), (_, kept: string | undefined) => kept ?? "");
}

/** The characters that `withoutHidden` removes from a text. */
interface HiddenFinding {
  readonly count: number;
  /** The offset of the first one, in UTF-16 units. */
  readonly offset: number;
  /** Up to five different ones, such as `U+202E`. */
  readonly characters: readonly string[];
}

/** Undefined: the text has no hidden characters. */
export function findHidden(text: string): HiddenFinding | undefined {
  if (!mayHide(text)) return undefined;
  let [count, offset] = [0, -1];
  const codes = new Set<string>();
  for (const match of text.matchAll(givenToModels())) {
    if (match[1] !== undefined) continue;
    if (count++ === 0) offset = match.index;
    if (codes.size < 5) codes.add(codeOf(match[0]));
  }
  return count === 0 ? undefined : { count, offset, characters: [...codes] };
}

/** `2 hidden characters (U+200B, U+202E)`. */
export function hiddenWords({ count, characters }: Pick<HiddenFinding, "count" | "characters">): string {
  return `${count} hidden ${count === 1 ? "character" : "characters"} (${characters.join(", ")})`;
}

function mayHide(text: string): boolean {
  for (const [others] of text.matchAll(otherText)) if (anyHidden().test(others)) return true;
  return false;
}

function codeOf(character: string): string {
  return `U+${character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}`;
}

function escaped(character: string): string {
  const code = character.codePointAt(0)!;
  return code < 0x100 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u{${code.toString(16)}}`;
}

function* unitsOf(character: string): Generator<number> {
  for (let at = 0; at < character.length; at++) yield character.charCodeAt(at);
}

function unitEscape(unit: number): string {
  return `\\u${unit.toString(16).padStart(4, "0")}`;
}

/** Untrusted text for a user's approval. */
export interface ApprovalText {
  readonly text: string;
  /** False: the middle is omitted, which the user must accept too. */
  readonly isWhole: boolean;
}

const mostCharacters = 4_000;
const mostLines = 80;
const head = { characters: 2_500, lines: 50 };
const tail = { characters: 1_000, lines: 20 };

/**
 * Formats an untrusted text so that it cannot imitate the host's output: each line begins with a bar, and invisible characters
 * are escaped. A long text is shortened to its beginning and end, with the number of omitted characters and a digest of the
 * whole.
 */
export function approvalText(text: string, { isCut = true }: { readonly isCut?: boolean } = {}): ApprovalText {
  const shown = exactText(text);
  const lines = shown.split("\n");
  if (!isCut || (shown.length <= mostCharacters && lines.length <= mostLines)) return { text: barred(shown), isWhole: true };
  const first = lines.slice(0, head.lines).join("\n").slice(0, head.characters);
  const last = lines.slice(-tail.lines).join("\n").slice(-tail.characters);
  const omitted = shown.length - first.length - last.length;
  const note = `… ${omitted} of ${shown.length} characters are not shown. SHA-256 of the whole: ${sha256(text)} …`;
  return { text: `${barred(withoutHalf(first))}\n${note}\n${barred(withoutHalf(last))}`, isWhole: false };
}

function barred(text: string): string {
  return text.replace(/^/gm, "| ");
}

/** Removes surrogate halves of characters that were cut. */
function withoutHalf(text: string): string {
  return text.replace(/^[\udc00-\udfff]|[\ud800-\udbff]$/g, "");
}
