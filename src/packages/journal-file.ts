import { existsSync } from "node:fs";
import { join } from "node:path";

export const journalName = ".skillhost-journal.json";

/** What a command that moves packages of a project has begun. It goes when all of that is done, or taken back. */
export function journalOf(project: string): string {
  return join(project, "node_modules", journalName);
}

/** Whether a command is moving packages of a project, or was killed while it did. */
export function isUnsettled(project: string): boolean {
  return existsSync(journalOf(project));
}
