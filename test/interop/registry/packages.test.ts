import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { buildPackage } from "../../built-package.ts";
import { type Registry, startRegistry } from "./registry.ts";

let registry: Registry;
let bin: string;
let folders = 0;

beforeAll(async () => {
  registry = await startRegistry();
  bin = buildPackage().bin;
});
afterAll(() => registry?.[Symbol.asyncDispose]());

interface Run {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

const environment = (): NodeJS.ProcessEnv => ({
  PATH: process.env["PATH"],
  HOME: registry.scratch,
  LANG: "C.UTF-8",
  SKILLHOST_TRUST: "1",
  ...registry.env,
});

function run(cwd: string, args: readonly string[], transcript?: string[]): Run {
  const { status, stdout, stderr } = spawnSync(process.execPath, [bin, ...args], { cwd, env: environment(), encoding: "utf8" });
  transcript?.push(
    `$ skillhost ${args.map((arg) => (/^[\w@./:^-]+$/.test(arg) ? arg : `'${arg}'`)).join(" ")}`,
    `${stderr}${stdout}`.trimEnd(),
  );
  if (status !== 0) transcript?.push(`(exit code ${status})`);
  transcript?.push("");
  return { code: status, stdout, stderr };
}

function start(cwd: string, args: readonly string[]): ChildProcess {
  return spawn(process.execPath, [bin, ...args], { cwd, env: environment(), stdio: "ignore" });
}

function ended(child: ChildProcess): Promise<number | null> {
  return new Promise((resolve) => child.once("exit", resolve));
}

/** A new folder with these files. */
function folder(files: Readonly<Record<string, string>> = {}): string {
  const path = join(registry.scratch, `folder-${++folders}`);
  mkdirSync(path);
  write(path, files);
  return path;
}

function write(path: string, files: Readonly<Record<string, string>>): void {
  for (const [file, text] of Object.entries(files)) {
    mkdirSync(dirname(join(path, file)), { recursive: true });
    writeFileSync(join(path, file), text);
  }
}

const document = (name: string): string =>
  `---\nname: ${name}\ndescription: Greets people by name. Use it when the user says hello.\n---\n\nGreet people.\n`;

const tool = (
  name: string,
  word: string,
  description = "Says hello to a person by name.",
): string => `import { defineTool } from "skillhost";

export default defineTool("${name}", {
  description: "${description}",
  parameters: { type: "object", properties: { who: { type: "string", description: "Whom to greet." } }, required: ["who"] },
  handler: ({ who }: { who: string }) => \`${word} \${who}\`,
});
`;

/** The folder of a skill package. */
function skill(name: string, version: string, files: Readonly<Record<string, string>> = {}, fields: object = {}): string {
  const manifest = {
    name,
    version,
    description: "For a test.",
    license: "MIT",
    keywords: ["agent-skill"],
    engines: { skillhost: ">=0.1" },
    ...fields,
  };
  return folder({
    "package.json": `${JSON.stringify(manifest, null, 2)}\n`,
    [`skills/${name}/SKILL.md`]: document(name),
    "README.md": `# ${name}\n`,
    ...files,
  });
}

function publish(path: string): void {
  const { code, stderr, stdout } = run(path, ["publish", "--yes", "--quiet"]);
  expect([code, code === 0 ? "" : `${stdout}${stderr}`]).toEqual([0, ""]);
}

/** The files of an installed package with their digests. */
function digests(path: string): Record<string, string> {
  const files = readdirSync(path, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const all = files.map((entry): [string, string] => {
    const file = join(entry.parentPath, entry.name);
    return [file.slice(path.length + 1), createHash("sha256").update(readFileSync(file)).digest("hex")];
  });
  return Object.fromEntries(all.sort(([a], [b]) => (a < b ? -1 : 1)));
}

test("a skill is packed, published, added to an empty project, called, updated, verified and removed", () => {
  const transcript: string[] = [];
  const greeter = join(folder(), "greeter");
  write(greeter, {
    "SKILL.md": document("greeter"),
    "tools/greet.ts": tool("greet", "Hello,"),
    ".env": "SECRET=1",
    "README.md": "# Greeter\n",
  });
  transcript.push("# A skill's folder: SKILL.md, tools/greet.ts, README.md, and a .env that must not leave", "");
  expect(run(greeter, ["pack"], transcript)).toMatchObject({ code: 0 });
  expect(readdirSync(greeter).sort()).toEqual([".env", "README.md", "SKILL.md", "greeter-1.0.0.tgz", "package.json", "tools"]);
  expect(execFileSync("tar", ["-tzf", join(greeter, "greeter-1.0.0.tgz")], { encoding: "utf8" })).not.toContain(".env");
  expect(run(greeter, ["publish", "--dry-run"], transcript).stdout).toContain("would be published");
  expect(run(greeter, ["publish", "--yes"], transcript).code).toBe(0);
  expect(run(greeter, ["publish", "--yes"], transcript)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("is already published"),
  });

  transcript.push("# An empty project", "");
  const project = folder();
  expect(run(project, ["add", "greeter"], transcript).code).toBe(1);
  expect(readdirSync(project).filter((name) => name !== "node_modules")).toEqual([]);
  expect(run(project, ["add", "greeter", "--yes"], transcript).code).toBe(0);
  expect(run(project, ["call", "greet", '{"who":"Ada"}', "--yes"], transcript).stdout.trim()).toBe("Hello, Ada");
  expect(run(project, ["list"], transcript).stdout).toContain("of greeter@1.0.0");
  expect(run(project, ["verify"], transcript).code).toBe(0);

  transcript.push("# Version 1.1.0, whose tool says something else", "");
  const manifest = readFileSync(join(greeter, "package.json"), "utf8");
  write(greeter, {
    "package.json": manifest.replace("1.0.0", "1.1.0"),
    "tools/greet.ts": tool("greet", "Good day,", "Says good day to a person, politely."),
  });
  expect(run(greeter, ["publish", "--yes", "--quiet"], transcript).code).toBe(0);
  const updated = run(project, ["update", "greeter", "--yes"], transcript);
  expect(updated.stdout).toContain("- description: Says hello to a person by name.");
  expect(updated.stdout).toContain("+ description: Says good day to a person, politely.");
  expect(run(project, ["call", "greet", '{"who":"Ada"}', "--yes"], transcript).stdout.trim()).toBe("Good day, Ada");
  expect(run(project, ["verify"], transcript).code).toBe(0);

  transcript.push("# One byte of an installed file is changed", "");
  const file = join(project, "node_modules/greeter/tools/greet.ts");
  writeFileSync(file, readFileSync(file, "utf8").replace("Good", "Goot"));
  expect(run(project, ["verify"], transcript)).toMatchObject({
    code: 1,
    stdout: expect.stringContaining("tools/greet.ts has changed since it was locked"),
  });
  expect(run(project, ["ci"], transcript).code).toBe(1);
  transcript.push("# node_modules is deleted", "");
  rmSync(join(project, "node_modules"), { recursive: true });
  expect(run(project, ["ci"], transcript).code).toBe(0);
  expect(run(project, ["verify"], transcript).code).toBe(0);
  expect(run(project, ["remove", "greeter"], transcript).code).toBe(0);
  expect(run(project, ["list"], transcript).stdout).toContain("0 skills");
  const to = process.env["SKILLHOST_TRANSCRIPT"];
  if (to !== undefined) writeFileSync(to, transcript.join("\n").replaceAll(registry.scratch, "…"));
});

test("a packed skill that npm installs works from node_modules alone", () => {
  publish(skill("by-npm", "1.0.0", { "skills/by-npm/tools/hi.ts": tool("hi", "Hi") }));
  const project = folder({ "package.json": '{ "skillhost": { "packages": ["by-npm"] } }' });
  execFileSync("npm", ["install", "by-npm", "--ignore-scripts", "--no-audit", "--no-fund"], {
    cwd: project,
    env: environment(),
    stdio: "pipe",
  });
  expect(run(project, ["call", "hi", '{"who":"Ada"}', "--yes"]).stdout.trim()).toBe("Hi Ada");
  expect(run(project, ["lock"]).code).toBe(0);
  expect(run(project, ["verify"]).code).toBe(0);
});

test("npm changes nothing in an added package, and an installation by npm verifies", () => {
  publish(skill("base", "1.0.0"));
  publish(
    skill(
      "top",
      "1.0.0",
      { "cli.js": "#!/usr/bin/env node\n", "skills/top/.gitignore": "y\n" },
      { dependencies: { base: "^1.0.0" }, bin: { topper: "cli.js" }, files: ["skills", "cli.js"] },
    ),
  );
  const project = folder();
  expect(run(project, ["add", "top", "--yes"]).stdout).toContain("base@1.0.0");
  expect(existsSync(join(project, "node_modules/.bin/topper"))).toBe(true);
  const npm = (...args: string[]): string => execFileSync("npm", args, { cwd: project, env: environment(), encoding: "utf8" });
  expect(npm("ls", "--all")).toContain("base@1.0.0");
  expect(npm("install", "--ignore-scripts", "--no-audit", "--no-fund")).toContain("up to date");
  npm("ci", "--ignore-scripts", "--no-audit", "--no-fund");
  expect(run(project, ["verify"])).toMatchObject({ code: 0 });
});

test("only the version that the project itself depends on provides its skill", () => {
  publish(skill("twice", "1.0.0", { "skills/twice/tools/which.ts": tool("which", "one") }));
  publish(skill("twice", "2.0.0", { "skills/twice/tools/which.ts": tool("which", "two") }));
  publish(skill("needs-old", "1.0.0", {}, { dependencies: { twice: "1.0.0" } }));
  const project = folder();
  expect(run(project, ["add", "twice@2.0.0", "needs-old", "--yes"]).code).toBe(0);
  expect(existsSync(join(project, "node_modules/needs-old/node_modules/twice/package.json"))).toBe(true);
  expect(run(project, ["call", "which", '{"who":"?"}', "--yes"]).stdout.trim()).toBe("two ?");
  expect(run(project, ["list"]).stdout).toContain("2 skills");
});

test("a tarball that the registry changed after it was locked is refused by ci", () => {
  publish(skill("shifty", "1.0.0", { "skills/shifty/tools/do.ts": tool("do", "honest") }));
  const project = folder();
  expect(run(project, ["add", "shifty", "--yes"]).code).toBe(0);
  const changed = folder();
  cpSync(join(registry.scratch, "storage/shifty/shifty-1.0.0.tgz"), join(changed, "old.tgz"));
  const other = skill("shifty", "1.0.0", { "skills/shifty/tools/do.ts": tool("do", "shifty") });
  expect(run(other, ["pack", "--quiet", "--out", changed]).code).toBe(0);
  cpSync(join(changed, "shifty-1.0.0.tgz"), join(registry.scratch, "storage/shifty/shifty-1.0.0.tgz"));
  rmSync(join(project, "node_modules"), { recursive: true });
  rmSync(join(registry.scratch, "npm-cache"), { recursive: true });
  const { code, stderr } = run(project, ["ci"]);
  expect([code, stderr]).toEqual([1, expect.stringContaining("the registry serves different bytes than the lock file records")]);
  expect(existsSync(join(project, "node_modules/shifty"))).toBe(false);
});

test("a skill is published, signed, published again, and added where packages must be signed", () => {
  const signer = join(folder(), "signed-greeter");
  write(signer, {
    "SKILL.md": document("signed-greeter"),
    "tools/greet.ts": tool("greet", "Hello,"),
    ".env": "SECRET=1",
    ".npmrc": "//registry.example/:_authToken=abc",
    "test/greet.test.ts": "",
    "node_modules/other/index.js": "",
  });
  publish(signer);
  expect(run(signer, ["keys", "new", "alice"]).code).toBe(0);
  const manifest = join(signer, "package.json");
  writeFileSync(manifest, readFileSync(manifest, "utf8").replace("1.0.0", "1.1.0"));
  expect(run(signer, ["sign", "."]).stdout).toContain(
    "Not signed, because these files are not packed: .env, .npmrc, node_modules/, test/.",
  );
  publish(signer);
  const project = folder({ "skillhost.json": '{ "trust": { "policy": { "package": "require" } } }' });
  const added = run(project, ["add", "signed-greeter", "--yes"]);
  expect([added.code, added.stderr]).toEqual([0, expect.anything()]);
  expect(readdirSync(join(project, "node_modules/signed-greeter")).sort()).toEqual(["SKILL.md", "package.json", "skill.sig.json", "tools"]);
  expect(run(project, ["list"]).stdout).toContain("signed by alice");
  expect(run(project, ["call", "greet", '{"who":"Ada"}', "--yes"]).stdout.trim()).toBe("Hello, Ada");
});

test("two concurrent commands wait for each other, and both succeed", async () => {
  publish(skill("left", "1.0.0"));
  publish(skill("right", "1.0.0"));
  const project = folder();
  const codes = await Promise.all(["left", "right"].map((name) => ended(start(project, ["add", name, "--yes"]))));
  expect(codes).toEqual([0, 0]);
  expect(Object.keys(JSON.parse(readFileSync(join(project, "package.json"), "utf8")).dependencies)).toEqual(["left", "right"]);
  expect(run(project, ["verify"]).stdout).toContain("2 skills (2 packages");
});

test("a command that is killed at any moment leaves no package half installed, and the next one continues", async () => {
  const files = Object.fromEntries(Array.from({ length: 300 }, (_, n) => [`skills/sturdy/references/${n}.md`, `Page ${n}.\n`.repeat(20)]));
  publish(skill("sturdy", "1.0.0", files));
  const newer = skill("sturdy", "1.1.0", { ...files, "skills/sturdy/references/1.md": "Another page.\n" });
  publish(newer);
  const project = folder();
  expect(run(project, ["add", "sturdy@1.0.0", "--yes"]).code).toBe(0);
  // The range must allow the update.
  const manifest = join(project, "package.json");
  writeFileSync(manifest, readFileSync(manifest, "utf8").replace('"1.0.0"', '"^1.0.0"'));
  const clean = folder();
  cpSync(project, clean, { recursive: true });
  const at = join(project, "node_modules/sturdy");
  const old = JSON.stringify(digests(at));
  expect(run(clean, ["update", "--yes"]).code).toBe(0);
  const fresh = JSON.stringify(digests(join(clean, "node_modules/sturdy")));
  const moments = ["lock", "staging", "staged", "journal", "journal", "gone"] as const;
  const seen: string[] = [];
  const look = (): string => (existsSync(at) ? JSON.stringify(digests(at)) : "absent");
  for (const [round, moment] of [...moments, ...moments].entries()) {
    const child = start(project, ["update", "--yes"]);
    const exit = ended(child);
    await killedAt(child, moment, project);
    const wasKilled = (await exit) === null;
    // A reader sees one complete version, or between two renames no version and a journal.
    const now = look();
    seen.push(`${moment}: ${wasKilled ? "killed" : "done"}, ${now === old ? "old" : now === fresh ? "new" : now}`);
    if (now === "absent") expect([seen, existsSync(join(project, "node_modules/.skillhost-journal.json"))]).toEqual([seen, true]);
    else expect([old, fresh], seen.join("; ")).toContain(now);
    // The next command, reading or installing, finds either version with its own lock.
    if (round % 2 === 0) {
      const { code, stdout, stderr } = run(project, ["verify"]);
      expect([seen, code, code === 0 ? "" : `${stdout}${stderr}`]).toEqual([seen, 0, ""]);
      expect([old, fresh], seen.join("; ")).toContain(look());
    }
    if (!wasKilled) break;
  }
  const last = run(project, ["update", "--yes"]);
  expect([last.code, seen]).toEqual([0, seen]);
  expect(JSON.stringify(digests(at))).toBe(fresh);
  expect(run(project, ["verify"]).code).toBe(0);
  expect(readdirSync(join(project, "node_modules")).filter((name) => name.startsWith(".skillhost-"))).toEqual([]);
  expect(seen.filter((line) => line.includes("killed")).length).toBeGreaterThan(0);
});

/** Kills a process when it reaches the given step, or lets it end. */
async function killedAt(child: ChildProcess, moment: string, project: string): Promise<void> {
  const modules = join(project, "node_modules");
  const names = (): string[] => readdirSync(modules).filter((name) => /^\.skillhost-[0-9a-f]/.test(name));
  const reached: Record<string, () => boolean> = {
    lock: () => existsSync(join(modules, ".skillhost.lock")),
    staging: () => names().length > 0,
    staged: () => names().some((name) => existsSync(join(modules, name, "node_modules/sturdy/package.json"))),
    journal: () => existsSync(join(modules, ".skillhost-journal.json")),
    gone: () => names().some((name) => existsSync(join(modules, name, "old-0"))),
  };
  while (child.exitCode === null && !reached[moment]!()) await new Promise(setImmediate);
  child.kill("SIGKILL");
}
