import { type Command, Option } from "commander";
import type { ApproveOptions } from "../commands/approve.ts";
import type { DevOptions } from "../commands/dev.ts";
import type { LoginOptions } from "../commands/login.ts";
import type { McpCommandOptions } from "../commands/mcp.ts";
import type { Choose } from "./choose.ts";
import { collect, count, healthPlace, milliseconds, port, withFilters } from "./option-values.ts";

/** The commands that serve skills and use MCP servers. */
export function addServerCommands(program: Command, choose: Choose): void {
  program
    .command("dev")
    .description("load skills, watch them and print each change")
    .argument("[dir...]", "skill folders, or folders that contain them")
    .addOption(
      new Option("--watch <when>", "keep watching; auto: only in a terminal").choices(["always", "auto", "never"]).default("always"),
    )
    .option("--inspect [port]", "serve the inspector, a page that shows what happens (default: in a terminal, on any port)", port)
    .option("--no-inspect", "do not serve the inspector")
    .action((directories: string[], options: DevOptions) =>
      choose("dev", async (context) => (await import("../commands/dev.ts")).dev(context, directories, options), { directories }),
    );
  program
    .command("call")
    .description("call a tool once")
    .argument("<tool>", "tool name, or skill/name")
    .argument("[args...]", "one option for each argument (--city Oslo), or one JSON object; - or a pipe: read JSON from stdin")
    .option("--arg <key=value>", "one argument; its value is JSON, else text; repeatable", collect)
    .option("--yes", "allow the call without asking for permission")
    .option("--timeout <ms>", "cancel the call after this many milliseconds", milliseconds)
    .option("--pin <name>", "store the call under this name in its skill, for skillhost test")
    // The tool's own options are known only when it is loaded.
    .allowUnknownOption()
    .helpOption(false)
    .addHelpText("after", '\nRun "skillhost call <tool> --help" to see the options of a tool.')
    .action(
      (tool: string, words: string[], options: { arg?: string[]; yes?: boolean; timeout?: number; pin?: string }, command: Command) => {
        if (tool === "--help" || tool === "-h") command.help();
        const reserved = [...program.options, ...command.options].flatMap(({ long }) => long ?? []);
        choose("call", async (context) => (await import("../commands/call.ts")).call(context, tool, words, { ...options, reserved }), {});
      },
    );
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
      .option("--agent <name>", "serve only the tools of this agent")
      .option("--health <place>", "answer /livez, /readyz and /metrics at this port, or at this address such as 0.0.0.0:9090", healthPlace)
      .option("--inspect [port]", "also serve the inspector on this machine, and print its address to stderr", port),
  ).action((options: McpCommandOptions) =>
    choose("mcp", async (context) => (await import("../commands/mcp.ts")).mcp(context, options), { agent: options.agent }),
  );
}

function addAccessCommands(program: Command, choose: Choose): void {
  program
    .command("approve")
    .description("show which definitions of an MCP server or skill changed since they were approved, and approve them")
    .argument("<name>", "name of the server or skill")
    .argument("[tool]", "only this tool, by its name on the server")
    .option("-y, --yes", "do not ask")
    .action((server: string, tool: string | undefined, options: ApproveOptions) =>
      choose("approve", async (context) => (await import("../commands/approve.ts")).approve(context, server, tool, options), {}),
    );
  program
    .command("login")
    .summary("sign in to a remote MCP server")
    .description("Signs in to a remote MCP server in a browser, stores the token, and reports whether the server works.")
    .argument("<server>", "name of the server in the configuration")
    .option("--browser", "open the address in a browser instead of only printing it")
    .option("--again", "sign in again, for example with another account")
    .action((server: string, options: LoginOptions) =>
      choose("login", async (context) => (await import("../commands/login.ts")).login(context, server, options), {}),
    );
  program
    .command("logout")
    .description("sign out of a remote MCP server")
    .argument("<server>", "name of the server in the configuration")
    .action((server: string) => choose("logout", async (context) => (await import("../commands/login.ts")).logout(context, server), {}));
}

/** The command that checks the machine and the configuration. */
export function addDoctorCommand(program: Command, choose: Choose): void {
  program
    .command("doctor")
    .summary("find problems of this machine and configuration")
    .description("Finds problems of this machine and configuration. Starts each MCP server and reports which step fails.")
    .option("--timeout <ms>", "timeout for each MCP server (default: 20000, or its own timeout if that is shorter)", milliseconds)
    .option("--clear-cache", "remove the cached modules and compiled code, and check nothing")
    .action((options: { timeout?: number; clearCache?: boolean }) =>
      choose("doctor", async (context) => (await import("../commands/doctor.ts")).doctor(context, options)),
    );
}
