// Packs the tarball, lints it, installs it into an empty project, and uses it there as its users will.
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, sep } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const scratch = mkdtempSync(join(tmpdir(), "skillhost-package-"));
// Trusted folders and caches of this run are not the user's.
process.env["SKILLHOST_HOME"] = join(scratch, "home");
const windows = process.platform === "win32";

function run(title, command, args, cwd = root) {
  const output = execFileSync(command, args, { cwd, encoding: "utf8", shell: windows, stdio: ["ignore", "pipe", "inherit"] });
  console.log(`${title}: ok`);
  return output;
}

function expectEqual(title, actual, expected) {
  if (actual !== expected) throw new Error(`${title}: expected ${expected}, got ${actual}`);
  console.log(`${title}: ok`);
}

// What users download beside the package itself; npm's own libraries are part of it. Raise it only with a reason.
const mostMegabytes = 60;
const mostFiles = 3_000;
// 1.3 MB before the page of the inspector, whose own limit is in bundle-inspector.mjs, and 1.6 before models over WebSocket, todos and spans.
const mostPackedBytes = 1.7e6;

/** Says how large the dependencies are, the largest by name, and fails when they have grown too large. */
function measureInstalled(folder) {
  const sizes = new Map();
  let files = 0;
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    files += 1;
    const file = join(entry.parentPath, entry.name);
    const name = file
      .slice(folder.length + 1)
      .split(sep)
      .slice(0, file.startsWith(join(folder, "@")) ? 2 : 1)
      .join("/");
    sizes.set(name, (sizes.get(name) ?? 0) + statSync(file).size);
  }
  const own = sizes.get("skillhost") ?? 0;
  sizes.delete("skillhost");
  const megabytes = (bytes) => (bytes / 1024 / 1024).toFixed(1);
  const all = [...sizes.values()].reduce((sum, size) => sum + size, 0);
  const largest = [...sizes].sort(([, a], [, b]) => b - a).slice(0, 8);
  console.log(
    `installed: ${sizes.size} dependencies of ${megabytes(all)} MB, ${mostMegabytes} at most; skillhost itself ${megabytes(own)} MB`,
  );
  console.log(`  ${largest.map(([name, size]) => `${name} ${megabytes(size)}`).join(", ")}`);
  console.log(`  ${files} files with skillhost itself, ${mostFiles} at most`);
  if (files > mostFiles) throw new Error(`An installation has more than ${mostFiles} files.`);
  if (all > mostMegabytes * 1024 * 1024) throw new Error(`The dependencies are over ${mostMegabytes} MB.`);
}

/** Sources and maps are not packed: names of functions and lines of dist/ are enough to follow a stack trace. */
function checkPacked({ size, files }) {
  const surplus = files
    .map(({ path }) => path)
    .filter((path) => /\.map$|^(?:src|build|test)\/|(?<!\.d)\.ts$/.test(path) && !/^(?:skills|examples)\//.test(path));
  console.log(`packed: ${files.length} files, ${(size / 1e6).toFixed(2)} MB, ${mostPackedBytes / 1e6} at most`);
  if (surplus.length > 0) throw new Error(`The tarball contains files that users do not need: ${surplus.slice(0, 5).join(", ")}`);
  if (size > mostPackedBytes) throw new Error(`The tarball is larger than ${mostPackedBytes / 1e6} MB.`);
}

try {
  run("build", "npm", ["run", "--silent", "build"]);
  const packed = JSON.parse(run("pack", "npm", ["pack", "--json", "--pack-destination", scratch]))[0];
  const tarball = join(scratch, packed.filename);
  checkPacked(packed);
  run("publint", join(root, "node_modules/.bin/publint"), [tarball, "--strict"]);
  // All ways of TypeScript to resolve modules. The package has only ES modules, which `require` loads in every supported Node.js.
  run("are the types wrong", join(root, "node_modules/.bin/attw"), [
    tarball,
    "--profile",
    "strict",
    "--ignore-rules",
    "cjs-resolves-to-esm",
  ]);

  const project = join(scratch, "project");
  mkdirSync(join(project, "skills/greeting/tools"), { recursive: true });
  writeFileSync(join(project, "package.json"), JSON.stringify({ name: "project", private: true, type: "module" }));
  writeFileSync(join(project, "skills/greeting/SKILL.md"), "---\nname: greeting\ndescription: Greets people by name.\n---\nBe kind.\n");
  writeFileSync(
    join(project, "skills/greeting/tools/greet.ts"),
    `import { defineTool } from "skillhost";\nexport default defineTool("greet", { description: "Greets.", handler: ({ name }: Record<string, unknown>) => \`Hello \${name}\` });\n`,
  );
  run("install", "npm", ["install", "--no-audit", "--no-fund", "--omit=dev", tarball], project);
  measureInstalled(join(project, "node_modules"));
  const bin = join(project, "node_modules/.bin/skillhost");
  expectEqual(
    "packed command",
    run("call", bin, ["--skills", "skills", "call", "greet", '{"name":"Ada"}', "--yes"], project).trim(),
    "Hello Ada",
  );
  writeFileSync(
    join(project, "use.mjs"),
    `import { approveAll, createHost, HostError } from "skillhost";
     import { defineTool } from "skillhost/define";
     import { createTestHost } from "skillhost/testing";
     const host = await createHost({ skillDirectories: ["./skills"], watch: false });
     const session = await host.createSession({ onPermissionRequest: approveAll, persist: false });
     const result = await session.callTool("greet", { name: "Grace" });
     await host.close();
     console.log(result.textResultForLlm, typeof createTestHost, typeof defineTool, new HostError("X", "y").code);`,
  );
  expectEqual("packed library", run("use", process.execPath, ["use.mjs"], project).trim(), "Hello Grace function function X");
  const bundled = JSON.parse(
    run("bundled skills", bin, ["list", "--json", "--skills", join(project, "node_modules/skillhost/skills")], project),
  );
  if (!(bundled.data.skills.length >= 7)) throw new Error(`The package brings ${bundled.data.skills.length} skills.`);

  // Npm's libraries are part of dist/, so the commands for packages are run from there: pack a skill, add the package, remove it.
  const skill = join(scratch, "greeting");
  cpSync(join(project, "skills/greeting"), skill, { recursive: true });
  const packedSkill = JSON.parse(run("pack a skill", bin, ["pack", skill, "--out", scratch, "--json"], project)).data;
  const user = join(scratch, "user");
  mkdirSync(user);
  writeFileSync(join(user, "package.json"), JSON.stringify({ name: "user", private: true }));
  run("add it", bin, ["add", join(scratch, packedSkill.fileName), "--yes"], user);
  const { length } = JSON.parse(run("list it", bin, ["list", "--json", "--trust"], user)).data.skills;
  run("verify it", bin, ["verify"], user);
  run("remove it", bin, ["remove", packedSkill.name], user);
  const left = JSON.parse(run("list again", bin, ["list", "--json", "--trust"], user)).data.skills.length;
  expectEqual("skills before and after", `${length}, ${left}`, "1, 0");

  // As "npm create skillhost my-skills" does it, with packages that are not published yet.
  const creator = JSON.parse(
    run("pack create-skillhost", "npm", ["pack", "--json", "--pack-destination", scratch, "./create-skillhost"]),
  )[0];
  const start = join(scratch, "start");
  mkdirSync(start);
  run("install create-skillhost", "npm", ["install", "--no-audit", "--no-fund", join(scratch, creator.filename), tarball], start);
  run("create a project", join(start, "node_modules/.bin/create-skillhost"), ["my-skills", "--skill", "first-skill"], start);
  const created = join(start, "my-skills");
  run("install in it", "npm", ["install", "--no-audit", "--no-fund", tarball], created);
  for (const script of ["check", "typecheck", "test"]) run(`npm run ${script} in it`, "npm", ["run", "--silent", script], created);
  expectEqual(
    "call its tool",
    run("call", join(created, "node_modules/.bin/skillhost"), ["call", "first_skill", "--name", "Ada", "--yes"], created).trim(),
    "Hello, Ada!",
  );
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
