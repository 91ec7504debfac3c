import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { skillDocument, toolModule } from "../cli/run-cli.ts";
import { addLinter, installed, json, lintTool, place, read, run, skillTarball, useProjects } from "./project-kit.ts";

useProjects();

test("verify and ci report a changed byte, an added file and a removed file, and ci installs nothing then", async () => {
  await addLinter();
  const at = "project/node_modules/linter";
  writeFileSync(place.at(`${at}/tools/lint.json`), JSON.stringify({ ...lintTool, description: "Checks a file, and mails it." }));
  writeFileSync(place.at(`${at}/more.md`), "more");
  rmSync(place.at(`${at}/SKILL.md`));
  const verified = await json(["verify"]);
  expect([verified.code, verified.error?.code]).toEqual([1, "PACKAGES_DRIFT"]);
  expect(
    (verified.data["drift"] as { subject: string; message: string }[]).map(({ subject, message }) => `${subject}: ${message}`),
  ).toEqual(
    expect.arrayContaining([
      "linter SKILL.md: is missing",
      "linter more.md: is not in skillhost-lock.json",
      "linter tools/lint.json: has changed since it was locked",
    ]),
  );
  expect((await json(["ci"])).code).toBe(1);
});

test("a tool that is defined differently is shown by its lines", async () => {
  await addLinter();
  writeFileSync(
    place.at("project/node_modules/linter/tools/lint.json"),
    JSON.stringify({ ...lintTool, description: "Checks a file, and mails it." }),
  );
  const { stdout, code } = await run(["verify"]);
  expect(code).toBe(1);
  expect(stdout).toContain(
    "linter lint is defined differently\n    - description: Checks a file.\n    + description: Checks a file, and mails it.",
  );
  const locked = await run(["lock"]);
  expect(locked.stdout).toContain("+ description: Checks a file, and mails it.");
  expect((await run(["verify"])).code).toBe(0);
});

test("ci installs what the locks say into an empty node_modules", async () => {
  await addLinter();
  rmSync(place.at("project/node_modules"), { recursive: true });
  const answer = await json(["ci"]);
  expect([answer.code, answer.data["installed"]]).toEqual([0, ["linter@1.0.0"]]);
  expect((await run(["verify"])).code).toBe(0);
});

test.each<[string, () => void, string]>([
  [
    "package.json asks for something else",
    () => place.write("project/package.json", '{"name":"project","dependencies":{"linter":"^2.0.0"}}'),
    "package.json dependencies linter",
  ],
  ["the lock knows another version", () => edit("project/skillhost-lock.json", '"version": "1.0.0"', '"version": "1.0.1"'), "linter"],
  [
    "the lock knows another file",
    () => edit("project/skillhost-lock.json", /"SKILL.md": "sha256:[0-9a-f]{4}/, '"SKILL.md": "sha256:0000'),
    "linter SKILL.md",
  ],
  [
    "the lock knows another tool",
    () => edit("project/skillhost-lock.json", /"lint": \{\s+"signature": "[0-9a-f]{4}/, '"lint": { "signature": "0000'),
    "linter lint",
  ],
  ["a skill of the project is not in the lock", () => place.write("project/skills/own/SKILL.md", skillDocument("own")), "skills/own"],
])("ci fails and installs nothing when %s", async (_what, change, subject) => {
  await addLinter();
  rmSync(place.at("project/node_modules"), { recursive: true });
  change();
  const answer = await json(["ci"]);
  expect([answer.code, answer.error?.code]).toEqual([1, "PACKAGES_DRIFT"]);
  expect((answer.data["drift"] as { subject: string }[]).map((drift) => drift.subject)).toContain(subject);
  expect(installed()).toEqual([]);
});

test("ci refuses a tarball that is not the one of the lock", async () => {
  await addLinter();
  rmSync(place.at("project/node_modules"), { recursive: true });
  rmSync(place.at("npm-cache"), { recursive: true, force: true });
  skillTarball("1.0.0", { ...lintTool, description: "Other bytes." });
  const answer = await json(["ci"]);
  expect([answer.code, answer.error?.code]).toEqual([1, "PACKAGE_INTEGRITY"]);
  expect(installed()).toEqual([]);
});

test("the project's own skills are locked, and code is run only when that is asked for", async () => {
  place.write("project/skills/own/SKILL.md", skillDocument("own"));
  place.write("project/skills/own/tools/plain.ts", toolModule("plain", "Hello"));
  place.write(
    "project/skills/own/tools/made.ts",
    `import { writeFileSync } from "node:fs";
import { defineTool } from "skillhost";
writeFileSync(${JSON.stringify(place.at("ran"))}, "");
const name = ["ma", "de"].join("");
export default defineTool("made", { description: \`Made by \${name}.\`, handler: () => "" });
`,
  );
  expect((await run(["lock"])).code).toBe(0);
  expect(existsSync(place.at("ran"))).toBe(false);
  const unrun = JSON.parse(read("project/skillhost-lock.json")).skills["skills/own"].tools;
  expect(unrun.made).toEqual({ definition: ["(computed: known when its module runs)"] });
  expect((await run(["verify"])).code).toBe(0);
  expect((await run(["lock", "--run"])).code).toBe(0);
  expect(existsSync(place.at("ran"))).toBe(true);
  const { tools } = JSON.parse(read("project/skillhost-lock.json")).skills["skills/own"];
  expect(tools.made).toMatchObject({ signature: expect.stringMatching(/^[0-9a-f]{64}$/), definition: ["description: Made by made."] });
  // What is read without running is what running gives.
  expect(tools.plain).toEqual(unrun.plain);
  expect((await run(["verify", "--run"])).code).toBe(0);
});

test.each(["[]", "{", '{"lockfileVersion":2}', '{"lockfileVersion":1,"packages":{"x":7}}', '{"lockfileVersion":1,"more":{}}', "\0"])(
  "a lock that is %j is an error that says what to do",
  async (text) => {
    place.write("project/skillhost-lock.json", text);
    const answer = await json(["verify"]);
    expect([answer.code, answer.error?.code, answer.error?.message]).toEqual([
      1,
      "PACKAGES_LOCK",
      expect.stringContaining('"skillhost lock"'),
    ]);
  },
);

test.each([
  "node_modules/../../outside",
  "node_modules/linter/../../../outside",
  "node_modules//outside",
  "node_modules/a\\\\..\\\\..\\\\outside",
])("a package-lock.json with a package at %s moves nothing", async (path) => {
  await addLinter();
  place.write("outside/keep.txt", "keep");
  const lock = JSON.parse(read("project/package-lock.json"));
  lock.packages[path] = { version: "1.0.0" };
  place.write("project/package-lock.json", JSON.stringify(lock));
  for (const command of [["ci"], ["remove", "linter"], ["add", skillTarball("1.1.0"), "--yes"]]) {
    const answer = await json(command);
    expect([answer.code, answer.error?.code]).toEqual([1, "PACKAGES_LOCK"]);
  }
  expect(read("outside/keep.txt")).toBe("keep");
});

test("without a lock there is nothing to verify or to install from", async () => {
  expect((await json(["verify"])).error?.code).toBe("PACKAGES_LOCK");
  expect((await json(["ci"])).error?.code).toBe("PACKAGES_LOCK");
  expect((await json(["remove", "linter"])).error?.code).toBe("PACKAGE_UNKNOWN");
  mkdirSync(place.at("project/node_modules"), { recursive: true });
  expect((await run(["update"])).stdout).toBe("No installed package contains skills.\n");
});

function edit(path: string, from: string | RegExp, to: string): void {
  const before = read(path);
  const after = before.replace(from, to);
  expect(after).not.toBe(before);
  place.write(path, after);
}
