import { mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { checkSkills } from "../../advice/check-skills.ts";
import type { Diagnostic } from "../../base/diagnostic.ts";
import { packageVersion } from "../../base/package-root.ts";
import { counted } from "../../base/text.ts";
import { writeFileAtomic } from "../../io/atomic-write.ts";
import { createModuleLoader } from "../../io/module-loader/create-module-loader.ts";
import type { InstallContext } from "../../packages/install.ts";
import { type PackedPackage, PackRefused, packSkills } from "../../packages/pack.ts";
import { publishPackage, registryOf } from "../../packages/publish.ts";
import { providedModules } from "../../skills/load/tool-module.ts";
import { CliError } from "../cli-error.ts";
import type { CommandContext } from "../command-context.ts";
import { confirm } from "../confirm.ts";
import { kilobytes, named } from "../describe.ts";
import { withPackages } from "../package-context.ts";
import { visibleLine } from "../terminal-style.ts";

export interface PackCommandOptions {
  readonly out?: string;
  readonly dryRun?: boolean;
}

export interface PublishCommandOptions {
  readonly access?: "public" | "restricted";
  readonly tag?: string;
  readonly provenance?: boolean;
  readonly dryRun?: boolean;
  readonly yes?: boolean;
}

/** Packs a folder, and writes the tarball. */
export async function pack(
  context: CommandContext,
  folder: string,
  { out: to = ".", dryRun = false }: PackCommandOptions,
): Promise<number> {
  const { io, out } = context;
  const packed = await withPackages(context, {}, (packages) => packFolder(context, packages, folder, dryRun));
  const file = resolve(io.cwd, to, packed.fileName);
  if (!dryRun) {
    mkdirSync(resolve(io.cwd, to), { recursive: true });
    await writeFileAtomic(file, packed.tarball, { inside: resolve(io.cwd, to) });
  }
  if (out.isJson) out.envelope({ ok: true, data: { ...dataOf(packed), ...(!dryRun && { file }) }, diagnostics: packed.diagnostics });
  else {
    describe(context, packed, dryRun);
    out.line(dryRun ? "Nothing was written." : `Packed ${out.path(file)}.`);
  }
  return 0;
}

/** Packs a folder, and publishes the tarball after confirmation. */
export function publish(context: CommandContext, folder: string, options: PublishCommandOptions): Promise<number> {
  return withPackages(context, {}, async (packages) => {
    const packed = await packFolder(context, packages, folder, options.dryRun === true);
    return publishPacked(context, packages, packed, options);
  });
}

async function publishPacked(
  context: CommandContext,
  packages: InstallContext,
  packed: PackedPackage,
  options: PublishCommandOptions,
): Promise<number> {
  const { out } = context;
  const { dryRun = false } = options;
  const registry = registryOf(packed, packages.npm);
  const name = `${packed.name}@${packed.version}`;
  if (!out.isJson) describe(context, packed, dryRun);
  const question = `Publish ${visibleLine(name)} to ${visibleLine(registry)}?`;
  const otherwise = "Review it with --dry-run, then run again with --yes to publish it.";
  if (!dryRun && options.yes !== true && !(await confirm(context, { question, otherwise }))) {
    throw new CliError("NOT_AGREED", "Nothing was published.", 1);
  }
  if (!dryRun) {
    out.note(`Publishing to ${registry}…`);
    await publishPackage(packed, options, packages.npm);
  }
  if (out.isJson) out.envelope({ ok: true, data: { ...dataOf(packed), registry, published: !dryRun }, diagnostics: packed.diagnostics });
  else out.line(dryRun ? `${name} would be published to ${registry}.` : `Published ${name} to ${registry}.`);
  return 0;
}

async function packFolder(context: CommandContext, packages: InstallContext, folder: string, dryRun: boolean): Promise<PackedPackage> {
  const { npm, reader, signal } = packages;
  try {
    return await packSkills(resolve(context.io.cwd, folder), {
      npm,
      reader,
      signal,
      writes: !dryRun,
      lint: (folders) => lint(folders, signal),
    });
  } catch (error) {
    if (error instanceof PackRefused) throw new CliError(error.code, error.message, 1, error.diagnostics);
    throw error;
  }
}

/** The findings of "skillhost check --strict" about SKILL.md; other hosts are stricter than this one. */
async function lint(roots: readonly string[], signal: AbortSignal): Promise<readonly Diagnostic[]> {
  const loader = createModuleLoader(providedModules);
  try {
    const { diagnostics } = await checkSkills({ roots, loader, hostVersion: packageVersion, strict: true, signal });
    return diagnostics.filter(({ severity }) => severity !== "info");
  } finally {
    loader[Symbol.dispose]();
  }
}

function describe({ out }: CommandContext, packed: PackedPackage, dryRun: boolean): void {
  const { style } = out;
  for (const { path, size } of packed.files) out.line(`  ${style.dim(kilobytes(size).padStart(10))}  ${visibleLine(path)}`);
  out.line(
    `${style.bold(visibleLine(packed.name))} ${packed.version}  ${style.dim(`${counted(packed.files.length, "file")}, ${kilobytes(packed.tarball.length)} packed`)}`,
  );
  out.line(`  ${style.dim(packed.integrity)}`);
  for (const diagnostic of distinct(packed.diagnostics)) out.line(out.diagnostic(diagnostic));
  if (packed.left.length > 0) out.note(`Not included: ${named(packed.left, 20)}.`);
  if (packed.added.length === 0) return;
  const file = out.path(join(packed.folder, "package.json"));
  out.note(`${dryRun ? "Would add" : "Added"} to ${file}: ${packed.added.join(", ")}.`);
}

function dataOf({ name, version, fileName, integrity, files, left, added, tarball, manifest }: PackedPackage): object {
  return { name, version, fileName, integrity, size: tarball.length, files, left, added, manifest };
}

/** The skill reader and the linter may report the same. */
function distinct(diagnostics: readonly Diagnostic[]): readonly Diagnostic[] {
  return [
    ...new Map(diagnostics.map((diagnostic) => [`${diagnostic.code} ${diagnostic.file} ${diagnostic.message}`, diagnostic])).values(),
  ];
}
