import { expect, test } from "vitest";
import { runCli, skillDocument, workplace } from "./run-cli.ts";

const search = JSON.stringify(
  {
    name: "search",
    description: "Finds documents by their text.",
    parameters: {
      type: "object",
      properties: {
        query: { type: "string", description: "Words to find." },
        limit: { type: "integer", description: "How many.", exclusiveMinimum: 0 },
        $top: { type: "integer", description: "An OData name." },
      },
      required: ["query"],
      anyOf: [{ required: ["limit"] }, { required: ["$top"] }],
    },
    handler: { kind: "command", command: "echo", args: ["--", "x"] },
  },
  null,
  2,
);

const computed = `import { defineTool } from "skillhost";
import { z } from "zod";
export default defineTool("count", {
  description: "Counts things in a text, such as words.",
  parameters: z.object({ labels: z.record(z.string(), z.string()).describe("Labels by name.") }),
  handler: () => "one",
});
`;

function place(): ReturnType<typeof workplace> {
  return workplace({ "skills/a/SKILL.md": skillDocument("a"), "skills/a/tools/search.json": search, "skills/a/tools/count.ts": computed });
}

test("check --target names the tool, the keyword, the place and the effect for each API, and fails only with --strict", async () => {
  using folder = place();
  const { code, stdout } = await runCli(["check", "--target", "openai,anthropic", "--target", "gemini"], { cwd: folder.path });
  expect(code).toBe(0);
  const lines = stdout.split("\n").filter((line) => line.includes("TARGET_"));
  const at = "skills/a/tools/search.json:4:3 warning TARGET_LOSS";
  expect(lines).toEqual(
    expect.arrayContaining([
      expect.stringContaining(`${at} OpenAI does not get of "search": anyOf. All its properties are sent as optional.`),
      expect.stringContaining(`${at} Anthropic does not get of "search": "$top" at properties.`),
      expect.stringContaining(
        'search.json:4:3 info TARGET_LOSS Gemini gets in another form of "search": exclusiveMinimum at properties.limit.',
      ),
      expect.stringContaining('search.json:4:3 warning TARGET_REFUSED Gemini refuses of "search": "$top" at properties.'),
      expect.stringMatching(/^skills[\\/]a[\\/]tools[\\/]count\.ts:\d+:\d+ info TARGET_UNKNOWN /),
    ]),
  );
  expect((await runCli(["check", "--target", "gemini", "--strict"], { cwd: folder.path })).code).toBe(1);
  expect((await runCli(["check"], { cwd: folder.path })).stdout).not.toContain("TARGET_");
});

test("check --run --target compares the parameters that a library makes, and --json has each finding once", async () => {
  using folder = place();
  const { stdout } = await runCli(["check", "--run", "--json", "--target", "gemini,gemini"], { cwd: folder.path });
  const { diagnostics } = JSON.parse(stdout) as { diagnostics: readonly { code: string; message: string; file: string; range?: object }[] };
  const ours = diagnostics.filter(({ message, code }) => code.startsWith("TARGET_") && message.includes('"count"'));
  expect(ours.map(({ message }) => message.replace(/ at .*/, ""))).toEqual([
    'Gemini does not get of "count": propertyNames',
    'Gemini does not get of "count": additionalProperties',
  ]);
  for (const each of ours) expect(each).toMatchObject({ code: "TARGET_LOSS", range: { start: { line: 3 } } });
});

test("check --target refuses an API that it does not know", async () => {
  using folder = place();
  const { code, stderr } = await runCli(["check", "--target", "openai,claude"], { cwd: folder.path });
  expect([code, stderr]).toEqual([2, expect.stringContaining('"claude"')]);
  expect(stderr).toContain("openai, openai-strict, anthropic, anthropic-strict, gemini");
});

test("check --target reports a tool with 10,000 faults in a few lines", async () => {
  const properties = Object.fromEntries(
    Array.from({ length: 10_000 }, (_, index) => [`$${index}`, { type: "string", description: "One." }]),
  );
  const many = { name: "many", description: "Takes many values at once.", parameters: { type: "object", properties, required: [] } };
  using folder = workplace({ "skills/a/SKILL.md": skillDocument("a"), "skills/a/tools/many.json": JSON.stringify(many) });
  folder.write("skills/a/tools/many.mjs", 'export default () => "done";');
  const { stdout } = await runCli(["check", "--target", "anthropic,gemini"], { cwd: folder.path });
  const lines = stdout.split("\n").filter((line) => line.includes("TARGET_"));
  expect(lines).toHaveLength(2);
  expect(lines[0]).toContain("and at least 997 more");
});
