import type { Option } from "commander";
import { readWrittenSkill, type WrittenSkill } from "../../advice/written-skill.ts";
import { silentLogger } from "../../base/logger.ts";
import { packageVersion } from "../../base/package-root.ts";
import { resolveHostOptions } from "../../host/host-options.ts";
import { createModuleLoader } from "../../io/module-loader/create-module-loader.ts";
import { providedModules } from "../../skills/load/tool-module.ts";
import { discoverRoot } from "../../skills/store/skill-roots.ts";
import type { ToolDefinition } from "../../tools/tool.ts";
import { choicesOf, type ToolFlag, toolFlags } from "../call-arguments.ts";
import type { CommandContext, CommonOptions, ConfiguredOptions } from "../command-context.ts";
import { argumentAt, type Cursor, followWords, optionsOf, pathOf } from "../command-words.ts";
import { loadConfig } from "../config.ts";
import { readConfiguredServers } from "../configured-servers.ts";
import { withFoundSkills } from "../found-skills.ts";
import { toHostOptions } from "../open-host.ts";
import { createOutput } from "../output.ts";
import type { CliIo } from "../process-io.ts";
import { createProgram } from "../program.ts";
import { readConsent } from "../project-consent.ts";
import { visibleLine } from "../terminal-style.ts";

/** A value that the word at the cursor can become. */
interface Candidate {
  readonly value: string;
  readonly about?: string | undefined;
}

/** What can stand at the cursor: these values, or paths, which the shell completes itself. */
type Completions = readonly Candidate[] | "files" | "folders";

// A shell waits for the answer, so it does not read all of a huge collection.
const mostSkills = 300;

/**
 * Prints what the word at the cursor can become, for the scripts of `skillhost completion`. The arguments are the word's index, and the words
 * after the program's name. Runs no code of skills, whether or not the project is trusted. Whatever is wrong with the project, it prints what it knows, and
 * reports nothing: the user is typing.
 */
export async function complete([index = "0", ...words]: readonly string[], io: CliIo): Promise<number> {
  const at = Number(index);
  const current = words[at] ?? "";
  try {
    const found = await completionsOf(
      followWords(
        createProgram(() => {}),
        words.slice(0, at),
      ),
      current,
      io,
    );
    if (typeof found === "string") io.stdout.write(`:${found}\n`);
    else
      for (const { value, about = "" } of found.filter((each) => isTypable(each, current)))
        io.stdout.write(`${value}\t${shortened(about)}\n`);
  } catch {
    // A broken configuration or skill is reported by the command itself.
  }
  return 0;
}

/** Names come from skills, so what a shell would interpret, or what would look like an option, must not get into a command line. */
function isTypable({ value }: Candidate, current: string): boolean {
  return value.startsWith(current) && /^[\w@%+=,./-][\w@%+=:,./-]*$/.test(value);
}

function shortened(text: string): string {
  const line = visibleLine(text);
  return line.length > 100 ? `${line.slice(0, 99).trimEnd()}…` : line;
}

async function completionsOf(cursor: Cursor, current: string, io: CliIo): Promise<Completions> {
  const { command, awaiting, isPlain } = cursor;
  if (awaiting !== undefined && !(awaiting.optional && current.startsWith("-"))) return valuesOf(awaiting, cursor, io);
  const [, flag, given] = /^(--[^=]+)=(.*)$/s.exec(isPlain ? "" : current) ?? [];
  const option = flag === undefined ? undefined : optionsOf(command).find(({ long }) => long === flag);
  if (option !== undefined && given !== undefined) return prefixed(`${flag}=`, await valuesOf(option, cursor, io));
  const ofTool = pathOf(command) === "call" && cursor.operands.length > 0 ? await ofToolArguments(cursor, current, io) : undefined;
  if (ofTool?.isValue === true) return ofTool.candidates;
  if (!isPlain && current.startsWith("-")) return [...(ofTool?.candidates ?? []), ...flagsOf(cursor)];
  if (ofTool !== undefined) return ofTool.candidates;
  if (cursor.operands.length === 0 || cursor.operands.join(" ") === "help") {
    const commands = command.createHelp().visibleCommands(command);
    if (commands.length > 0) return commands.map((each) => ({ value: each.name(), about: each.summary() || each.description() }));
  }
  return operandsOf(cursor, io);
}

function prefixed(prefix: string, found: Completions): Completions {
  return typeof found === "string" ? found : found.map(({ value, about }) => ({ value: `${prefix}${value}`, about }));
}

function flagsOf({ command, options }: Cursor): readonly Candidate[] {
  const isRepeatable = ({ description }: Option): boolean => /\brepeatable\b/.test(description);
  return optionsOf(command)
    .filter((option) => option.long !== undefined && (isRepeatable(option) || !options.has(option.long)))
    .map((option) => ({ value: option.long!, about: option.description }));
}

/** The values of an option of skillhost. */
async function valuesOf(option: Option, cursor: Cursor, io: CliIo): Promise<Completions> {
  if (option.argChoices !== undefined) return option.argChoices.map((value) => ({ value }));
  const placeholder = /[<[](\w+)/.exec(option.flags)?.[1] ?? "";
  if (paths.has(placeholder)) return paths.get(placeholder)!;
  if (["--allow", "--deny", "--available", "--excluded"].includes(option.long ?? "")) return toolNames(await readSkills(cursor, io));
  return option.long === "--skill" ? skillNames(await readSkills(cursor, io)) : [];
}

const paths: ReadonlyMap<string, "files" | "folders"> = new Map([
  ["file", "files"],
  ["dir", "folders"],
  ["folder", "folders"],
]);

/** The values of the next operand of a command. */
async function operandsOf(cursor: Cursor, io: CliIo): Promise<Completions> {
  const argument = argumentAt(cursor);
  if (argument === undefined) return [];
  if (argument.argChoices !== undefined) return argument.argChoices.map((value) => ({ value }));
  const known = paths.get(argument.name());
  if (known !== undefined) return known;
  const path = pathOf(cursor.command);
  if (path === "call") return toolNames(await readSkills(cursor, io));
  if (path === "show" || path === "explain") {
    const skills = await readSkills(cursor, io);
    return [...toolNames(skills), ...skillNames(skills)];
  }
  if (path === "sign") return skillNames(await readSkills(cursor, io));
  if (path === "login" || path === "logout") return serverNames(cursor, io);
  if (path === "approve")
    return cursor.operands.length > 0 ? [] : [...serverNames(cursor, io), ...skillNames(await readSkills(cursor, io))];
  return path === "add" ? "files" : [];
}

/** The options of a tool for `call`, or the values of the one before the cursor. */
async function ofToolArguments(
  cursor: Cursor,
  current: string,
  io: CliIo,
): Promise<{ isValue: boolean; candidates: readonly Candidate[] }> {
  const [name = "", ...given] = cursor.operands;
  const tool = findTool(await readSkills(cursor, io), name);
  if (tool === undefined) return { isValue: false, candidates: [] };
  const reserved = optionsOf(cursor.command).flatMap(({ long }) => long ?? []);
  const flags = toolFlags(tool, reserved);
  const before = given.at(-1) ?? "";
  const awaiting = flags.find((each) => each.flag === before && !isSwitch(each));
  if (awaiting !== undefined) return { isValue: true, candidates: choicesOf(awaiting).map((value) => ({ value })) };
  const [, flag] = /^(--[^=]+)=/.exec(current) ?? [];
  const inline = flag === undefined ? undefined : flags.find((each) => each.flag === flag);
  if (inline !== undefined) return { isValue: true, candidates: choicesOf(inline).map((value) => ({ value: `${flag}=${value}` })) };
  const open = flags.filter(
    (each) => each.types.has("array") || !given.some((word) => word === each.flag || word.startsWith(`${each.flag}=`)),
  );
  const sorted = [...open.filter(({ isRequired }) => isRequired), ...open.filter(({ isRequired }) => !isRequired)];
  return { isValue: false, candidates: sorted.map(({ flag: value, schema }) => ({ value, about: textOf(schema["description"]) })) };
}

function isSwitch({ types }: ToolFlag): boolean {
  return types.size === 1 && types.has("boolean");
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

/** Later roots take precedence, as in a host. */
function findTool(skills: readonly WrittenSkill[], name: string): ToolDefinition | undefined {
  const fits = (skill: WrittenSkill, tool: ToolDefinition): boolean => tool.name === name || `${skill.name}/${tool.name}` === name;
  return skills.flatMap((skill) => skill.tools.filter((tool) => fits(skill, tool))).at(-1);
}

function toolNames(skills: readonly WrittenSkill[]): readonly Candidate[] {
  const tools = skills.flatMap((skill) => skill.tools);
  return [...new Map(tools.map(({ name, description }) => [name, { value: name, about: description }])).values()];
}

function skillNames(skills: readonly WrittenSkill[]): readonly Candidate[] {
  return [...new Map(skills.map(({ name, description }) => [name, { value: name, about: description }])).values()];
}

function serverNames(cursor: Cursor, io: CliIo): readonly Candidate[] {
  return readConfiguredServers(contextOf(cursor, io)).all.map(({ server }) => ({ value: server.name }));
}

/** The skills that the command would load, of packages first, since these have the lowest precedence. */
async function readSkills(cursor: Cursor, io: CliIo): Promise<readonly WrittenSkill[]> {
  const { roots, packageRoots } = resolveHostOptions(toHostOptions(withoutServers(contextOf(cursor, io)), [], false));
  const folders = [...new Set([...packageRoots, ...roots].flatMap((root) => discoverRoot(root).folders))].slice(-mostSkills);
  const loader = createModuleLoader(providedModules);
  try {
    const skills: WrittenSkill[] = [];
    for (const folder of folders) {
      io.signal.throwIfAborted();
      const skill = await readWrittenSkill(folder, { loader, hostVersion: packageVersion, signal: io.signal });
      if (skill !== undefined) skills.push(skill);
    }
    return skills;
  } finally {
    loader[Symbol.dispose]();
  }
}

/** The context of the command that is being typed. A broken configuration counts as none: the command itself reports it. */
function contextOf({ options: given }: Cursor, io: CliIo): CommandContext {
  const [skills, mcpConfig, file] = [given.get("--skills"), given.get("--mcp-config"), given.get("--config")?.at(-1)];
  const options: CommonOptions = {
    color: false,
    ...(skills && { skills }),
    ...(mcpConfig && { mcpConfig }),
    ...(file !== undefined && { config: file }),
  };
  const out = createOutput(io, { json: false, quiet: true, color: false, command: "complete" });
  return withFoundSkills({ io, out, options, config: readConfig(file, io.cwd), consent: readConsent(io, options), log: silentLogger });
}

function readConfig(file: string | undefined, cwd: string): ConfiguredOptions {
  try {
    return loadConfig(file, cwd);
  } catch {
    return {};
  }
}

/** The servers of a configuration do not matter for its skills, and reading them can fail. */
function withoutServers({
  config: { serversIn: _in, ...config },
  options: { mcpConfig: _file, ...options },
  ...rest
}: CommandContext): CommandContext {
  return { ...rest, config, options };
}
