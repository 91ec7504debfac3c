import { expect, test } from "vitest";
import { runCli, skillDocument, toolModule, workplace } from "./run-cli.ts";

const files = {
  "skills/a/SKILL.md": skillDocument("a"),
  "skills/a/tools/greet.ts": toolModule("greet", "Hello"),
  "skills/b/SKILL.md": skillDocument("b"),
  "skills/b/prompts/style.md": "Be kind.\n",
  "skills/b/tools/greet.ts": toolModule("greet", "Good day").replace("Returns", "Prints"),
  "skills/b/tools/move-file.json": JSON.stringify({
    name: "move-file",
    description: "Moves a file.\nIt ends */ here.",
    parameters: {
      type: "object",
      properties: { from: { type: "string" }, on: { $ref: "#/$defs/when" } },
      required: ["from"],
      $defs: { when: { enum: ["now", "later"] } },
    },
    annotations: { destructiveHint: true },
    handler: { command: "true" },
  }),
};

test("show prints a tool as TypeScript, with its hints and the tools that lost its name", async () => {
  using place = workplace(files);
  const { code, stdout, stderr } = await runCli(["show", "move-file"], { cwd: place.path });
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(stdout.replace(/[0-9a-f]{64}/, "<hash>")).toBe(`move-file  skill b  skills/b/tools/move-file.json

type When = "now" | "later";
/**
 * Moves a file.
 * It ends *\\/ here.
 */
"move-file"(args: { from: string; on?: When }): unknown;

hints      destructive
signature  <hash>
call       skillhost call move-file --help
`);
  const greet = await runCli(["show", "greet"], { cwd: place.path });
  expect(greet.stdout).toContain("greet  skill b  skills/b/tools/greet.ts\n");
  expect(greet.stdout).toMatch(/^also +skill a \(skills\/a\/tools\/greet\.ts\): lost, because /m);
});

test("show --schema prints the JSON Schemas, and --json prints both forms", async () => {
  using place = workplace(files);
  const { stdout } = await runCli(["show", "b/move-file", "--schema"], { cwd: place.path });
  expect(stdout).toContain('"enum": [\n');
  const { data } = JSON.parse((await runCli(["show", "move-file", "--json"], { cwd: place.path })).stdout);
  expect(data.tool).toMatchObject({
    name: "move-file",
    typescript: expect.stringContaining('"move-file"(args: { from: string; on?: When }): unknown;'),
    parameters: { required: ["from"] },
    candidates: [{ state: "wins" }],
  });
});

test("show prints a skill with its prompts and its tools in one line each", async () => {
  using place = workplace(files);
  const { stdout } = await runCli(["show", "b"], { cwd: place.path });
  expect(stdout).toContain("b  active  skills/b\n");
  expect(stdout).toContain("prompt   prompts/style.md (on-demand, 9 characters)\n");
  expect(stdout).toContain("tool     move-file(from, on?)  Moves a file.\n");
  expect((await runCli(["show", "a"], { cwd: place.path })).stdout).toContain("tool     greet  (not available: skillhost explain greet)\n");
});

test("show reports an unknown name with the nearest names", async () => {
  using place = workplace(files);
  const { code, stdout, stderr } = await runCli(["show", "gret"], { cwd: place.path });
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  expect(stderr).toContain('No available tool or skill is named "gret". Did you mean "greet"?');
});
