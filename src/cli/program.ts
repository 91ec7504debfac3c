import { Argument, Command, CommanderError, InvalidArgumentError, Option } from "commander";
import { logLevels } from "../base/logger.ts";
import { packageVersion } from "../base/package-root.ts";
import type { CommonOptions, RunCommand } from "./command-context.ts";
import type { AgentCommandOptions } from "./commands/agent.ts";
import type { ApproveOptions } from "./commands/approve.ts";
import type { ChangeCommandOptions } from "./commands/change-packages.ts";
import type { KeyOptions } from "./commands/keys.ts";
import type { LoginOptions } from "./commands/login.ts";
import type { McpCommandOptions } from "./commands/mcp.ts";
import type { PackCommandOptions, PublishCommandOptions } from "./commands/pack.ts";
import type { RunCommandOptions } from "./commands/run.ts";
import type { SignOptions } from "./commands/sign.ts";
import type { Shell } from "./completion-scripts.ts";
import type { PackageScopeOptions } from "./package-context.ts";
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

/**
 * Records the chosen command. A command that runs project code declares it in `code`; for others, no code of an untrusted project runs.
 */
type Choose = (name: string, run: RunCommand, code?: CodeUse) => void;

/** The commands and options of the command line. */
export function createProgram(choose: Choose): Command {
  const program = new Command("skillhost")
    .description("Runs agent skills and their tools, and reloads them when you save.")
    .version(packageVersion, "-V, --version", "print the version")
    .helpOption("-h, --help", "show help")
    .commandsGroup("More:")
    .helpCommand("help [command]", "show help for a command")
    .option("--skills <dir>", "skill folders, or folders that contain them; repeatable (default: ./skills)", collect)
    .option("--config <file>", "configuration file (default: the nearest skillhost.json, or package.json with a skillhost key)")
    .option("--mcp-config <file>", "file that configures MCP servers, such as .mcp.json; repeatable", collect)
    .option("--trust", "trust this project for this run, so that its code may run (default: SKILLHOST_TRUST)")
    .option("--json", "print only JSON to stdout")
    .option("--quiet", "print only the answer and errors")
    .option("--no-color", "print without colours")
    .addOption(new Option("--log-level <level>", "log level (default: error)").choices(logLevels))
    .option("--log-file <file>", "append the log to a file (default: stderr)")
    // start.ts handles --headless before this module is loaded.
    .addHelpText(
      "after",
      `
Examples:
  skillhost new skill weather            a skill with a tool and a test
  skillhost dev                          loads the skills, and each save at once
  skillhost call get_weather --city Oslo
  skillhost mcp                          serves them to Claude, VS Code and others`,
    )
    .addHelpText("after", "\nTo serve Copilot SDK clients as their runtime: skillhost --headless --stdio, or --headless --port <n>.");
  addServerCommands(program, choose);
  addRunCommands(program, choose);
  addInspectCommands(program, choose);
  addDoctorCommand(program, choose);
  addScaffoldCommands(program, choose);
  addPackageCommands(program, choose);
  addTrustCommands(program, choose);
  addCompletionCommand(program, choose);
  arrange(program);
  return program;
}

const helpGroups: Readonly<Record<string, readonly string[]>> = {
  "Write and use skills:": ["dev", "new", "list", "show", "explain", "check", "call", "run", "agent"],
  "Serve and connect:": ["mcp", "approve", "login", "logout", "doctor"],
  "Install and publish:": ["add", "remove", "update", "lock", "verify", "ci", "pack", "publish"],
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

function addServerCommands(program: Command, choose: Choose): void {
  program
    .command("dev")
    .description("load skills, watch them and print each change")
    .argument("[dir...]", "skill folders, or folders that contain them")
    .addOption(
      new Option("--watch <when>", "keep watching; auto: only in a terminal").choices(["always", "auto", "never"]).default("always"),
    )
    .action((directories: string[], options: { watch: "always" | "auto" | "never" }) =>
      choose("dev", async (context) => (await import("./commands/dev.ts")).dev(context, directories, options), { directories }),
    );
  program
    .command("call")
    .description("call a tool once")
    .argument("<tool>", "tool name, or skill/name")
    .argument("[args...]", "one option for each argument (--city Oslo), or one JSON object; - or a pipe: read JSON from stdin")
    .option("--arg <key=value>", "one argument; its value is JSON, else text; repeatable", collect)
    .option("--yes", "allow the call without asking for permission")
    .option("--timeout <ms>", "cancel the call after this many milliseconds", milliseconds)
    // The tool's own options are known only when it is loaded.
    .allowUnknownOption()
    .helpOption(false)
    .addHelpText("after", '\nRun "skillhost call <tool> --help" to see the options of a tool.')
    .action((tool: string, words: string[], options: { arg?: string[]; yes?: boolean; timeout?: number }, command: Command) => {
      if (tool === "--help" || tool === "-h") command.help();
      const reserved = [...program.options, ...command.options].flatMap(({ long }) => long ?? []);
      choose("call", async (context) => (await import("./commands/call.ts")).call(context, tool, words, { ...options, reserved }), {});
    });
  addMcpCommand(program, choose);
  addAccessCommands(program, choose);
}

function addMcpCommand(program: Command, choose: Choose): void {
  withFilters(
    program
      .command("mcp")
      .summary("serve skills to MCP clients")
      .description("Serves the tools, prompts and resources of the skills to MCP clients, and notifies them of changes.")
      .option("--http [port]", "over HTTP instead of stdin and stdout (default port: 3333)", port)
      .option("--host <address>", "the address to listen on", "127.0.0.1")
      .option(
        "--token <token>",
        "bearer token that HTTP requests must send (default: SKILLHOST_TOKEN, else a generated one that is printed)",
      )
      .option("--no-token", "let any program on this machine call without a token; only for loopback addresses")
      .option("--allow-host <name>", "host name that clients may use in requests; repeatable", collect)
      .option("--allow-origin <host>", "origin that browsers may call from; repeatable", collect)
      .option("--max-requests <count>", "requests that an address may send in ten seconds (default: 10000)", count)
      .option("--agent <name>", "serve only the tools of this agent"),
  ).action((options: McpCommandOptions) =>
    choose("mcp", async (context) => (await import("./commands/mcp.ts")).mcp(context, options), { agent: options.agent }),
  );
}

function addRunCommands(program: Command, choose: Choose): void {
  withFilters(
    program
      .command("run")
      .summary("run a prompt with any model")
      .description("Runs a prompt with any model and the tools of the skills. Never asks: calls that are not allowed are denied.")
      .argument("<prompt>", "the task; -: read it from stdin")
      .option("--agent <name>", "agent of the project (.github/agents, .claude/agents, agents), or an agent file")
      .option("--model <name>", "the endpoint's name of the model (default: OPENAI_MODEL)")
      .option("--base-url <url>", "OpenAI-compatible endpoint (default: OPENAI_BASE_URL; key: OPENAI_API_KEY)")
      .option("--system <text>", "extra instructions, appended to the system message")
      .option("--export <file>", "write the session to a .md file (for reading) or a .jsonl file (every event)")
      .option("--no-stream", "print the answer only when it is complete"),
  ).action((prompt: string, options: RunCommandOptions) =>
    choose("run", async (context) => (await import("./commands/run.ts")).run(context, prompt, options), { agent: options.agent }),
  );
  addAgentCommand(program, choose);
}

function addAgentCommand(program: Command, choose: Choose): void {
  withFilters(
    program
      .command("agent")
      .summary("run a prompt with GitHub's Copilot language server")
      .description(
        "Runs a prompt with GitHub's Copilot language server and the tools of the skills and of an editor. Never asks: calls that are not allowed are denied.",
      )
      .argument("<prompt>", "the task; -: read it from stdin")
      .option("-w, --workspace <folder>", "working directory (default: current directory)")
      .option(
        "--server <file>",
        "path of the language server (default: from the npm package @github/copilot-language-server, else from PATH)",
      )
      .option("--model <name>", "the model, as the server lists it (default: the server's default)"),
  ).action((prompt: string, options: AgentCommandOptions) =>
    // It may work in another folder, so it asks for consent itself.
    choose("agent", async (context) => (await import("./commands/agent.ts")).agent(context, prompt, options)),
  );
}

function addInspectCommands(program: Command, choose: Choose): void {
  program
    .command("list")
    .description("list skills, tools and MCP servers, with their problems")
    .action(() => choose("list", async (context) => (await import("./commands/list.ts")).list(context)));
  program
    .command("explain")
    .description("show which skill provides a tool or skill name, and what it overrides")
    .argument("<name>", "name of a tool or skill")
    .option("--available <pattern>", "assume a session with this pattern in availableTools; repeatable", collect)
    .option("--excluded <pattern>", "assume a session with this pattern in excludedTools; repeatable", collect)
    .action((name: string, options: { available?: string[]; excluded?: string[] }) =>
      choose("explain", async (context) => (await import("./commands/explain.ts")).explain(context, name, options)),
    );
  program
    .command("show")
    .description("show what a tool takes and returns, or what a skill contains")
    .argument("<name>", "name of a tool or skill")
    .option("--schema", "print the JSON Schemas instead of the TypeScript form")
    .action((name: string, options: { schema?: boolean }) =>
      choose("show", async (context) => (await import("./commands/show.ts")).show(context, name, options)),
    );
  program
    .command("check")
    .description("find problems in skills and suggest improvements, without running code")
    .argument("[dir...]", "skill folders, or folders that contain them")
    .option("--strict", "check SKILL.md against the specification, and fail on warnings")
    .option("--run", "also load the modules, which runs their code")
    .action((directories: string[], options: { strict?: boolean; run?: boolean }) =>
      choose("check", async (context) => (await import("./commands/check.ts")).check(context, directories, options)),
    );
}

function addDoctorCommand(program: Command, choose: Choose): void {
  program
    .command("doctor")
    .summary("find problems of this machine and configuration")
    .description("Finds problems of this machine and configuration. Starts each MCP server and reports which step fails.")
    .option("--timeout <ms>", "timeout for each MCP server (default: 20000, or its own timeout if that is shorter)", milliseconds)
    .option("--clear-cache", "remove the cached modules and compiled code, and check nothing")
    .action((options: { timeout?: number; clearCache?: boolean }) =>
      choose("doctor", async (context) => (await import("./commands/doctor.ts")).doctor(context, options)),
    );
}

function addScaffoldCommands(program: Command, choose: Choose): void {
  const make = program.command("new").description("create a skill, tool or plugin from a template, with a test");
  make
    .command("skill")
    .description("create a skill with a tool and a test")
    .addArgument(new Argument("<name>", "lowercase letters, digits and hyphens"))
    .action((name: string) => choose("new skill", async (context) => (await import("./commands/new.ts")).newSkill(context, name)));
  make
    .command("tool")
    .description("create a tool and a test in a skill")
    .addArgument(new Argument("<name>", "letters, digits, _ and -"))
    .option("--skill <skill>", "the skill to add the tool to; required if there are several")
    .action((name: string, options: { skill?: string }) =>
      choose("new tool", async (context) => (await import("./commands/new.ts")).newTool(context, name, options)),
    );
  make
    .command("plugin")
    .description("create a plugin with a tool, a configuration and a test")
    .addArgument(new Argument("<name>", 'letters, digits, ".", "_" and "-"'))
    .action((name: string) => choose("new plugin", async (context) => (await import("./commands/new.ts")).newPlugin(context, name)));
}

/** Adds the options that decide which tools a session has and which calls it allows. */
function withFilters(command: Command): Command {
  return command
    .option("--allow <rule>", 'rule for calls to allow, such as "lint" or "shell(git status)"; repeatable', collect)
    .option("--deny <rule>", "rule for calls to block; wins over --allow; repeatable", collect)
    .option("--yes", "allow all calls that no rule blocks")
    .option("--available <pattern>", "only these tools; repeatable", collect)
    .option("--excluded <pattern>", "all tools but these; repeatable", collect);
}

function collect(value: string, before: string[] = []): string[] {
  return [...before, value];
}

function addAccessCommands(program: Command, choose: Choose): void {
  program
    .command("approve")
    .description("show which definitions of an MCP server or skill changed since they were approved, and approve them")
    .argument("<name>", "name of the server or skill")
    .argument("[tool]", "only this tool, by its name on the server")
    .option("-y, --yes", "do not ask")
    .action((server: string, tool: string | undefined, options: ApproveOptions) =>
      choose("approve", async (context) => (await import("./commands/approve.ts")).approve(context, server, tool, options), {}),
    );
  program
    .command("login")
    .summary("sign in to a remote MCP server")
    .description("Signs in to a remote MCP server in a browser, stores the token, and reports whether the server works.")
    .argument("<server>", "name of the server in the configuration")
    .option("--browser", "open the address in a browser instead of only printing it")
    .option("--again", "sign in again, for example with another account")
    .action((server: string, options: LoginOptions) =>
      choose("login", async (context) => (await import("./commands/login.ts")).login(context, server, options), {}),
    );
  program
    .command("logout")
    .description("sign out of a remote MCP server")
    .argument("<server>", "name of the server in the configuration")
    .action((server: string) => choose("logout", async (context) => (await import("./commands/login.ts")).logout(context, server), {}));
}

function port(value: string): number {
  const number = Number(value);
  if (Number.isInteger(number) && number >= 0 && number <= 65_535) return number;
  throw new InvalidArgumentError("It must be a port number from 0 (any free port) to 65535.");
}

function count(value: string): number {
  const number = Number(value);
  if (Number.isSafeInteger(number) && number > 0) return number;
  throw new InvalidArgumentError("It must be a positive whole number.");
}

function milliseconds(value: string): number {
  const number = Number(value);
  if (Number.isFinite(number) && number > 0 && number <= 2_147_483_647) return number;
  throw new InvalidArgumentError("It must be a positive number of milliseconds.");
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

/** The commands for skills in npm packages. Their modules are loaded when a command runs. */
function addPackageCommands(program: Command, choose: Choose): void {
  addChangeCommands(program, choose);
  addLockCommands(program, choose);
  addPublishCommands(program, choose);
}

const user = ["-g, --user", "install for this user, for every project"] as const;
const yes = ["-y, --yes", "do not ask for confirmation"] as const;

function addChangeCommands(program: Command, choose: Choose): void {
  const change = (name: "add" | "remove" | "update", names: readonly string[], options: ChangeCommandOptions): void =>
    choose(name, async (context) => (await import("./commands/change-packages.ts")).changeCommand(context, name, names, options));
  program
    .command("add")
    .summary("install skills from npm packages or folders")
    .description("Installs skills from npm packages or folders. Shows what they contain first; install scripts never run.")
    .argument(
      "<package...>",
      "a package name with or without a version, a tarball, a package folder, or skillhost:<name> for a copy of a bundled skill",
    )
    .option(...user)
    .option("-E, --exact", "pin this exact version")
    .option(...yes)
    .action((names: string[], options: ChangeCommandOptions) => change("add", names, options));
  program
    .command("remove")
    .description("uninstall skill packages")
    .argument("<package...>", "package names")
    .option(...user)
    .option(...yes)
    .action((names: string[], options: ChangeCommandOptions) => change("remove", names, options));
  program
    .command("update")
    .description("install newer versions, and show how their tools changed")
    .argument("[package...]", "package names (default: all that contain skills)")
    .option("--latest", "newest versions, ignoring the ranges in package.json")
    .option(...user)
    .option(...yes)
    .action((names: string[], options: ChangeCommandOptions) => change("update", names, options));
}

function addLockCommands(program: Command, choose: Choose): void {
  program
    .command("lock")
    .summary("record the versions, files and tools of all skills")
    .description("Writes skillhost-lock.json: versions, the digest of every file, and the definition of each tool.")
    .option("--run", "also run the modules that compute their tools, to record those")
    .option(...user)
    .action((options: PackageScopeOptions & { run?: boolean }) =>
      choose("lock", async (context) => (await import("./commands/lock.ts")).lock(context, options), options.run === true ? {} : undefined),
    );
  program
    .command("verify")
    .description("compare all skill files with skillhost-lock.json")
    .option("--run", "also run the modules that compute their tools, and compare those")
    .option(...user)
    .action((options: PackageScopeOptions & { run?: boolean }) =>
      choose(
        "verify",
        async (context) => (await import("./commands/lock.ts")).verify(context, options),
        options.run === true ? {} : undefined,
      ),
    );
  program
    .command("ci")
    .summary("install exactly what the lock files say")
    .description("Installs exactly what the lock files say. If anything differs, it fails and installs nothing.")
    .action(() => choose("ci", async (context) => (await import("./commands/change-packages.ts")).ci(context)));
}

function addPublishCommands(program: Command, choose: Choose): void {
  program
    .command("pack")
    .summary("create an npm package of skills")
    .description("Creates an npm package from a folder with skills, or from one skill, and checks its contents.")
    .argument("[folder]", "the folder", ".")
    .option("--out <folder>", "where to write the tarball (default: current directory)")
    .option("--dry-run", "write nothing")
    .action((folder: string, options: PackCommandOptions) =>
      choose("pack", async (context) => (await import("./commands/pack.ts")).pack(context, folder, options)),
    );
  program
    .command("publish")
    .summary("publish skills to the npm registry")
    .description("Packs, and publishes to the registry of npm's configuration with its token.")
    .argument("[folder]", "the folder", ".")
    .addOption(new Option("--access <who>", "access level of a scoped package").choices(["public", "restricted"]))
    .option("--tag <name>", "dist-tag of the version")
    .option("--provenance", "attest where it was built; only on a supported CI service")
    .option("--dry-run", "show what would be published; write nothing")
    .option(...yes)
    .action((folder: string, options: PublishCommandOptions) =>
      choose("publish", async (context) => (await import("./commands/pack.ts")).publish(context, folder, options)),
    );
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

/** The commands about trusted folders and keys. */
function addTrustCommands(program: Command, choose: Choose): void {
  program
    .command("sign")
    .summary("sign a skill so that others can verify that it is unchanged")
    .description(
      "Loads a skill, and signs its files and tool definitions with your key. The signature is written to skill.sig.json in the skill's folder.",
    )
    .argument("<skill>", "the skill's folder or name")
    .option("--key <key>", "id or name of the key to sign with; required if you have several")
    .option("--expires <when>", "when the signature expires, such as 90d or 2030-01-31 (default: never)")
    .option("--passphrase-file <file>", "file with the key's passphrase (default: SKILLHOST_KEY_PASSPHRASE)")
    .action((skill: string, options: SignOptions) =>
      choose("sign", async (context) => (await import("./commands/sign.ts")).sign(context, skill, options), {}),
    );
  addFolderCommands(program.command("trust").description("manage the folders whose code may run"), choose);
  addKeyCommands(program.command("keys").description("manage signing keys: yours, and the ones you trust"), choose);
}

function addFolderCommands(trust: Command, choose: Choose): void {
  const load = () => import("./commands/trust-folders.ts");
  trust
    .command("add")
    .description("trust a folder: its code and that of all folders below it may run")
    .argument("[folder]", "the folder (default: the root of the current repository, else the current directory)")
    .action((folder: string | undefined) => choose("trust add", async (context) => (await load()).trustFolder(context, folder)));
  trust
    .command("list")
    .description("list the folders that you trust")
    .action(() => choose("trust list", async (context) => (await load()).listFolders(context)));
  trust
    .command("remove")
    .description("stop trusting a folder")
    .argument("[folder]", "the folder, as listed by trust list (default: as for add)")
    .action((folder: string | undefined) => choose("trust remove", async (context) => (await load()).distrustFolder(context, folder)));
}

function addKeyCommands(keys: Command, choose: Choose): void {
  const load = () => import("./commands/keys.ts");
  keys
    .command("list")
    .description("list your keys, trusted keys and revoked keys")
    .action(() => choose("keys list", async (context) => (await load()).listKeys(context)));
  keys
    .command("new")
    .description("create a key pair for signing, and trust it")
    .argument("[name]", "the owner, such as an email address")
    .option("--passphrase-file <file>", "encrypt it with the passphrase in this file (default: SKILLHOST_KEY_PASSPHRASE, if set)")
    .action((name: string | undefined, options: KeyOptions) =>
      choose("keys new", async (context) => (await load()).newKey(context, name, options)),
    );
  keys
    .command("trust")
    .description("trust a key: accept what is signed with it")
    .argument("<key...>", 'the key, as "skillhost keys export" prints it, or a file with keys')
    .action((key: string[]) => choose("keys trust", async (context) => (await load()).trustKeys(context, key.join(" "))));
  keys
    .command("revoke")
    .description("revoke a key: reject everything that was ever signed with it")
    .argument("<key>", "the key's id or name")
    .option("--reason <text>", "the reason, shown to users who meet a signature by this key")
    .action((key: string, options: KeyOptions) =>
      choose("keys revoke", async (context) => (await load()).revokeKey(context, key, options)),
    );
  keys
    .command("export")
    .description("print a public key, for others to trust")
    .argument("[key]", "the key's id or name; required if you have several")
    .action((key: string | undefined) => choose("keys export", async (context) => (await load()).exportKey(context, key)));
}

function subcommandTerm(command: Command): string {
  const words = command.registeredArguments.map((argument) => {
    const name = argument.name() + (argument.variadic ? "..." : "");
    return argument.required ? `<${name}>` : `[${name}]`;
  });
  return [command.name(), ...words].join(" ");
}
