import { closeSync, openSync, readSync } from "node:fs";
import type { Diagnostic } from "../../base/diagnostic.ts";
import { errorMessage, HostError } from "../../base/errors.ts";
import type { SkillPermissions } from "../../formats/skills/skill-permissions.ts";
import { enclosedCommand, enclosedTemporaryFolder, findSandbox, type Sandbox } from "../../io/process/enclose-process.ts";
import type { EnclosedPrograms, EncloseProgram } from "../load/tool-runner.ts";
import type { IsolationTier } from "./isolation-policy.ts";
import { refusal } from "./protection.ts";
import { findProgram, type LimitPlace, limitsOf } from "./skill-limits.ts";

interface EnclosureParts {
  readonly permissions: SkillPermissions | undefined;
  readonly place: LimitPlace;
  /** For tests: what the machine has. */
  readonly find?: () => Promise<Sandbox>;
}

/**
 * Encloses the programs of command tools in what their skill declares, like its code. They have no network. Where the operating system does
 * not enclose programs, `strict` refuses them, and `process` runs them with the rights of this process; both are reported.
 */
export function encloseProgramsOf(
  tier: IsolationTier,
  { permissions, place, find = findSandbox }: EnclosureParts,
): EnclosedPrograms | undefined {
  if (tier === "off" || tier === "worker") return undefined;
  const enclose: EncloseProgram = async ({ command, args, cwd, env, limits: withheld, folder }) => {
    const sandbox = await find();
    if (sandbox.kind !== "system") {
      if (tier === "strict") throw refusal("Programs", sandbox.why);
      return { command, args, env, limits: withheld };
    }
    const limits = limitsOf(permissions, place);
    const [file] = findProgram(command, { ...place, folder: cwd });
    if (file === undefined) throw new HostError("ISOLATION_PATH", `Command ${command} was not found. Install it, or use its full path.`);
    const enclosure = {
      ...limits,
      readable: [...limits.readable, folder],
      programs: [...limits.programs, file, ...interpretersOf(file, place)],
      withheld,
    };
    const [program, enclosedArgs] = enclosedCommand(sandbox.program, enclosure, cwd, [file, ...args]);
    return { command: program, args: enclosedArgs, env: { HOME: enclosedTemporaryFolder, TMPDIR: enclosedTemporaryFolder, ...env } };
  };
  const report = async (file: string): Promise<readonly Diagnostic[]> => {
    const sandbox = await find();
    if (sandbox.kind === "system") return [];
    if (tier === "strict")
      return [{ severity: "warning", code: "ISOLATION_NOT_ENFORCED", file, message: refusal("Programs", sandbox.why).message }];
    const message = `The program of this tool runs with all rights of the user, because this machine cannot enforce limits of programs: ${sandbox.why}.`;
    return [{ severity: "warning", code: "ISOLATION_PARTLY", file, message }];
  };
  return { enclose, report };
}

const maxFirstLine = 256;

/** The programs that the first line of a script names: `#!/bin/sh`, `#!/usr/bin/env python3`. */
function interpretersOf(file: string, place: LimitPlace): readonly string[] {
  const [interpreter, argument] = firstLine(file)
    .replace(/^#!\s*/, "")
    .split(/\s+/);
  if (interpreter === undefined || interpreter === "") return [];
  return [interpreter, ...(/\/env$/.test(interpreter) && argument !== undefined ? findProgram(argument, place) : [])];
}

/** Empty: the file is not a script. */
function firstLine(file: string): string {
  try {
    const descriptor = openSync(file, "r");
    try {
      const bytes = Buffer.alloc(maxFirstLine);
      const text = bytes.toString("utf8", 0, readSync(descriptor, bytes, 0, maxFirstLine, 0));
      return text.startsWith("#!") ? text.split("\n", 1)[0]! : "";
    } finally {
      closeSync(descriptor);
    }
  } catch (error) {
    throw new HostError("ISOLATION_PATH", `The program ${file} cannot be read: ${errorMessage(error)}.`);
  }
}
