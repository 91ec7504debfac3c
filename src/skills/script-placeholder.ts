import { wholePlaceholder } from "./fill-template.ts";

interface Program {
  readonly command: string;
  readonly args: readonly string[];
  readonly stdin?: string | undefined;
}

/**
 * Programs that run text, the options after which that text stands, and where: right after the option, as the first operand after
 * it, or as the first operand even without it.
 */
const interpreters: readonly (readonly [program: RegExp, option: RegExp, form: "next" | "operand" | "first"])[] = [
  // Options of shells can be joined (-ec, -lic), and others may stand between them and the script.
  [/^(?:(?:ba|z|da|k|mk|a|fi|c|tc|ya)?sh|busybox|toybox)$/, /^-[A-Za-z]*c[A-Za-z]*$|^--command$/, "operand"],
  [/^(?:node|nodejs|bun|tsx|ts-node|electron)$/, /^-(?:e|p|pe|ep)$|^--(?:eval|print)$/, "next"],
  [/^deno$/, /^eval$/, "operand"],
  [/^(?:python[\d.]*w?|pypy[\d.]*|py)$/, /^-[A-Za-z]*c$/, "next"],
  [/^(?:perl[\d.]*|ruby[\d.]*|lua[\d.]*|luajit|julia|osascript|Rscript|elixir|groovy|ghc|scala)$/, /^-[A-Za-z]*[eE]$|^--eval$/, "next"],
  [/^php[\d.]*$/, /^-[rBRE]$|^--(?:run|process-code)$/, "next"],
  [/^(?:powershell|pwsh)$/i, /^[-/](?:c|command|e|ec|encodedcommand|file)$/i, "next"],
  [/^cmd$/i, /^\/[ckr]$/i, "next"],
  [/^(?:su|script|runuser)$/, /^-c$|^--(?:command|session-command)$/, "next"],
  [/^(?:[gmn]?awk|g?sed|watch|eval)$/, /^-e$|^--expression$|^--source$/, "first"],
];

/** The placeholder of a command that would be run as a script; undefined: there is none. */
export function scriptPlaceholder({ command, args, stdin }: Program): string | undefined {
  const words = [command, ...args];
  // Not only the command itself: env, sudo, timeout, nice and their like run what follows them.
  for (const [index, word] of words.entries()) {
    const name = word.replace(/^.*[\\/]/, "").replace(/\.(?:exe|cmd|bat|com)$/i, "");
    const found = interpreters.find(([program]) => program.test(name));
    const rest = found && words.slice(index + 1);
    const script = rest && (scriptAfter(rest, found) ?? (index === 0 ? scriptOnInput(rest, found, stdin) : undefined));
    if (script !== undefined) return script;
  }
  return undefined;
}

type Interpreter = (typeof interpreters)[number];

function scriptAfter(words: readonly string[], [, option, form]: Interpreter): string | undefined {
  const at = words.findIndex((word) => option.test(word));
  if (at === -1 && form !== "first") return undefined;
  const after = words.slice(at + 1);
  const script = form === "next" || (form === "first" && at !== -1) ? after[0] : after.find((word) => !/^[-+]/.test(word));
  return script !== undefined && wholePlaceholder.test(script) ? script : undefined;
}

/** Without a file to run, they run what they read; others read data. */
function scriptOnInput(words: readonly string[], [, option, form]: Interpreter, stdin: string | undefined): string | undefined {
  if (form === "first") return undefined;
  if (stdin === undefined || !wholePlaceholder.test(stdin) || words.some((word) => option.test(word))) return undefined;
  const hasFile = words.some((word) => !word.startsWith("-")) && !words.some((word) => word === "-" || word === "-s");
  return hasFile ? undefined : stdin;
}
