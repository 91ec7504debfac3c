import { stripVTControlCharacters } from "node:util";
import { expect, test } from "vitest";
import { runCli, skillDocument, workplace } from "./run-cli.ts";

const tool = `import { defineTool } from "skillhost";

interface Arguments {
  readonly city: string;
}

export default defineTool("forecast", {
  description: "Returns the weather of a city.",
  handler: ({ city }: Arguments) => {
    throw new Error(\`Nothing is known of \${city}.\`);
  },
});
`;

const files = { "skills/weather/SKILL.md": skillDocument("weather"), "skills/weather/tools/forecast.ts": tool };
const argv = ["call", "forecast", '{"city":"Oslo"}', "--yes"];

test("a terminal shows a tool's error with its position and the source around it", async () => {
  using place = workplace(files);
  const { code, stderr } = await runCli(argv, { cwd: place.path, isTTY: true });
  const reported = stripVTControlCharacters(stderr).replace(/^\d\d:\d\d:\d\d /, "");
  expect(code).toBe(1);
  expect(reported.slice(0, reported.indexOf("\n", reported.indexOf("    at ")))).toMatchInlineSnapshot(`
    "error Tool "forecast" threw.
        Error: Nothing is known of Oslo.
           8 |   description: "Returns the weather of a city.",
           9 |   handler: ({ city }: Arguments) => {
        > 10 |     throw new Error(\`Nothing is known of \${city}.\`);
             |           ^
          11 |   },
          12 | });
        at handler (skills/weather/tools/forecast.ts:10:11)"
  `);
  expect(reported).not.toMatch(/"time"|execute-call|node:internal/);
});

test("other outputs show a tool's error as a line of JSON", async () => {
  using place = workplace(files);
  const { stderr } = await runCli(argv, { cwd: place.path });
  const [line = ""] = stderr.split("\n");
  expect(JSON.parse(line)).toMatchObject({
    level: "error",
    message: 'Tool "forecast" threw.',
    place: { file: place.at("skills/weather/tools/forecast.ts"), line: 10 },
  });
});

test("a log file contains lines of JSON, and the terminal shows none", async () => {
  using place = workplace(files);
  const { stderr } = await runCli([...argv, "--log-file", place.at("run.log")], { cwd: place.path, isTTY: true });
  expect(stderr).not.toContain("threw");
});

test("a thrown error cannot send control sequences to the terminal", async () => {
  using place = workplace({
    ...files,
    "skills/weather/tools/forecast.ts": tool.replace("Nothing is", "\\u001b]0;owned\\u0007\\u202eNothing is"),
  });
  const { stderr } = await runCli(argv, { cwd: place.path, isTTY: true, env: { NO_COLOR: "1" } });
  expect(stderr).toContain("Nothing is");
  expect([..."\u001b\u0007\u202e"].filter((character) => stderr.includes(character))).toEqual([]);
});
