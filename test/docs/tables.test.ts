import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { createProgram } from "../../src/cli/program.ts";
import { runCli, workplace } from "../cli/run-cli.ts";
import { fieldsOf } from "./declared-fields.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));
const texts: ReadonlyMap<string, string> = new Map(
  readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts"))
    .map((file) => [join(root, "src", file), readFileSync(join(root, "src", file), "utf8")]),
);
const page = (name: string): string => readFileSync(join(root, "docs", name), "utf8");

/** The names between backticks in the first cells of a page's tables. */
function namedIn(text: string): ReadonlySet<string> {
  const cells = text.split("\n").flatMap((line) => (line.startsWith("| `") ? [line.slice(2, line.indexOf(" | "))] : []));
  return new Set(cells.flatMap((cell) => [...cell.matchAll(/`([^`]+)`/g)].map(([, name]) => name!)));
}

/** Every word between backticks in a sentence or a table. */
function codeIn(text: string): ReadonlySet<string> {
  const pieces = [...text.replaceAll(/^```[\s\S]*?^```$/gm, "").matchAll(/`([^`]+)`/g)].map(([, code]) => code!);
  return new Set(pieces.flatMap((code) => code.match(/\w+/g) ?? []));
}

/** The text of a section, up to the next heading of the same or a higher level. */
function section(text: string, heading: string): string {
  const start = text.indexOf(`${heading}\n`);
  if (start === -1) throw new Error(`Section "${heading}" is missing.`);
  const depth = heading.indexOf(" ");
  const next = text.slice(start + heading.length).search(new RegExp(`^#{1,${depth}} `, "m"));
  return next === -1 ? text.slice(start) : text.slice(start, start + heading.length + next);
}

/** The fields of an interface, from the source file that declares it. */
function declared(type: string): readonly string[] {
  const [file] = [...texts].find(([, text]) => new RegExp(`^export interface ${type}\\b`, "m").test(text)) ?? [];
  if (file === undefined) throw new Error(`No source declares ${type}.`);
  return fieldsOf(file, type);
}

const missing = (wanted: readonly string[], named: ReadonlySet<string>): readonly string[] => wanted.filter((name) => !named.has(name));

test.each([
  ["host", "## The host", "HostOptions"],
  ["session", "## A session", "SessionOptions"],
])("the page about embedding names each option of a %s", (_, heading, type) => {
  const fields = declared(type);
  expect(fields.length).toBeGreaterThan(10);
  expect(missing(fields, namedIn(section(page("embedding.md"), heading)))).toEqual([]);
});

test.each([
  ["of the host", "McpOptions"],
  ["of a session", "ServerOptions"],
  ["for GitHub's server", "GithubMcpToolConfig"],
  ["of a program that is a server", "LocalServerSpec"],
  ["of a server with an address", "RemoteServerSpec"],
  ["for signing in", "ServerOAuthSpec"],
  ["for serving over stdio", "McpStdioOptions"],
  ["for serving over HTTP", "McpHttpOptions"],
  ["for a handler", "McpHandlerOptions"],
])("the pages about MCP name each option %s", (_, type) => {
  const isServed = type.startsWith("Mcp") && type !== "McpOptions";
  const text = isServed ? page("mcp-server.md") : page("mcp.md") + page("mcp-access.md");
  // The page documents these under other names: the name is the key in the map, and "disabled" sets isDisabled.
  // The session sets the owner of tokens with "mcpTokenOwner".
  const known = new Set([...namedIn(text), ...(type.endsWith("Spec") ? ["name", "isDisabled", "owner"] : [])]);
  const inText = type === "ServerOptions" ? codeIn(text) : known;
  expect(missing(declared(type), inText)).toEqual([]);
});

test("the page about plugins names every member of PluginApi", () => {
  const named = new Set([...namedIn(page("plugins.md"))].map((name) => name.replace(/\(.*$/, "")));
  expect(missing(declared("PluginApi"), named)).toEqual([]);
});

test("the page about the command line names each key of a configuration", async () => {
  using place = workplace({ "skillhost.json": '{ "nonsense": 1 }' });
  const { stderr } = await runCli(["list"], { cwd: place.path });
  const keys = /The keys are ([\w, ]+)\./.exec(stderr)?.[1]?.split(", ") ?? [];
  expect(keys).toContain("skillDirectories");
  expect(missing(keys, namedIn(section(page("command-line.md"), "## Configuration")))).toEqual([]);
});

test("the page about the command line names each command and option of the program", async () => {
  const text = ["command-line.md", "run-and-chat.md", "checks.md", "fleet.md"].map(page).join("\n");
  const commands = commandsIn([]);
  expect(commands).toContain("mcp");
  const optionsHere = await optionsOf([]);
  expect(missing(optionsHere, words(section(text, "## Options of every command")))).toEqual([]);
  for (const command of commands) {
    const parts = commandsIn([command]);
    const own = (await Promise.all(parts.length > 0 ? parts.map((part) => optionsOf([command, part])) : [optionsOf([command])])).flat();
    expect(words(text), command).toContain(command);
    const heading = headingOf(text, command);
    if (own.length > 0) expect(missing(own, words(heading === undefined ? "" : section(text, heading))), command).toEqual([]);
  }
});

const help = async (command: readonly string[]): Promise<string> => (await runCli([...command, "--help"])).stdout;

function commandsIn(path: readonly string[]): readonly string[] {
  let command = createProgram(() => {});
  for (const name of path) command = command.commands.find((child) => child.name() === name)!;
  return command.commands.map((child) => child.name());
}

/** The options of a command, without the options of the program, which the help lists separately. */
async function optionsOf(command: readonly string[]): Promise<readonly string[]> {
  const [own = ""] = (await help(command)).split("\nGlobal Options:\n");
  const [, list = ""] = own.split("\nOptions:\n");
  const names = [...list.matchAll(/^ {2}(?:-\w, )?(--[a-z-]+)/gm)].map(([, name]) => name!);
  return command.length === 0 ? names : names.filter((name) => name !== "--help");
}

function words(text: string): ReadonlySet<string> {
  return new Set(text.match(/--[a-z][a-z-]*|[a-z]+/g));
}

function headingOf(text: string, command: string): string | undefined {
  return text.split("\n").find((line) => /^## /.test(line) && line.slice(3).split(" ").includes(command));
}

test.each([
  ["mcp.md and mcp-access.md", /"((?:MCP|ADVICE_MCP|OAUTH|SAMPLING|HTTP)_[A-Z_]+)"/g],
  ["command-line.md and checks.md and run-and-chat.md", /"((?:DOCTOR|ADVICE(?!_MCP)|CONFIG|AGENT_(?:UNKNOWN|FILE$|NOT))_?[A-Z_]+)"/g],
  ["skills.md", /"((?:PROMPT|RESOURCE|URI)_[A-Z_]+|SKILL_TOO_LARGE)"/g],
  ["plugins.md and bundles.md", /"((?:PLUGIN|COMMAND)_[A-Z_]+)"/g],
])("docs/%s explains each code of its kind", (names, pattern) => {
  const codes = new Set([...texts.values()].flatMap((text) => [...text.matchAll(pattern)].map(([, code]) => code!)));
  expect(codes.size).toBeGreaterThan(3);
  const pages = names.split(" and ").map(page).join("\n");
  const documented = new Set(pages.match(/\b[A-Z]+(?:_[A-Z]+)+\b/g));
  expect(missing([...codes].sort(), documented)).toEqual([]);
});
