import { isAbsolute, relative, sep } from "node:path";

// Control characters can repaint a terminal; direction controls and invisible letters can make a name look like another.
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it is about
const unseen = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\u{e0000}-\u{e007f}]/gu;

/** Text of strangers as one line for a terminal: white space is a blank, what cannot be seen is written as an escape. */
export function visibleLine(text: string): string {
  return text.replace(/[ \t]*[\r\n]+[ \t]*|\t/g, " ").replace(unseen, escaped);
}

/** The same for text of several lines, whose lines and tabs stay. */
export function visibleText(text: string): string {
  return text
    .replace(/\r\n?/g, "\n")
    .replace(unseen, (character) => (character === "\n" || character === "\t" ? character : escaped(character)));
}

/** A path as it is best read and clicked: relative when it lies below. */
export function shownPath(path: string, from: string): string {
  const way = relative(from, path);
  if (way === "") return ".";
  return visibleLine(way.startsWith(`..${sep}`) || way === ".." || isAbsolute(way) ? path : way);
}

function escaped(character: string): string {
  const code = character.codePointAt(0)!;
  return code < 0x100 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u{${code.toString(16)}}`;
}
