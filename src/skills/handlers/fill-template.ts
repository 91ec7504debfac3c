import { errorMessage } from "../../base/errors.ts";

export type Arguments = Readonly<Record<string, unknown>>;

/** A text that consists of one argument placeholder. */
export const wholePlaceholder: RegExp = /^\$\{([A-Za-z_][\w-]*)\}$/;
const placeholder = /\$\{(env:)?([A-Za-z_][\w-]*)(?::-([^}]{0,200}))?\}/g;

/**
 * Fills an array of strings in which `${param}` may be a whole element: it becomes the value as text (JSON for arrays and objects). An
 * element whose parameter is absent is left out. All other text stays unchanged, so a value can never become a second element or part of
 * another.
 */
export function fillElements(elements: readonly string[], args: Arguments, baseDir: string): readonly string[] {
  return elements.flatMap((element) => {
    const name = wholePlaceholder.exec(element)?.[1];
    if (name === undefined) return [element.replaceAll("{baseDir}", baseDir)];
    const value = own(args, name);
    return value === undefined || value === null ? [] : [asText(value)];
  });
}

/**
 * The parameter whose value a program would take for an option: its element is one placeholder, the value begins with a hyphen and is not
 * a number, and no earlier element is `--`.
 */
export function optionArgument(elements: readonly string[], args: Arguments): string | undefined {
  const end = elements.indexOf("--");
  const names = elements.slice(0, end === -1 ? undefined : end).flatMap((element) => wholePlaceholder.exec(element)?.[1] ?? []);
  return names.find((name) => {
    const value = own(args, name);
    return typeof value === "string" && value.startsWith("-");
  });
}

/** Fills a string that may be one placeholder; undefined if its parameter is absent. */
export function fillElement(element: string, args: Arguments, baseDir: string): string | undefined {
  return fillElements([element], args, baseDir)[0];
}

/**
 * Fills a URL: `${param}` is percent-encoded, so that it stays inside its path segment or query value; `${env:NAME}` and
 * `${env:NAME:-default}` are the host's own settings and are inserted unchanged.
 */
export function fillAddress(template: string, args: Arguments, environment: NodeJS.ProcessEnv): string {
  return fillUrl(template, args, (_whole, name, fallback) => environment[name] || (fallback ?? ""));
}

/** Fills a URL for display: variables stay placeholders. */
export function fillVisibleAddress(template: string, args: Arguments): string {
  return fillUrl(template, args, (whole) => whole);
}

type Variable = (whole: string, name: string, fallback: string | undefined) => string;

function fillUrl(template: string, args: Arguments, variable: Variable): string {
  return template.replace(placeholder, (whole: string, env: string | undefined, name: string, fallback: string | undefined) => {
    if (env) return variable(whole, name, fallback);
    const value = own(args, name) ?? fallback;
    return value === undefined ? "" : encodeURIComponent(asText(value));
  });
}

/** Fills a header or text: values are inserted without line breaks. */
export function fillText(template: string, args: Arguments, environment: NodeJS.ProcessEnv): string {
  const filled = template.replace(placeholder, (_whole, env: string | undefined, name: string, fallback: string | undefined) =>
    env ? environment[name] || (fallback ?? "") : asText(own(args, name) ?? fallback ?? ""),
  );
  return filled.replace(/[\r\n\0]+/g, " ");
}

/** Fills JSON: a string that is one placeholder becomes the argument's value with its type. */
export function fillJson(template: unknown, args: Arguments): unknown {
  if (typeof template === "string") {
    const name = wholePlaceholder.exec(template)?.[1];
    return name === undefined ? template : own(args, name);
  }
  if (Array.isArray(template)) return template.map((item) => fillJson(item, args));
  if (typeof template !== "object" || template === null) return template;
  return Object.fromEntries(Object.entries(template).map(([key, item]) => [key, fillJson(item, args)]));
}

function own(args: Arguments, name: string): unknown {
  return Object.hasOwn(args, name) ? args[name] : undefined;
}

function asText(value: unknown): string {
  if (typeof value === "string") return value;
  try {
    return typeof value === "object" ? JSON.stringify(value) : String(value);
  } catch (error) {
    throw new TypeError(`An argument cannot be converted to text: ${errorMessage(error)}`);
  }
}

interface Program {
  readonly command: string;
  readonly args: readonly string[];
  readonly stdin?: string | undefined;
}

/**
 * Programs that run text, the options that introduce it, and its position: right after the option, as the first operand after it, or as
 * the first operand without it.
 */
const interpreters: readonly (readonly [program: RegExp, option: RegExp, form: "next" | "operand" | "first"])[] = [
  // Shell options can be combined (-ec, -lic), and others may stand between them and the script.
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

/** The placeholder of a command that would run as a script, if any. */
export function scriptPlaceholder({ command, args, stdin }: Program): string | undefined {
  const words = [command, ...args];
  // Every word is examined: env, sudo, timeout, nice and similar programs run what follows them.
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

/** Interpreters without a script file run their stdin; other programs read it as data. */
function scriptOnInput(words: readonly string[], [, option, form]: Interpreter, stdin: string | undefined): string | undefined {
  if (form === "first") return undefined;
  if (stdin === undefined || !wholePlaceholder.test(stdin) || words.some((word) => option.test(word))) return undefined;
  const hasFile = words.some((word) => !word.startsWith("-")) && !words.some((word) => word === "-" || word === "-s");
  return hasFile ? undefined : stdin;
}
