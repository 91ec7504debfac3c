import type { Command } from "commander";
import type { TypesOptions } from "../commands/types.ts";
import type { Choose } from "./choose.ts";
import { collect } from "./option-values.ts";

/** The commands that show and check skills. */
export function addInspectCommands(program: Command, choose: Choose): void {
  program
    .command("list")
    .description("list skills, tools and MCP servers, with their problems")
    .action(() => choose("list", async (context) => (await import("../commands/list.ts")).list(context)));
  program
    .command("explain")
    .description("show which skill provides a tool or skill name, and what it overrides")
    .argument("<name>", "name of a tool or skill")
    .option("--available <pattern>", "assume a session with this pattern in availableTools; repeatable", collect)
    .option("--excluded <pattern>", "assume a session with this pattern in excludedTools; repeatable", collect)
    .action((name: string, options: { available?: string[]; excluded?: string[] }) =>
      choose("explain", async (context) => (await import("../commands/explain.ts")).explain(context, name, options)),
    );
  program
    .command("show")
    .description("show what a tool takes and returns, or what a skill contains")
    .argument("<name>", "name of a tool or skill")
    .option("--schema", "print the JSON Schemas instead of the TypeScript form")
    .action((name: string, options: { schema?: boolean }) =>
      choose("show", async (context) => (await import("../commands/show.ts")).show(context, name, options)),
    );
  program
    .command("types")
    .summary("write TypeScript declarations of all tools")
    .description("Writes TypeScript declarations of all tools, so that the names, arguments and results of calls in programs are checked.")
    .option("--out <file>", "the file to write (default: skillhost-env.d.ts)")
    .option("--watch", "write it again after each change")
    .action((options: TypesOptions) =>
      choose("types", async (context) => (await import("../commands/types.ts")).types(context, options), {}),
    );
  program
    .command("check")
    .description("find problems in skills and suggest improvements, without running code")
    .argument("[dir...]", "skill folders, or folders that contain them")
    .option("--strict", "check SKILL.md against the specification, and fail on warnings")
    .option("--run", "also load the modules, which runs their code")
    .option("--target <names>", "compare tools with what model APIs take: openai, anthropic, gemini; repeatable", collect)
    .action((directories: string[], options: { strict?: boolean; run?: boolean; target?: string[] }) =>
      choose("check", async (context) => (await import("../commands/check.ts")).check(context, directories, options)),
    );
}
