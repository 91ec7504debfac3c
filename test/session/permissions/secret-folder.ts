import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { patience } from "../../slowness.ts";

/** The content of every secret file. */
export const marker = "TOPMARKER4711";

/** A project with a secret inside and beside it, and a home folder with another one. */
export interface SecretFolder extends Disposable {
  readonly project: string;
  readonly home: string;
  /** Restores the initial state. */
  reset(): void;
  /** The output of a line that bash runs in the project. */
  run(line: string): string;
}

export function makeSecretFolder(): SecretFolder {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "shell-secrets-")));
  const [project, home] = [join(root, "project"), join(root, "home")];
  const fill = (): void => {
    rmSync(project, { recursive: true, force: true });
    rmSync(home, { recursive: true, force: true });
    for (const folder of ["secret", "src/deep", "docs", "dist", "tools"]) mkdirSync(join(project, folder), { recursive: true });
    mkdirSync(join(home, ".ssh"), { recursive: true });
    writeFileSync(join(project, "secret/key"), `${marker}\n`);
    writeFileSync(join(home, ".ssh/id"), `${marker}\n`);
    writeFileSync(join(project, "src/a.ts"), "export const a = 1; // TODO\n");
    writeFileSync(join(project, "src/deep/b.ts"), "export const b = 2;\n");
    writeFileSync(join(project, "docs/readme.md"), "# Read me\n");
    writeFileSync(join(project, "package.json"), '{ "name": "project", "scripts": { "test": "echo tested" } }\n');
    writeFileSync(join(project, "list.txt"), "secret/key\n");
    writeFileSync(join(project, "list0"), "secret/key\0");
    symlinkSync("../secret", join(project, "docs/way"));
    symlinkSync("secret/key", join(project, "alias"));
    symlinkSync("/proc/self", join(project, "self"));
    symlinkSync("deep", join(project, "src/inner"));
    symlinkSync("../..", join(project, "src/deep/top"));
  };
  fill();
  return {
    project,
    home,
    reset: fill,
    run(line) {
      const { stdout, stderr } = spawnSync("bash", ["--noprofile", "--norc", "-c", line], {
        cwd: project,
        env: { PATH: process.env["PATH"] ?? "", HOME: home },
        encoding: "utf8",
        timeout: patience(10_000),
        input: "",
      });
      return stdout + stderr;
    },
    [Symbol.dispose]() {
      rmSync(root, { recursive: true, force: true });
    },
  };
}

export const hasBash: boolean = ((): boolean => {
  try {
    execFileSync("bash", ["-c", "true"]);
    return true;
  } catch {
    return false;
  }
})();
