import { Argument, type Command } from "commander";
import type { ConnectCommandOptions } from "../commands/connect.ts";
import type { Choose } from "./choose.ts";
import { collect } from "./option-values.ts";

// Named here, so that the help needs no other module.
const clients = ["claude-code", "claude-desktop", "vscode", "cursor", "codex", "gemini", "windsurf", "zed"];

const name = ["--name <name>", "name of the entry", "skillhost"] as const;
const user = ["-g, --user", "in the configuration of this user, for every project"] as const;
const yes = ["-y, --yes", "do not ask for confirmation"] as const;

/** The commands that enter skillhost into the configuration of clients. */
export function addConnectCommands(program: Command, choose: Choose): void {
  const load = () => import("../commands/connect.ts");
  program
    .command("connect")
    .summary("serve the skills to an MCP client on this machine")
    .description("Adds an entry that serves the skills of this project to the configuration of an MCP client. Shows the change first.")
    .addArgument(new Argument("<client>", "the client").choices(clients))
    .option(...name)
    .option(...user)
    .option("--allow <rule>", "rule for calls to allow without asking; repeatable", collect)
    .option("--auto-approve", "also have the client call the tools without asking (Claude Code, Gemini CLI)")
    .option("--npx", "start it with npx instead of the program that is installed here")
    .option("--replace", "replace an entry that serves other skills")
    .option("--print", "print the entry and change nothing")
    .option(...yes)
    .action((client: string, options: ConnectCommandOptions) =>
      choose("connect", async (context) => (await load()).connect(context, client, options), {}),
    );
  program
    .command("disconnect")
    .description("remove the entry from the configuration of an MCP client")
    .addArgument(new Argument("<client>", "the client").choices(clients))
    .option(...name)
    .option(...user)
    .option(...yes)
    .action((client: string, options: ConnectCommandOptions) =>
      choose("disconnect", async (context) => (await load()).disconnect(context, client, options)),
    );
}
