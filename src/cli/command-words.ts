import type { Argument, Command, Option } from "commander";

/** Where the cursor is in an unfinished command line. */
export interface Cursor {
  /** The command that the words before the cursor choose. */
  readonly command: Command;
  /** Its words before the cursor that are neither options of skillhost nor their values. */
  readonly operands: readonly string[];
  /** The values of the options before the cursor, by the option's long name. */
  readonly options: ReadonlyMap<string, readonly string[]>;
  /** The option whose value is at the cursor. */
  readonly awaiting: Option | undefined;
  /** Whether `--` came before: from then on, words are operands. */
  readonly isPlain: boolean;
}

/** Follows the words before the cursor through the commands of a program. Nothing is reported: the line is not finished. */
export function followWords(program: Command, words: readonly string[]): Cursor {
  let command = program;
  let awaiting: Option | undefined;
  let isPlain = false;
  const operands: string[] = [];
  const options = new Map<string, string[]>();
  const give = (option: Option, value: string): void => void options.set(nameOf(option), [...(options.get(nameOf(option)) ?? []), value]);
  for (const word of words) {
    if (awaiting !== undefined && !(awaiting.optional && word.startsWith("-"))) {
      give(awaiting, word);
      awaiting = undefined;
      continue;
    }
    awaiting = undefined;
    if (!isPlain && word === "--") {
      isPlain = true;
      continue;
    }
    const [, flag = word, value] = /^(--[^=]+)=(.*)$/s.exec(word) ?? [];
    const option = isPlain ? undefined : findOption(command, flag);
    if (option === undefined) {
      const child = operands.length === 0 ? subcommand(command, word) : undefined;
      if (child === undefined) operands.push(word);
      else command = child;
    } else if (value !== undefined) give(option, value);
    else if (takesValue(option)) awaiting = option;
    else give(option, "");
  }
  return { command, operands, options, awaiting, isPlain };
}

/** The options of a command and of the commands above it, without the hidden ones. */
export function optionsOf(command: Command): readonly Option[] {
  const above = ancestorsOf(command).flatMap(({ options }) => options.filter(({ hidden, long }) => !hidden && long !== "--version"));
  return [...command.createHelp().visibleOptions(command), ...above];
}

function ancestorsOf({ parent }: Command): readonly Command[] {
  return parent === null ? [] : [parent, ...ancestorsOf(parent)];
}

/** The argument that the next operand would be. The last one may take all that follow. */
export function argumentAt({ command, operands }: Cursor): Argument | undefined {
  const { registeredArguments } = command;
  const last = registeredArguments.at(-1);
  return registeredArguments[operands.length] ?? (last?.variadic === true ? last : undefined);
}

/** `call`, `trust add` */
export function pathOf(command: Command): string {
  const { parent } = command;
  return parent === null || parent.parent === null ? command.name() : `${pathOf(parent)} ${command.name()}`;
}

function takesValue({ required, optional }: Option): boolean {
  return required || optional;
}

function findOption(command: Command, flag: string): Option | undefined {
  const found = command.options.find(({ long, short }) => long === flag || short === flag);
  return found ?? (command.parent === null ? undefined : findOption(command.parent, flag));
}

function subcommand(command: Command, word: string): Command | undefined {
  return command.commands.find((child) => child.name() === word || child.aliases().includes(word));
}

function nameOf({ long, short }: Option): string {
  return long ?? short ?? "";
}
