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
      -V, --version                    print the version
      --skills <dir>                   skill folders, or folders that contain them;
                                       repeatable (default: ./skills)
      --config <file>                  configuration file (default: the nearest
                                       skillhost.json, or package.json with a
                                       skillhost key)
      --mcp-config <file>              file that configures MCP servers, such as
                                       .mcp.json; repeatable
      --trust                          trust this project for this run, so that its
                                       code may run (default: SKILLHOST_TRUST)
      --json                           print only JSON to stdout
      --quiet                          print only the answer and errors
      --no-color                       print without colours
      --log-level <level>              log level (default: error) (choices: "error",
                                       "warning", "info", "debug")
      --log-file <file>                append the log to a file (default: stderr)
      -h, --help                       show help

    Commands:
      dev [options] [dir...]           load skills, watch them and print each change
      call [options] <tool> [args...]  call a tool once
      mcp|serve [options]              serve skills to MCP clients
      approve [options] <name> [tool]  show which definitions of an MCP server or
                                       skill changed since they were approved, and
                                       approve them
      login [options] <server>         sign in to a remote MCP server
      logout <server>                  sign out of a remote MCP server
      run [options] <prompt>           run a prompt with any model
      agent [options] <prompt>         run a prompt with GitHub's Copilot language
                                       server
      list                             list skills, tools and MCP servers, with
                                       their problems
      explain [options] <name>         show which skill provides a tool or skill
                                       name, and what it overrides
      show [options] <name>            show what a tool takes and returns, or what a
                                       skill contains
      check [options] [dir...]         find problems in skills and suggest
                                       improvements, without running code
      doctor [options]                 find problems of this machine and
                                       configuration
      new                              create a skill, tool or plugin from a
                                       template, with a test
      add [options] <package...>       install skills from npm packages or folders
      remove [options] <package...>    uninstall skill packages
      update [options] [package...]    install newer versions, and show how their
                                       tools changed
      lock [options]                   record the versions, files and tools of all
                                       skills
      verify [options]                 compare all skill files with
                                       skillhost-lock.json
      ci                               install exactly what the lock files say
      pack [options] [folder]          create an npm package of skills
      publish [options] [folder]       publish skills to the npm registry
      sign [options] <skill>           sign a skill so that others can verify that
                                       it is unchanged
      trust                            manage the folders whose code may run
      keys                             manage signing keys: yours, and the ones you
                                       trust
      completion <shell>               print a script that completes commands,
                                       options and names in a shell
      help [command]                   show help for a command

    To serve Copilot SDK clients as their runtime: skillhost --headless --stdio, or --headless --port <n>.
    "
  `);
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

    Global Options:
      -V, --version        print the version
      --skills <dir>       skill folders, or folders that contain them; repeatable
                           (default: ./skills)
      --config <file>      configuration file (default: the nearest skillhost.json,
                           or package.json with a skillhost key)
      --mcp-config <file>  file that configures MCP servers, such as .mcp.json;
                           repeatable
      --trust              trust this project for this run, so that its code may run
                           (default: SKILLHOST_TRUST)
      --json               print only JSON to stdout
      --quiet              print only the answer and errors
      --no-color           print without colours
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
    stderr: `error: unknown command 'lst'\n(Did you mean list?)\nRun "skillhost --help" for usage.\n`,
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
