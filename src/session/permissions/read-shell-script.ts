/**
 * One word of a command before expansion: its characters without quotes, and for each of them a mark. `b`: it stood bare, so
 * that it may be a glob, brace or tilde. `q`: it was quoted. `?`: it stands for a value that is known only when the line runs. `!`: the same
 * between quotes, so that the value is one word.
 */
export interface ShellWord {
  readonly text: string;
  readonly marks: string;
}

export interface Redirection {
  readonly access: "read" | "write";
  readonly target: ShellWord;
}

export interface ShellCommand {
  readonly words: readonly ShellWord[];
  readonly redirections: readonly Redirection[];
}

/** The commands of a script in the order in which they are written; those within substitutions precede the one around them. */
export interface ShellScript {
  readonly commands: readonly ShellCommand[];
  /** Why the script may do more than the commands say. Undefined: it was read as a whole. */
  readonly doubt: string | undefined;
}

/** The longest command line that is parsed, in UTF-16 units. Linux passes at most 131,072 bytes to `sh -c`. */
export const maxLineLength: number = 150_000;
const maxDepth = 8;

/**
 * Reads the part of bash's grammar that everyday lines consist of. Whatever else there is (functions, `case`,
 * arithmetic with variables) is a doubt: the caller must not take the commands for everything that the script does.
 */
export function readShellScript(text: string): ShellScript {
  if (text.length > maxLineLength) return { commands: [], doubt: "the line is too long to be read" };
  const reader = new ScriptReader(text, { commands: [], doubt: undefined }, 0);
  reader.readList(undefined);
  return reader.script;
}

interface GrowingScript {
  readonly commands: ShellCommand[];
  doubt: string | undefined;
}

interface GrowingWord {
  text: string;
  marks: string;
}

class ScriptReader {
  readonly script: GrowingScript;
  readonly #text: string;
  readonly #depth: number;
  /** Here-documents whose text begins after the next line break. */
  readonly #documents: { readonly end: string; readonly isQuoted: boolean; readonly stripsTabs: boolean }[] = [];
  #at = 0;

  constructor(text: string, script: GrowingScript, depth: number) {
    this.#text = text;
    this.script = script;
    this.#depth = depth;
    if (depth > maxDepth) this.#doubt("substitutions are nested too deeply");
  }

  /** Reads commands up to the end of the text, or the bracket that closes them. */
  readList(end: ")" | undefined): undefined {
    let words: ShellWord[] = [];
    let redirections: Redirection[] = [];
    const finish = (): void => {
      if (words.length + redirections.length > 0) this.script.commands.push({ words, redirections });
      [words, redirections] = [[], []];
    };
    while (this.#at < this.#text.length && this.script.doubt === undefined) {
      const char = this.#text[this.#at]!;
      if (char === ")" && end === ")") break;
      if (char === " " || char === "\t") this.#at++;
      else if (char === "\\" && this.#text[this.#at + 1] === "\n") this.#at += 2;
      else if (char === "#") this.#skipComment();
      else if (char === "<" || char === ">" || (char === "&" && this.#text[this.#at + 1] === ">")) {
        this.#readRedirection(words, redirections);
      } else if (";&|\n".includes(char)) {
        finish();
        this.#at++;
        if (char === "\n") this.#skipDocuments();
      } else if (char === "(" && words.length === 0 && this.#text[this.#at + 1] !== "(") {
        this.#readNested();
      } else if ("()\r\0".includes(char)) {
        this.#doubt(`${JSON.stringify(char)} is not supported at this position`);
      } else words.push(this.#readWord());
    }
    finish();
    if (this.#documents.length > 0) this.#doubt("a here-document is not closed");
    if (end !== undefined && this.#text[this.#at] !== end) this.#doubt("a parenthesis is not closed");
  }

  #readNested(): undefined {
    const inner = this.#inner(this.#text);
    inner.#at = this.#at + 1;
    inner.readList(")");
    this.#at = inner.#at + 1;
  }

  #inner(text: string): ScriptReader {
    return new ScriptReader(text, this.script, this.#depth + 1);
  }

  #skipComment(): undefined {
    const end = this.#text.indexOf("\n", this.#at);
    this.#at = end === -1 ? this.#text.length : end;
  }

  #readRedirection(words: ShellWord[], redirections: Redirection[]): undefined {
    const [sign] = /^(?:&>>?|<<<|<<-?|<>|[<>]&|>\||>>|[<>])/.exec(this.#text.slice(this.#at, this.#at + 3))!;
    const before = this.#text[this.#at - 1];
    // The number of a stream before the sign is not a word of the command: 2>file.
    if (before !== undefined && /\d/.test(before) && /^\d+$/.test(words.at(-1)?.text ?? "")) words.pop();
    this.#at += sign.length;
    if (sign === "<<" || sign === "<<-") return this.#openDocument(sign === "<<-");
    if ((sign === "<" || sign === ">") && this.#text[this.#at] === "(") {
      this.#readNested();
      words.push({ text: "?", marks: "?" });
      return;
    }
    this.#skipBlanks();
    const target = this.#readWord();
    if (target.text === "") return this.#doubt("a redirection has no target");
    const isStream = sign.endsWith("&") && /^(?:\d+-?|-)$/.test(target.text);
    if (sign === "<<<" || isStream) return;
    redirections.push({ access: sign === "<" ? "read" : "write", target });
    if (sign === "<>") redirections.push({ access: "read", target });
  }

  #openDocument(stripsTabs: boolean): undefined {
    this.#skipBlanks();
    const { text, marks } = this.#readWord();
    if (text === "" || /[?!]/.test(marks)) return this.#doubt("a here-document is not closed");
    this.#documents.push({ end: text, isQuoted: marks.includes("q"), stripsTabs });
  }

  /** What a command reads as its input is not part of the script, unless it has substitutions. */
  #skipDocuments(): undefined {
    for (const { end, isQuoted, stripsTabs } of this.#documents.splice(0)) {
      let isEnded = false;
      while (!isEnded && this.#at < this.#text.length) {
        const newline = this.#text.indexOf("\n", this.#at);
        const line = this.#text.slice(this.#at, newline === -1 ? undefined : newline);
        this.#at = newline === -1 ? this.#text.length : newline + 1;
        isEnded = (stripsTabs ? line.replace(/^\t+/, "") : line) === end;
        if (!isEnded && !isQuoted && /[$`\\]/.test(line)) return this.#doubt("a here-document contains substitutions");
      }
      if (!isEnded) return this.#doubt("a here-document is not closed");
    }
  }

  #skipBlanks(): undefined {
    while (this.#text[this.#at] === " " || this.#text[this.#at] === "\t") this.#at++;
  }

  #readWord(): ShellWord {
    const word: GrowingWord = { text: "", marks: "" };
    while (this.#at < this.#text.length) {
      const char = this.#text[this.#at]!;
      if (" \t\n;&|<>)".includes(char)) break;
      if (char === "(" || char === "\r" || char === "\0") {
        this.#doubt("functions and extended globs are not supported");
        break;
      }
      this.#readPart(char, word);
      if (this.script.doubt !== undefined) break;
    }
    return word;
  }

  #readPart(char: string, word: GrowingWord): undefined {
    if (char === "'") this.#readSingleQuotes(word);
    else if (char === '"') this.#readDoubleQuotes(word);
    else if (char === "$") this.#readDollar(word, false);
    else if (char === "`") this.#readBackticks(word, "?");
    else if (char === "\\") this.#readEscape(word);
    else {
      add(word, char, "b");
      this.#at++;
    }
  }

  #readEscape(word: GrowingWord): undefined {
    const next = this.#text[this.#at + 1];
    if (next === undefined) this.#doubt("the line ends with a backslash");
    else if (next !== "\n") add(word, next, "q");
    this.#at += 2;
  }

  #readSingleQuotes(word: GrowingWord): undefined {
    const end = this.#text.indexOf("'", this.#at + 1);
    if (end === -1) return this.#doubt("a quote is not closed");
    add(word, this.#text.slice(this.#at + 1, end), "q");
    this.#at = end + 1;
  }

  #readDoubleQuotes(word: GrowingWord): undefined {
    this.#at++;
    while (this.script.doubt === undefined) {
      const char = this.#text[this.#at];
      if (char === undefined) return this.#doubt("a quote is not closed");
      if (char === '"') {
        this.#at++;
        return;
      }
      if (char === "$") this.#readDollar(word, true);
      else if (char === "`") this.#readBackticks(word, "!");
      else if (char === "\\" && /[$`"\\\n]/.test(this.#text[this.#at + 1] ?? "")) this.#readEscape(word);
      else {
        add(word, char, "q");
        this.#at++;
      }
    }
  }

  #readBackticks(word: GrowingWord, mark: "?" | "!"): undefined {
    let text = "";
    for (let at = this.#at + 1; at < this.#text.length; at++) {
      const char = this.#text[at]!;
      if (char === "`") {
        this.#at = at + 1;
        add(word, "?", mark);
        return this.#inner(text).readList(undefined);
      }
      if (char === "\\" && /[`\\$"]/.test(this.#text[at + 1] ?? "")) text += this.#text[++at];
      else text += char;
    }
    this.#doubt("a substitution is not closed");
  }

  #readDollar(word: GrowingWord, isQuoted: boolean): undefined {
    const rest = this.#text.slice(this.#at, this.#at + 200);
    const next = rest[1] ?? "";
    const mark = isQuoted ? "!" : "?";
    if (rest.startsWith("$((")) return this.#readArithmetic(rest, word);
    if (next === "(") {
      this.#at++;
      this.#readNested();
      add(word, "?", mark);
      return;
    }
    if (!isQuoted && next === "'") return this.#readAnsiQuotes(word);
    if (!isQuoted && next === '"') {
      this.#at++;
      return;
    }
    if (next === "{") return this.#readBraced(rest, word, mark);
    const [variable] = /^\$(?:[A-Za-z_]\w*|[0-9@*#?$!_-])/.exec(rest) ?? [];
    if (variable === undefined) add(word, "$", "q");
    else this.#addVariable(variable.slice(1), word, variable === "$@" ? "?" : mark);
    this.#at += variable?.length ?? 1;
  }

  #addVariable(name: string, word: GrowingWord, mark: "?" | "!"): undefined {
    const home = process.env["HOME"];
    if (name === "HOME" && home !== undefined && /^[\w./@+-]+$/.test(home)) add(word, home, "q");
    else add(word, "?", mark);
  }

  /** Without variables, as the value of a variable is evaluated and may then run commands. */
  #readArithmetic(rest: string, word: GrowingWord): undefined {
    const [all] = /^\$\(\([\d\s+*/%<>=-]*\)\)/.exec(rest) ?? [];
    if (all === undefined) return this.#doubt("arithmetic expansion is not supported");
    add(word, "?", "?");
    this.#at += all.length;
  }

  #readBraced(rest: string, word: GrowingWord, mark: "?" | "!"): undefined {
    const [all, name] = /^\$\{([A-Za-z_]\w*|[0-9@*#?])(?::?-[\w./:@ -]*)?\}/.exec(rest) ?? [];
    if (all === undefined) return this.#doubt("this parameter expansion is not supported");
    this.#addVariable(all === `\${${name}}` ? name! : "?", word, name === "@" ? "?" : mark);
    this.#at += all.length;
  }

  #readAnsiQuotes(word: GrowingWord): undefined {
    for (let at = this.#at + 2; at < this.#text.length; at++) {
      const char = this.#text[at];
      if (char === "\\") at++;
      else if (char === "'") {
        add(word, "?", "?");
        this.#at = at + 1;
        return;
      }
    }
    this.#doubt("a quote is not closed");
  }

  #doubt(why: string): undefined {
    this.script.doubt ??= why;
  }
}

function add(word: GrowingWord, text: string, mark: "b" | "q" | "?" | "!"): undefined {
  word.text += text;
  word.marks += mark.repeat(text.length);
}
