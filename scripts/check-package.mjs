// Packs the tarball, lints it, installs it into an empty project, and uses it there as its users will.
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const scratch = mkdtempSync(join(tmpdir(), "skillhost-package-"));
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

try {
  run("build", "npm", ["run", "--silent", "build"]);
  const tarball = join(scratch, JSON.parse(run("pack", "npm", ["pack", "--json", "--pack-destination", scratch]))[0].filename);
  run("publint", join(root, "node_modules/.bin/publint"), [tarball, "--strict"]);
  run("are the types wrong", join(root, "node_modules/.bin/attw"), [tarball, "--profile", "esm-only"]);

  const project = join(scratch, "project");
  mkdirSync(join(project, "skills/greeting/tools"), { recursive: true });
  writeFileSync(join(project, "package.json"), JSON.stringify({ name: "project", private: true, type: "module" }));
  writeFileSync(join(project, "skills/greeting/SKILL.md"), "---\nname: greeting\ndescription: Greets people by name.\n---\nBe kind.\n");
  writeFileSync(
    join(project, "skills/greeting/tools/greet.ts"),
    `import { defineTool } from "skillhost";\nexport default defineTool("greet", { description: "Greets.", handler: ({ name }: Record<string, unknown>) => \`Hello \${name}\` });\n`,
  );
  run("install", "npm", ["install", "--no-audit", "--no-fund", "--omit=dev", tarball], project);
  const bin = join(project, "node_modules/.bin/skillhost");
  expectEqual("packed command", run("call", bin, ["call", "greet", '{"name":"Ada"}', "--yes"], project).trim(), "Hello Ada");
  writeFileSync(
    join(project, "use.mjs"),
    `import { approveAll, createHost, HostError } from "skillhost";
     import { createTestHost } from "skillhost/testing";
     const host = await createHost({ watch: false });
     const session = await host.createSession({ onPermissionRequest: approveAll, persist: false });
     const result = await session.callTool("greet", { name: "Grace" });
     await host.close();
     console.log(result.textResultForLlm, typeof createTestHost, new HostError("X", "y").code);`,
  );
  expectEqual("packed library", run("use", process.execPath, ["use.mjs"], project).trim(), "Hello Grace function X");
  const bundled = JSON.parse(
    run("bundled skills", bin, ["list", "--json", "--skills", join(project, "node_modules/skillhost/skills")], project),
  );
  if (!(bundled.data.skills.length >= 7)) throw new Error(`The package brings ${bundled.data.skills.length} skills.`);
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
