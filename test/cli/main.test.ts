import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { packageVersion } from "../../src/base/package-version.ts";
import { runCli, skillDocument, workplace } from "./run-cli.ts";

test("--help lists the commands", async () => {
  const { code, stdout, stderr } = await runCli(["--help"]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(stdout).toMatchInlineSnapshot(`
    "Usage: skillhost [options] [command]

    Runs agent skills and their tools, and loads what you save.

    Options:
      -V, --version                    print the version
      --skills <dir>                   skills, or folders of them; repeatable
                                       (default: ./skills)
      --config <file>                  configuration (default: the nearest
                                       skillhost.json, or package.json with a
                                       skillhost key)
      --mcp-config <file>              MCP servers, as any client configures them;
                                       repeatable
      --trust                          let code of this project run, this time
                                       (default: SKILLHOST_TRUST)
      --json                           print JSON, nothing else, to stdout
      --quiet                          print the answer and errors only
      --no-color                       print without colours
      --log-level <level>              what is logged (choices: "error", "warning",
                                       "info", "debug")
      --log-file <file>                add the log to a file (default: it goes to
                                       stderr)
      -h, --help                       show help

    Commands:
      dev [options] [dir...]           load skills, watch them, and print each
                                       change
      call [options] <tool> [json]     call a tool once
      mcp|serve [options]              serve the skills to MCP clients
      approve [options] <name> [tool]  show what an MCP server or a skill has
                                       changed since it was approved, and approve it
      login [options] <server>         sign in to a remote MCP server
      logout <server>                  sign out of a remote MCP server
      run [options] <prompt>           have a model work on a prompt
      agent [options] <prompt>         have GitHub's Copilot language server work on
                                       a prompt
      list                             list skills with their tools, MCP servers,
                                       and what is wrong with them
      explain [options] <name>         say why a name means what it means: who has
                                       it, who lost it, by which rule
      check [options] [dir...]         say what is wrong with skills, and what could
                                       be better, without running them
      doctor [options]                 say what is wrong with this machine or set-up
      new                              make a skill, a tool or a plugin, with a test
                                       that passes
      add [options] <package...>       install skills from npm packages, or from
                                       folders
      remove [options] <package...>    take packages with skills away again
      update [options] [package...]    install newer versions, and show what is
                                       different about their tools
      lock [options]                   write down what skills there are: versions,
                                       files, tools
      verify [options]                 compare every byte of the skills with
                                       skillhost-lock.json
      ci                               install exactly what the locks say
      pack [options] [folder]          make an npm package of skills
      publish [options] [folder]       publish skills to the npm registry
      sign [options] <skill>           sign a skill so that others can verify that
                                       it is unchanged
      trust                            the folders whose code may run
      keys                             your keys, and those of others that you trust
      help [command]                   show help for a command

    Clients of the Copilot SDK start it as their runtime: skillhost --headless --stdio, or --headless --port <n>.
    "
  `);
});

test("shows how a command is used, with the options that every command has", async () => {
  const { code, stdout } = await runCli(["call", "--help"]);
  expect(code).toBe(0);
  expect(stdout).toMatchInlineSnapshot(`
    "Usage: skillhost call [options] <tool> [json]

    call a tool once

    Arguments:
      tool                 its name, or skill/name
      json                 its arguments as JSON; - reads them from stdin, and so
                           does a pipe

    Options:
      --arg <key=value>    one argument, whose value is JSON or else text;
                           repeatable
      --yes                allow the call without asking
      --timeout <ms>       cancel it after this many milliseconds
      -h, --help           show help

    Global Options:
      -V, --version        print the version
      --skills <dir>       skills, or folders of them; repeatable (default:
                           ./skills)
      --config <file>      configuration (default: the nearest skillhost.json, or
                           package.json with a skillhost key)
      --mcp-config <file>  MCP servers, as any client configures them; repeatable
      --trust              let code of this project run, this time (default:
                           SKILLHOST_TRUST)
      --json               print JSON, nothing else, to stdout
      --quiet              print the answer and errors only
      --no-color           print without colours
      --log-level <level>  what is logged (choices: "error", "warning", "info",
                           "debug")
      --log-file <file>    add the log to a file (default: it goes to stderr)
    "
  `);
});

test("--version prints the version", async () => {
  expect(await runCli(["--version"])).toEqual({ code: 0, stdout: `${packageVersion}\n`, stderr: "" });
});

test("answers wrong usage with 2, what is wrong and what to do, on stderr alone", async () => {
  const unknownCommand = await runCli(["lst"]);
  expect(unknownCommand).toEqual({
    code: 2,
    stdout: "",
    stderr: `error: unknown command 'lst'\n(Did you mean list?)\nRun "skillhost --help" to see how it is used.\n`,
  });
  const unknownOption = await runCli(["dev", "--wach", "never"]);
  expect(unknownOption.code).toBe(2);
  expect(unknownOption.stderr).toContain('(Did you mean --watch?)\nRun "skillhost dev --help"');
  const wrongValue = await runCli(["call", "x", "--timeout", "soon"]);
  expect(wrongValue.code).toBe(2);
  expect(wrongValue.stderr).toContain("It must be a number of milliseconds above 0.");
  expect((await runCli(["list", "extra"])).code).toBe(2);
});

test("answers nothing at all with the help, on stderr, and 2", async () => {
  const { code, stdout, stderr } = await runCli([]);
  expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
  expect(stderr).toContain("Usage: skillhost");
});

test("with --json a complaint about usage is an envelope too, and nothing else", async () => {
  const { code, stdout, stderr } = await runCli(["frob", "--json"]);
  expect({ code, stderr }).toEqual({ code: 2, stderr: "" });
  expect(JSON.parse(stdout)).toMatchObject({ ok: false, error: { code: "USAGE", message: expect.stringContaining("frob") } });
});

test("logs to a file that was asked for, or to stderr, as JSON lines without secrets, and never to stdout", async () => {
  using place = workplace({ "skills/a/SKILL.md": skillDocument("a") });
  const secret = "Bearer abcdefghijklmnop";
  const argv = ["call", "nothing", "--arg", `header=${secret}`, "--log-level", "debug"];
  const toFile = await runCli([...argv, "--log-file", "logs/run.jsonl"], { cwd: place.path });
  expect(toFile.stderr).not.toContain('"level"');
  const lines = readFileSync(place.at("logs/run.jsonl"), "utf8").trim().split("\n");
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    { time: expect.any(String), level: "debug", message: "A command begins.", command: "call" },
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

test("the command line names the log file that cannot be opened", async () => {
  using place = workplace({ file: "" });
  const { code, stderr } = await runCli(["list", "--log-file", "file/run.log"], { cwd: place.path });
  expect(code).toBe(2);
  expect(stderr).toContain(place.at("file/run.log"));
});
