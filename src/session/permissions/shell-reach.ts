import { basename, resolve } from "node:path";
import { readShellScript, type ShellCommand, type ShellWord } from "./read-shell-script.ts";
import { expandWord, StepBudget } from "./shell-expansion.ts";
import { gitUse } from "./shell-git.ts";
import { anyOption, findProgram, type ShellProgram, saysItsVersion } from "./shell-programs.ts";

/** A file or folder that a line reaches. */
export interface PathUse {
  /** Absolute, and otherwise as the line spells it: `..` and links in it are not resolved. */
  readonly path: string;
  /** `any`: perhaps both. */
  readonly access: "read" | "write" | "any";
  /** All that is below it as well. */
  readonly tree: TreeUse | undefined;
}

export interface TreeUse {
  readonly followsLinks: boolean;
  readonly skipsHidden: boolean;
}

/** What a command line reaches, as far as that is known without running it. */
export interface ShellReach {
  readonly paths: readonly PathUse[];
  /** Words and addresses of commands that open connections. */
  readonly addresses: readonly string[];
  /** Repositories whose contents are shown, by their folders. */
  readonly repositories: readonly string[];
  /** Why it may reach other paths than these; undefined: it does not. */
  readonly pathDoubt: string | undefined;
  /** Why it may change other paths than these, beside that. */
  readonly writeDoubt: string | undefined;
  /** Why it may reach other addresses than these. */
  readonly addressDoubt: string | undefined;
}

const maxSteps = 20_000;
const maxDepth = 4;
const maxFolders = 32;
/** A short line can name millions by braces and folders: what is past this many is a doubt. */
const maxUses = 50_000;

/** What a line that runs in a folder reaches. It reads the disk for globs, with a bound. Never throws. */
export function reachOf(line: string, workingDirectory: string): ShellReach {
  const reader = new ReachReader(workingDirectory);
  reader.read(line, 0);
  return reader;
}

/** A word with the texts that it may become. */
interface Word {
  readonly source: ShellWord;
  /** Undefined: known only when the line runs. */
  readonly values: readonly string[] | undefined;
}

class ReachReader implements ShellReach {
  readonly paths: PathUse[] = [];
  readonly addresses: string[] = [];
  readonly repositories: string[] = [];
  pathDoubt: string | undefined;
  writeDoubt: string | undefined;
  addressDoubt: string | undefined;
  readonly #folders: Set<string>;
  readonly #steps = new StepBudget(maxSteps);
  /** After it, what a path leads to is not what it led to when it was looked up. */
  #hasNewNames = false;
  /** git knows of other files than before. */
  #hasNewRecords = false;

  constructor(workingDirectory: string) {
    this.#folders = new Set([workingDirectory]);
  }

  read(line: string, depth: number): undefined {
    const { commands, doubt } = readShellScript(line);
    if (doubt !== undefined) this.#doubt(doubt);
    if (depth > maxDepth) return this.#doubt("shells are nested too deeply");
    const isLoop = commands.some(({ words: [first] }) => first !== undefined && /^(?:for|while|until)$/.test(first.text));
    const moves = commands.some(({ words }) => words.some(({ text }) => /^(?:cd|mv|cp|git)$/.test(text)));
    if (isLoop && moves) this.#doubt("a loop changes where its commands run");
    for (const command of commands) this.#readCommand(command, depth);
  }

  #readCommand({ words, redirections }: ShellCommand, depth: number): undefined {
    for (const { access, target } of redirections) this.#redirect(this.#expand(target), access);
    const start = words.findIndex(({ text, marks }) => !keywords.has(text) || marks.includes("q"));
    const own: readonly ShellWord[] = start === -1 ? [] : words.slice(start);
    if (own.length === 0) return;
    this.#run(
      own.map((word) => this.#expand(word)),
      depth,
    );
  }

  #expand(source: ShellWord): Word {
    const values = expandWord(source, { folders: this.#folders, steps: this.#steps });
    return { source, values };
  }

  #redirect({ values }: Word, access: "read" | "write"): undefined {
    if (values === undefined) return this.#doubt("a redirection target is known only when the line runs");
    for (const value of values) {
      const [, host] = /^\/dev\/(?:tcp|udp)\/([^/]*)/.exec(value) ?? [];
      if (host === undefined) this.#use(value, access, undefined);
      else this.#connect(host);
    }
  }

  /** Assignments, programs that run another one, and then the program itself. */
  #run(words: readonly Word[], depth: number): undefined {
    const start = words.findIndex(({ source }) => !isAssignment(source));
    for (const { source } of start === -1 ? words : words.slice(0, start)) this.#assign(source);
    if (start === -1) return;
    const [name, ...rest] = words.slice(start);
    const program = name!.values?.length === 1 ? name!.values[0]! : undefined;
    if (program === undefined) return this.#unknown("a program that is known only when the line runs", rest);
    const carried = carriedBy(program, rest);
    if (carried === "unknown") return this.#unknown(`the program ${program}`, rest);
    if (carried !== undefined) return carried.length === 0 ? undefined : this.#run(carried, depth);
    if (/^(?:ba|da|z|k)?sh$/.test(basename(program))) {
      const [option, script] = rest;
      const text = option?.source.text === "-c" && script?.values?.length === 1 ? script.values[0] : undefined;
      if (text === undefined) return this.#unknown(`the program ${program}`, rest);
      this.#usePlainWords(rest.slice(2));
      this.read(text, depth + 1);
      return;
    }
    if (/^(?:export|local|readonly|declare|typeset)$/.test(program)) return this.#declare(rest);
    if (program === "for") return this.#loop(rest);
    if (program === "git") return this.#runGit(rest);
    this.#runProgram(program, rest);
  }

  #loop([variable, ...rest]: readonly Word[]): undefined {
    if (!/^[a-z_]\w*$/.test(variable?.source.text ?? "")) this.#doubt("a loop sets a variable that programs read");
    this.#usePlainWords(rest);
  }

  #declare(rest: readonly Word[]): undefined {
    for (const { source } of rest) {
      if (isAssignment(source)) this.#assign(source);
      else if (!/^[a-z_]\w*$/.test(source.text)) this.#doubt("it declares variables that programs read");
    }
  }

  #assign({ text }: ShellWord): undefined {
    const name = text.slice(0, text.indexOf("=")).replace(/\+$/, "");
    if (!/^(?:NODE_ENV|CI|DEBUG|FORCE_COLOR|NO_COLOR|TZ|LANG|LC_ALL|[a-z_][a-z0-9_]*)$/.test(name) || /proxy/.test(name))
      this.#doubt(`the variable ${name} may change what programs do`);
  }

  #runGit(rest: readonly Word[]): undefined {
    const texts = rest.flatMap(({ values, source }, index): readonly (string | undefined)[] => {
      if (values !== undefined) return values;
      // A message in quotes is one word, whatever it is.
      const isMessage = /^(?:-[a-zA-Z]*m|--message)$/.test(rest[index - 1]?.source.text ?? "") && !source.marks.includes("?");
      return [isMessage ? "" : undefined];
    });
    for (const folder of [...this.#folders]) {
      const { repository, paths, shows, connects, records, replaces, doubt } = gitUse(texts, folder);
      if (doubt !== undefined) this.#doubt(doubt);
      if (connects) this.addressDoubt ??= "git connects to the remotes that the repository configures";
      if (shows && (this.#hasNewNames || this.#hasNewRecords)) this.#doubt("git may show files that are not in the working directory");
      if (shows && repository !== undefined) this.repositories.push(repository);
      this.#hasNewRecords ||= records;
      this.#hasNewNames ||= replaces;
      if (replaces) this.writeDoubt ??= "git replaces files";
      for (const path of paths) this.#use(path, "any", undefined);
    }
    this.#usePlainWords(rest);
    for (const text of texts) if (text !== undefined) this.#connect(text);
  }

  #runProgram(name: string, rest: readonly Word[]): undefined {
    const texts = rest.map(({ values, source }) => values?.[0] ?? source.text);
    if (saysItsVersion([name, ...texts])) return;
    const program = findProgram(name);
    const fault = program === undefined ? `the program ${name}` : faultOf(program, name, rest);
    if (program === undefined || fault !== undefined) return this.#unknown(fault!, rest);
    if (name === "cd") return this.#changeFolder(rest);
    this.#useAddresses(program, rest);
    if (program.operands === "none") this.#usePlainWords(rest);
    else this.#useOperands(program, name, rest);
    if (program.renames) this.#hasNewNames = true;
  }

  #changeFolder(rest: readonly Word[]): undefined {
    const target = rest.find(({ source }) => !source.text.startsWith("-"));
    const values = target === undefined ? [process.env["HOME"] ?? "/"] : target.values;
    if (values === undefined || rest.some(({ source }) => source.text === "-"))
      return this.#doubt("the target of cd is known only when the line runs");
    this.#usePlainWords(rest);
    const here = [...this.#folders];
    for (const value of values) {
      for (const folder of here) {
        if (this.#folders.size > maxFolders) return this.#doubt("it changes the working directory too often");
        const next = inFolder(folder, value);
        // bash removes `..` before it follows links, unless an option says otherwise.
        this.#folders.add(next).add(resolve(next));
      }
    }
  }

  #useAddresses({ connects, elsewhere }: ShellProgram, rest: readonly Word[]): undefined {
    const values = rest.flatMap(({ values, source }) => values ?? [source.text]);
    for (const value of values) if (connects || value.includes("://")) this.#connect(value);
    if (connects) {
      if (rest.some(({ values }) => values === undefined))
        this.addressDoubt ??= "the address it connects to is known only when the line runs";
      if (values.some((value) => elsewhere?.test(value))) this.addressDoubt ??= "it may connect to more than the line names";
    }
  }

  #useOperands(program: ShellProgram, name: string, rest: readonly Word[]): undefined {
    const tree = treeOf(program, rest);
    const { operands, isHere } = operandsOf(program, name, rest);
    if (rest.some(({ values }) => values === undefined)) this.#doubt(`${name} gets a value that is known only when the line runs`);
    if (this.#hasNewNames && !program.renames) this.#doubt(`${name} may find files that do not exist yet`);
    if (program.operands === "copy") return this.#useCopied(operands, tree);
    // Words that may be the values of options are looked at, too.
    const isOperand = new Set(operands);
    this.#usePlainWords(rest.filter((word) => !isOperand.has(word)));
    const access = program.operands === "read" ? "read" : "any";
    for (const { values } of operands) for (const value of values ?? []) this.#use(value, access, tree);
    if (isHere) this.#use(".", access, tree);
    if (name === "curl")
      for (const { values } of operands) for (const value of values ?? []) this.#use(basename(value), "write", undefined);
  }

  #useCopied(operands: readonly Word[], tree: TreeUse | undefined): undefined {
    const sources = operands.slice(0, -1).flatMap(({ values }) => values ?? []);
    const targets = operands.at(-1)?.values ?? [];
    for (const value of sources) this.#use(value, "any", tree);
    for (const target of targets) {
      if (this.paths.length === maxUses) return this.#doubt("it names more paths than can be checked");
      this.#use(target, "any", undefined);
      for (const source of sources) this.#use(`${target}/${basename(source)}`, "write", undefined);
    }
  }

  /** Words that usually are not files: what rules name is found among them all the same. */
  #usePlainWords(words: readonly Word[]): undefined {
    for (const { values = [] } of words) {
      for (const value of values) {
        const [, path = value] = /^--?[\w-]+=(.+)$/s.exec(value) ?? [];
        if (path !== "" && !path.startsWith("-")) this.#use(path, "any", undefined);
        if (path.includes("://")) this.#connect(path);
      }
    }
  }

  #unknown(what: string, rest: readonly Word[]): undefined {
    this.#doubt(`${what} may access anything`);
    this.#usePlainWords(rest);
    for (const { values, source } of rest) for (const value of values ?? [source.text]) this.#connect(value);
  }

  #use(path: string, access: PathUse["access"], tree: TreeUse | undefined): undefined {
    if (path === "" || path.includes("\0") || path.length > maxPath) return;
    for (const folder of this.#folders) {
      if (this.paths.length === maxUses) return this.#doubt("it names more paths than can be checked");
      this.paths.push({ path: inFolder(folder, path), access, tree });
    }
  }

  #connect(address: string): undefined {
    if (this.addresses.length === maxUses) this.addressDoubt ??= "it names more addresses than can be checked";
    else this.addresses.push(address);
  }

  #doubt(why: string): undefined {
    this.pathDoubt ??= why;
    this.addressDoubt ??= why;
  }
}

const maxPath = 4096;

function inFolder(folder: string, path: string): string {
  return path.startsWith("/") || /^[a-z]:[\\/]/i.test(path) ? path : `${folder}/${path}`;
}

const keywords: ReadonlySet<string> = new Set(["if", "then", "elif", "else", "while", "until", "do", "!", "{", "time"]);

function isAssignment({ text, marks }: ShellWord): boolean {
  const [name] = /^[A-Za-z_]\w*(?:\[[^\]]*\])?\+?=/.exec(text) ?? [];
  return name !== undefined && /^b+$/.test(marks.slice(0, name.length));
}

/** The words of the command that a program runs. Undefined: it runs none; "unknown": that cannot be determined. */
function carriedBy(program: string, rest: readonly Word[]): readonly Word[] | "unknown" | undefined {
  const [first] = rest;
  const option = first?.source.text ?? "";
  if (program === "command" && /^-[vV]$/.test(option)) return [];
  if (["command", "builtin", "nohup", "nice", "exec"].includes(program)) return option.startsWith("-") ? "unknown" : rest;
  if (program === "timeout") return /^\d+(?:\.\d+)?[smhd]?$/.test(option) ? rest.slice(1) : "unknown";
  if (program === "env") return option.startsWith("-") ? "unknown" : rest;
  if (program !== "xargs") return undefined;
  const start = rest.findIndex(({ source }) => !/^(?:-0|-r|-t|-[nPL]\d*|\d+)$/.test(source.text));
  // What it reads becomes words of the command.
  return start === -1 ? [] : [...rest.slice(start), { source: { text: "?", marks: "?" }, values: undefined }];
}

/** Why nothing is known of a program with these words. Undefined: it is what it is known to be. */
function faultOf(program: ShellProgram, name: string, rest: readonly Word[]): string | undefined {
  let [areOptionsOver, isBehindOption, operands] = [false, false, 0];
  const { text } = program;
  const checksText = text !== undefined && !rest.some(({ source }) => program.textOption?.test(source.text));
  for (const { values, source } of rest) {
    const isBehindText = program.operands === "none" && text !== undefined && operands > 0;
    if (values === undefined && program.options !== anyOption && !isBehindText)
      return `${name} with a value that is known only when the line runs`;
    for (const value of values ?? [source.text]) {
      if (program.refused?.test(value)) return `${name} with ${JSON.stringify(value.slice(0, 100))}`;
      const isOption = !areOptionsOver && value.startsWith("-") && value !== "-";
      if (value === "--") areOptionsOver = true;
      else if (isOption && !program.options.test(value)) return `${name} with the option ${value.slice(0, 50)}`;
      else if (!isOption && checksText && (operands === 0 || isBehindOption) && !text.test(value))
        return `${name} with ${JSON.stringify(value.slice(0, 100))}`;
      if (!isOption && value !== "--") operands++;
      isBehindOption = isOption;
    }
  }
  return undefined;
}

function treeOf({ recursive, followsLinks, showsHidden }: ShellProgram, rest: readonly Word[]): TreeUse | undefined {
  const has = (option: RegExp | true | undefined): boolean =>
    option === true ||
    (option !== undefined && rest.some(({ values, source }) => (values ?? [source.text]).some((value) => option.test(value))));
  if (!has(recursive)) return undefined;
  return { followsLinks: has(followsLinks), skipsHidden: showsHidden !== undefined && !has(showsHidden) };
}

interface Operands {
  readonly operands: readonly Word[];
  /** It may be about the working directory. */
  readonly isHere: boolean;
}

/** Which words are files. What may be an option's value counts as a file, but not for there being one. */
function operandsOf(program: ShellProgram, name: string, rest: readonly Word[]): Operands {
  if (name === "find") return operandsOfFind(rest);
  const operands: Word[] = [];
  let sure = 0;
  let areOptionsOver = false;
  let isValue = false;
  for (const word of rest) {
    const text = word.values?.[0] ?? word.source.text;
    const isOption = !areOptionsOver && text.startsWith("-") && text !== "-";
    if (isOption) {
      areOptionsOver ||= text === "--";
      isValue = program.flags !== undefined && text !== "--" && !program.flags.test(text);
      continue;
    }
    operands.push(word);
    if (!isValue) sure++;
    isValue = false;
  }
  const hasText = program.text !== undefined && !rest.some(({ source }) => program.textOption?.test(source.text));
  const isHere =
    program.startsHere === true &&
    (program.recursive === true || treeOf(program, rest) !== undefined || name === "ls") &&
    sure <= (hasText ? 1 : 0);
  return { operands: hasText && sure === operands.length ? operands.slice(1) : operands, isHere };
}

function operandsOfFind(rest: readonly Word[]): Operands {
  const start = rest.findIndex(({ source }) => !/^-[HP]$/.test(source.text));
  const own = start === -1 ? [] : rest.slice(start);
  const end = own.findIndex(({ source }) => /^[-(!]/.test(source.text));
  const operands = end === -1 ? own : own.slice(0, end);
  return { operands, isHere: operands.length === 0 };
}
