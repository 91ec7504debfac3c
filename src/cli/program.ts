import { Argument, Command, CommanderError, InvalidArgumentError, Option } from "commander";
import { logLevels } from "../base/logger.ts";
import { packageVersion } from "../base/package-version.ts";
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
import type { PackageScopeOptions } from "./package-context.ts";
import type { CliIo } from "./process-io.ts";
import type { CodeUse } from "./project-consent.ts";

/** A command line that was understood, or what it came to at once: help, the version, or a complaint. */
export type CommandAction =
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
export function parseCommandLine(argv: readonly string[], io: CliIo): CommandAction {
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
type Choose = (name: string, run: RunCommand, code?: CodeUse) => void;

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
    .action((name: string) => choose("new plugin", async (context) => (await import("./commands/new.ts")).newPlugin(context, name)));
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

/** The commands for skills that travel as npm packages. What they are made of is loaded when one of them runs. */
function addPackageCommands(program: Command, choose: Choose): void {
  addChanges(program, choose);
  addLocks(program, choose);
  addPublishing(program, choose);
}

const user = ["-g, --user", "for this user, in every project"] as const;
const yes = ["-y, --yes", "do not ask"] as const;

function addChanges(program: Command, choose: Choose): void {
  const change = (name: "add" | "remove" | "update", names: readonly string[], options: ChangeCommandOptions): void =>
    choose(name, async (context) => (await import("./commands/change-packages.ts")).changeCommand(context, name, names, options));
  program
    .command("add")
    .summary("install skills from npm packages, or from folders")
    .description("Installs skills from npm packages, or from folders. What they bring is shown first; install scripts never run.")
    .argument(
      "<package...>",
      "a name with or without a version, a tarball, the folder of a package, or skillhost:<name> for a copy of a skill that comes with skillhost",
    )
    .option(...user)
    .option("-E, --exact", "this version only, and no later one")
    .option(...yes)
    .action((names: string[], options: ChangeCommandOptions) => change("add", names, options));
  program
    .command("remove")
    .description("take packages with skills away again")
    .argument("<package...>", "their names")
    .option(...user)
    .option(...yes)
    .action((names: string[], options: ChangeCommandOptions) => change("remove", names, options));
  program
    .command("update")
    .description("install newer versions, and show what is different about their tools")
    .argument("[package...]", "their names (default: all that bring skills)")
    .option("--latest", "the newest versions, whatever package.json allows")
    .option(...user)
    .option(...yes)
    .action((names: string[], options: ChangeCommandOptions) => change("update", names, options));
}

function addLocks(program: Command, choose: Choose): void {
  program
    .command("lock")
    .summary("write down what skills there are: versions, files, tools")
    .description("Writes skillhost-lock.json: versions, the digest of every file, and how each tool is defined.")
    .option("--run", "run the modules whose tools are computed, to know those, too")
    .option(...user)
    .action((options: PackageScopeOptions & { run?: boolean }) =>
      choose("lock", async (context) => (await import("./commands/lock.ts")).lock(context, options), options.run === true ? {} : undefined),
    );
  program
    .command("verify")
    .description("compare every byte of the skills with skillhost-lock.json")
    .option("--run", "run the modules whose tools are computed, and compare those, too")
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
    .summary("install exactly what the locks say")
    .description("Installs exactly what the locks say. With any difference nothing is installed, and it fails.")
    .action(() => choose("ci", async (context) => (await import("./commands/change-packages.ts")).ci(context)));
}

function addPublishing(program: Command, choose: Choose): void {
  program
    .command("pack")
    .summary("make an npm package of skills")
    .description("Makes an npm package of a folder with skills, or of one skill, and looks at what came of it.")
    .argument("[folder]", "the folder", ".")
    .option("--out <folder>", "where the tarball goes (default: here)")
    .option("--dry-run", "write nothing")
    .action((folder: string, options: PackCommandOptions) =>
      choose("pack", async (context) => (await import("./commands/pack.ts")).pack(context, folder, options)),
    );
  program
    .command("publish")
    .summary("publish skills to the npm registry")
    .description("Packs, and publishes to the registry that npm's configuration names, with its token.")
    .argument("[folder]", "the folder", ".")
    .addOption(new Option("--access <who>", "who may install a package with a scope").choices(["public", "restricted"]))
    .option("--tag <name>", "the tag under which it is installed when no version is named")
    .option("--provenance", "have the build service attest where it was built")
    .option("--dry-run", "publish nothing, and write nothing")
    .option(...yes)
    .action((folder: string, options: PublishCommandOptions) =>
      choose("publish", async (context) => (await import("./commands/pack.ts")).publish(context, folder, options)),
    );
}

/** The commands about whose skills are believed. */
function addTrust(program: Command, choose: Choose): void {
  program
    .command("sign")
    .summary("sign a skill so that others can verify that it is unchanged")
    .description(
      "Loads a skill, and signs its files and the definitions of its tools with your key. The signature is skill.sig.json in its folder.",
    )
    .argument("<skill>", "its folder, or its name")
    .option("--key <key>", "which of your keys, by its id or name; needed when there are several")
    .option("--expires <when>", "until when it is good, such as 90d or 2030-01-31 (default: for ever)")
    .option("--passphrase-file <file>", "a file that holds the key's passphrase (default: SKILLHOST_KEY_PASSPHRASE)")
    .action((skill: string, options: SignOptions) =>
      choose("sign", async (context) => (await import("./commands/sign.ts")).sign(context, skill, options), {}),
    );
  addFolders(program.command("trust").description("the folders whose code may run"), choose);
  addKeys(program.command("keys").description("your keys, and those of others that you trust"), choose);
}

function addFolders(trust: Command, choose: Choose): void {
  const load = () => import("./commands/trust-folders.ts");
  trust
    .command("add")
    .description("let the code of a folder, and of everything below it, run from now on")
    .argument("[folder]", "the folder (default: the top of the checkout that you are in, or where you are)")
    .action((folder: string | undefined) => choose("trust add", async (context) => (await load()).trustFolder(context, folder)));
  trust
    .command("list")
    .description("list the folders that you trust")
    .action(() => choose("trust list", async (context) => (await load()).listFolders(context)));
  trust
    .command("remove")
    .description("trust a folder no longer")
    .argument("[folder]", "the folder, as listed (default: as for add)")
    .action((folder: string | undefined) => choose("trust remove", async (context) => (await load()).distrustFolder(context, folder)));
}

function addKeys(keys: Command, choose: Choose): void {
  const load = () => import("./commands/keys.ts");
  keys
    .command("list")
    .description("list your keys, those that you trust, and those that were revoked")
    .action(() => choose("keys list", async (context) => (await load()).listKeys(context)));
  keys
    .command("new")
    .description("make a key pair to sign with, and trust it yourself")
    .argument("[name]", "whose it is, such as an address of e-mail")
    .option("--passphrase-file <file>", "encrypt it with the passphrase in this file (default: SKILLHOST_KEY_PASSPHRASE, if there is one)")
    .action((name: string | undefined, options: KeyOptions) =>
      choose("keys new", async (context) => (await load()).newKey(context, name, options)),
    );
  keys
    .command("trust")
    .description("trust what is signed with a key from now on")
    .argument("<key...>", 'the key, as "skillhost keys export" prints it, or a file of keys')
    .action((key: string[]) => choose("keys trust", async (context) => (await load()).trustKeys(context, key.join(" "))));
  keys
    .command("revoke")
    .description("trust a key no more, and nothing that was ever signed with it")
    .argument("<key>", "its id, or its name")
    .option("--reason <text>", "the reason, shown to users who meet a signature by this key")
    .action((key: string, options: KeyOptions) =>
      choose("keys revoke", async (context) => (await load()).revokeKey(context, key, options)),
    );
  keys
    .command("export")
    .description("print the public part of a key, for others to trust")
    .argument("[key]", "its id, or its name; needed when there are several")
    .action((key: string | undefined) => choose("keys export", async (context) => (await load()).exportKey(context, key)));
}
