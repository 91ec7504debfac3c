import { existsSync, lstatSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { dirname, join, relative, resolve } from "node:path";
import { findPackageSkills, readManifest, usedPackages } from "../skills/store/package-skills.ts";
import { assertAddress, assertAllowed } from "./check-sources.ts";
import { type Change, closeStaging, commitChanges, openStaging, type Staging } from "./commit.ts";
import { compareFiles, compareLocks, countsOf, type Drift, needLock, type VerifyOutcome } from "./compare-locks.ts";
import { type InstallContext, judgeAll, progressOf, waitingText } from "./install.ts";
import { type PackagesLock, sourcesOf } from "./lock-file.ts";
import { filesOf, lockProject } from "./lock-project.ts";
import { claimProject } from "./package-project.ts";
import { previewTree } from "./preview.ts";
import { fitsMachine, lockedPaths, type WantedPackage } from "./resolve-tree.ts";
import { placeSkills } from "./sources/place-skills.ts";
import { stageMissingSkills } from "./sources/restore-skills.ts";
import { type StagedPackage, stagedFolder, stagePackages } from "./stage-packages.ts";

export interface FrozenOutcome extends VerifyOutcome {
  /** The installed packages, as `name@version`. */
  readonly installed: readonly string[];
  /** The folders of copied skills that were missing and have been fetched, relative to the project. */
  readonly copied: readonly string[];
}

/**
 * Installs exactly what package-lock.json and the lock file state. Any difference, of package.json, of a tarball, of a file or a tool,
 * prevents the installation and is reported.
 * @throws HostError `PACKAGES_LOCK`, `PACKAGE_INTEGRITY`, `PACKAGE_TARBALL`, `PACKAGES_BUSY`; npm's own errors.
 */
export async function installFrozen(context: InstallContext): Promise<FrozenOutcome> {
  const { project, signal, onProgress } = context;
  const lock = needLock(project.folder);
  const claim = await claimProject(project, { signal, onWait: () => onProgress(waitingText) });
  try {
    return await installWithCopies(lock, context);
  } finally {
    claim[Symbol.dispose]();
  }
}

/** The copied skills take their places first, because the result is compared with the lock as a whole. */
async function installWithCopies(lock: PackagesLock, context: InstallContext): Promise<FrozenOutcome> {
  const { folder } = context.project;
  for (const { url } of Object.values(sourcesOf(lock))) assertAddress(url, context);
  const staging = await openStaging(folder);
  try {
    const { placements, drift } = await stageMissingSkills(lock, context, staging);
    if (drift.length > 0) return { drift, ...nothing, ...countsOf(lock) };
    let outcome: FrozenOutcome | undefined;
    const run = async (): Promise<void> => {
      outcome = await install(lock, context);
      if (outcome.drift.length > 0) throw new Drifted(outcome.drift);
    };
    await placeSkills(staging, placements, run).catch((error: unknown) => {
      // The copied skills have been taken away again.
      if (!(error instanceof Drifted)) throw error;
    });
    const copied = outcome!.drift.length > 0 ? [] : placements.map((placed) => relative(folder, placed.folder).replaceAll("\\", "/"));
    return { ...outcome!, copied };
  } finally {
    if (existsSync(staging.folder)) await closeStaging(staging);
  }
}

const nothing = { installed: [], copied: [] };

async function install(lock: PackagesLock, context: InstallContext): Promise<FrozenOutcome> {
  const { project, signal, onProgress } = context;
  const { folder } = project;
  const drift = [...manifestDrift(folder), ...lockDrift(folder, lock)];
  if (drift.length > 0) return { drift, ...nothing, ...countsOf(lock) };
  const wanted = wantedPackages(folder);
  // Also what is installed: a rule may be newer than that.
  assertAllowed(wanted, context);
  const missing = wanted.filter((each) => !isThere(folder, each));
  const staging = await openStaging(folder);
  try {
    const staged = await stagePackages(missing, staging, { npm: context.npm, signal, onStaged: progressOf(onProgress) });
    const used = usedPackages(readManifest(folder));
    const stagedDrift = staged.flatMap((each) => driftOfStaged(each, lock, used));
    if (stagedDrift.length > 0) return { drift: stagedDrift, ...nothing, ...countsOf(lock) };
    const tree = { wanted: missing, missing, surplus: [], save: async () => {} };
    const preview = await previewTree(tree, staged, {
      project: context.project.folder,
      reader: context.reader,
      signal: context.signal,
      lock: undefined,
    });
    await judgeAll({ ...preview, packages: preview.packages.filter(({ skills }) => skills.length > 0) }, context);
    return await commit(missing, staging, lock, context);
  } finally {
    if (existsSync(staging.folder)) await closeStaging(staging);
  }
}

class Drifted extends Error {
  readonly drift: readonly Drift[];

  constructor(drift: readonly Drift[]) {
    super("The installed packages differ from the lock files.");
    this.drift = drift;
  }
}

async function commit(
  missing: readonly WantedPackage[],
  staging: Staging,
  lock: PackagesLock,
  context: InstallContext,
): Promise<FrozenOutcome> {
  const { folder } = context.project;
  const changes = missing.map((wanted) => toChange(wanted, staging)).toSorted((a, b) => (a.path < b.path ? -1 : 1));
  try {
    await commitChanges(staging, changes, async () => {
      // Read again without the lock file, so that its statements about tools are compared with the files.
      const found = await lockProject(folder, { ...context, expected: Object.keys(lock.packages), sources: sourcesOf(lock) });
      const drift = compareLocks(lock, found, { isUnrun: true });
      if (drift.length > 0) throw new Drifted(drift);
      await linkBins(folder, missing, context);
    });
    return { ...nothing, drift: [], installed: missing.map(({ name, version }) => `${name}@${version}`), ...countsOf(lock) };
  } catch (error) {
    // The commit has been rolled back.
    if (error instanceof Drifted) return { drift: error.drift, ...nothing, ...countsOf(lock) };
    throw error;
  }
}

function toChange(wanted: WantedPackage, staging: Staging): Change {
  const { path, target } = wanted;
  if (target !== undefined) return { kind: "link", path, target };
  return { kind: "put", path, staged: relative(staging.project, stagedFolder(staging, wanted)) };
}

/** package.json must match the dependencies in package-lock.json. */
function manifestDrift(project: string): readonly Drift[] {
  const manifest = readManifest(project);
  const { packages } = readManifest(project, "package-lock.json") as { packages?: Record<string, Record<string, unknown>> };
  if (packages === undefined) {
    const hasAny = groups.some((group) => Object.keys((manifest[group] as object | undefined) ?? {}).length > 0);
    return hasAny
      ? [{ kind: "source", subject: "package-lock.json", message: 'does not exist: create it with "skillhost add" or npm' }]
      : [];
  }
  return groups.flatMap((group) => {
    const [asked, locked] = [manifest[group], packages[""]?.[group]].map((value) => (value ?? {}) as Record<string, string>);
    return compareFiles(`package.json ${group}`, locked!, asked!).map(
      ({ subject }): Drift => ({ kind: "source", subject, message: "does not match package-lock.json" }),
    );
  });
}

const groups = ["dependencies", "devDependencies", "optionalDependencies"] as const;

/** Both lock files must name the same tarballs. Packages inside the project are compared too. */
function lockDrift(project: string, lock: PackagesLock): readonly Drift[] {
  const locked = lockedPaths(project);
  return Object.entries(lock.packages).flatMap(([name, known]): readonly Drift[] => {
    const entry = locked.get(`node_modules/${name}`);
    if (entry === undefined) return [{ kind: "package", subject: name, message: "is in skillhost-lock.json but not in package-lock.json" }];
    const now = { version: entry["version"], integrity: entry["integrity"], resolved: entry["resolved"] };
    const differs = (["version", "integrity", "resolved"] as const).find(
      (key) => known.link === undefined && known[key] !== undefined && known[key] !== now[key],
    );
    if (differs !== undefined) {
      const diff = [`- ${String(known[differs])}`, `+ ${String(now[differs])}`];
      return [{ kind: "source", subject: name, message: `has another ${differs} in package-lock.json`, diff }];
    }
    const folder = join(project, "node_modules", name);
    if (readManifest(folder)["version"] !== known.version) return [];
    return compareFiles(name, known.files, filesOf(folder));
  });
}

function driftOfStaged({ wanted, folder }: StagedPackage, lock: PackagesLock, used: readonly string[]): readonly Drift[] {
  const known = wanted.path === `node_modules/${wanted.name}` ? lock.packages[wanted.name] : undefined;
  if (known !== undefined) return compareFiles(wanted.name, known.files, filesOf(folder));
  const isNew = wanted.isDirect && used.includes(wanted.name) && findPackageSkills(folder, readManifest(folder)).folders.length > 0;
  return isNew ? [{ kind: "package", subject: wanted.name, message: "contains skills but is not in skillhost-lock.json" }] : [];
}

/** The packages in package-lock.json for this machine. */
function wantedPackages(project: string): readonly WantedPackage[] {
  const manifest = readManifest(project);
  const direct = new Set(groups.flatMap((group) => Object.keys((manifest[group] as object | undefined) ?? {})));
  return [...lockedPaths(project)].flatMap(([path, entry]) => {
    if (entry["inBundle"] === true || (entry["optional"] === true && !fitsMachine(entry))) return [];
    const text = (key: string): string | undefined => (typeof entry[key] === "string" ? (entry[key] as string) : undefined);
    const installed = path.slice(path.lastIndexOf("node_modules/") + 13);
    const target = entry["link"] === true ? relative(dirname(join(project, path)), resolve(project, text("resolved") ?? "")) : undefined;
    return {
      name: text("name") ?? installed,
      version: text("version") ?? "",
      path,
      resolved: text("resolved"),
      integrity: text("integrity"),
      ...(target !== undefined && { target }),
      isDirect: direct.has(installed) && path === `node_modules/${installed}`,
      hasScripts: entry["hasInstallScript"] === true,
      hasBins: entry["bin"] !== undefined,
    };
  });
}

function isThere(project: string, { path, version, target }: WantedPackage): boolean {
  const at = join(project, path);
  const stat = lstatSync(at, { throwIfNoEntry: false });
  if (stat === undefined) return false;
  return target === undefined ? readManifest(at)["version"] === version : stat.isSymbolicLink();
}

async function linkBins(project: string, missing: readonly WantedPackage[], { npm }: InstallContext): Promise<void> {
  const fresh = new Set(missing.filter(({ hasBins }) => hasBins).map(({ path }) => path));
  if (fresh.size === 0) return;
  await mkdir(join(project, "node_modules/.bin"), { recursive: true });
  const { default: Arborist } = await import("@npmcli/arborist");
  const arborist = new Arborist({ ...npm, path: project } as ConstructorParameters<typeof Arborist>[0]);
  const tree = await arborist.loadVirtual();
  const nodes = [...tree.inventory.values()].filter((node) =>
    fresh.has((node as unknown as { location: string }).location.replaceAll("\\", "/")),
  );
  await (arborist as unknown as { rebuild(options: { nodes: readonly unknown[] }): Promise<void> }).rebuild({ nodes });
}
