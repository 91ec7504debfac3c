import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describeCommand } from "../../../plugins/workspace-tools/operations/describe-command.ts";
import { compilePermissionRules } from "../../../src/session/permissions/permission-rules.ts";
import { toolOf } from "../session-kit.ts";

/** Fragments of shell syntax: separators, quotes, expansions, redirections, and words that run something. */
const fragments = [
  ..."echo|echo|echo|ls|rm|true|cat|eval|exec|source|.|command|builtin|env|sh|x|a b|-n|--|1|".split("|"),
  ..." |;|&|&&|\n|\r|\t|(|)|{|}|<|>|>>|2>|<<|<<<|<(|>(|&>|>&|`|$(|${|$((|$'|$\"|$|'|\"|\\|\\\n|#|!|*|?|[|]|~|=|A=b|,|..".split("|"),
  "|",
  "||",
  "|&",
  "[[",
  "]]",
  "((",
  "))",
  "if",
  "then",
  "fi",
  "do",
  "done",
  "function",
  "coproc",
  "time",
  "\u00a0",
  "\u2028",
  "\v",
  "\f",
  "\u0001",
  "\x7f",
];

/** Lines assembled from the fragments by a seeded generator. */
export function assembleShellLines(count: number, seed: number): readonly string[] {
  const random = randomFrom(seed);
  return Array.from({ length: count }, () => {
    const length = 1 + Math.floor(random() * 8);
    const parts = Array.from({ length }, () => fragments[Math.floor(random() * fragments.length)]!);
    return `${random() < 0.8 ? "echo " : ""}${parts.join(random() < 0.5 ? " " : "")}`;
  });
}

/** The lines that a session runs without asking when only `echo` is allowed. */
export function linesAllowedForEcho(lines: readonly string[]): readonly string[] {
  const rules = compilePermissionRules({ allow: ["shell(echo:*)"] }, tmpdir());
  const tool = toolOf("builtin", "s", { name: "bash", handler: () => "", permission: () => null });
  const judge = (line: string) => rules.judge({ tool, request: { kind: "shell", ...describeCommand(line) }, args: {} });
  return lines.filter((line) => judge(line)?.kind === "allow");
}

// Bash runs the trap before each command, which records the command as bash parsed it.
const harness = `
exec 3>"$1" 4<"$2"
set +H
shopt -s extdebug
PATH=
record() {
  (( BASH_SUBSHELL == 0 )) || [[ $BASH_COMMAND == 'eval "$line"' ]] || builtin printf '%s\\0%s\\0' "$number" "$BASH_COMMAND" >&3
}
number=0
trap record DEBUG
while IFS= builtin read -r -d '' line <&4; do
  ( eval "$line" ) >/dev/null 2>&1 </dev/null
  number=$((number + 1))
done
`;

/**
 * Runs the lines in bash, without any program in reach. Returns the number of started commands, the lines that started a command
 * other than `echo`, and the files that lines created.
 */
export function runInBash(lines: readonly string[]): {
  readonly begun: number;
  readonly foreign: readonly string[];
  readonly files: readonly string[];
} {
  const folder = mkdtempSync(join(tmpdir(), "shell-lines-"));
  try {
    const [inputs, commands, work] = [join(folder, "lines"), join(folder, "commands"), join(folder, "work")];
    mkdirSync(work);
    writeFileSync(inputs, lines.map((line) => `${line}\0`).join(""));
    const run = spawnSync("bash", ["--noprofile", "--norc", "-c", harness, "bash", commands, inputs], {
      cwd: work,
      env: { LANG: "C.UTF-8" },
    });
    if (run.status !== 0) throw new Error(`bash ended with ${run.status}: ${run.stderr}`);
    const records = readFileSync(commands, "utf8").split("\0").slice(0, -1);
    const begun = records.flatMap((number, index) =>
      index % 2 === 0 ? [{ line: lines[Number(number)]!, command: records[index + 1]! }] : [],
    );
    const foreign = begun
      .filter(({ command }) => !isEcho(command))
      .map(({ line, command }) => `${JSON.stringify(line)} ran ${JSON.stringify(command)}`);
    return { begun: begun.length, foreign, files: readdirSync(work) };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Whether the first word of a command is `echo` without its quotes. */
function isEcho(command: string): boolean {
  const unquoted = command.replaceAll(/\\\n/g, "").replaceAll(/['"\\]/g, "");
  return /^echo(?:[ \t\n]|$)/.test(unquoted);
}

/** Numbers from 0 to 1 (mulberry32). */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
