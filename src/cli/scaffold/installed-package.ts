import { existsSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import type { CommandContext } from "../command-context.ts";

/** The path from a skill to the schema of skill.json, if this package is installed above it. */
export function schemaPath(folder: string): string | undefined {
  const installed = installedAbove(folder);
  return (
    installed &&
    relative(folder, join(installed, "schemas", "skill.schema.json"))
      .split(sep)
      .join("/")
  );
}

/** How to run a test that imports `skillhost/testing`, which imports do not find in a global installation. */
export function testHint({ out }: CommandContext, test: string): string {
  const command = `node --test ${out.path(test)}`;
  return installedAbove(dirname(test)) === undefined
    ? `Run its test: npm install --save-dev skillhost, then ${command}`
    : `Run its test: ${command}`;
}

function installedAbove(folder: string): string | undefined {
  for (let at = folder; dirname(at) !== at; at = dirname(at)) {
    const installed = join(at, "node_modules", "skillhost");
    if (existsSync(join(installed, "schemas", "skill.schema.json"))) return installed;
  }
  return undefined;
}
