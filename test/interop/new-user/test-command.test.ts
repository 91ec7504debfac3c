import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { expect, onTestFinished, test, vi } from "vitest";
import { toCallTest } from "../../../src/formats/calls/export-call.ts";
import { buildPackage } from "../../built-package.ts";
import { type CliRun, skillDocument, type Workplace, workplace } from "../../cli/run-cli.ts";
import { patience } from "../../slowness.ts";

const built = buildPackage();

function start(place: Workplace, argv: readonly string[], isTrusted = true): ChildProcess {
  const { FORCE_COLOR: _color, SKILLHOST_TRUST: _trust, ...env } = process.env;
  const child = spawn(process.execPath, [built.bin, ...argv], {
    cwd: place.path,
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...env, LANG: "C.UTF-8", SKILLHOST_HOME: place.at("home"), ...(isTrusted && { SKILLHOST_TRUST: "1" }) },
  });
  onTestFinished(() => void child.kill());
  return child;
}

async function run(place: Workplace, argv: readonly string[], isTrusted?: boolean): Promise<CliRun> {
  const child = start(place, argv, isTrusted);
  const [stdout, stderr] = await Promise.all([text(child.stdout!), text(child.stderr!), once(child, "close")]);
  return { code: child.exitCode!, stdout, stderr };
}

const tool = `import { defineTool } from "skillhost/define";
import { z } from "zod";
export default defineTool("measure", { description: "Measures.", parameters: z.object({ city: z.string() }), handler: () => ({ celsius: 3 }) });
`;

/** A test in TypeScript with syntax that this Node.js has to be spared, which imports by the names of the later JavaScript. */
const weatherTest = `import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { defineTool, HostError } from "skillhost";
import { testSkill } from "skillhost/testing";
import { z } from "zod";
import { cold, Kind } from "./kinds.js";

interface Measured {
  readonly celsius: number;
}

describe("weather", () => {
  test("is cold", async () => {
    await using skill = await testSkill(new URL("..", import.meta.url));
    const result = await skill.call("measure", { city: "Oslo" });
    assert.equal(result.json<Measured>().celsius, z.number().parse(cold));
    assert.equal(Kind.Cold, "cold");
    assert.equal(typeof defineTool, typeof HostError);
  });
  test.skip("is warm", () => {});
});
`;

const files = {
  "skills/weather/SKILL.md": skillDocument("weather"),
  "skills/weather/tools/measure.ts": tool,
  "skills/weather/test/weather.test.ts": weatherTest,
  "skills/weather/test/kinds.ts": 'export enum Kind { Cold = "cold" }\nexport const cold: number = 3;\n',
  "skills/other/SKILL.md": skillDocument("other"),
  "skills/other/other.test.mjs": 'import { test } from "node:test";\nimport "skillhost/testing";\ntest("exists", () => {});\n',
};

const broken = `import assert from "node:assert/strict";
import { test } from "node:test";

interface Unused {
  readonly is: "removed";
}

test("outer", async (t) => {
  await t.test("inner", () => {
    const found: Unused["is"] | 5 = 5;
    assert.equal(found, 6, "five is not six");
  });
});
`;

test(
  "test runs the tests of all skills, in TypeScript and JavaScript, where nothing is installed",
  async () => {
    using place = workplace(files);
    const spec = await run(place, ["test"]);
    expect({ code: spec.code, stderr: spec.stderr }).toEqual({ code: 0, stderr: "" });
    expect(spec.stdout).toMatch(/✔ is cold \(/);
    expect(spec.stdout).toMatch(/\n3 tests in 2 files: 2 passed, 1 skipped \(\d+ ms\)\.\n$/);
    const { stdout } = await run(place, ["test", "skills/other", "--json"]);
    expect(JSON.parse(stdout)).toMatchObject({
      ok: true,
      command: "test",
      data: {
        files: [place.at("skills/other/other.test.mjs")],
        counts: { tests: 1, passed: 1, failed: 0 },
        tests: [{ name: "exists", status: "passed" }],
      },
    });
  },
  patience(60_000),
);

test(
  "test says what failed where, in lines of the source, and exits with 1",
  async () => {
    using place = workplace({
      ...files,
      "skills/weather/test/broken.test.ts": broken,
      "skills/other/thrown.test.mjs": '\nthrow new Error("cannot begin");\n',
      "skills/other/syntax.test.ts": "const a: = 1;\n",
    });
    const { code, stdout } = await run(place, ["test"]);
    expect(code).toBe(1);
    const summary = stdout.slice(stdout.lastIndexOf("✗ skills/other/syntax.test.ts"));
    expect(summary).toContain("skills/other/syntax.test.ts:1:10 does not parse");
    expect(stdout).toContain("✗ skills/other/thrown.test.mjs:2:7  the file\n");
    expect(summary).toContain("✗ skills/weather/test/broken.test.ts:11:12  outer > inner\n    five is not six\n");
    expect(summary).toMatch(/\n6 tests in 5 files: 3 failed, 2 passed, 1 skipped \(\d+ ms\)\.\n$/);

    const junit = await run(place, ["test", "skills/weather", "--reporter", "junit"]);
    expect(junit.code).toBe(1);
    expect(junit.stdout).toMatch(/^<\?xml version="1\.0".*<testcase name="inner".*five is not six.*<\/testsuites>\s*$/s);
    expect(junit.stderr).toContain("1 failed");

    const json = await run(place, ["test", "skills/weather/test/broken.test.ts", "--reporter", "json"]);
    expect(JSON.parse(json.stdout)).toMatchObject({
      counts: { tests: 1, failed: 1 },
      tests: [{ name: "outer > inner", status: "failed", line: 11, column: 12, message: expect.stringMatching(/^five is not six/) }],
    });
  },
  patience(60_000),
);

test("test fails when there are no tests, and refuses paths that do not exist", async () => {
  using place = workplace({ "skills/empty/SKILL.md": skillDocument("empty") });
  expect(await run(place, ["test"])).toMatchObject({ code: 1, stdout: "", stderr: expect.stringContaining("No tests found.") });
  expect(await run(place, ["test", "elsewhere"])).toMatchObject({ code: 2, stderr: expect.stringContaining("elsewhere does not exist") });
  expect((await run(place, ["test", "--reporter", "dots"])).code).toBe(2);
});

test("test runs nothing of a project that is not trusted", async () => {
  using place = workplace({
    "skills/other/SKILL.md": skillDocument("other"),
    "skills/other/other.test.mjs": 'import { writeFileSync } from "node:fs"; writeFileSync("ran", "");',
  });
  expect(await run(place, ["test"], false)).toMatchObject({ code: 1, stdout: "", stderr: expect.stringContaining("is not trusted") });
  expect(existsSync(place.at("ran"))).toBe(false);
  expect((await run(place, ["test", "--trust"], false)).code).toBe(0);
  expect(existsSync(place.at("ran"))).toBe(true);
});

test(
  "test --watch runs the tests of a skill again when one of its files is saved",
  async () => {
    using place = workplace(files);
    const child = start(place, ["test", "--watch", "--json"]);
    const lines = createInterface({ input: child.stdout! })[Symbol.asyncIterator]();
    const next = async (): Promise<object> => JSON.parse((await lines.next()).value);
    expect(await next()).toMatchObject({ type: "tests", counts: { tests: 3, failed: 0 } });
    place.write("skills/weather/tools/measure.ts", tool.replace("3 })", "4 })"));
    expect(await next()).toMatchObject({
      files: [place.at("skills/weather/test/weather.test.ts")],
      counts: { tests: 2, failed: 1 },
      tests: [{ name: "weather > is cold", status: "failed", line: 16 }, { status: "skipped" }],
    });
    place.write("skills/weather/tools/measure.ts", tool);
    expect(await next()).toMatchObject({ counts: { failed: 0, passed: 1 } });
    child.kill("SIGINT");
    expect(await once(child, "close")).toEqual([0, null]);
  },
  patience(60_000),
);

const ratesTest = `import assert from "node:assert/strict";
import { test } from "node:test";
import { matchSnapshot, modelText, recordTraffic, testSkill } from "skillhost/testing";

test("has today's rate", () =>
  recordTraffic(new URL("rates.recording.json", import.meta.url), async () => {
    await using skill = await testSkill(new URL("..", import.meta.url));
    assert.equal((await skill.call("get_rate")).text, "1.1");
    await matchSnapshot(new URL("rates.snapshot.md", import.meta.url), await modelText(skill));
  }));
`;

const ratesTool = (url: string): string => `export default {
  name: "get_rate",
  description: "Gets the rate.",
  async handler() {
    const response = await fetch("${url}", { headers: { authorization: "Bearer " + process.env.RATES_API_KEY } });
    return response.text();
  },
};
`;

test(
  "test --record writes what a tool fetches beside the test, which then runs without the service",
  async () => {
    vi.stubEnv("RATES_API_KEY", "a-key-that-stays-here");
    vi.stubEnv("CI", "");
    onTestFinished(() => void vi.unstubAllEnvs());
    const server = createServer(({ headers }, response) =>
      response.end(headers.authorization === "Bearer a-key-that-stays-here" ? "1.1" : "?"),
    );
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const close = (): Promise<void> => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    };
    onTestFinished(close);
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/rate`;
    using place = workplace({
      "skills/rates/SKILL.md": skillDocument("rates"),
      "skills/rates/tools/rate.mjs": ratesTool(url),
      "skills/rates/test/rates.test.ts": ratesTest,
    });
    const recording = place.at("skills/rates/test/rates.recording.json");
    expect(await run(place, ["test", "--record"])).toMatchObject({ code: 0, stderr: "" });
    const text = readFileSync(recording, "utf8");
    expect(text).toContain(`"url": "${url}"`);
    expect(text).not.toMatch(/a-key-that-stays-here|authorization/i);
    expect(readFileSync(place.at("skills/rates/test/rates.snapshot.md"), "utf8")).toContain("get_rate(): unknown;");
    await close();

    vi.stubEnv("RATES_API_KEY", "");
    expect((await run(place, ["test"])).code).toBe(0);
    expect((await run(place, ["test", "--replay"])).code).toBe(0);

    place.write("skills/rates/tools/rate.mjs", ratesTool(`${url}?currency=usd`));
    const different = await run(place, ["test"]);
    expect(different.code).toBe(1);
    const said = different.stdout.slice(different.stdout.lastIndexOf("has no answer to this HTTP request:"));
    expect(said).toContain(`GET ${url}?currency=usd\n    Recorded: 1 HTTP request:\n      GET ${url}\n`);
    expect(said).toContain("record again: skillhost test --record");

    place.write("skills/rates/tools/rate.mjs", ratesTool(url).replace("Gets", "Fetches"));
    expect((await run(place, ["test"])).stdout).toContain("rates.snapshot.md differs:");
    expect((await run(place, ["test", "--update-snapshots"])).code).toBe(0);
    rmSync(recording);
    expect((await run(place, ["test", "--replay"])).stdout).toContain("does not exist, so it cannot be replayed.");
    expect((await run(place, ["test", "--record", "--replay"])).code).toBe(2);
  },
  patience(90_000),
);

const storedCalls = {
  calls: {
    "in Oslo": { tool: "measure", arguments: { city: "Oslo" }, automatic: true, expect: { structured: { celsius: 3 } } },
    "too warm": { tool: "measure", arguments: { city: "Oslo" }, automatic: true, expect: { structured: { celsius: 20 } } },
    "not allowed": { tool: "measure", arguments: { city: "Oslo" } },
    misspelt: { tool: "measure", expect: { contain: "x" } },
    gone: { tool: "mesure" },
    hostile: { tool: "\u001b[2J\u202e" },
  },
};

test(
  "test makes the stored calls of skills, and says of each failure why and where it stands",
  async () => {
    using place = workplace({
      "skills/weather/SKILL.md": skillDocument("weather"),
      "skills/weather/tools/measure.ts": tool,
      "skills/weather/calls.json": JSON.stringify(storedCalls, null, 2),
      // Not of the skill, but data of its own.
      "skills/weather/data/calls.json": "{}",
    });
    const file = place.at("skills/weather/calls.json");
    const json = await run(place, ["test", "--json"]);
    expect(json).toMatchObject({ code: 1, stderr: "" });
    expect(JSON.parse(json.stdout).data).toMatchObject({
      files: [file],
      counts: { tests: 6, passed: 1, failed: 4, skipped: 1 },
      tests: [
        { file, status: "failed", line: 36, message: expect.stringContaining('"contain" is not an expectation.') },
        { file, name: "in Oslo", status: "passed" },
        { file, name: "too warm", status: "failed", line: 15, column: 5, message: "celsius is 3, not 20." },
        { file, name: "not allowed", status: "skipped" },
        { file, name: "gone", status: "failed", line: 39, message: 'Tool "mesure" does not exist.\nOther tools of the skill: measure.' },
        { file, name: "hostile", status: "failed", message: expect.not.stringContaining("\u001b") },
      ],
    });
    place.write("skills/weather/calls.json", JSON.stringify({ calls: { "in Oslo": storedCalls.calls["in Oslo"] } }));
    const spec = await run(place, ["test"]);
    expect(spec).toMatchObject({ code: 0, stderr: "" });
    expect(spec.stdout).toMatch(/✔ in Oslo \(.*\n1 test in 1 file: 1 passed \(\d+ ms\)\.\n$/s);
  },
  patience(60_000),
);

test(
  "test --watch makes the stored calls of a skill again when its tool or the file of the calls is saved",
  async () => {
    using place = workplace({
      "skills/weather/SKILL.md": skillDocument("weather"),
      "skills/weather/tools/measure.ts": tool,
      "skills/weather/calls.json": JSON.stringify({ calls: { "in Oslo": storedCalls.calls["in Oslo"] } }),
    });
    const child = start(place, ["test", "--watch", "--json"]);
    const lines = createInterface({ input: child.stdout! })[Symbol.asyncIterator]();
    const next = async (): Promise<object> => JSON.parse((await lines.next()).value);
    expect(await next()).toMatchObject({ type: "tests", counts: { tests: 1, passed: 1 } });
    place.write("skills/weather/tools/measure.ts", tool.replace("3 })", "4 })"));
    expect(await next()).toMatchObject({ counts: { failed: 1 }, tests: [{ name: "in Oslo", message: "celsius is 4, not 3." }] });
    place.write("skills/weather/calls.json", JSON.stringify({ calls: { warmer: { ...storedCalls.calls["in Oslo"], expect: {} } } }));
    expect(await next()).toMatchObject({ counts: { passed: 1, failed: 0 }, tests: [{ name: "warmer" }] });
    child.kill("SIGINT");
    expect(await once(child, "close")).toEqual([0, null]);
  },
  patience(60_000),
);

test(
  "test --record writes what stored calls fetch, if all passed, and calls that fetch nothing need no recording",
  async () => {
    vi.stubEnv("RATES_API_KEY", "a-key-that-stays-here");
    onTestFinished(() => void vi.unstubAllEnvs());
    const server = createServer((_request, response) => response.end("1.1"));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void server.close());
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/rate`;
    const calls = (text: string): string =>
      JSON.stringify({
        calls: { today: { tool: "get_rate", automatic: true, expect: { text } }, plain: { tool: "plain", automatic: true } },
      });
    using place = workplace({
      "skills/rates/SKILL.md": skillDocument("rates"),
      "skills/rates/tools/rate.mjs": ratesTool(url),
      "skills/rates/tools/plain.mjs": 'export default { name: "plain", description: "Answers.", handler: () => "plain" };',
      "skills/rates/calls.json": calls("1.2"),
    });
    const recording = place.at("skills/rates/calls.recording.json");
    expect((await run(place, ["test", "--record"])).stdout).toContain('The text differs at character 3: "1.1", not "1.2".');
    expect(existsSync(recording)).toBe(false);
    const unrecorded = await run(place, ["test", "--replay"]);
    expect(unrecorded.stdout).toContain("calls.recording.json has no answer to this HTTP request:");
    expect(unrecorded.stdout).toMatch(/2 tests in 1 file: 1 failed, 1 passed/);

    place.write("skills/rates/calls.json", calls("1.1"));
    expect(await run(place, ["test", "--record"])).toMatchObject({ code: 0, stderr: "" });
    expect(readFileSync(recording, "utf8")).not.toContain("a-key-that-stays-here");
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    expect((await run(place, ["test"])).code).toBe(0);
  },
  patience(60_000),
);

test("a call that was exported as a test runs as one, with arguments of every kind", async () => {
  const args = JSON.parse('{"text":"it\'s \\"${x}\\" `y` \\\\ \\u2028","list":[1,{"a":null}],"__proto__":{"b":true}}');
  const echo = (
    expected: object,
  ): string => `export default { name: "echo", description: "Compares.", parameters: { type: "object", additionalProperties: true },
  handler: (args) => { if (JSON.stringify(args) !== ${JSON.stringify(JSON.stringify(expected))}) throw new Error("Others: " + JSON.stringify(args)); return "equal"; } };`;
  using place = workplace({
    "skills/weather/SKILL.md": skillDocument("weather"),
    "skills/weather/tools/measure.ts": tool,
    "skills/weather/tools/echo.mjs": echo(args),
    "skills/weather/test/measure.test.mjs": toCallTest("measure", { city: "Oslo" }),
    "skills/weather/test/echo.test.ts": toCallTest("echo", args),
    "skills/weather/test/wrong.test.mjs": toCallTest("measure", { city: 5 }),
  });
  const { code, stdout } = await run(place, ["test", "--json"]);
  expect(code).toBe(1);
  const { tests } = JSON.parse(stdout).data as { readonly tests: readonly { readonly name: string; readonly message?: string }[] };
  expect(tests).toMatchObject([
    { name: "calls echo", status: "passed" },
    { name: "calls measure", status: "passed" },
    { name: "calls measure", status: "failed", message: expect.stringContaining("expected string, received number") },
  ]);
});
