import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Diagnostic } from "../base/diagnostic.ts";
import { HostError } from "../base/errors.ts";
import { productionNames, readManifest } from "../skills/store/package-skills.ts";
import type { SkillScope } from "../trust/trust-policy.ts";
import { assertAllowed, type SourceCheck } from "./check-sources.ts";
import { closeStaging, commitChanges, openStaging, type Staging } from "./commit.ts";
import { compareLocks, type Drift } from "./compare-locks.ts";
import { type PackagesLock, readLock, writeLock } from "./lock-file.ts";
import { lockProject, recordPackages } from "./lock-project.ts";
import type { NpmOptions } from "./npm-options.ts";
import { claimProject, type PackageProject } from "./package-project.ts";
import { type Preview, type PreviewedPackage, previewTree } from "./preview.ts";
import type { SkillReader } from "./read-skill-folder.ts";
import { changesFor, type ResolvedTree, resolveTree, type TreeRequest } from "./resolve-tree.ts";
import { inspectNamed, stagedFolder, stagePackages } from "./stage-packages.ts";

/** The context of commands that install packages. */
export interface InstallContext {
  readonly project: PackageProject;
  readonly npm: NpmOptions;
  readonly reader: SkillReader;
  readonly signal: AbortSignal;
  /** The project's own skill directories. */
  readonly roots: readonly string[];
  /** Receives progress messages for the user. */
  onProgress(text: string): void;
  /** Whether a package may be installed at all, before it is fetched. */
  readonly checkSource: SourceCheck;
  /** Judges a staged package before any of its code can run. An error prevents its installation. `scope`: where it will be used. */
  judge(found: PreviewedPackage, scope?: SkillScope): Promise<readonly Diagnostic[]>;
}

export interface ChangeOptions extends InstallContext {
  readonly request: TreeRequest;
  /** Refuses to add packages without skills. */
  readonly needsSkills: boolean;
  confirm(preview: Preview, diagnostics: readonly Diagnostic[]): Promise<boolean>;
}

/** The outcome. `recovered`: paths that were rolled back after an interrupted command. */
export type ChangeOutcome = WithoutRecovery & { readonly recovered: readonly string[] };

type WithoutRecovery =
  | { readonly kind: "unchanged" }
  | { readonly kind: "declined"; readonly preview: Preview; readonly diagnostics: readonly Diagnostic[] }
  | {
      readonly kind: "done";
      readonly preview: Preview;
      readonly diagnostics: readonly Diagnostic[];
      /** The differences from the previous lock file. */
      readonly lockChanges: readonly Drift[];
    };

/**
 * Changes the packages of a project: resolves them, fetches them to a staging folder, inspects them, asks for confirmation, and then
 * installs all or nothing.
 * @throws HostError `PACKAGE_TARBALL`, `PACKAGE_INTEGRITY`, `PACKAGE_REFUSED`, `PACKAGE_NO_SKILLS`, `PACKAGES_BUSY`; npm's own errors.
 */
export async function changePackages(options: ChangeOptions): Promise<ChangeOutcome> {
  const { project, signal, onProgress } = options;
  const claim = await claimProject(project, { signal, onWait: () => onProgress(waitingText) });
  try {
    return { ...(await change(options)), recovered: claim.recovered };
  } finally {
    claim[Symbol.dispose]();
  }
}

/** The message of a waiting command. */
export const waitingText = "Waiting for another skillhost process that is changing packages here…";

async function change(options: ChangeOptions): Promise<WithoutRecovery> {
  const { project, signal, onProgress, reader } = options;
  const { folder } = project;
  onProgress("Resolving dependencies…");
  await inspectNamed(options.request.add ?? [], { project: folder, npm: options.npm });
  const tree = await resolveTree(folder, options.request, options.npm);
  if (tree.missing.length === 0 && tree.surplus.length === 0 && !changesManifest(options)) return { kind: "unchanged" };
  assertAllowed(tree.missing, options);
  const staging = await openStaging(folder);
  try {
    const staged = await stagePackages(tree.missing, staging, { npm: options.npm, signal, onStaged: progressOf(onProgress) });
    const before = readLock(folder);
    const preview = await previewTree(tree, staged, { project: folder, reader, signal, lock: before });
    if (options.needsSkills) refuseSkillless(preview);
    const diagnostics = await judgeAll(preview, options);
    const isChange = tree.missing.length + tree.surplus.length > 0;
    if (isChange && !(await options.confirm(preview, diagnostics))) return { kind: "declined", preview, diagnostics };
    signal.throwIfAborted();
    const lockChanges = await commit(tree, staging, before, options);
    return { kind: "done", preview, diagnostics, lockChanges };
  } finally {
    if (existsSync(staging.folder)) await closeStaging(staging);
  }
}

/** Installs a tree, and writes the lock file of the result. */
async function commit(
  tree: ResolvedTree,
  staging: Staging,
  before: PackagesLock | undefined,
  { project: { folder }, reader, signal, roots, request }: ChangeOptions,
): Promise<readonly Drift[]> {
  let after: PackagesLock = { packages: {}, skills: {} };
  const names = productionNames(readManifest(folder));
  const changes = changesFor(tree, (wanted) => stagedFolder(staging, wanted).slice(folder.length + 1));
  await commitChanges(staging, changes, async () => {
    await tree.save();
    await recordPackages(folder, request, names);
    after = await lockProject(folder, { reader, signal, roots, before });
    await writeLock(folder, after);
  });
  return compareLocks(before ?? { packages: {}, skills: {} }, after);
}

export async function judgeAll(preview: Preview, { judge }: InstallContext): Promise<readonly Diagnostic[]> {
  const found: Diagnostic[] = [];
  for (const each of preview.packages) {
    const diagnostics = await judge(each);
    const [error] = diagnostics.filter(({ severity }) => severity === "error");
    if (error !== undefined) throw new HostError("PACKAGE_REFUSED", `${each.name}@${each.version} is not installed: ${error.message}`);
    found.push(...diagnostics, ...each.skills.flatMap((skill) => skill.diagnostics));
  }
  return found;
}

export function progressOf(
  onProgress: (text: string) => void,
): (done: number, all: number, wanted: { name: string; version: string }) => void {
  let reportedAt = performance.now();
  return (done, all, { name, version }) => {
    // Limits the number of lines for many packages.
    if (done < all && performance.now() - reportedAt < 500) return;
    reportedAt = performance.now();
    onProgress(`Fetched ${done} of ${all}: ${name}@${version}`);
  };
}

/** The package may already be installed as a transitive dependency, or be listed in another group. */
function changesManifest({ request, project }: ChangeOptions): boolean {
  return (request.add?.length ?? 0) + (request.remove?.length ?? 0) > 0 && existsSync(join(project.folder, "package.json"));
}

function refuseSkillless({ packages }: Preview): void {
  const empty = packages.find(({ skills }) => skills.length === 0);
  if (empty === undefined) return;
  const message = `${empty.name}@${empty.version} contains no skill, neither below skills/ nor named in its package.json. Install other packages with npm.`;
  throw new HostError("PACKAGE_NO_SKILLS", message);
}
