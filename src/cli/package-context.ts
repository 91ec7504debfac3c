import { resolveHostOptions, userPackages } from "../host/host-options.ts";
import type { InstallContext } from "../packages/install.ts";
import { checkProvenance, judgePackage } from "../packages/judge-package.ts";
import { readNpmOptions } from "../packages/npm-options.ts";
import type { PackageProject } from "../packages/package-project.ts";
import { createSkillReader } from "../packages/read-skill-folder.ts";
import { findProject } from "../skills/store/package-skills.ts";
import { loadTrustSettings } from "../trust/trust-settings.ts";
import type { CommandContext } from "./command-context.ts";
import { toHostOptions } from "./open-host.ts";

export interface PackageScopeOptions {
  readonly user?: boolean;
}

export interface PackageOptions extends PackageScopeOptions {
  /** Whether to run modules whose tools are computed. */
  readonly run?: boolean;
}

/** Runs a package command with its context. */
export async function withPackages<T>(
  context: CommandContext,
  options: PackageOptions,
  use: (packages: InstallContext) => Promise<T>,
): Promise<T> {
  const { reader, ...rest } = openPackages(context, options);
  try {
    return await use({ reader, ...rest });
  } finally {
    reader[Symbol.dispose]();
  }
}

function openPackages(context: CommandContext, options: PackageOptions): InstallContext {
  const { io, out } = context;
  const project: PackageProject =
    options.user === true ? { folder: userPackages(), scope: "user" } : { folder: findProject(io.cwd), scope: "project" };
  const reader = createSkillReader({ runs: options.run === true });
  const { roots, trust } = resolveHostOptions(toHostOptions(context, [], false));
  const npm = readNpmOptions({ project: project.folder, env: io.env });
  const settings = loadTrustSettings(trust);
  return {
    project,
    npm,
    reader,
    signal: io.signal,
    roots: project.scope === "user" ? [] : roots,
    onProgress: (text) => out.note(text),
    checkSource: (source) => settings.sourceFault(source),
    judge: async (found, scope) => [...judgePackage(found, settings, scope), ...(await checkProvenance(found, settings, npm))],
  };
}
