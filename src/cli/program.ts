import { Argument, Command, CommanderError, Option } from "commander";
import { logLevels } from "../base/logger.ts";
import { packageVersion } from "../base/package-root.ts";
import { isolationWords } from "../skills/isolation/isolation-policy.ts";
import type { CommonOptions, RunCommand } from "./command-context.ts";
import type { Shell } from "./completion-scripts.ts";
import type { Choose } from "./grammar/choose.ts";
import { addConnectCommands } from "./grammar/connect-commands.ts";
import { addFleetCommands } from "./grammar/fleet-commands.ts";
import { addInspectCommands } from "./grammar/inspect-commands.ts";
import { collect } from "./grammar/option-values.ts";
import { addPackageCommands } from "./grammar/package-commands.ts";
import { addRunCommands } from "./grammar/run-commands.ts";
import { addScaffoldCommands } from "./grammar/scaffold-commands.ts";
import { addDoctorCommand, addServerCommands } from "./grammar/server-commands.ts";
import { addTrustCommands } from "./grammar/trust-commands.ts";
import type { CliIo } from "./process-io.ts";
import type { CodeUse } from "./project-consent.ts";

/** A parsed command, or an immediate result: help, the version, or a usage error. */
export type CommandAction =
  | {
      readonly kind: "command";
      readonly name: string;
      readonly options: CommonOptions;
      readonly run: RunCommand;
      /** The project code that it runs. Undefined: none, so the project need not be trusted. */
      readonly code: CodeUse | undefined;
    }
  | { readonly kind: "ended"; readonly exitCode: number };

/** Parses the arguments after the program's name. Errors are already printed when it returns. */
export function parseProgramArguments(argv: readonly string[], io: CliIo): CommandAction {
  // Read before parsing, because parse errors have a JSON form too.
  const json = argv.includes("--json");
  let chosen: { name: string; run: RunCommand; code: CodeUse | undefined } | undefined;
  const program = createProgram((name, run, code) => {
    chosen = { name, run, code };
  });
  configure(program, io, json);
  try {
    program.parse(argv, { from: "user" });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    return { kind: "ended", exitCode: endOf(error, io, json) };
  }
  const { name, run, code } = chosen!;
  return { kind: "command", name, options: program.opts<CommonOptions>(), run, code };
}

/** The commands and options of the command line. */
export function createProgram(choose: Choose): Command {
  const program = new Command("skillhost")
    .description("Runs agent skills and their tools, and reloads them when you save.")
    .version(packageVersion, "-V, --version", "print the version")
    .helpOption("-h, --help", "show help")
    .commandsGroup("More:")
    .helpCommand("help [command]", "show help for a command")
    .option("--skills <dir>", "skill folders, or folders that contain them; repeatable; auto finds them (default: ./skills)", collect)
    .option("--config <file>", "configuration file (default: the nearest skillhost.json, or package.json with a skillhost key)")
    .option("--mcp-config <file>", "file that configures MCP servers, such as .mcp.json; repeatable", collect)
    .option("--trust", "trust this project for this run, so that its code may run (default: SKILLHOST_TRUST)")
    .option("--json", "print only JSON to stdout")
    .option("--quiet", "print only the answer and errors")
    .option("--no-color", "print without colours")
    .addOption(new Option("--isolation <tier>", "where code of skills runs (default: auto)").choices(isolationWords))
    .addOption(new Option("--log-level <level>", "log level (default: error)").choices(logLevels))
    .option("--log-file <file>", "append the log to a file (default: stderr)")
    // start.ts handles --headless before this module is loaded.
    .addHelpText(
      "after",
      `
Examples:
  skillhost init                         a project with a skill and a test
  skillhost dev                          loads the skills, and each save at once
  skillhost call get_weather --city Oslo
  skillhost connect claude-code          serves them to Claude Code; so for VS Code and others`,
    )
    .addHelpText("after", "\nTo serve Copilot SDK clients as their runtime: skillhost --headless --stdio, or --headless --port <n>.");
  addScaffoldCommands(program, choose);
  addServerCommands(program, choose);
  addConnectCommands(program, choose);
  addFleetCommands(program, choose);
  addRunCommands(program, choose);
  addInspectCommands(program, choose);
  addDoctorCommand(program, choose);
  addPackageCommands(program, choose);
  addTrustCommands(program, choose);
  addCompletionCommand(program, choose);
  arrange(program);
  return program;
}

const helpGroups: Readonly<Record<string, readonly string[]>> = {
  "Write and use skills:": [
    "init",
    "dev",
    "new",
    "list",
    "show",
    "inspect",
    "explain",
    "check",
    "test",
    "types",
    "call",
    "run",
    "chat",
    "sessions",
    "agent",
  ],
  "Serve and connect:": ["connect", "disconnect", "mcp", "approve", "login", "logout", "doctor"],
  "Install and publish:": ["add", "remove", "update", "outdated", "lock", "verify", "ci", "pack", "publish"],
  "Several machines:": ["worker", "push", "rollback", "status", "fleet"],
  "Trust:": ["trust", "sign", "keys"],
  "More:": ["completion"],
};

/** What people type who know other tools. */
const aliases: Readonly<Record<string, readonly string[]>> = {
  mcp: ["serve"],
  list: ["ls"],
  check: ["validate"],
  add: ["i", "install"],
  remove: ["rm", "uninstall"],
  update: ["upgrade"],
};

/** Puts the commands of the help into groups, and gives them their other names. */
function arrange(program: Command): void {
  const groups = new Map(Object.entries(helpGroups).flatMap(([heading, names]) => names.map((name) => [name, heading] as const)));
  for (const command of program.commands) {
    command.helpGroup(groups.get(command.name()) ?? "More:").aliases([...(aliases[command.name()] ?? [])]);
    for (const child of command.commands) child.aliases([...(aliases[child.name()] ?? [])]);
  }
}

function configure(command: Command, io: CliIo, json: boolean): void {
  command.exitOverride();
  // Options and other names of commands are in the help of each.
  command.configureHelp({ showGlobalOptions: true, subcommandTerm });
  command.configureOutput({
    writeOut: (text) => io.stdout.write(text),
    writeErr: (text) => (json ? undefined : io.stderr.write(text)),
    getOutHelpWidth: () => io.stdout.columns ?? 80,
    getErrHelpWidth: () => io.stderr.columns ?? 80,
    getOutHasColors: () => false,
    getErrHasColors: () => false,
  });
  command.showHelpAfterError(`Run "${fullName(command)} --help" for usage.`);
  for (const child of command.commands) configure(child, io, json);
}

function fullName(command: Command): string {
  return command.parent ? `${fullName(command.parent)} ${command.name()}` : command.name();
}

function endOf({ exitCode, message }: CommanderError, io: CliIo, json: boolean): number {
  if (exitCode === 0) return 0;
  if (json) {
    const error = { code: "USAGE", message: message.replace(/^error: /, "") };
    io.stdout.write(`${JSON.stringify({ ok: false, command: "skillhost", diagnostics: [], error })}\n`);
  }
  return 2;
}

function addCompletionCommand(program: Command, choose: Choose): void {
  program
    .command("completion")
    .summary("print a script that completes commands, options and names in a shell")
    .description(
      "Prints a script that completes commands, options, and names of tools and skills in a shell. Its first line says how to use it.",
    )
    .addArgument(new Argument("<shell>", "the shell").choices(["bash", "zsh", "fish", "powershell"] satisfies readonly Shell[]))
    .action((shell: Shell) =>
      choose("completion", async (context) => (await import("./commands/completion.ts")).completion(context, shell)),
    );
}

function subcommandTerm(command: Command): string {
  const words = command.registeredArguments.map((argument) => {
    const name = argument.name() + (argument.variadic ? "..." : "");
    return argument.required ? `<${name}>` : `[${name}]`;
  });
  return [command.name(), ...words].join(" ");
}
