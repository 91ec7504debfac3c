import { existsSync } from "node:fs";
import { type CheckReport, checkSkills } from "../../advice/check-skills.ts";
import type { Diagnostic } from "../../base/diagnostic.ts";
import { packageVersion } from "../../base/package-version.ts";
import { resolveHostOptions } from "../../host/host-options.ts";
import { createModuleLoader } from "../../io/module-loader/create-module-loader.ts";
import { fixedPart } from "../../skills/discover.ts";
import type { CommandContext } from "../command-context.ts";
import { counted } from "../describe-skill.ts";
import { toHostOptions } from "../open-host.ts";
import type { Output } from "../output.ts";

export interface CheckCommandOptions {
  readonly strict?: boolean;
}

/** Checks skills without running them. The exit code is 1 when something is wrong; with `strict` also for warnings. */
export async function check(
  context: CommandContext,
  directories: readonly string[],
  { strict = false }: CheckCommandOptions,
): Promise<number> {
  const { io, out } = context;
  const { roots, disabledSkills, conflicts } = resolveHostOptions(toHostOptions(context, directories, false));
  // Imports of this package must resolve as they do in a host; nothing is evaluated.
  const loader = createModuleLoader({
    hostModules: { skillhost: () => import("skillhost"), "skillhost/testing": () => import("skillhost/testing") },
  });
  try {
    const report = await checkSkills({ roots, loader, hostVersion: packageVersion, strict, disabledSkills, conflicts, signal: io.signal });
    const diagnostics = [...missingRoots(roots, report, out), ...report.diagnostics];
    const ok = !diagnostics.some(({ severity }) => severity === "error" || (strict && severity === "warning"));
    const tools = report.skills.reduce((sum, skill) => sum + skill.tools.length, 0);
    if (out.isJson)
      out.envelope({
        ok,
        data: { skills: report.skills, counts: { skills: report.skills.length, tools, ...count(diagnostics) } },
        diagnostics,
      });
    else print(report, tools, diagnostics, out);
    return ok ? 0 : 1;
  } finally {
    loader[Symbol.dispose]();
  }
}

/** A check that looked at nothing must not pass: somebody relies on it. */
function missingRoots(roots: readonly string[], report: CheckReport, out: Output): readonly Diagnostic[] {
  const missing = roots.filter((root) => !existsSync(fixedPart(root)));
  const found = missing.map(
    (file): Diagnostic => ({
      severity: "error",
      code: "SKILLS_DIRECTORY_MISSING",
      file,
      message: 'This directory does not exist. Correct its name, or make a skill there with "skillhost new skill <name>".',
    }),
  );
  if (found.length > 0 || report.skills.length > 0) return found;
  const message = `There is no skill in ${roots.map(out.path).join(", ")}. Make one with "skillhost new skill <name>".`;
  return [{ severity: "error", code: "SKILLS_NONE", message }];
}

function print(report: CheckReport, tools: number, diagnostics: readonly Diagnostic[], out: Output): void {
  for (const diagnostic of diagnostics) out.line(out.diagnostic(diagnostic));
  if (diagnostics.length > 0) out.line();
  const { errors, warnings, infos } = count(diagnostics);
  const found = [
    errors > 0 && counted(errors, "error"),
    warnings > 0 && counted(warnings, "warning"),
    infos > 0 && counted(infos, "hint"),
  ].filter((part) => part !== false);
  const what = `${counted(report.skills.length, "skill")} and ${counted(tools, "tool")} checked`;
  out.line(found.length === 0 ? `${what}: nothing found.` : `${what}: ${found.join(", ")}.`);
}

function count(diagnostics: readonly Diagnostic[]): { readonly errors: number; readonly warnings: number; readonly infos: number } {
  const of = (severity: Diagnostic["severity"]): number => diagnostics.filter((diagnostic) => diagnostic.severity === severity).length;
  return { errors: of("error"), warnings: of("warning"), infos: of("info") };
}
