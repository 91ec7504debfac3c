import { rmSync } from "node:fs";
import { expect, test } from "vitest";
import { runCli, skillDocument, startCli, toolModule, workplace } from "./run-cli.ts";

const files = { "skills/greeter/SKILL.md": skillDocument("greeter"), "skills/greeter/tools/hello.ts": toolModule("hello", "Hello") };
const terminal = { isTTY: true, env: { NO_COLOR: "1" } };

test("prints what is loaded, then one line per change: time, name, reason, duration", async () => {
  using place = workplace(files);
  const dev = startCli(["dev"], { cwd: place.path, ...terminal });
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

test("reports a save that does not load, with its place, that the last working version stays active, and when it is fixed", async () => {
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

test("reports that an earlier error is fixed by restoring what worked", async () => {
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

test("with --json prints one object a line: ready, then changes and diagnostics", async () => {
  using place = workplace(files);
  const dev = startCli(["dev", "--json"], { cwd: place.path });
  const next = async (): Promise<Record<string, unknown>> => JSON.parse(await dev.line(() => true));
  expect(await next()).toMatchObject({
    type: "ready",
    skills: [{ name: "greeter", tools: ["hello"] }],
    tools: 1,
    durationMs: expect.any(Number),
    diagnostics: [],
  });

  place.write("skills/greeter/tools/hello.ts", "export default (\n");
  expect(await next()).toMatchObject({
    type: "skills.changed",
    failed: [{ name: "greeter", lastGoodServes: true, diagnostics: [{ code: "MODULE_SYNTAX" }] }],
    files: [place.at("skills/greeter/tools/hello.ts")],
  });
  expect(await next()).toMatchObject({ type: "diagnostic", severity: "error", code: "MODULE_SYNTAX" });

  place.write("skills/greeter/tools/hello.ts", toolModule("hello", "Good day"));
  expect(await next()).toMatchObject({ type: "skills.changed", updated: [{ name: "greeter", tools: { updated: ["hello"] } }] });
  dev.interrupt();
  expect(await dev.done).toMatchObject({ code: 0, stderr: "" });
});

test("takes directories as arguments, and waits for one that is not there yet", async () => {
  using place = workplace();
  const dev = startCli(["dev", "elsewhere"], { cwd: place.path, ...terminal });
  expect(await dev.line(() => true)).toMatch(/^elsewhere error SKILLS_DIRECTORY_MISSING/);
  expect(await dev.line(() => true)).toMatch(/^0 skills, 0 tools/);
  place.write("elsewhere/greeter/SKILL.md", skillDocument("greeter"));
  expect(await dev.line(() => true)).toMatch(/\+ greeter {2}added · elsewhere\/greeter/);
  dev.interrupt();
  expect((await dev.done).code).toBe(0);
});

test("with --watch never loads, prints and ends; a fault makes the exit code 1", async () => {
  using place = workplace(files);
  const good = await runCli(["dev", "--watch", "never"], { cwd: place.path });
  expect(good).toMatchObject({ code: 0, stderr: "" });
  expect(good.stdout).toContain("1 skill, 1 tool");
  place.write("skills/greeter/tools/bad.ts", "export default (\n");
  const bad = await runCli(["dev", "--watch", "never"], { cwd: place.path });
  expect(bad.code).toBe(1);
  expect(bad.stdout).toContain("error MODULE_SYNTAX");
});

test("with --watch auto watches only on a terminal", async () => {
  using place = workplace(files);
  expect((await runCli(["dev", "--watch", "auto"], { cwd: place.path })).code).toBe(0);
  const dev = startCli(["dev", "--watch", "auto"], { cwd: place.path, ...terminal });
  await dev.line((line) => line.includes("loaded in"));
  place.write("skills/greeter/tools/bye.ts", toolModule("bye", "Bye"));
  await dev.line((line) => line.includes("added bye"));
  dev.interrupt();
  expect((await dev.done).code).toBe(0);
});

test("uses marks that every terminal has where it is not known to have others", async () => {
  using place = workplace(files);
  const dev = startCli(["dev"], { cwd: place.path, isTTY: true, env: { NO_COLOR: "1", LANG: "C" } });
  await dev.line((line) => line.includes("loaded in"));
  place.write("skills/greeter/tools/hello.ts", "export default (\n");
  expect(await dev.line(() => true)).toMatch(/ x greeter .* - skills/);
  dev.interrupt();
  await dev.done;
});

test("reports a new file that does not load beside working ones, and when it is fixed or removed", async () => {
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
