import { findOutdated, namesOfDependencies } from "../../packages/find-outdated.ts";
import { CliError } from "../cli-error.ts";
import type { CommandContext } from "../command-context.ts";
import { didYouMean } from "../did-you-mean.ts";
import { type PackageScopeOptions, withPackages } from "../package-context.ts";
import { visibleLine } from "../terminal-style.ts";

/** Lists the packages with skills that have a newer version. As with npm, the exit code is 1 if there is one. */
export async function outdated(context: CommandContext, names: readonly string[], options: PackageScopeOptions): Promise<number> {
  const { out } = context;
  const all = await withPackages(context, options, async (packages) => {
    const known = namesOfDependencies(packages.project.folder);
    const wrong = names.find((name) => !known.includes(name));
    if (wrong !== undefined)
      throw new CliError("PACKAGE_UNKNOWN", `"${wrong}" is not an installed dependency of this project.${didYouMean(wrong, known)}`, 1);
    return findOutdated(names, packages);
  });
  const failed = all.filter(({ error }) => error !== undefined);
  const old = all.filter(({ isOutdated }) => isOutdated);
  const diagnostics = failed.map(({ name, error }) => {
    return {
      severity: "error",
      code: "PACKAGE_UNAVAILABLE",
      source: name,
      message: `The versions of ${name} cannot be looked up: ${error}`,
    } as const;
  });
  const ok = old.length + failed.length === 0;
  const shown = all.map(({ error: _, ...each }) => each);
  out.envelope({ ok, data: { packages: shown, outdated: old.map(({ name }) => name) }, diagnostics });
  if (out.isJson) return ok ? 0 : 1;
  const rows = [
    ["package", "current", "wanted", "latest"],
    ...old.map(({ name, current, wanted = "-", latest = "-" }) => [name, current, wanted, latest]),
  ].map((row) => row.map((cell) => visibleLine(cell)));
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  if (old.length > 0)
    for (const row of rows)
      out.line(
        row
          .map((cell, column) => cell.padEnd(widths[column]!))
          .join("  ")
          .trimEnd(),
      );
  else if (failed.length === 0)
    out.line(all.length === 0 ? "No installed package with skills comes from a registry." : "Everything is up to date.");
  if (old.some(({ current, wanted }) => wanted !== undefined && wanted !== current))
    out.note('Run "skillhost update" to install the wanted versions.');
  else if (old.length > 0)
    out.note('Run "skillhost update --latest" to install the latest versions, which package.json does not allow yet.');
  for (const diagnostic of diagnostics) out.complainOf(diagnostic);
  return ok ? 0 : 1;
}
