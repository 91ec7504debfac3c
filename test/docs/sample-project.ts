import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { format } from "node:util";
import { Ajv } from "ajv";
import { createTestHost } from "skillhost/testing";
import { expect, vi } from "vitest";
import { loadConfig } from "../../src/cli/config.ts";
import type { CliIo } from "../../src/cli/process-io.ts";
import { parseProgramArguments } from "../../src/cli/program.ts";
import { parseMcpConfig } from "../../src/formats/mcp/mcp-config.ts";
import { createVariableLookup } from "../../src/formats/mcp/mcp-dialects.ts";
import { startCli } from "../cli/run-cli.ts";
import type { ScriptedReply } from "../doubles/scripted-model.ts";
import { commandsOf, type Sample, splitCommand } from "./markdown-samples.ts";

const schemas = fileURLToPath(new URL("../../schemas/", import.meta.url));
const languages = new Set(["ts", "tsx", "js", "json", "markdown", "sh"]);

/** True when a block is a file to write or code to run; other blocks show output. */
export function isSample({ language }: Sample): boolean {
  return languages.has(language);
}

/** True for a program that runs on its own. Files in folders of skills or servers are run by them. */
export function isProgram({ language, file = "" }: Sample): boolean {
  return /^[jt]sx?$/.test(language) && !/^(?:skills|servers|\.github)\/|\/tools\//.test(file);
}

/** Writes the samples of a document to the files that they name; `adapt` changes data files. */
export function writeProject(folder: string, samples: readonly Sample[], adapt: (text: string) => string): void {
  mkdirSync(join(folder, "skills"), { recursive: true });
  for (const sample of samples) {
    const path = pathOf(sample);
    if (path === undefined) continue;
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), sample.language === "json" ? adapt(sample.text) : sample.text, { flag: "wx" });
  }
}

function pathOf(sample: Sample): string | undefined {
  return isProgram(sample) ? (sample.file ?? `src/sample-${sample.line}.ts`) : sample.file;
}

/** Loads the skills of a project, expects no errors, and makes the calls of the samples' `call` directives. */
export async function callTools(folder: string, samples: readonly Sample[]): Promise<readonly string[]> {
  await using host = await createTestHost({ workingDirectory: folder, watch: false });
  const errors = host.host.diagnostics.filter(({ severity }) => severity !== "info");
  expect(errors, "the skills load without a warning").toEqual([]);
  for (const { place, directives } of samples) {
    for (const { rest } of directives.filter(({ name }) => name === "call")) {
      const [, tool, args, type, text] =
        /^(\S+) (\{.*\}) -> (\w+) ?(.*)$/.exec(rest) ?? expect.fail(`${place}: "${rest}" is not a valid call`);
      const result = await host.call(tool!, JSON.parse(args!));
      expect({ type: result.resultType, text: result.textResultForLlm }, `${place}: ${rest}`).toEqual({
        type,
        text: expect.stringContaining(text!),
      });
    }
  }
  return host.session.listTools().map(({ name }) => name);
}

/** Runs a program sample in its project. Its output must match its `// → …` comments. */
export async function runProgram(folder: string, sample: Sample): Promise<void> {
  const logged: string[] = [];
  const log = vi.spyOn(console, "log").mockImplementation((...values) => void logged.push(format(...values)));
  const before = process.cwd();
  process.chdir(folder);
  // The author of such a program trusts the folder.
  process.env["SKILLHOST_TRUST"] = folder;
  try {
    await import(/* @vite-ignore */ pathToFileURL(join(folder, pathOf(sample)!)).href);
  } catch (error) {
    throw new Error(`${sample.place}: the program failed`, { cause: error });
  } finally {
    process.chdir(before);
    delete process.env["SKILLHOST_TRUST"];
    log.mockRestore();
  }
  const promised = [...sample.text.matchAll(/\/\/ → (.*)$/gm)].map(([, text]) => text);
  expect(logged, `${sample.place}: what the program logs`).toEqual(promised);
}

/** The answers of the model while a sample runs, from its `model` directives, in order: `calls <tool> <arguments>` or `says <text>`. */
export function modelReplies({ place, directives }: Sample): readonly ScriptedReply[] {
  const said = directives.filter(({ name }) => name === "model").map(({ rest }) => rest);
  return said.map((rest, index) => {
    const [, verb, text = ""] = /^(says|calls) (.+)$/.exec(rest) ?? expect.fail(`${place}: "${rest}" is not a valid model answer`);
    if (verb === "says") return { content: text };
    const [, name, args] = /^(\S+) (\{.*\})$/.exec(text) ?? expect.fail(`${place}: "${text}" is not a valid call`);
    return { toolCalls: [{ id: `call-${index + 1}`, name: name!, arguments: args! }] };
  });
}

/** True when a command runs until it is stopped; its first output shows that it works. */
function isLasting(words: readonly string[]): boolean {
  return words[1] === "dev" || (words[1] === "mcp" && words.includes("--http"));
}

/** Runs the skillhost commands of a shell block and returns the others. Each must exit with the code of its `exits` directive, or with 0. */
export async function runCommands(folder: string, sample: Sample, env: Readonly<Record<string, string>> = {}): Promise<readonly string[]> {
  const wanted = Number(sample.directives.find(({ name }) => name === "exits")?.rest ?? 0);
  const others: string[] = [];
  for (const command of commandsOf(sample)) {
    const words = splitCommand(command.replace(/^npx /, ""));
    if (words[0] !== "skillhost") {
      others.push(command);
      continue;
    }
    const running = startCli(words.slice(1), { cwd: folder, env });
    if (isLasting(words)) {
      await running.line(() => true);
      running.interrupt();
    }
    const { code, stdout, stderr } = await running.done;
    expect(code, `${sample.place}: ${command}\n${stdout}${stderr}`).toBe(wanted);
  }
  return others;
}

/** Checks a JSON sample with the reader of such files, or with the schema for its path or `$schema`. Returns false when there is neither. */
export function checkJson(folder: string, { place, file = "", text }: Sample): boolean {
  if (basename(file) === "skillhost.json") return loadConfig(join(folder, file), folder) !== undefined;
  if (/^(?:\.?mcp|claude_desktop_config)\.json$/.test(basename(file))) return checkServers(place, file, text);
  const value = JSON.parse(text) as { readonly $schema?: unknown };
  const name = schemaOf(file) ?? (typeof value.$schema === "string" ? basename(value.$schema) : undefined);
  if (name === undefined) return file !== "";
  const ajv = new Ajv({ strict: false, schemas: ["skill.schema.json", "tool.schema.json", "calls.schema.json"].map(readSchema) });
  const validate = ajv.getSchema(`skillhost/${name}`) ?? expect.fail(`${place}: the schema ${name} does not exist`);
  expect(validate(value), `${place}: ${JSON.stringify(validate.errors)}`).toBe(true);
  return true;
}

/** Every server in the file must be startable, and the command line must accept the arguments of skillhost itself. */
function checkServers(place: string, file: string, text: string): boolean {
  const variables = createVariableLookup({ environment: {}, places: { workspace: "/work", home: "/home/me", separator: "/" } });
  const { servers, diagnostics } = parseMcpConfig(text, { file, variables });
  expect(diagnostics, place).toEqual([]);
  expect(servers.length, place).toBeGreaterThan(0);
  for (const server of servers) {
    if (server.state !== "ready") throw new Error(`${place}: ${server.name} cannot be started`);
    const { spec } = server;
    if (spec.type !== "stdio" || !spec.args.includes("skillhost")) continue;
    const output = { isTTY: false, write: (said: string) => expect.fail(`${place}: ${said}`) };
    const io = { stdout: output, stderr: output } as unknown as CliIo;
    expect(parseProgramArguments(spec.args.slice(spec.args.indexOf("skillhost") + 1), io).kind, place).toBe("command");
  }
  return true;
}

function schemaOf(file: string): string | undefined {
  if (basename(file) === "skill.json") return "skill.schema.json";
  return /\/tools\/[^_/][^/]*\.json$/.test(file) ? "tool.schema.json" : undefined;
}

function readSchema(name: string): object {
  return JSON.parse(readFileSync(join(schemas, name), "utf8")) as object;
}
