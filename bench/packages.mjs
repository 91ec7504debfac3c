// Packages: `skillhost add` of a cached package beside npm itself, and verifying a thousand skills.
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { built } from "./support/built.mjs";
import { median } from "./support/measure.mjs";
import { goal, table, title } from "./support/report.mjs";
import { skillName, writeSkills } from "./support/skills.mjs";

const rounds = 7;
const skills = 1000;
const perPackage = 10;
const bin = fileURLToPath(new URL("../dist/cli/bin.js", import.meta.url));
const base = mkdtempSync(join(tmpdir(), "skillhost-bench-"));
const env = {
  ...process.env,
  npm_config_userconfig: join(base, "npmrc"),
  npm_config_cache: join(base, "npm-cache"),
  npm_config_offline: "true",
  npm_config_update_notifier: "false",
  SKILLHOST_HOME: join(base, "home"),
};

function run(command, args, cwd) {
  const begin = performance.now();
  const { status, stderr, stdout } = spawnSync(command, args, { cwd, env, encoding: "utf8" });
  if (status !== 0) throw new Error(`${command} ${args.join(" ")} failed: ${stderr}${stdout}`);
  return performance.now() - begin;
}

/** A tarball of a package with one skill, or with several. */
function pack(name, count) {
  const folder = join(base, "sources", name);
  mkdirSync(join(folder, "skills"), { recursive: true });
  writeFileSync(join(folder, "package.json"), JSON.stringify({ name, version: "1.0.0", files: ["skills"] }));
  writeSkills(join(folder, "skills"), count, "handlers");
  run("npm", ["pack", "--silent", "--pack-destination", base], folder);
  return join(base, `${name}-1.0.0.tgz`);
}

function measureAdd() {
  title("Adding a package that npm's cache has");
  const tarball = pack("single", 1);
  const times = { npm: [], skillhost: [] };
  for (let round = -1; round < rounds; round++) {
    for (const [who, work] of [
      ["npm", (cwd) => run("npm", ["install", tarball, "--ignore-scripts", "--no-audit", "--no-fund"], cwd)],
      ["skillhost", (cwd) => run(process.execPath, [bin, "add", tarball, "--yes"], cwd)],
    ]) {
      const project = join(base, `project-${who}-${round}`);
      mkdirSync(project);
      writeFileSync(join(project, "package.json"), '{"name":"project"}');
      const took = work(project);
      // The first fills the caches of both.
      if (round >= 0) times[who].push(took);
    }
  }
  table(
    Object.entries(times).map(([who, all]) => ({
      who,
      "median ms": median(all),
      "best ms": Math.min(...all),
      "worst ms": Math.max(...all),
    })),
  );
  goal("add over npm's own time", median(times.skillhost) - median(times.npm), 500, "ms");
  console.log(`\nMedians of ${rounds} runs each, in turn; each in a process and a project of its own.`);
}

function measureVerify() {
  title(`Verifying ${skills} skills, half of them in packages`);
  const project = join(base, "many");
  mkdirSync(join(project, "skills"), { recursive: true });
  writeSkills(join(project, "skills"), skills / 2, "handlers");
  const dependencies = {};
  for (let at = 0; at < skills / 2 / perPackage; at++) {
    const name = `pack-${String(at).padStart(3, "0")}`;
    const folder = join(project, "node_modules", name);
    mkdirSync(join(folder, "skills"), { recursive: true });
    writeFileSync(join(folder, "package.json"), JSON.stringify({ name, version: "1.0.0" }));
    writeSkills(join(folder, "skills"), perPackage, "handlers");
    for (let index = 0; index < perPackage; index++) {
      const from = join(folder, "skills", skillName(index));
      cpSync(from, join(folder, "skills", `of-${at}-${index}`), { recursive: true });
      rmSync(from, { recursive: true });
    }
    dependencies[name] = "1.0.0";
  }
  writeFileSync(join(project, "package.json"), JSON.stringify({ name: "many", dependencies }));
  const lock = run(process.execPath, [bin, "lock"], project);
  const times = Array.from({ length: rounds }, () => run(process.execPath, [bin, "verify"], project));
  const version = Array.from({ length: rounds }, () => run(process.execPath, [bin, "--version"], project));
  table([
    { what: "lock, the first time", "median ms": lock, "worst ms": lock },
    { what: "verify", "median ms": median(times), "worst ms": Math.max(...times) },
    { what: "the command line alone (--version)", "median ms": median(version), "worst ms": Math.max(...version) },
  ]);
  goal(`verify ${skills} skills`, median(times), 2000, "ms");
}

await built("packages/compare-locks.js");
try {
  measureAdd();
  measureVerify();
} finally {
  rmSync(base, { recursive: true, force: true });
}
