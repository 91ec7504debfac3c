import { type Command, Option } from "commander";
import type { ChangeCommandOptions } from "./commands/change-packages.ts";
import type { PackCommandOptions, PublishCommandOptions } from "./commands/pack.ts";
import type { ScopeOptions } from "./package-context.ts";
import type { Choose } from "./program.ts";

/** The commands for skills that travel as npm packages. What they are made of is loaded when one of them runs. */
export function addPackageCommands(program: Command, choose: Choose): void {
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
    .action((options: ScopeOptions & { run?: boolean }) =>
      choose("lock", async (context) => (await import("./commands/lock.ts")).lock(context, options), options.run === true ? {} : undefined),
    );
  program
    .command("verify")
    .description("compare every byte of the skills with skillhost-lock.json")
    .option("--run", "run the modules whose tools are computed, and compare those, too")
    .option(...user)
    .action((options: ScopeOptions & { run?: boolean }) =>
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
    .action(() => choose("ci", async (context) => (await import("./commands/ci.ts")).ci(context)));
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
