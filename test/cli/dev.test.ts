import { rmSync } from "node:fs";
import { expect, test } from "vitest";
import { runCli, skillDocument, startCli, toolModule, workplace } from "./run-cli.ts";

const files = { "skills/greeter/SKILL.md": skillDocument("greeter"), "skills/greeter/tools/hello.ts": toolModule("hello", "Hello") };
const terminal = { isTTY: true, env: { NO_COLOR: "1" } };

test("dev prints the loaded skills, then one line per change with time, name, reason and duration", async () => {
  using place = workplace(files);
  const dev = startCli(["dev", "--no-inspect"], { cwd: place.path, ...terminal });
  expect(await dev.line(() => true)).toBe("greeter  active  skills/greeter");
  expect(await dev.line(() => true)).toBe("  hello");
  expect(await dev.line(() => true)).toMatch(/^1 skill, 1 tool, loaded in \d+ ms\.$/);

  place.write("skills/greeter/tools/hello.ts", toolModule("hello", "Good morning"));
  expect(await dev.line(() => true)).toMatch(/^\d\d:\d\d:\d\d ~ greeter {2}updated hello · skills\/greeter\/tools\/hello\.ts · [\d.]+ ms$/);

  place.write("skills/greeter/tools/bye.ts", toolModule("bye", "Bye"));
  expect(await dev.line(() => true)).toMatch(/~ greeter {2}added bye · skills\/greeter\/tools\/bye\.ts · /);

  rmSync(place.at("skills/greeter/tools/bye.ts"));
  expect(await dev.line(() => true)).toMatch(/~ greeter {2}removed bye · skills\/greeter\/tools\/bye\.ts · /);

  place.write("skills/other/SKILL.md", skillDocument("other"));
  expect(await dev.line(() => true)).toMatch(/\+ other {2}added · skills\/other/);

  rmSync(place.at("skills/other"), { recursive: true });
  expect(await dev.line(() => true)).toMatch(/− other {2}removed · skills\/other/);

  dev.interrupt();
  const { code, stderr } = await dev.done;
  expect({ code, stderr }).toEqual({
    code: 0,
    stderr: "Watching for changes. Save a file to reload it; press Ctrl-C to stop.\nStopped.\n",
  });
});

test("dev reports a save that does not load with its position, that the last working version stays active, and the fix", async () => {
  using place = workplace(files);
  const dev = startCli(["dev"], { cwd: place.path, ...terminal });
  await dev.line((line) => line.includes("loaded in"));

  place.write("skills/greeter/tools/hello.ts", "export default (\n");
  expect(await dev.line(() => true)).toMatch(
    /✗ greeter {2}reload failed; still serving the last working version · skills\/greeter\/tools\/hello\.ts · /,
  );
  expect(await dev.line(() => true)).toMatch(/^ {4}skills\/greeter\/tools\/hello\.ts:2:1 error MODULE_SYNTAX /);

  place.write("skills/greeter/tools/hello.ts", toolModule("hello", "Hello again"));
  expect(await dev.line(() => true)).toMatch(/~ greeter {2}fixed: updated hello · /);
  dev.interrupt();
  expect((await dev.done).code).toBe(0);
});

test("dev reports that restoring a working version fixed an earlier error", async () => {
  using place = workplace(files);
  const dev = startCli(["dev"], { cwd: place.path, ...terminal });
  await dev.line((line) => line.includes("loaded in"));
  place.write("skills/greeter/tools/hello.ts", "export default (\n");
  await dev.line((line) => line.includes("✗ greeter"));
  place.write("skills/greeter/tools/hello.ts", files["skills/greeter/tools/hello.ts"]);
  expect(await dev.line((line) => line.includes("greeter  "))).toMatch(/~ greeter {2}fixed/);
  dev.interrupt();
  await dev.done;
});

test("dev --json prints the feed, a message per line: a snapshot, then what changes", async () => {
  using place = workplace(files);
  const dev = startCli(["dev", "--json"], { cwd: place.path });
  let seq = -1;
  const next = async (type: string): Promise<Record<string, unknown>> => {
    for (;;) {
      const message = JSON.parse(await dev.line(() => true));
      expect(message.seq).toBeGreaterThanOrEqual(seq);
      seq = message.seq;
      if (message.type === type) return message;
    }
  };
  expect(await next("snapshot")).toMatchObject({
    version: 1,
    isReadOnly: true,
    skills: [{ name: "greeter", tools: ["hello"] }],
    tools: [{ kind: "skill", source: "greeter", definition: { name: "hello" } }],
    diagnostics: [],
  });

  place.write("skills/greeter/tools/hello.ts", "export default (\n");
  expect(await next("diagnostics")).toMatchObject({ diagnostics: [{ severity: "error", code: "MODULE_SYNTAX" }] });
  expect(await next("reload")).toMatchObject({
    failed: [{ name: "greeter", lastGoodServes: true, diagnostics: [{ code: "MODULE_SYNTAX" }] }],
    files: [place.at("skills/greeter/tools/hello.ts")],
  });

  place.write("skills/greeter/tools/hello.ts", toolModule("hello", "Good day"));
  expect(await next("diagnostics")).toMatchObject({ diagnostics: [] });
  expect(await next("reload")).toMatchObject({ updated: [{ name: "greeter", tools: { updated: ["hello"] } }] });
  dev.interrupt();
  expect(await dev.done).toMatchObject({ code: 0, stderr: "" });
});

test("dev --json without watching prints a snapshot and ends, with exit code 1 after an error", async () => {
  using place = workplace({ ...files, "skills/greeter/tools/bad.ts": "export default (\n" });
  const { code, stdout } = await runCli(["dev", "--json", "--watch", "never"], { cwd: place.path });
  expect(
    stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line)),
  ).toMatchObject([{ type: "snapshot", diagnostics: [{ code: "MODULE_SYNTAX", frame: { firstLine: 1 } }] }]);
  expect(code).toBe(1);
});

test("dev takes directories as arguments, and waits for a missing one", async () => {
  using place = workplace();
  const dev = startCli(["dev", "elsewhere"], { cwd: place.path, ...terminal });
  expect(await dev.line(() => true)).toMatch(/^elsewhere error SKILLS_DIRECTORY_MISSING/);
  expect(await dev.line(() => true)).toMatch(/^0 skills, 0 tools/);
  place.write("elsewhere/greeter/SKILL.md", skillDocument("greeter"));
  expect(await dev.line(() => true)).toMatch(/\+ greeter {2}added · elsewhere\/greeter/);
  dev.interrupt();
  expect((await dev.done).code).toBe(0);
});

test("dev --watch never loads, prints and ends, with exit code 1 after an error", async () => {
  using place = workplace(files);
  const good = await runCli(["dev", "--watch", "never"], { cwd: place.path });
  expect(good).toMatchObject({ code: 0, stderr: "" });
  expect(good.stdout).toContain("1 skill, 1 tool");
  place.write("skills/greeter/tools/bad.ts", "export default (\n");
  const bad = await runCli(["dev", "--watch", "never"], { cwd: place.path });
  expect(bad.code).toBe(1);
  expect(bad.stdout).toContain("error MODULE_SYNTAX");
});

test("dev --watch auto watches only on a terminal", async () => {
  using place = workplace(files);
  expect((await runCli(["dev", "--watch", "auto"], { cwd: place.path })).code).toBe(0);
  const dev = startCli(["dev", "--watch", "auto"], { cwd: place.path, ...terminal });
  await dev.line((line) => line.includes("loaded in"));
  place.write("skills/greeter/tools/bye.ts", toolModule("bye", "Bye"));
  await dev.line((line) => line.includes("added bye"));
  dev.interrupt();
  expect((await dev.done).code).toBe(0);
});

test("dev uses portable marks unless the terminal is known to support others", async () => {
  using place = workplace(files);
  const dev = startCli(["dev"], { cwd: place.path, isTTY: true, env: { NO_COLOR: "1", LANG: "C" } });
  await dev.line((line) => line.includes("loaded in"));
  place.write("skills/greeter/tools/hello.ts", "export default (\n");
  expect(await dev.line(() => true)).toMatch(/ x greeter .* - skills/);
  dev.interrupt();
  await dev.done;
});

test("dev reports a new file that does not load beside working ones, and its fix or removal", async () => {
  using place = workplace(files);
  const dev = startCli(["dev"], { cwd: place.path, ...terminal });
  await dev.line((line) => line.includes("loaded in"));
  place.write("skills/greeter/tools/new.ts", "export default (\n");
  expect(await dev.line(() => true)).toMatch(
    /✗ greeter {2}loaded, without the parts that have errors · skills\/greeter\/tools\/new\.ts · /,
  );
  expect(await dev.line(() => true)).toContain("    skills/greeter/tools/new.ts:2:1 error MODULE_SYNTAX");
  place.write("skills/greeter/tools/hello.ts", toolModule("hello", "Good morning"));
  expect(await dev.line(() => true)).toMatch(/~ greeter {2}updated hello · /);
  rmSync(place.at("skills/greeter/tools/new.ts"));
  expect(await dev.line(() => true)).toMatch(/~ greeter {2}fixed · skills\/greeter\/tools\/new\.ts · /);
  dev.interrupt();
  await dev.done;
});
