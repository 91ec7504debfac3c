/**
 * Characters that people cannot see, or that change what they see: control characters, direction controls,
 * and characters without a glyph (including "tags" and variation selectors, which can hide whole texts). Line breaks
 * and tabs do not count.
 */
const hidden = String.raw`[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800\ufff9-\ufffb]`;

// Scripts that write letters together, or keep them apart, by joiners (Unicode 16, 9.2, 12.1 and 16.3).
const joining = [
  ..."Arabic Syriac Nko Mongolian Devanagari Bengali Gurmukhi Gujarati Oriya Tamil Telugu Kannada Malayalam Sinhala".split(" "),
  ..."Khmer Myanmar Tibetan Balinese Javanese".split(" "),
];
const withoutSpaces = "Thai Lao Khmer Myanmar Tibetan Tai_Tham Javanese Balinese".split(" ");
const rightToLeft = "Arabic Hebrew Syriac Thaana Nko".split(" ");

function anyOf(scripts: readonly string[]): string {
  return `[${scripts.map((script) => String.raw`\p{Script=${script}}`).join("")}]`;
}

/** What is written with characters of the table for a reason. Each alternative is one such character, or a whole flag. */
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
/** Marks that only order text of both directions: harmless to a model, but they can change what a person sees. */
const directionMarks = [
  `(?<=${anyOf(rightToLeft)}[^\\p{L}]{0,2})[\\u200e\\u200f\\u061c]`,
  `[\\u200e\\u200f\\u061c](?=[^\\p{L}]{0,2}${anyOf(rightToLeft)})`,
];

const anyHidden = new RegExp(hidden, "u");
// Nearly all characters of most texts are plain, and the class above costs twenty times as much a character: it gets only the others.
const otherText = /[^\t\n\r\x20-\x7e]+/g;
const shownToPeople = hiddenBut(legitimate, hidden);
const givenToModels = hiddenBut([...legitimate, ...directionMarks], hidden);
// Control and format characters, unassigned and private ones, separators but the blank, and what fonts show as nothing.
const inexact = String.raw`[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800\ufff9-\ufffb]|(?! )\p{Zs}`;
const notExact = new RegExp(inexact, "gu");
const notExactInLines = hiddenBut([...legitimate.slice(0, 4), "[\\n\\t]"], inexact);

/**
 * What is hidden; the first group holds what is kept. All that is kept begins with a hidden character: that is looked for first, since
 * each alternative looks behind, which costs fifty times as much a character.
 */
function hiddenBut(kept: readonly string[], characters: string): RegExp {
  return new RegExp(`(?=${characters})(?:(${kept.join("|")})|${characters})`, "gu");
}

/** Text of strangers for people: what cannot be seen is written as an escape; line breaks, tabs and emoji stay. */
export function escapeHidden(text: string): string {
  if (!mayHide(text)) return text;
  return text.replace(shownToPeople, (found, kept: string | undefined) => kept ?? escaped(found));
}

/** A value as JSON on one line for people who decide about it: everything but plain characters is written as an escape. */
export function exactJson(value: unknown): string {
  return (JSON.stringify(value) ?? "nothing").replace(notExact, (character) => `\\u{${character.codePointAt(0)!.toString(16)}}`);
}

/** The same for text of several lines: line breaks, tabs and whole emoji stay. */
export function exactText(text: string): string {
  return text.replace(/\r\n/g, "\n").replace(notExactInLines, (found, kept: string | undefined) => kept ?? escaped(found));
}

/** JSON text that shows everything: parsed, it gives the same value. */
export function escapeJsonText(json: string): string {
  if (!mayHide(json)) return json;
  return json.replace(shownToPeople, (found, kept: string | undefined) => kept ?? [...unitsOf(found)].map(unitEscape).join(""));
}

/** Text of strangers for models: without what people cannot see. */
export function withoutHidden(text: string): string {
  if (!mayHide(text)) return text;
  return text.replace(givenToModels, (_, kept: string | undefined) => kept ?? "");
}

/** What `withoutHidden` takes out of a text. */
export interface HiddenFinding {
  readonly count: number;
  /** Where the first one is, in UTF-16 units. */
  readonly offset: number;
  /** Up to five different ones: `U+202E`. */
  readonly characters: readonly string[];
}

/** Undefined: nothing is hidden in the text. */
export function findHidden(text: string): HiddenFinding | undefined {
  if (!mayHide(text)) return undefined;
  let [count, offset] = [0, -1];
  const codes = new Set<string>();
  for (const match of text.matchAll(givenToModels)) {
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
  for (const [others] of text.matchAll(otherText)) if (anyHidden.test(others)) return true;
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
