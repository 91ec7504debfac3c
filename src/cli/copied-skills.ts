import { join } from "node:path";
import type { Diagnostic } from "../base/diagnostic.ts";
import { toError } from "../base/errors.ts";
import { userPackages } from "../host/host-options.ts";
import { copiedSkills, type LockedSource, lockFileName, readLock } from "../packages/lock-file.ts";
import { repositoryLabel } from "../packages/sources/git-source.ts";
import { findProject } from "../skills/store/package-skills.ts";
import { visibleLine } from "./terminal-style.ts";

interface CopiesHere {
  /** Where copied skills came from, by folder. */
  readonly sources: ReadonlyMap<string, LockedSource>;
  readonly diagnostics: readonly Diagnostic[];
}

/** Reads the copied skills of the project around a folder, and those of the user. A lock file that cannot be read is a warning. */
export function readCopies(cwd: string): CopiesHere {
  const sources = new Map<string, LockedSource>();
  const diagnostics: Diagnostic[] = [];
  for (const folder of [findProject(cwd), userPackages()]) {
    try {
      for (const { path, source } of copiedSkills(readLock(folder))) sources.set(join(folder, path), source);
    } catch (error) {
      diagnostics.push({ severity: "warning", code: "PACKAGES_LOCK", file: join(folder, lockFileName), message: toError(error).message });
    }
  }
  return { sources, diagnostics };
}

/** `owner/repo v1 3f6fc1c2a97a` */
export function sourceWords({ url, ref, commit }: LockedSource): string {
  return visibleLine([repositoryLabel(url), ref, commit?.slice(0, 12)].filter((part) => part !== undefined).join(" "));
}
