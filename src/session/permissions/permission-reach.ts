import { basename } from "node:path";
import { findConfinement, type ProcessLimits } from "../../io/process/confine-process.ts";
import type { CallReach, PermissionRequest } from "../../tools/tool.ts";

/** What a call of a tool that is written in JSON reaches, in the form that rules of kind `url`, `shell`, `read` and `write` judge. */
export interface RuledReach {
  readonly request: PermissionRequest;
  /** Where the program runs. Undefined: there is none. */
  readonly workingDirectory: string | undefined;
  /** The operating system keeps the program from what rules protect. */
  readonly isConfined: boolean;
}

export interface ReachFound extends RuledReach {
  /** What the program has to run with: the rules were judged for that. */
  readonly limits: ProcessLimits | undefined;
}

interface LimitRules {
  readonly limitsOf: ((line: string, workingDirectory: string) => ProcessLimits | "unenforceable") | undefined;
}

/** A promise only for programs where rules are about paths or addresses: then they may have to run confined. */
export function findReach(reach: CallReach, { limitsOf }: LimitRules): ReachFound | Promise<ReachFound> {
  if (reach.kind === "url") return { request: { kind: "url", url: reach.url }, ...unconfined };
  const fullCommandText = commandLineOf(reach);
  const found = { request: { kind: "shell", fullCommandText }, workingDirectory: reach.cwd };
  const limits = limitsOf?.(fullCommandText, reach.cwd);
  if (limits === undefined || limits === "unenforceable") return { ...unconfined, ...found };
  return findConfinement().then(({ kind }) => (kind === "enforced" ? { ...found, isConfined: true, limits } : { ...unconfined, ...found }));
}

const unconfined = Object.freeze({ workingDirectory: undefined, isConfined: false, limits: undefined });

/**
 * The line by which a shell would run exactly this program: each word is quoted, so that nothing in it is expanded. A script on the
 * stdin of a shell stands as `-c`, where rules look for commands.
 */
function commandLineOf({ command, args, env, stdin }: Extract<CallReach, { kind: "program" }>): string {
  const variables = Object.entries(env);
  const isPlain = variables.every(([name]) => /^[A-Za-z_]\w*$/.test(name));
  const assignments = variables.map(([name, value]) => (isPlain ? `${name}=${quoted(value)}` : quoted(`${name}=${value}`)));
  const script = stdin !== undefined && /^(?:ba|da|z|k|fi)?sh$/.test(basename(command)) ? ["-c", stdin] : [];
  const words = [command, ...args, ...script].map(quoted);
  return [...(isPlain ? [] : ["env"]), ...assignments, ...words].join(" ");
}

function quoted(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`;
}
