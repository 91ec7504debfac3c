// Many placeholders with long arguments could expand to gigabytes. Beyond this size the remaining placeholders are not
// replaced.
const maxInserted = 8_388_608;

const maxNames = 100;

export interface Expansion {
  /** The skill's folder, for `{baseDir}` and `${CLAUDE_SKILL_DIR}`. */
  readonly baseDir?: string;
  /** The folder of its plugin, for `${CLAUDE_PLUGIN_ROOT}`. */
  readonly pluginRoot?: string | undefined;
  /** The user's text after the skill's name. Absent: the user did not invoke it, and argument placeholders stay. */
  readonly argumentsText?: string;
  readonly argumentNames?: readonly string[];
  /** Instead of `argumentsText`: the values of named arguments. */
  readonly argumentValues?: Readonly<Record<string, string>> | undefined;
}

/**
 * Expands the placeholders of a prompt or a skill's body in one pass, so that inserted text is never expanded again. With
 * arguments also `$ARGUMENTS` (appended if no placeholder takes the arguments), `$ARGUMENTS[0]`, `$0` and the names in
 * `argumentNames`, as `$name` or `${name}`: a missing positional argument stays, a missing named argument becomes empty, and a
 * backslash escapes a placeholder. Commands in the text are never run.
 */
export function expandPrompt(body: string, expansion: Expansion): string {
  // Most texts have no placeholder at all.
  const isPlain = !body.includes("$") && !body.includes("{baseDir}");
  if (isPlain && expansion.argumentsText === undefined && expansion.argumentValues === undefined) return body;
  const filler = createFiller(expansion);
  const text = body.replace(placeholderPattern(expansion.argumentNames ?? []), (whole, ...groups) => filler.fill(whole, groups));
  const left = filler.leftArguments();
  return left === "" ? text : `${text.trimEnd()}\n\nARGUMENTS: ${left}`;
}

/** Whether a text has a placeholder for unnamed arguments. */
export function takesArguments(body: string): boolean {
  for (const [, escaped, , all, , position] of body.matchAll(placeholderPattern([])))
    if (escaped === undefined && (all !== undefined || position !== undefined)) return true;
  return false;
}

const pluginPlaceholder = "${CLAUDE_PLUGIN_ROOT}";

interface Filler {
  fill(whole: string, groups: readonly (string | undefined)[]): string;
  /** The arguments, unless a placeholder used one. */
  leftArguments(): string;
}

/** The arguments as one text, and split. */
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

// Groups: the backslash, a directory placeholder, $ARGUMENTS, its index, a position, a name, one in braces. Longer names first,
// so that $file-name does not match $file.
function placeholderPattern(argumentNames: readonly string[]): RegExp {
  const names = argumentNames.slice(0, maxNames).filter((name) => /^[A-Za-z_][\w-]{0,63}$/.test(name));
  const named = names.length === 0 ? "(?!)" : names.sort((a, b) => b.length - a.length).join("|");
  const directory = "(?<!\\\\)(\\{baseDir\\}|\\$\\{CLAUDE_SKILL_DIR\\}|\\$\\{CLAUDE_PLUGIN_ROOT\\})";
  const argument = `\\$(?:(ARGUMENTS)(?:\\[(\\d{1,4})\\])?(?!\\w)|(\\d{1,4})(?!\\w)|(${named})(?![\\w-])|\\{(${named})\\})`;
  // Without the look-ahead the optional backslash is tried at every character, which is three times slower.
  return new RegExp(`(?=[\\\\{$])(\\\\)?(?:${directory}|${argument})`, "g");
}

// Splits words like a shell: by white space outside quotes; quotes are removed, a backslash escapes the next character.
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
