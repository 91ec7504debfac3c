import type { Command } from "commander";
import type { AgentCommandOptions } from "../commands/agent.ts";
import type { RunCommandOptions } from "../commands/run.ts";
import type { Choose } from "./choose.ts";
import { withFilters } from "./option-values.ts";

/** The commands that run prompts. */
export function addRunCommands(program: Command, choose: Choose): void {
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
    choose("run", async (context) => (await import("../commands/run.ts")).run(context, prompt, options), { agent: options.agent }),
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
    choose("agent", async (context) => (await import("../commands/agent.ts")).agent(context, prompt, options)),
  );
}
