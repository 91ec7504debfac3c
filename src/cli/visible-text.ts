import { isAbsolute, relative, sep } from "node:path";
import { escapeHidden } from "../base/hidden-characters.ts";

/** Text of strangers as one line for a terminal: white space is a blank, what cannot be seen is written as an escape. */
export function visibleLine(text: string): string {
  return escapeHidden(text.replace(/[ \t]*[\r\n]+[ \t]*|\t/g, " "));
}

/** The same for text of several lines, whose lines and tabs stay. */
export function visibleText(text: string): string {
  return escapeHidden(text.replace(/\r\n?/g, "\n"));
}

/** A path as it is best read and clicked: relative when it lies below. */
export function shownPath(path: string, from: string): string {
  const way = relative(from, path);
  if (way === "") return ".";
  return visibleLine(way.startsWith(`..${sep}`) || way === ".." || isAbsolute(way) ? path : way);
}
