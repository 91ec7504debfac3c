import { join, resolve } from "node:path";
import { isRecord } from "../../base/json.ts";
import { packageRoot } from "../../base/package-root.ts";
import type { CommandContext } from "../command-context.ts";
import { skillDirectories } from "../open-host.ts";

/** How a client starts `skillhost mcp`. */
export interface ClientCommand {
  readonly command: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

export interface CommandChoice {
  /** Starts with `npx`, for files that are shared: they then name no path of this machine's programs. */
  readonly npx: boolean;
  /** Rules for calls to allow. */
  readonly allow: readonly string[];
}

/** The program of skillhost that runs now. */
const ownProgram: string = join(packageRoot, "dist", "cli", "bin.js");

/** The command with which a client serves the skills of this project, from whatever folder it starts it. */
export function clientCommand(context: CommandContext, { npx, allow }: CommandChoice, platform: NodeJS.Platform): ClientCommand {
  const { config, options, io } = context;
  const named = config.origin !== undefined && options.skills === undefined;
  const folders = skillDirectories(context).map((entry) => (entry.startsWith("~") ? entry : resolve(io.cwd, entry)));
  const project = named ? ["--config", config.origin.file] : folders.flatMap((folder) => ["--skills", folder]);
  const servers = (options.mcpConfig ?? []).flatMap((file) => ["--mcp-config", resolve(io.cwd, file)]);
  const words = ["mcp", ...project, ...servers, ...allow.flatMap((rule) => ["--allow", rule])];
  const home = io.env["SKILLHOST_HOME"];
  const env = home ? { env: { SKILLHOST_HOME: resolve(io.cwd, home) } } : {};
  if (npx || isTemporary(ownProgram)) {
    // npx is a batch file on Windows, which only a shell can start.
    const [command, ...first] = platform === "win32" ? ["cmd", "/c", "npx"] : ["npx"];
    return { command: command!, args: [...first, "-y", "skillhost", ...words], ...env };
  }
  return { command: process.execPath, args: [ownProgram, ...words], ...env };
}

/** npx removes what it installed, after a time. */
function isTemporary(program: string): boolean {
  return /[\\/]_npx[\\/]/.test(program);
}

/** Whether an entry of a client starts `skillhost mcp`. */
export function isOwnEntry(entry: unknown): boolean {
  const words = wordsOf(entry);
  return (
    words.includes("mcp") && words.some((word) => word === "skillhost" || word === ownProgram || /skillhost.*[\\/]bin\.js$/.test(word))
  );
}

/** Whether an entry starts this program, with arguments that cannot be anything else: it may be tried out. */
export function startsOwnProgram(entry: unknown): boolean {
  const [command, program] = wordsOf(entry);
  return command === process.execPath && program === ownProgram;
}

/** Whether two entries serve the same skills. */
export function servesSame(one: unknown, other: unknown): boolean {
  return JSON.stringify(projectOf(one)) === JSON.stringify(projectOf(other));
}

function projectOf(entry: unknown): readonly string[] {
  const words = wordsOf(entry);
  return words.filter((_word, index) => /^--(?:skills|config)$/.test(words[index - 1] ?? ""));
}

function wordsOf(entry: unknown): readonly string[] {
  if (!isRecord(entry)) return [];
  const { command, args } = entry;
  const words: readonly unknown[] = [command, ...(Array.isArray(args) ? args : [])];
  return words.filter((word) => typeof word === "string");
}
