import { Argument, Command, CommanderError, InvalidArgumentError, Option } from "commander";
import { logLevels } from "../base/logger.ts";
import { packageVersion } from "../base/package-version.ts";
import { addTrust } from "./add-trust-commands.ts";
import type { CliIo } from "./cli-io.ts";
import type { CommonOptions, RunCommand } from "./command-context.ts";
import type { AgentCommandOptions } from "./commands/agent.ts";
import type { ApproveOptions } from "./commands/approve.ts";
import type { LoginOptions } from "./commands/login.ts";
import type { McpCommandOptions } from "./commands/mcp.ts";
import type { RunCommandOptions } from "./commands/run.ts";
import { addPackageCommands } from "./package-commands.ts";
import type { CodeUse } from "./project-consent.ts";

/** A command line that was understood, or what it came to at once: help, the version, or a complaint. */
export type ParsedCommand =
  | {
      readonly kind: "command";
      readonly name: string;
      readonly options: CommonOptions;
      readonly run: RunCommand;
      /** What of the project it runs. Undefined: nothing, so that nobody has to have trusted the project. */
      readonly code: CodeUse | undefined;
    }
  | { readonly kind: "ended"; readonly exitCode: number };

/** Parses the arguments after the program's name. What is wrong with them has been said when this returns. */
export function parseCommandLine(argv: readonly string[], io: CliIo): ParsedCommand {
  // Before anything is parsed: the complaint about what cannot be parsed has a form too.
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

/**
 * Takes note of the command that was chosen. A command that runs code of the project says so by `code`; for one that does
 * not say it, nothing of a project that is not trusted runs.
 */
export type Choose = (name: string, run: RunCommand, code?: CodeUse) => void;

/** The commands and options of the command line. @internal Exported for tests. */
export function createProgram(choose: Choose): Command {
  const program = new Command("skillhost")
    .description("Runs agent skills and their tools, and loads what you save.")
    .version(packageVersion, "-V, --version", "print the version")
    .helpOption("-h, --help", "show help")
    .helpCommand("help [command]", "show help for a command")
    .option("--skills <dir>", "skills, or folders of them; repeatable (default: ./skills)", collect)
    .option("--config <file>", "configuration (default: the nearest skillhost.json, or package.json with a skillhost key)")
    .option("--mcp-config <file>", "MCP servers, as any client configures them; repeatable", collect)
    .option("--trust", "let code of this project run, this time (default: SKILLHOST_TRUST)")
    .option("--json", "print JSON, nothing else, to stdout")
    .option("--quiet", "print the answer and errors only")
    .option("--no-color", "print without colours")
    .addOption(new Option("--log-level <level>", "what is logged").choices(logLevels))
    .option("--log-file <file>", "add the log to a file (default: it goes to stderr)")
    // Read before this is loaded: bin.ts.
    .addHelpText(
      "after",
      "\nClients of the Copilot SDK start it as their runtime: skillhost --headless --stdio, or --headless --port <n>.",
    );
  addServing(program, choose);
  addAsking(program, choose);
  addLooking(program, choose);
  addExamining(program, choose);
  addMaking(program, choose);
  addPackageCommands(program, choose);
  addTrust(program, choose);
  return program;
}

function addServing(program: Command, choose: Choose): void {
  program
    .command("dev")
    .description("load skills, watch them, and print each change")
    .argument("[dir...]", "skills, or folders of them")
    .addOption(
      new Option("--watch <when>", "keep watching; auto: only on a terminal").choices(["always", "auto", "never"]).default("always"),
    )
    .action((directories: string[], options: { watch: "always" | "auto" | "never" }) =>
      choose("dev", async (context) => (await import("./commands/dev.ts")).dev(context, directories, options), { directories }),
    );
  program
    .command("call")
    .description("call a tool once")
    .argument("<tool>", "its name, or skill/name")
    .argument("[json]", "its arguments as JSON; - reads them from stdin, and so does a pipe")
    .option("--arg <key=value>", "one argument, whose value is JSON or else text; repeatable", collect)
    .option("--yes", "allow the call without asking")
    .option("--timeout <ms>", "cancel it after this many milliseconds", milliseconds)
    .action((tool: string, json: string | undefined, options: { arg?: string[]; yes?: boolean; timeout?: number }) =>
      choose("call", async (context) => (await import("./commands/call.ts")).call(context, tool, json, options), {}),
    );
  addMcp(program, choose);
  addSigningIn(program, choose);
}

function addMcp(program: Command, choose: Choose): void {
  program
    .command("mcp")
    .alias("serve")
    .summary("serve the skills to MCP clients")
    .description("Serves the tools, prompts and resources of the skills to MCP clients, and notifies them of changes.")
    .option("--http [port]", "over HTTP instead of stdin and stdout (default port: 3333)", port)
    .option("--host <address>", "the address to listen on", "127.0.0.1")
    .option(
      "--token <token>",
      "what HTTP requests must carry as a bearer token (default: SKILLHOST_TOKEN, else one that is made up and shown)",
    )
    .option("--no-token", "any program of this machine may call; for loopback addresses only")
    .option("--allow-host <name>", "a name that clients reach the server by; repeatable", collect)
    .option("--allow-origin <host>", "a host whose web pages may call; repeatable", collect)
    .option("--allow <rule>", 'calls that may run, such as "lint" or "shell(git status)"; repeatable', collect)
    .option("--deny <rule>", "calls that may not, whatever is allowed; repeatable", collect)
    .option("--yes", "allow every call that no rule denies")
    .option("--agent <name>", "only the tools of this agent")
    .option("--available <pattern>", "only these tools; repeatable", collect)
    .option("--excluded <pattern>", "all tools but these; repeatable", collect)
    .action((options: McpCommandOptions) =>
      choose("mcp", async (context) => (await import("./commands/mcp.ts")).mcp(context, options), { agent: options.agent }),
    );
}

function addAsking(program: Command, choose: Choose): void {
  program
    .command("run")
    .summary("have a model work on a prompt")
    .description("Has a model work on a prompt with the tools of the skills. Never asks: what is not allowed is denied.")
    .argument("<prompt>", "what is to be done; - reads it from stdin")
    .option("--agent <name>", "an agent of the project (.github/agents, .claude/agents, agents), or the file of one")
    .option("--model <name>", "the model, as its endpoint calls it (default: OPENAI_MODEL)")
    .option("--base-url <url>", "an endpoint that speaks OpenAI's protocol (default: OPENAI_BASE_URL; its key is OPENAI_API_KEY)")
    .option("--system <text>", "instructions, after those that there are")
    .option("--allow <rule>", 'calls that may run, such as "lint" or "shell(git status)"; repeatable', collect)
    .option("--deny <rule>", "calls that may not, whatever is allowed; repeatable", collect)
    .option("--yes", "allow every call that no rule denies")
    .option("--available <pattern>", "only these tools; repeatable", collect)
    .option("--excluded <pattern>", "all tools but these; repeatable", collect)
    .option("--export <file>", "write the session to a .md file to read, or a .jsonl file with every event")
    .option("--no-stream", "print the answer when it is complete")
    .action((prompt: string, options: RunCommandOptions) =>
      choose("run", async (context) => (await import("./commands/run.ts")).run(context, prompt, options), { agent: options.agent }),
    );
  addAgent(program, choose);
}

function addAgent(program: Command, choose: Choose): void {
  program
    .command("agent")
    .summary("have GitHub's Copilot language server work on a prompt")
    .description(
      "Has GitHub's Copilot language server work on a prompt with the tools of the skills and of an editor. Never asks: what is not allowed is denied.",
    )
    .argument("<prompt>", "what is to be done; - reads it from stdin")
    .option("-w, --workspace <folder>", "where to work (default: here)")
    .option("--server <file>", "the server (default: of the npm package @github/copilot-language-server, else in the search path)")
    .option("--model <name>", "the model, as the server lists it (default: the server's)")
    .option("--allow <rule>", 'calls that may run, such as "lint" or "shell(git status)"; repeatable', collect)
    .option("--deny <rule>", "calls that may not, whatever is allowed; repeatable", collect)
    .option("--yes", "allow every call that no rule denies")
    .option("--available <pattern>", "only these tools; repeatable", collect)
    .option("--excluded <pattern>", "all tools but these; repeatable", collect)
    .action((prompt: string, options: AgentCommandOptions) =>
      // It may work elsewhere, so it asks by itself when it knows where.
      choose("agent", async (context) => (await import("./commands/agent.ts")).agent(context, prompt, options)),
    );
}

function addLooking(program: Command, choose: Choose): void {
  program
    .command("list")
    .description("list skills with their tools, MCP servers, and what is wrong with them")
    .action(() => choose("list", async (context) => (await import("./commands/list.ts")).list(context)));
  program
    .command("explain")
    .description("say why a name means what it means: who has it, who lost it, by which rule")
    .argument("<name>", "of a tool or skill")
    .option("--available <pattern>", "as a session with this in availableTools sees it; repeatable", collect)
    .option("--excluded <pattern>", "as a session with this in excludedTools sees it; repeatable", collect)
    .action((name: string, options: { available?: string[]; excluded?: string[] }) =>
      choose("explain", async (context) => (await import("./commands/explain.ts")).explain(context, name, options)),
    );
  program
    .command("check")
    .description("say what is wrong with skills, and what could be better, without running them")
    .argument("[dir...]", "skills, or folders of them")
    .option("--strict", "hold SKILL.md to the specification, and fail on warnings too")
    .option("--run", "load the modules, too, which runs their code")
    .action((directories: string[], options: { strict?: boolean; run?: boolean }) =>
      choose("check", async (context) => (await import("./commands/check.ts")).check(context, directories, options)),
    );
}

function addExamining(program: Command, choose: Choose): void {
  program
    .command("doctor")
    .summary("say what is wrong with this machine or set-up")
    .description("Says what is wrong with this machine or set-up. It starts each MCP server, and sees how far that gets.")
    .option("--timeout <ms>", "how long each MCP server may take (default: 20000, or its own timeout if that is shorter)", milliseconds)
    .action((options: { timeout?: number }) =>
      choose("doctor", async (context) => (await import("./commands/doctor.ts")).doctor(context, options)),
    );
}

function addMaking(program: Command, choose: Choose): void {
  const make = program.command("new").description("make a skill, a tool or a plugin, with a test that passes");
  make
    .command("skill")
    .description("make a skill with a tool and a test")
    .addArgument(new Argument("<name>", "lowercase letters, digits and hyphens"))
    .action((name: string) => choose("new skill", async (context) => (await import("./commands/new.ts")).newSkill(context, name)));
  make
    .command("tool")
    .description("make a tool and a test in a skill")
    .addArgument(new Argument("<name>", "letters, digits, _ and -"))
    .option("--skill <skill>", "the skill that it belongs to; needed when there are several")
    .action((name: string, options: { skill?: string }) =>
      choose("new tool", async (context) => (await import("./commands/new.ts")).newTool(context, name, options)),
    );
  make
    .command("plugin")
    .description("make a plugin with a tool, a configuration and a test")
    .addArgument(new Argument("<name>", 'letters, digits, ".", "_" and "-"'))
    .action((name: string) => choose("new plugin", async (context) => (await import("./commands/new-plugin.ts")).newPlugin(context, name)));
}

function collect(value: string, before: string[] = []): string[] {
  return [...before, value];
}

function addSigningIn(program: Command, choose: Choose): void {
  program
    .command("approve")
    .description("show what an MCP server or a skill has changed since it was approved, and approve it")
    .argument("<name>", "the server's name, or the skill's")
    .argument("[tool]", "only this tool, by the server's own name")
    .option("-y, --yes", "do not ask")
    .action((server: string, tool: string | undefined, options: ApproveOptions) =>
      choose("approve", async (context) => (await import("./commands/approve.ts")).approve(context, server, tool, options), {}),
    );
  program
    .command("login")
    .summary("sign in to a remote MCP server")
    .description("Signs in to a remote MCP server in a browser, keeps what comes of it, and says whether the server can be used.")
    .argument("<server>", "its name, as in the configuration")
    .option("--browser", "open the browser, and do not only print the address")
    .option("--again", "sign in again, such as to another account")
    .action((server: string, options: LoginOptions) =>
      choose("login", async (context) => (await import("./commands/login.ts")).login(context, server, options), {}),
    );
  program
    .command("logout")
    .description("sign out of a remote MCP server")
    .argument("<server>", "its name, as in the configuration")
    .action((server: string) => choose("logout", async (context) => (await import("./commands/login.ts")).logout(context, server), {}));
}

function port(value: string): number {
  const number = Number(value);
  if (Number.isInteger(number) && number >= 0 && number <= 65_535) return number;
  throw new InvalidArgumentError("It must be a port: 0, for any that is free, to 65535.");
}

function milliseconds(value: string): number {
  const number = Number(value);
  if (Number.isFinite(number) && number > 0 && number <= 2_147_483_647) return number;
  throw new InvalidArgumentError("It must be a number of milliseconds above 0.");
}

function configure(command: Command, io: CliIo, json: boolean): void {
  command.exitOverride();
  command.configureHelp({ showGlobalOptions: true });
  command.configureOutput({
    writeOut: (text) => io.stdout.write(text),
    writeErr: (text) => (json ? undefined : io.stderr.write(text)),
    getOutHelpWidth: () => io.stdout.columns ?? 80,
    getErrHelpWidth: () => io.stderr.columns ?? 80,
    getOutHasColors: () => false,
    getErrHasColors: () => false,
  });
  command.showHelpAfterError(`Run "${fullName(command)} --help" to see how it is used.`);
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
