import { type Command, Option } from "commander";
import type { TestOptions } from "../commands/test.ts";
import type { TypesOptions } from "../commands/types.ts";
import { reporters } from "../test-run/test-report.ts";
import type { Choose } from "./choose.ts";
import { collect, port } from "./option-values.ts";

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
    .command("inspect")
    .summary("open the export of a session, or follow a running inspector")
    .description(
      "Serves a page that shows the export of a session, without its host; or follows the inspector of a running host, and prints what happens there.",
    )
    .argument("<source>", "a file with the events of a session (.jsonl), or the address that skillhost printed")
    .option("--port <port>", "the port of the page (default: any)", port)
    .action((source: string, options: { port?: number }) =>
      choose("inspect", async (context) => (await import("../commands/inspect.ts")).inspect(context, source, options)),
    );
  program
    .command("test")
    .summary("run the tests of skills")
    .description("Runs the tests of skills, files such as test/weather.test.ts, in processes of their own with the test runner of Node.js.")
    .argument("[folder...]", "skills, other folders or test files (default: all skills)")
    .option("--watch", "run them again after each change")
    .addOption(new Option("--record", "make real requests, and write recordings").conflicts("replay"))
    .option("--replay", "answer all requests from recordings")
    .option("--update-snapshots", "replace snapshots that differ")
    .addOption(new Option("--reporter <name>", "what to print").choices(reporters).default("spec"))
    .action((folders: string[], options: TestOptions) =>
      choose("test", async (context) => (await import("../commands/test.ts")).test(context, folders, options), { directories: folders }),
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
