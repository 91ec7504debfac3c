import { type Command, Option } from "commander";
import type { AgentCommandOptions } from "../commands/agent.ts";
import type { ChatCommandOptions } from "../commands/chat.ts";
import type { RunCommandOptions } from "../commands/run.ts";
import type { PromptCommandOptions } from "../prompt-session.ts";
import type { Choose } from "./choose.ts";
import { count, withFilters } from "./option-values.ts";

/** The commands that run prompts. */
export function addRunCommands(program: Command, choose: Choose): void {
  withModel(
    program
      .command("run")
      .summary("run a prompt with any model")
      .description(
        "Runs a prompt with any model and the tools of the skills. On a terminal it asks before calls that no rule allows; elsewhere they are denied.",
      )
      .argument("<prompt>", "the task; -: read it from stdin")
      .option("--resume <id>", "continue a stored session: its id, or the beginning of it")
      .option("--fork", "with --resume: continue a copy, and leave the session as it is")
      .option("--rewind <n>", "with --resume: first take back your message n with all that followed it", count)
      .option("--export <file>", "write the session to a .md file (for reading) or a .jsonl file (every event)"),
  ).action((prompt: string, options: RunCommandOptions) =>
    choose("run", async (context) => (await import("../commands/run.ts")).run(context, prompt, options), { agent: options.agent }),
  );
  withModel(
    program
      .command("chat")
      .summary("talk with any model in the terminal")
      .description("A conversation with any model and the tools of the skills: each line is a message. Saved skills count at once.")
      .option("--resume [id]", "continue a stored session (default: the newest)"),
  ).action((options: ChatCommandOptions) =>
    choose("chat", async (context) => (await import("../commands/chat.ts")).chat(context, options), { agent: options.agent }),
  );
  addSessionCommands(program, choose);
  addAgentCommand(program, choose);
}

/** Adds the options that decide which model answers, with which instructions and tools. */
function withModel(command: Command): Command {
  return withFilters(
    command
      .option("--agent <name>", "agent of the project (.github/agents, .claude/agents, agents), or an agent file")
      .option("--model <name>", "the endpoint's name of the model (default: OPENAI_MODEL)")
      .option("--base-url <url>", "OpenAI-compatible endpoint (default: OPENAI_BASE_URL; key: OPENAI_API_KEY)")
      .option("--system <text>", "extra instructions, appended to the system message")
      .option("--no-stream", "print the answer only when it is complete")
      .option("--no-save", "do not store the session")
      .option("--todos", "give the model a database (tool sql) with a list of its todos, and show how far it is"),
  );
}

function addSessionCommands(program: Command, choose: Choose): void {
  const sessions = program.command("sessions").description("list, continue, copy, export and delete stored sessions");
  const load = () => import("../commands/sessions.ts");
  sessions
    .command("list")
    .description("list the stored sessions, the newest first")
    .action(() => choose("sessions list", async (context) => (await load()).listSessions(context)));
  withModel(
    sessions
      .command("resume")
      .description("continue a stored session, as chat --resume does")
      .argument("<id>", "the session's id, or the beginning of it"),
  ).action((id: string, options: PromptCommandOptions) =>
    choose("sessions resume", async (context) => (await import("../commands/chat.ts")).chat(context, { ...options, resume: id }), {
      agent: options.agent,
    }),
  );
  sessions
    .command("fork")
    .description("store a copy of a session that is continued by itself, and print its id")
    .argument("<id>", "the session's id, or the beginning of it")
    .action((id: string) => choose("sessions fork", async (context) => (await load()).forkStored(context, id)));
  sessions
    .command("export")
    .description("print a stored session, or write it to a file")
    .argument("<id>", "the session's id, or the beginning of it")
    .argument("[file]", "a .md file (for reading) or a .jsonl file (every event)")
    .addOption(new Option("--format <format>", "its form (default: by the file, else markdown)").choices(["markdown", "jsonl"]))
    .action((id: string, file: string | undefined, options: { format?: "markdown" | "jsonl" }) =>
      choose("sessions export", async (context) => (await load()).exportStored(context, id, file, options)),
    );
  sessions
    .command("delete")
    .description("delete stored sessions")
    .argument("<id...>", "ids of sessions, or their beginnings")
    .option("-y, --yes", "do not ask for confirmation")
    .action((ids: string[], options: { yes?: boolean }) =>
      choose("sessions delete", async (context) => (await load()).deleteStored(context, ids, options)),
    );
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
    choose("agent", async (context) => (await import("../commands/agent.ts")).agent(context, prompt, options)),
  );
}
