import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { packageVersion } from "../../src/base/package-root.ts";
import { runCli, skillDocument, workplace } from "./run-cli.ts";

test("--help lists the commands", async () => {
  const { code, stdout, stderr } = await runCli(["--help"]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(stdout).toMatchInlineSnapshot(`
    "Usage: skillhost [options] [command]

    Runs agent skills and their tools, and reloads them when you save.

    Options:
      -V, --version          print the version
      --skills <dir>         skill folders, or folders that contain them;
                             repeatable; auto finds them (default: ./skills)
      --config <file>        configuration file (default: the nearest
                             skillhost.json, or package.json with a skillhost key)
      --mcp-config <file>    file that configures MCP servers, such as .mcp.json;
                             repeatable
      --trust                trust this project for this run, so that its code may
                             run (default: SKILLHOST_TRUST)
      --json                 print only JSON to stdout
      --quiet                print only the answer and errors
      --no-color             print without colours
      --isolation <tier>     where code of skills runs (default: auto) (choices:
                             "auto", "off", "worker", "process", "strict")
      --log-level <level>    log level (default: error) (choices: "error",
                             "warning", "info", "debug")
      --log-file <file>      append the log to a file (default: stderr)
      -h, --help             show help

    Write and use skills:
      init [folder]          create a project with a first skill
      new                    create a skill, tool or plugin from a template, with a
                             test
      dev [dir...]           load skills, watch them and print each change
      call <tool> [args...]  call a tool once
      run <prompt>           run a prompt with any model
      chat                   talk with any model in the terminal
      sessions               list, continue, copy, export and delete stored sessions
      agent <prompt>         run a prompt with GitHub's Copilot language server
      list                   list skills, tools and MCP servers, with their problems
      explain <name>         show which skill provides a tool or skill name, and
                             what it overrides
      show <name>            show what a tool takes and returns, or what a skill
                             contains
      inspect <source>       open the export of a session, or follow a running
                             inspector
      test [folder...]       run the tests of skills
      types                  write TypeScript declarations of all tools
      check [dir...]         find problems in skills and suggest improvements,
                             without running code

    Serve and connect:
      mcp                    serve skills to MCP clients
      approve <name> [tool]  show which definitions of an MCP server or skill
                             changed since they were approved, and approve them
      login <server>         sign in to a remote MCP server
      logout <server>        sign out of a remote MCP server
      connect <client>       serve the skills to an MCP client on this machine
      disconnect <client>    remove the entry from the configuration of an MCP
                             client
      doctor                 find problems of this machine and configuration

    Several machines:
      worker                 serve tools to the hosts of a fleet
      push <folder>          give a skill to all hosts of a fleet
      rollback <skill>       take back the canary of a skill, or its latest version,
                             on all hosts of a fleet
      status                 show which host of a fleet runs which version of its
                             skills
      fleet                  prepare the NATS servers of a fleet

    Install and publish:
      add <source...>        install skills from npm packages, Git repositories or
                             folders
      remove <name...>       uninstall skill packages and copied skills
      update [name...]       install newer versions, and show how their tools
                             changed
      outdated [package...]  list packages with skills that have a newer version
      lock                   record the versions, files and tools of all skills
      verify                 compare all skill files with skillhost-lock.json
      ci                     install exactly what the lock files say
      pack [folder]          create an npm package of skills
      publish [folder]       publish skills to the npm registry

    Trust:
      sign <skill>           sign a skill so that others can verify that it is
                             unchanged
      trust                  manage the folders whose code may run, and your policy
      keys                   manage signing keys: yours, and the ones you trust

    More:
      completion <shell>     print a script that completes commands, options and
                             names in a shell
      help [command]         show help for a command

    Examples:
      skillhost init                         a project with a skill and a test
      skillhost dev                          loads the skills, and each save at once
      skillhost call get_weather --city Oslo
      skillhost connect claude-code          serves them to Claude Code; so for VS Code and others

    To serve Copilot SDK clients as their runtime: skillhost --headless --stdio, or --headless --port <n>.
    "
  `);
});

test.each([
  ["ls", "list"],
  ["validate", "check"],
  ["serve", "mcp"],
  ["i", "add"],
  ["install", "add"],
  ["rm", "remove"],
  ["uninstall", "remove"],
  ["upgrade", "update"],
])("%s is another name of %s", async (alias, name) => {
  const [ofAlias, ofName] = await Promise.all([runCli([alias, "--help"]), runCli([name, "--help"])]);
  expect(ofAlias).toEqual(ofName);
  expect(ofName.stdout).toContain(`skillhost ${name}`);
});

test("the help of a command shows its usage and the global options", async () => {
  const { code, stdout } = await runCli(["call", "--help"]);
  expect(code).toBe(0);
  expect(stdout).toMatchInlineSnapshot(`
    "Usage: skillhost call [options] <tool> [args...]

    call a tool once

    Arguments:
      tool                 tool name, or skill/name
      args                 one option for each argument (--city Oslo), or one JSON
                           object; - or a pipe: read JSON from stdin

    Options:
      --arg <key=value>    one argument; its value is JSON, else text; repeatable
      --yes                allow the call without asking for permission
      --timeout <ms>       cancel the call after this many milliseconds
      --pin <name>         store the call under this name in its skill, for
                           skillhost test

    Global Options:
      -V, --version        print the version
      --skills <dir>       skill folders, or folders that contain them; repeatable;
                           auto finds them (default: ./skills)
      --config <file>      configuration file (default: the nearest skillhost.json,
                           or package.json with a skillhost key)
      --mcp-config <file>  file that configures MCP servers, such as .mcp.json;
                           repeatable
      --trust              trust this project for this run, so that its code may run
                           (default: SKILLHOST_TRUST)
      --json               print only JSON to stdout
      --quiet              print only the answer and errors
      --no-color           print without colours
      --isolation <tier>   where code of skills runs (default: auto) (choices:
                           "auto", "off", "worker", "process", "strict")
      --log-level <level>  log level (default: error) (choices: "error", "warning",
                           "info", "debug")
      --log-file <file>    append the log to a file (default: stderr)

    Run "skillhost call <tool> --help" to see the options of a tool.
    "
  `);
});

test("--version prints the version", async () => {
  expect(await runCli(["--version"])).toEqual({ code: 0, stdout: `${packageVersion}\n`, stderr: "" });
});

test("wrong usage exits with 2 and prints the problem and a remedy to stderr only", async () => {
  const unknownCommand = await runCli(["lst"]);
  expect(unknownCommand).toEqual({
    code: 2,
    stdout: "",
    stderr: `error: unknown command 'lst'\n(Did you mean one of list, ls?)\nRun "skillhost --help" for usage.\n`,
  });
  const unknownOption = await runCli(["dev", "--wach", "never"]);
  expect(unknownOption.code).toBe(2);
  expect(unknownOption.stderr).toContain('(Did you mean --watch?)\nRun "skillhost dev --help"');
  const wrongValue = await runCli(["call", "x", "--timeout", "soon"]);
  expect(wrongValue.code).toBe(2);
  expect(wrongValue.stderr).toContain("It must be a positive number of milliseconds.");
  expect((await runCli(["list", "extra"])).code).toBe(2);
});

test("an empty command line prints the help to stderr and exits with 2", async () => {
  const { code, stdout, stderr } = await runCli([]);
  expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
  expect(stderr).toContain("Usage: skillhost");
});

test("with --json, wrong usage prints only an envelope", async () => {
  const { code, stdout, stderr } = await runCli(["frob", "--json"]);
  expect({ code, stderr }).toEqual({ code: 2, stderr: "" });
  expect(JSON.parse(stdout)).toMatchObject({ ok: false, error: { code: "USAGE", message: expect.stringContaining("frob") } });
});

test("logs are JSON lines without secrets, in the requested file or on stderr, and never on stdout", async () => {
  using place = workplace({ "skills/a/SKILL.md": skillDocument("a") });
  const secret = "Bearer abcdefghijklmnop";
  const argv = ["call", "nothing", "--arg", `header=${secret}`, "--log-level", "debug"];
  const toFile = await runCli([...argv, "--log-file", "logs/run.jsonl"], { cwd: place.path });
  expect(toFile.stderr).not.toContain('"level"');
  const lines = readFileSync(place.at("logs/run.jsonl"), "utf8").trim().split("\n");
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    { time: expect.any(String), level: "debug", message: "A command starts.", command: "call" },
    { level: "info", message: "Skills changed." },
    { level: "debug", message: "The command failed." },
  ]);
  expect(lines.join("\n")).not.toContain("header=");
  expect(lines.join("\n")).not.toContain(secret);
  const toStderr = await runCli(argv, { cwd: place.path });
  expect(toStderr.stdout).toBe("");
  expect(toStderr.stderr).toContain('"level":"debug"');
  const quieter = await runCli(["list", "--log-level", "warning", "--log-file", "logs/other.jsonl"], { cwd: place.path });
  expect(quieter.code).toBe(0);
  expect(readFileSync(place.at("logs/other.jsonl"), "utf8")).toBe("");
});

test("the command line names a log file that cannot be opened", async () => {
  using place = workplace({ file: "" });
  const { code, stderr } = await runCli(["list", "--log-file", "file/run.log"], { cwd: place.path });
  expect(code).toBe(2);
  expect(stderr).toContain(place.at("file/run.log"));
});
