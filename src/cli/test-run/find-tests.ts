import { existsSync, readdirSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { callsFileName } from "../../formats/calls/stored-calls.ts";
import { isSkillFolder } from "../../skills/load/skill-path.ts";
import { discoverRoot, resolveRoot } from "../../skills/store/skill-roots.ts";
import { CliError } from "../cli-error.ts";
import type { CommandContext } from "../command-context.ts";
import { skillDirectories } from "../open-host.ts";

/** The test files of one folder. */
export interface TestFolder {
  /** A skill, another folder, or a single file. */
  readonly path: string;
  readonly files: readonly string[];
}

const testFile = /\.test\.[cm]?[jt]s$/;
const maxDepth = 16;

/**
 * Finds the tests of the named folders and files; of all skills if none are named.
 * @throws CliError `TEST_PATH_MISSING` for a path that does not exist
 */
export function findTests(context: CommandContext, folders: readonly string[]): readonly TestFolder[] {
  const { cwd } = context.io;
  const paths =
    folders.length > 0
      ? folders.map((folder) => resolve(cwd, folder))
      : skillDirectories(context).flatMap((root) => discoverRoot(resolveRoot(root, cwd)).folders);
  const seen = new Set<string>();
  return [...new Set(paths)].map((path) => {
    if (!existsSync(path)) throw new CliError("TEST_PATH_MISSING", `${path} does not exist. Name a skill, a folder or a test file.`, 2);
    const found = statSync(path).isDirectory() ? testsBelow(path, 0) : [path];
    // A folder may be named together with one of its skills.
    const files = found.filter((file) => !seen.has(file));
    for (const file of files) seen.add(file);
    return { path, files };
  });
}

function testsBelow(folder: string, depth: number): string[] {
  const entries = readdirSync(folder, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1));
  return entries.flatMap((entry) => {
    const path = join(folder, entry.name);
    // Linked folders are not entered: they may lead out of the project, or around in a circle.
    if (entry.isDirectory()) return isSearched(entry.name) && depth < maxDepth ? testsBelow(path, depth + 1) : [];
    const isTest = testFile.test(entry.name) || (entry.name === callsFileName && isSkillFolder(folder));
    return entry.isFile() && isTest ? [path] : [];
  });
}

function isSearched(name: string): boolean {
  return name !== "node_modules" && !name.startsWith(".");
}
