import { isAbsolute, relative, sep } from "node:path";
import { escapeHidden } from "../base/untrusted-text.ts";
import type { CliIo, CliStream } from "./process-io.ts";

type Paint = (text: string) => string;

/** The text style of one stream: colours if wanted, and marks that its fonts have. */
export interface Style {
  readonly bold: Paint;
  readonly dim: Paint;
  readonly red: Paint;
  readonly green: Paint;
  readonly yellow: Paint;
  readonly cyan: Paint;
  readonly marks: Marks;
}

interface Marks {
  readonly added: string;
  readonly updated: string;
  readonly removed: string;
  readonly failed: string;
  readonly dot: string;
}

export function createStyle(stream: CliStream, env: CliIo["env"], allowed: boolean): Style {
  const isOn = allowed && wantsColor(stream, env);
  const paint =
    (open: number, close: number): Paint =>
    (text) =>
      isOn ? `\u001b[${open}m${text}\u001b[${close}m` : text;
  return {
    bold: paint(1, 22),
    dim: paint(2, 22),
    red: paint(31, 39),
    green: paint(32, 39),
    yellow: paint(33, 39),
    cyan: paint(36, 39),
    marks: hasUnicode(env) ? unicodeMarks : asciiMarks,
  };
}

const unicodeMarks: Marks = { added: "+", updated: "~", removed: "−", failed: "✗", dot: "·" };
const asciiMarks: Marks = { added: "+", updated: "~", removed: "-", failed: "x", dot: "-" };

// FORCE_COLOR before NO_COLOR, as Node.js does (https://force-color.org, https://no-color.org).
function wantsColor(stream: CliStream, env: CliIo["env"]): boolean {
  const forced = env["FORCE_COLOR"];
  if (forced !== undefined && forced !== "") return forced !== "0" && forced !== "false";
  if (env["NO_COLOR"]) return false;
  return stream.isTTY && env["TERM"] !== "dumb";
}

function hasUnicode(env: CliIo["env"]): boolean {
  if (env["TERM"] === "dumb") return false;
  if (env["WT_SESSION"] || env["TERM_PROGRAM"] === "vscode") return true;
  return /utf-?8/i.test(env["LC_ALL"] || env["LC_CTYPE"] || env["LANG"] || "");
}

/** Untrusted text as one line for a terminal: white space becomes a blank, invisible characters become escapes. */
export function visibleLine(text: string): string {
  return escapeHidden(text.replace(/[ \t]*[\r\n]+[ \t]*|\t/g, " "));
}

/** Untrusted text for a terminal with its line breaks and tabs; other invisible characters become escapes. */
export function visibleText(text: string): string {
  return escapeHidden(text.replace(/\r\n?/g, "\n"));
}

/** A readable, clickable path: relative if it lies below `from`. */
export function shownPath(path: string, from: string): string {
  const way = relative(from, path);
  if (way === "") return ".";
  return visibleLine(way.startsWith(`..${sep}`) || way === ".." || isAbsolute(way) ? path : way);
}
