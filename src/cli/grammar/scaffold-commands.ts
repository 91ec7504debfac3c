import { Argument, type Command, Option } from "commander";
import type { InitOptions } from "../commands/init.ts";
import type { NewSkillOptions } from "../commands/new.ts";
import { skillKinds } from "../scaffold/skill-template.ts";
import type { Choose } from "./choose.ts";
import { collect } from "./option-values.ts";

/** The commands that create skills, tools and plugins. */
export function addScaffoldCommands(program: Command, choose: Choose): void {
  program
    .command("init")
    .summary("create a project with a first skill")
    .description("Creates a project with a first skill and its test. Asks on a terminal. What exists is kept.")
    .argument("[folder]", "the folder (default: the current directory)")
    .option("--name <name>", "name of the package (default: the folder's)")
    .option("--skill <name>", "name of the skill (default: hello)")
    .addOption(kindOption())
    .option("--connect <client>", "also connect this MCP client; repeatable", collect)
    .option("-y, --yes", "use the defaults instead of asking")
    .action((folder: string | undefined, options: InitOptions) =>
      choose("init", async (context) => (await import("../commands/init.ts")).init(context, folder, options)),
    );
  const make = program.command("new").description("create a skill, tool or plugin from a template, with a test");
  make
    .command("skill")
    .description("create a skill with a tool and a test")
    .addArgument(new Argument("<name>", "lowercase letters, digits and hyphens"))
    .addOption(kindOption().conflicts("from"))
    .option("--from <template>", "begin with an example or bundled skill, such as weather")
    .action((name: string, options: NewSkillOptions) =>
      choose("new skill", async (context) => (await import("../commands/new.ts")).newSkill(context, name, options)),
    );
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

function kindOption(): Option {
  return new Option("--kind <kind>", "how its tool is written; instructions: without a tool").choices(skillKinds);
}
