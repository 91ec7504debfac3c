import { maxLineLength } from "./shell-words.ts";

/** The words of one command, unquoted, as a POSIX shell would see them. */
type Words = readonly string[];

export interface CommandLine {
  /** Every command that the line may run, also those within substitutions. More may be listed than would run. */
  readonly commands: readonly Words[];
  /** There is nothing in it that may turn into something else: no redirections, substitutions, variables, comments. */
  readonly isClear: boolean;
  /** It is clear, and one command: nothing follows it. */
  readonly isSimple: boolean;
  /** The line is longer than what is parsed, and may run any command: `commands` is empty. */
  readonly isTooLong: boolean;
}

const tooLong: CommandLine = Object.freeze({ commands: Object.freeze([]), isClear: false, isSimple: false, isTooLong: true });

/**
 * Takes a command line apart, in one pass over it. It is no shell: where it is not sure, it lists a command too many
 * and says that the line is not simple, so that what forbids matches too much rather than too little, and what allows
 * too little.
 */
export function parseCommandLine(text: string): CommandLine {
  if (text.length > maxLineLength) return tooLong;
  const reader = new LineReader(text);
  reader.read();
  const { commands, isClear, isSeries } = reader;
  return { commands, isClear, isSimple: isClear && !isSeries && commands.length === 1, isTooLong: false };
}

class LineReader {
  readonly commands: Words[] = [];
  isClear = true;
  isSeries = false;
  readonly #text: string;
  #words: string[] = [];
  #word: string | undefined;
  /** After a redirection comes a file, which is not a word of the command. */
  #dropsWord = false;
  #isInDoubleQuotes = false;

  constructor(text: string) {
    this.#text = text;
  }

  read(): void {
    for (let at = 0; at < this.#text.length; at++) at = this.#isInDoubleQuotes ? this.#readQuoted(at) : this.#readBare(at);
    if (this.#isInDoubleQuotes) this.isClear = false;
    this.#endCommand();
  }

  /** Takes in the character at this place and gives the place of the last one that went with it. */
  #readBare(at: number): number {
    const char = this.#text[at]!;
    if (char === "'") return this.#readSingleQuotes(at);
    if (char === '"') return this.#openQuotes(at);
    if (char === "\\") return this.#readEscape(at);
    if (char === " " || char === "\t") return this.#endWord(at);
    if (isOperator(char)) return this.#readOperator(at, char);
    if (char === "$" || char === "`") return this.#readExpansion(at, char);
    if (char === "#" && this.#word === undefined) this.isClear = false;
    this.#add(char);
    return at;
  }

  #readQuoted(at: number): number {
    const char = this.#text[at]!;
    if (char === '"') {
      this.#isInDoubleQuotes = false;
      return at;
    }
    // Between double quotes a backslash is itself before all but these.
    if (char === "\\" && /[$`"\\\n]/.test(this.#text[at + 1] ?? "")) return this.#readEscape(at);
    if (char === "$" || char === "`") return this.#readExpansion(at, char);
    this.#add(char);
    return at;
  }

  #readSingleQuotes(at: number): number {
    const end = this.#text.indexOf("'", at + 1);
    if (end === -1) this.isClear = false;
    this.#add(this.#text.slice(at + 1, end === -1 ? undefined : end));
    return end === -1 ? this.#text.length : end;
  }

  #openQuotes(at: number): number {
    this.#isInDoubleQuotes = true;
    this.#add("");
    return at;
  }

  #readEscape(at: number): number {
    const next = this.#text[at + 1];
    if (next === undefined) this.isClear = false;
    // A line break that is escaped is no character at all.
    else if (next !== "\n") this.#add(next);
    return at + 1;
  }

  /** `$(`, backticks and their ends begin another command; the variables among them stand for what nobody knows here. */
  #readExpansion(at: number, char: string): number {
    this.isClear = false;
    if (char === "`" || this.#text[at + 1] === "(") {
      this.#isInDoubleQuotes = false;
      this.#endCommand();
      return char === "`" ? at : at + 1;
    }
    this.#add(char);
    return at;
  }

  #readOperator(at: number, char: string): number {
    // bash takes a carriage return for part of a word, and other shells for the end of a command.
    if ("()<>\r".includes(char)) this.isClear = false;
    if (char !== "<" && char !== ">") {
      this.isSeries = true;
      this.#endCommand();
      return at;
    }
    // The number of a stream before the sign is not a word either: 2>file.
    if (this.#word !== undefined && /^\d+$/.test(this.#word)) this.#word = undefined;
    this.#endWord(at);
    const follows = this.#text[at + 1];
    if (follows === "(") this.#endCommand();
    else this.#dropsWord = true;
    return follows === ">" || follows === "<" || follows === "&" || follows === "|" || follows === "(" ? at + 1 : at;
  }

  #add(text: string): void {
    this.#word = (this.#word ?? "") + text;
  }

  #endWord(at: number): number {
    if (this.#word === undefined) return at;
    if (this.#dropsWord) this.#dropsWord = false;
    else this.#words.push(this.#word);
    this.#word = undefined;
    return at;
  }

  #endCommand(): void {
    this.#endWord(0);
    this.#dropsWord = false;
    if (this.#words.length > 0) this.commands.push(this.#words);
    this.#words = [];
  }
}

function isOperator(char: string): boolean {
  return ";&|\n\r()<>".includes(char);
}
