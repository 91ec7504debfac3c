import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { complete } from "../../src/cli/commands/complete.ts";
import { buildPackage } from "../built-package.ts";
import { hostileCheckout } from "./hostile-checkout-kit.ts";
import { runCli, skillDocument, toolModule, workplace } from "./run-cli.ts";

const weather = `import { defineTool } from "skillhost";
import { z } from "zod";
const days = z.number().int().describe("How many days.");
export default defineTool("get_weather", {
  description: "Returns the weather in a city.",
  parameters: z.object({
    units: z.enum(["celsius", "fahrenheit"]).default("celsius").describe("The unit."),
    city: z.string().min(1).describe("The city's name."),
    is_short: z.boolean().optional(),
    days,
  }),
  handler: async ({ city }) => city,
});
`;
const files = {
  "skills/weather/SKILL.md": skillDocument("weather", "Reports the weather. Use it for plans."),
  "skills/weather/tools/get_weather.ts": weather,
  "skills/files/SKILL.md": skillDocument("files"),
  "skills/files/tools/greet.ts": toolModule("greet", "Hello"),
  "skills/files/tools/move-file.json": JSON.stringify({
    name: "move-file",
    description: "Moves a file.",
    parameters: {
      type: "object",
      properties: { from: { type: "string" }, to: { type: "string" }, on: { $ref: "#/$defs/when" }, json: { type: "boolean" } },
      required: ["to"],
      $defs: { when: { enum: ["now", "later"] } },
    },
    handler: { command: "true" },
  }),
  "skillhost.json": JSON.stringify({ mcpServers: { tracker: { command: "touch", args: ["started"] } } }),
};

/** The answer to a shell about a line that ends at the cursor. */
async function completed(line: string, cwd: string): Promise<readonly string[]> {
  const words = line.split(" ").slice(1);
  const chunks: string[] = [];
  const stream = { isTTY: false, write: (chunk: string) => void chunks.push(chunk) };
  const stderr = { isTTY: false, write: (chunk: string) => expect.fail(chunk) };
  const stdin = { isTTY: false, isPiped: false, read: async () => "" };
  const io = { stdout: stream, stderr, stdin, cwd, env: {}, signal: new AbortController().signal };
  expect(await complete([String(words.length - 1), ...words], io)).toBe(0);
  return chunks.join("").split("\n").slice(0, -1);
}

const valuesOf = async (line: string, cwd: string): Promise<readonly string[]> =>
  (await completed(line, cwd)).map((each) => each.split("\t")[0]!);

describe("the words after skillhost are completed:", () => {
  const cases: Readonly<Record<string, readonly string[]>> = {
    "skillhost ca": ["call"],
    "skillhost trust ": ["add", "list", "remove", "policy", "log", "help"],
    "skillhost help sh": ["show"],
    "skillhost new --": [
      "--help",
      "--skills",
      "--config",
      "--mcp-config",
      "--trust",
      "--json",
      "--quiet",
      "--no-color",
      "--isolation",
      "--log-level",
      "--log-file",
    ],
    "skillhost --json --q": ["--quiet"],
    "skillhost --json --j": [],
    "skillhost --skills a --sk": ["--skills"],
    "skillhost --log-level ": ["error", "warning", "info", "debug"],
    "skillhost list --log-level=w": ["--log-level=warning"],
    "skillhost dev --watch a": ["always", "auto"],
    "skillhost completion ": ["bash", "zsh", "fish", "powershell"],
    "skillhost --config ": [":files"],
    "skillhost check ": [":folders"],
    "skillhost check some/folder ": [":folders"],
    "skillhost --headless --st": [],
    "skillhost new tool --skill ": ["files", "weather"],
    "skillhost call ": ["greet", "move-file", "get_weather"],
    "skillhost call g": ["greet", "get_weather"],
    "skillhost show w": ["weather"],
    "skillhost explain get_": ["get_weather"],
    "skillhost mcp --allow mo": ["move-file"],
    "skillhost approve t": ["tracker"],
    "skillhost login ": ["tracker"],
    "skillhost login tracker ": [],
    "skillhost list ": [],
    "skillhost nothing ": [],
    "skillhost call get_weather ": ["--city", "--days", "--units", "--is-short"],
    "skillhost call weather/get_weather --c": ["--city", "--config"],
    "skillhost call get_weather --units ": ["celsius", "fahrenheit"],
    "skillhost call get_weather --units=f": ["--units=fahrenheit"],
    "skillhost call get_weather --city Oslo --is-short --u": ["--units"],
    "skillhost call get_weather --city Oslo --c": ["--config"],
    "skillhost call --yes move-file --on l": ["later"],
    "skillhost call move-file ": ["--to", "--from", "--on"],
    "skillhost call unknown ": [],
    "skillhost --skills skills/files call ": ["greet", "move-file"],
    "skillhost call -- g": ["greet", "get_weather"],
  };
  test.each(Object.entries(cases))("%s", async (line, expected) => {
    using place = workplace(files);
    expect(await valuesOf(line, place.path)).toEqual(expected);
    expect(readdirSync(place.path).sort()).toEqual(["skillhost.json", "skills"]);
  });
});

test("descriptions are one line without control characters, and not longer than a line of a terminal", async () => {
  using place = workplace({
    ...files,
    "skills/files/tools/long.json": JSON.stringify({
      name: "long",
      description: `First\n\tsecond \u001b[31m ${"x".repeat(500)}`,
      handler: { command: "true" },
    }),
  });
  expect(await completed("skillhost call get", place.path)).toEqual(["get_weather\tReturns the weather in a city."]);
  const [line = ""] = await completed("skillhost call long", place.path);
  expect(line).toMatch(/^long\tFirst second [^\p{C}]* ?\[31m x+…$/u);
  expect(line.length).toBeLessThanOrEqual(105);
});

test("values that a shell would interpret are not offered", async () => {
  const values = ["$(touch x)", "`touch x`", "a b", "a;b", "a\nb", "a&b", "'a'", "a|b", ":files", "fine", "x".repeat(20), "~user", "../up"];
  const parameters = { type: "object", properties: { mode: { enum: values }, "a;b": {}, "$(x)": {}, "--all": {} } };
  using place = workplace({
    "skills/files/SKILL.md": skillDocument("files"),
    "skills/files/tools/t.json": JSON.stringify({ name: "t", description: "T.", parameters, handler: { command: "true" } }),
  });
  expect(await valuesOf("skillhost call t --mode ", place.path)).toEqual(["fine", "x".repeat(20), "../up"]);
  expect(await valuesOf("skillhost call t ", place.path)).toEqual(["--mode"]);
});

test("completion in an untrusted checkout runs none of its code and changes nothing", async () => {
  for (const where of ["skillhost.json", "package.json", "none"] as const) {
    using checkout = hostileCheckout(where);
    const before = checkout.outside();
    for (const line of [
      "skillhost call ",
      "skillhost show ",
      "skillhost approve ",
      "skillhost login ",
      "skillhost call x --",
      "skillhost mcp --agent ",
    ])
      await completed(line, checkout.folder);
    expect([checkout.ran(), checkout.outside()]).toEqual([[], before]);
  }
});

test("a broken project does not disturb completion: commands and the skills that load are offered", async () => {
  const broken: Readonly<Record<string, Readonly<Record<string, string>>>> = {
    "a configuration with a syntax error": { "skillhost.json": "{" },
    "configuration with unknown keys": { "skillhost.json": '{"nothing": 1}' },
    "servers that cannot be read": { "skillhost.json": '{"mcpServers": 3}' },
    "a skill without a name": { "skills/bad/SKILL.md": "---\nname: [\n" },
    "a manifest with a syntax error": { "skills/bad/skill.json": "{" },
    "a tool that does not parse": { "skills/bad/SKILL.md": skillDocument("bad"), "skills/bad/tools/x.ts": "export default {{{" },
    "a tool with a wrong schema": {
      "skills/bad/SKILL.md": skillDocument("bad"),
      "skills/bad/tools/x.json": '{"name":"x","parameters":{"properties":3,"required":5,"$ref":"#/nowhere"}}',
    },
  };
  for (const [what, added] of Object.entries(broken)) {
    using place = workplace({ ...files, ...added });
    expect(await valuesOf("skillhost call g", place.path), what).toEqual(["greet", "get_weather"]);
    expect(await valuesOf("skillhost call x --m", place.path), what).toEqual(["--mcp-config"]);
    expect(await valuesOf("skillhost ex", place.path), what).toEqual(["explain"]);
  }
  using empty = workplace();
  expect(await valuesOf("skillhost call ", empty.path)).toEqual([]);
  expect(await valuesOf("skillhost login ", empty.path)).toEqual([]);
  for (const argv of [[], ["x"], ["-1", "a"], ["99", "call"]]) {
    const io = { stdout: { isTTY: false, write() {} }, stderr: { isTTY: false, write: (text: string) => expect.fail(text) } };
    const stdin = { isTTY: false, isPiped: false, read: async () => "" };
    expect(await complete(argv, { ...io, stdin, cwd: empty.path, env: {}, signal: new AbortController().signal })).toBe(0);
  }
});

test("completion prints a script for each shell, and rejects others", async () => {
  for (const shell of ["bash", "zsh", "fish", "powershell"]) {
    const { code, stdout, stderr } = await runCli(["completion", shell]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toMatch(/(?:skillhost|\$program) complete/);
    expect(JSON.parse((await runCli(["completion", shell, "--json"])).stdout).data.script.trimEnd()).toBe(stdout.trimEnd());
  }
  expect((await runCli(["completion", "cmd"])).code).toBe(2);
});

// Without the shell there is nothing to ask. Each test of a shell below runs where the shell is installed.
const has = (shell: string): boolean => spawnSync(shell, ["--version"]).status === 0;

/** A folder for the PATH in which `skillhost` is the built program. */
function programsIn(folder: string): string {
  const programs = join(folder, "programs");
  mkdirSync(programs);
  symlinkSync(buildPackage().bin, join(programs, "skillhost"));
  return programs;
}

describe.skipIf(process.platform === "win32" || !has("bash"))("bash", () => {
  function inBash(place: { readonly path: string }, line: string, wordBreaks = " \t\n\"'><=;|&(:"): readonly string[] {
    const programs = existsSync(join(place.path, "programs")) ? join(place.path, "programs") : programsIn(place.path);
    const script = `source <(skillhost completion bash)
COMP_WORDBREAKS=$2 COMP_LINE=$1 COMP_POINT=\${#1} COMP_WORDS=() COMP_CWORD=0
_skillhost && printf '%s\\n' "\${COMPREPLY[@]}"`;
    const { stdout, stderr } = spawnSync("bash", ["-c", script, "bash", line, wordBreaks], {
      cwd: place.path,
      encoding: "utf8",
      env: { ...process.env, PATH: `${programs}:${process.env["PATH"]}` },
    });
    expect(stderr).toBe("");
    return stdout.split("\n").filter((each) => each !== "");
  }

  test("asks the program, and replaces only what bash regards as the word", () => {
    using place = workplace({ ...files, "notes.md": "", "notes two.md": "" });
    expect(inBash(place, "skillhost call get_weather --units ")).toEqual(["celsius", "fahrenheit"]);
    expect(inBash(place, "skillhost call get_weather --units=c")).toEqual(["celsius"]);
    expect(inBash(place, "skillhost call get_weather --units=c", " \t\n")).toEqual(["--units=celsius"]);
    expect([...inBash(place, "skillhost --log-file not")].sort()).toEqual(["notes two.md", "notes.md"]);
    expect(inBash(place, "skillhost check sk")).toEqual(["skills"]);
    expect(inBash(place, "skillhost --headless --st")).toEqual([]);
  });

  test("does not run a program that the command line names by a path", () => {
    using place = workplace({ skillhost: "#!/bin/sh\ntouch ran\n" });
    expect(inBash(place, "./skillhost ca")).toEqual(["call"]);
    expect(existsSync(place.at("ran"))).toBe(false);
  });
});
