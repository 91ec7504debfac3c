import type { Diagnostic } from "../base/diagnostic.ts";
import { parseFrontMatter } from "./front-matter.ts";
import { type FieldWarning, textField, wordListField } from "./front-matter-fields.ts";

/** A Markdown file with a prompt; its front matter is optional. */
export interface PromptFile {
  readonly name?: string;
  readonly description?: string;
  readonly argumentNames?: readonly string[];
  /** Nothing is expanded in it. */
  readonly body: string;
}

/** Reads a prompt file. Every text is one; a front matter that cannot be read as such is reported. */
export function parsePromptFile(text: string, file: string): { prompt: PromptFile; diagnostics: readonly Diagnostic[] } {
  const { data, body, problems, positions } = parseFrontMatter(text);
  const diagnostics = problems.map((problem): Diagnostic => ({ ...problem, file }));
  const warn: FieldWarning = (key, message) => {
    const start = positions.get(key);
    diagnostics.push({ severity: "warning", code: "PROMPT_FIELD_TYPE", message, file, ...(start && { range: { start } }) });
  };
  const [name, description] = [textField(data, "name", warn), textField(data, "description", warn)];
  const argumentNames = wordListField(data, "arguments", warn);
  return {
    prompt: {
      ...(name !== undefined && { name }),
      ...(description !== undefined && { description }),
      ...(argumentNames && { argumentNames }),
      body,
    },
    diagnostics,
  };
}

// A text full of placeholders times long arguments would be gigabytes: past this much the rest stays unfilled.
const maxInserted = 8_388_608;
const maxNames = 100;

export interface Expansion {
  /** The skill's folder, for `{baseDir}` and `${CLAUDE_SKILL_DIR}`. */
  readonly baseDir?: string;
  /** What the user wrote after the skill's name; absent: nobody invoked it, and the argument placeholders stay. */
  readonly argumentsText?: string;
  readonly argumentNames?: readonly string[];
}

/**
 * Fills the placeholders of a prompt or a skill's body in one pass, so that what is filled in is never read again.
 * With `argumentsText` also `$ARGUMENTS` (appended if no placeholder takes the arguments), `$ARGUMENTS[0]`, `$0` and the
 * names in `argumentNames`: a positional one that was not given stays, a named one becomes empty, and a backslash before
 * any of them keeps it. Commands in the text are never run.
 */
export function expandPrompt(body: string, expansion: Expansion): string {
  const { argumentsText = "", argumentNames = [] } = expansion;
  const filler = createFiller(expansion);
  const text = body.replace(placeholderPattern(argumentNames), (whole, ...groups) => filler.fill(whole, groups));
  return filler.tookArguments() || argumentsText.trim() === "" ? text : `${text.trimEnd()}\n\nARGUMENTS: ${argumentsText}`;
}

/** `expandPrompt` for the arguments alone. */
export function expandArguments(body: string, argumentsText: string, argumentNames: readonly string[] = []): string {
  return expandPrompt(body, { argumentsText, argumentNames });
}

interface Filler {
  fill(whole: string, groups: readonly (string | undefined)[]): string;
  tookArguments(): boolean;
}

function createFiller({ baseDir, argumentsText, argumentNames = [] }: Expansion): Filler {
  const values = argumentsText === undefined ? [] : splitArguments(argumentsText);
  let inserted = 0;
  let isTaken = false;
  const argument = (groups: readonly (string | undefined)[]): string | undefined => {
    const [, , all, index, position, name] = groups;
    if (name !== undefined) return values[argumentNames.indexOf(name)] ?? "";
    return all !== undefined && index === undefined ? argumentsText : values[Number(index ?? position)];
  };
  return {
    tookArguments: () => isTaken,
    fill(whole, groups) {
      const [escaped, directory] = groups;
      if (inserted > maxInserted) return whole;
      if (escaped !== undefined && argumentsText !== undefined) return whole.slice(1);
      const value = directory !== undefined ? baseDir : argumentsText === undefined ? undefined : argument(groups);
      isTaken ||= directory === undefined && value !== undefined;
      inserted += value?.length ?? 0;
      return value ?? whole;
    },
  };
}

// Groups: the backslash, a directory placeholder, $ARGUMENTS, its index, a position, a name. Longer names first, so that
// $file-name is not taken for $file.
function placeholderPattern(argumentNames: readonly string[]): RegExp {
  const names = argumentNames.slice(0, maxNames).filter((name) => /^[A-Za-z_][\w-]{0,63}$/.test(name));
  const named = names.length === 0 ? "(?!)" : names.sort((a, b) => b.length - a.length).join("|");
  const directory = "(?<!\\\\)(\\{baseDir\\}|\\$\\{CLAUDE_SKILL_DIR\\})";
  const argument = `\\$(?:(ARGUMENTS)(?:\\[(\\d{1,4})\\])?(?!\\w)|(\\d{1,4})(?!\\w)|(${named})(?![\\w-]))`;
  return new RegExp(`(\\\\)?(?:${directory}|${argument})`, "g");
}

// As a shell splits words: white space outside quotes separates, quotes are removed, a backslash keeps the next character.
function splitArguments(text: string): readonly string[] {
  const words: string[] = [];
  let word: string | undefined;
  let quote = "";
  for (let at = 0; at < text.length; at++) {
    const character = text[at]!;
    if (character === "\\" && quote !== "'" && at + 1 < text.length) word = (word ?? "") + text[++at];
    else if (character === quote) quote = "";
    else if (quote === "" && (character === '"' || character === "'")) [quote, word] = [character, word ?? ""];
    else if (quote !== "" || !/\s/.test(character)) word = (word ?? "") + character;
    else {
      if (word !== undefined) words.push(word);
      word = undefined;
    }
  }
  return word === undefined ? words : [...words, word];
}
