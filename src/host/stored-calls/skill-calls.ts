import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Diagnostic, Position } from "../../base/diagnostic.ts";
import { callsFileName, parseStoredCalls, type StoredCall } from "../../formats/calls/stored-calls.ts";
import { maxJsonBytes } from "../../formats/text/limits.ts";
import { isReallyInside } from "../../io/confine-path.ts";
import { readTextFile } from "../../io/read-bounded.ts";

/** A stored call, and the skill that it belongs to. */
export interface SkillCall {
  readonly skill: string;
  readonly call: StoredCall;
  readonly position?: Position;
}

/** Unique among the calls of all skills: two skills may have calls with the same name. */
export function skillCallId({ skill, call }: Pick<SkillCall, "skill"> & { readonly call: Pick<StoredCall, "name"> }): string {
  return `${skill}/${call.name}`;
}

/** Reads the stored calls of a skill. None, without a diagnostic, if it has no file of them. Never throws. */
export function readSkillCalls(skill: { readonly name: string; readonly folder: string }): {
  calls: readonly SkillCall[];
  diagnostics: readonly Diagnostic[];
} {
  const file = join(skill.folder, callsFileName);
  // Most skills have none, and a host may have thousands.
  if (!existsSync(file)) return { calls: [], diagnostics: [] };
  if (!isReallyInside(skill.folder, file)) {
    const message = "This link leads out of the folder of its skill, so its calls are not read. Put the file itself there.";
    return { calls: [], diagnostics: [{ severity: "error", code: "PATH_OUTSIDE", message, file }] };
  }
  const read = readTextFile(file, maxJsonBytes);
  if (!read.ok) return { calls: [], diagnostics: read.diagnostic.code === "FILE_MISSING" ? [] : [read.diagnostic] };
  const { calls, diagnostics, positions } = parseStoredCalls(read.text, file);
  return {
    calls: calls.map((call) => {
      const position = positions.get(call.name);
      return { skill: skill.name, call, ...(position && { position }) };
    }),
    diagnostics,
  };
}
