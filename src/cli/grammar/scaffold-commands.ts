import { Argument, type Command } from "commander";
import type { Choose } from "./choose.ts";

/** The commands that create skills, tools and plugins. */
export function addScaffoldCommands(program: Command, choose: Choose): void {
  const make = program.command("new").description("create a skill, tool or plugin from a template, with a test");
  make
    .command("skill")
    .description("create a skill with a tool and a test")
    .addArgument(new Argument("<name>", "lowercase letters, digits and hyphens"))
    .action((name: string) => choose("new skill", async (context) => (await import("../commands/new.ts")).newSkill(context, name)));
  make
    .command("tool")
    .description("create a tool and a test in a skill")
    .addArgument(new Argument("<name>", "letters, digits, _ and -"))
    .option("--skill <skill>", "the skill to add the tool to; required if there are several")
    .action((name: string, options: { skill?: string }) =>
      choose("new tool", async (context) => (await import("../commands/new.ts")).newTool(context, name, options)),
    );
  make
    .command("plugin")
    .description("create a plugin with a tool, a configuration and a test")
    .addArgument(new Argument("<name>", 'letters, digits, ".", "_" and "-"'))
    .action((name: string) => choose("new plugin", async (context) => (await import("../commands/new.ts")).newPlugin(context, name)));
}
