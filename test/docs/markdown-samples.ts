import { readFileSync } from "node:fs";

/** A fenced code block of a document. */
export interface Sample {
  /** `docs/skills.md:12`, the line of its fence. */
  readonly place: string;
  readonly document: string;
  readonly line: number;
  readonly language: string;
  /** Its path in a project, from a first line such as `// skills/weather/tools/get_weather.ts`, or from a line before the block with the path and a colon. */
  readonly file: string | undefined;
  /** The comments directly before it: `<!-- call get_weather {"city":"Oslo"} -> success Oslo -->`. */
  readonly directives: readonly Directive[];
  readonly text: string;
}

interface Directive {
  readonly name: string;
  readonly rest: string;
}

const fence = /^(```+)(\S*)\s*$/;
const comment = /^<!-- (\S+) ?(.*) -->$/;
const label = /^`((?:[\w.@-]+\/)*[\w.@-]+)`:$/;
const title = /^\/\/ ((?:[\w.@-]+\/)*[\w.@-]+\.[cm]?[jt]sx?)$/;

/** All fenced blocks of a Markdown file, in order. Throws for an unclosed fence. */
export function readSamples(path: string, document: string): readonly Sample[] {
  const lines = readFileSync(path, "utf8").split("\n");
  const samples: Sample[] = [];
  for (let at = 0; at < lines.length; at++) {
    const [, marks, language = ""] = fence.exec(lines[at]!) ?? [];
    if (marks === undefined) continue;
    const end = lines.indexOf(marks, at + 1);
    if (end === -1) throw new Error(`${document}:${at + 1}: this block is never closed.`);
    const text = `${lines.slice(at + 1, end).join("\n")}\n`;
    const directives = directivesBefore(lines, at);
    const file = label.exec(lines[at - directives.length - 1] ?? "")?.[1] ?? title.exec(lines[at + 1]!)?.[1];
    samples.push({ place: `${document}:${at + 1}`, document, line: at + 1, language, file, directives, text });
    at = end;
  }
  return samples;
}

function directivesBefore(lines: readonly string[], at: number): readonly Directive[] {
  const found: Directive[] = [];
  for (let line = at - 1; line >= 0; line--) {
    const [, name, rest] = comment.exec(lines[line]!) ?? [];
    if (name === undefined) break;
    found.unshift({ name, rest: rest! });
  }
  return found;
}

/** The commands of a shell block, one per line, without comments. */
export function commandsOf({ text }: Sample): readonly string[] {
  const lines = text.replaceAll("\\\n", " ").split("\n");
  return lines.map((line) => line.replace(/(?:^|\s+)#.*$/, "").trim()).filter((line) => line !== "");
}

/** Splits a command as a shell does: at white space outside single and double quotes. */
export function splitCommand(command: string): readonly string[] {
  const words = [...command.matchAll(/(?:'[^']*'|"[^"]*"|[^\s'"])+/g)].map(([word]) => word);
  return words.map((word) => word.replaceAll(/'([^']*)'|"([^"]*)"/g, (_whole, single, double) => single ?? double));
}
