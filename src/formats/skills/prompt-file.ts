import type { Diagnostic } from "../../base/diagnostic.ts";
import { parseFrontMatter } from "./front-matter.ts";
import {
  type ArgumentField,
  argumentHintField,
  argumentsField,
  booleanField,
  type FieldWarning,
  textField,
} from "./front-matter-fields.ts";

/** A Markdown file with a prompt; its front matter is optional. */
export interface PromptFile {
  readonly name?: string;
  readonly description?: string;
  readonly title?: string;
  readonly arguments?: readonly ArgumentField[];
  readonly argumentHint?: string;
  /** False: it is context for a model and not offered to people. */
  readonly userInvocable?: boolean;
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
  const fields = {
    name: textField(data, "name", warn),
    title: textField(data, "title", warn),
    description: textField(data, "description", warn),
    arguments: argumentsField(data, "arguments", warn),
    argumentHint: argumentHintField(data, "argument-hint", warn),
    userInvocable: booleanField(data, "user-invocable", warn),
  };
  const given = Object.entries(fields).filter(([, value]) => value !== undefined);
  return { prompt: { ...Object.fromEntries(given), body }, diagnostics };
}

// A text full of placeholders times long arguments would be gigabytes: past this much the rest stays unfilled.
const maxInserted = 8_388_608;
const maxNames = 100;

export interface Expansion {
  /** The skill's folder, for `{baseDir}` and `${CLAUDE_SKILL_DIR}`. */
  readonly baseDir?: string;
  /** The folder of the plugin that it comes with, for `${CLAUDE_PLUGIN_ROOT}`. */
  readonly pluginRoot?: string | undefined;
  /** What the user wrote after the skill's name; absent: nobody invoked it, and the argument placeholders stay. */
  readonly argumentsText?: string;
  readonly argumentNames?: readonly string[];
  /** Instead of `argumentsText`: the value of each of the names that was given one. */
  readonly argumentValues?: Readonly<Record<string, string>> | undefined;
}

/**
 * Fills the placeholders of a prompt or a skill's body in one pass, so that what is filled in is never read again.
 * With arguments also `$ARGUMENTS` (appended if no placeholder takes the arguments), `$ARGUMENTS[0]`, `$0` and the
 * names in `argumentNames`, as `$name` or `${name}`: a positional one that was not given stays, a named one becomes empty, and a backslash before
 * any of them keeps it. Commands in the text are never run.
 */
export function expandPrompt(body: string, expansion: Expansion): string {
  const filler = createFiller(expansion);
  const text = body.replace(placeholderPattern(expansion.argumentNames ?? []), (whole, ...groups) => filler.fill(whole, groups));
  const left = filler.leftArguments();
  return left === "" ? text : `${text.trimEnd()}\n\nARGUMENTS: ${left}`;
}

/** Whether a text has a place for arguments that have no name. */
export function takesArguments(body: string): boolean {
  for (const [, escaped, , all, , position] of body.matchAll(placeholderPattern([])))
    if (escaped === undefined && (all !== undefined || position !== undefined)) return true;
  return false;
}

const pluginPlaceholder = "${CLAUDE_PLUGIN_ROOT}";

interface Filler {
  fill(whole: string, groups: readonly (string | undefined)[]): string;
  /** The arguments, if no placeholder took any. */
  leftArguments(): string;
}

/** The arguments as one text, and one by one. */
function readArguments({ argumentsText, argumentNames = [], argumentValues }: Expansion): {
  readonly text: string | undefined;
  readonly values: readonly (string | undefined)[];
} {
  if (argumentValues === undefined)
    return { text: argumentsText, values: argumentsText === undefined ? [] : splitArguments(argumentsText) };
  const values = argumentNames.map((name) => (Object.hasOwn(argumentValues, name) ? argumentValues[name] : undefined));
  return { text: values.filter((value) => value !== undefined).join(" "), values };
}

function createFiller(expansion: Expansion): Filler {
  const { baseDir, pluginRoot, argumentNames = [] } = expansion;
  const { text: argumentsText, values } = readArguments(expansion);
  let inserted = 0;
  let isTaken = false;
  const argument = (groups: readonly (string | undefined)[]): string | undefined => {
    const [, , all, index, position, bare, braced] = groups;
    const name = bare ?? braced;
    if (name !== undefined) return values[argumentNames.indexOf(name)] ?? "";
    return all !== undefined && index === undefined ? argumentsText : values[Number(index ?? position)];
  };
  return {
    leftArguments: () => (isTaken || argumentsText === undefined || argumentsText.trim() === "" ? "" : argumentsText),
    fill(whole, groups) {
      const [escaped, directory] = groups;
      if (inserted > maxInserted) return whole;
      if (escaped !== undefined && argumentsText !== undefined) return whole.slice(1);
      const place = directory === pluginPlaceholder ? pluginRoot : baseDir;
      const value = directory !== undefined ? place : argumentsText === undefined ? undefined : argument(groups);
      isTaken ||= directory === undefined && value !== undefined;
      inserted += value?.length ?? 0;
      return value ?? whole;
    },
  };
}

// Groups: the backslash, a directory placeholder, $ARGUMENTS, its index, a position, a name, one in braces. Longer names first, so that
// $file-name is not taken for $file.
function placeholderPattern(argumentNames: readonly string[]): RegExp {
  const names = argumentNames.slice(0, maxNames).filter((name) => /^[A-Za-z_][\w-]{0,63}$/.test(name));
  const named = names.length === 0 ? "(?!)" : names.sort((a, b) => b.length - a.length).join("|");
  const directory = "(?<!\\\\)(\\{baseDir\\}|\\$\\{CLAUDE_SKILL_DIR\\}|\\$\\{CLAUDE_PLUGIN_ROOT\\})";
  const argument = `\\$(?:(ARGUMENTS)(?:\\[(\\d{1,4})\\])?(?!\\w)|(\\d{1,4})(?!\\w)|(${named})(?![\\w-])|\\{(${named})\\})`;
  // Without the look-ahead the optional backslash is tried at each character, which takes three times as long.
  return new RegExp(`(?=[\\\\{$])(\\\\)?(?:${directory}|${argument})`, "g");
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
