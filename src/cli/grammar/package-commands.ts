import { type Command, Option } from "commander";
import type { ChangeCommandOptions } from "../commands/change-packages.ts";
import type { VerifyOptions } from "../commands/lock.ts";
import type { PackCommandOptions, PublishCommandOptions } from "../commands/pack.ts";
import type { PackageScopeOptions } from "../package-context.ts";
import type { Choose } from "./choose.ts";
import { collect } from "./option-values.ts";

/** The commands for skills in npm packages. Their modules are loaded when a command runs. */
export function addPackageCommands(program: Command, choose: Choose): void {
  addChangeCommands(program, choose);
  addLockCommands(program, choose);
  addPublishCommands(program, choose);
}

const user = ["-g, --user", "install for this user, for every project"] as const;
const yes = ["-y, --yes", "do not ask for confirmation"] as const;

function addChangeCommands(program: Command, choose: Choose): void {
  const change = (name: "add" | "remove" | "update", names: readonly string[], options: ChangeCommandOptions): void =>
    choose(name, async (context) => (await import("../commands/change-packages.ts")).changeCommand(context, name, names, options));
  program
    .command("add")
    .summary("install skills from npm packages, Git repositories or folders")
    .description(
      "Installs skills from npm packages or folders, or copies them from Git repositories and websites. Shows what they contain first; nothing of them runs.",
    )
    .argument(
      "<source...>",
      "a package name with or without a version, a tarball, a package folder, a Git repository (owner/repo[/path][@ref] or a Git URL), a website with an index of skills, or skillhost:<name> for a copy of a bundled skill",
    )
    .option("--skill <name>", 'skill of a Git repository or website, or "*" for all; repeatable (default: asks, or all)', collect)
    .option(...user)
    .option("-E, --exact", "pin this exact version")
    .option(...yes)
    .action((names: string[], options: ChangeCommandOptions) => change("add", names, options));
  program
    .command("remove")
    .description("uninstall skill packages and copied skills")
    .argument("<name...>", "names of packages, or of skills from Git repositories")
    .option(...user)
    .option(...yes)
    .action((names: string[], options: ChangeCommandOptions) => change("remove", names, options));
  program
    .command("update")
    .description("install newer versions, and show how their tools changed")
    .argument("[name...]", "names of packages, or of skills from Git repositories (default: all)")
    .option("--latest", "of packages: newest versions, ignoring the ranges in package.json")
    .option(...user)
    .option(...yes)
    .action((names: string[], options: ChangeCommandOptions) => change("update", names, options));
}

function addLockCommands(program: Command, choose: Choose): void {
  program
    .command("outdated")
    .description("list packages with skills that have a newer version")
    .argument("[package...]", "package names (default: all that contain skills)")
    .option(...user)
    .action((names: string[], options: PackageScopeOptions) =>
      choose("outdated", async (context) => (await import("../commands/outdated.ts")).outdated(context, names, options)),
    );
  program
    .command("lock")
    .summary("record the versions, files and tools of all skills")
    .description("Writes skillhost-lock.json: versions, the digest of every file, and the definition of each tool.")
    .option("--run", "also run the modules that compute their tools, to record those")
    .option(...user)
    .action((options: PackageScopeOptions & { run?: boolean }) =>
      choose(
        "lock",
        async (context) => (await import("../commands/lock.ts")).lock(context, options),
        options.run === true ? {} : undefined,
      ),
    );
  program
    .command("verify")
    .description("compare all skill files with skillhost-lock.json")
    .option("--run", "also run the modules that compute their tools, and compare those")
    .option("--remote", "also report branches and tags of Git repositories that have moved")
    .option(...user)
    .action((options: VerifyOptions) =>
      choose(
        "verify",
        async (context) => (await import("../commands/lock.ts")).verify(context, options),
        options.run === true ? {} : undefined,
      ),
    );
  program
    .command("ci")
    .summary("install exactly what the lock files say")
    .description("Installs exactly what the lock files say. If anything differs, it fails and installs nothing.")
    .action(() => choose("ci", async (context) => (await import("../commands/change-packages.ts")).ci(context)));
}

function addPublishCommands(program: Command, choose: Choose): void {
  program
    .command("pack")
    .summary("create an npm package of skills")
    .description("Creates an npm package from a folder with skills, or from one skill, and checks its contents.")
    .argument("[folder]", "the folder", ".")
    .option("--out <folder>", "where to write the tarball (default: current directory)")
    .option("--dry-run", "write nothing")
    .action((folder: string, options: PackCommandOptions) =>
      choose("pack", async (context) => (await import("../commands/pack.ts")).pack(context, folder, options)),
    );
  program
    .command("publish")
    .summary("publish skills to the npm registry")
    .description("Packs, and publishes to the registry of npm's configuration with its token.")
    .argument("[folder]", "the folder", ".")
    .addOption(new Option("--access <who>", "access level of a scoped package").choices(["public", "restricted"]))
    .option("--tag <name>", "dist-tag of the version")
    .option("--provenance", "attest where it was built; only on a supported CI service")
    .option("--dry-run", "show what would be published; write nothing")
    .option(...yes)
    .action((folder: string, options: PublishCommandOptions) =>
      choose("publish", async (context) => (await import("../commands/pack.ts")).publish(context, folder, options)),
    );
}
