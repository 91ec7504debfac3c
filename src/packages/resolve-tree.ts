import { existsSync, lstatSync, readlinkSync, realpathSync } from "node:fs";
import { dirname, join, relative, resolve, sep } from "node:path";
import { HostError } from "../base/errors.ts";
import { readManifest } from "../skills/store/package-skills.ts";
import type { Change } from "./commit.ts";
import type { NpmOptions } from "./npm-options.ts";

/** A package that a project must contain, its path, and its source. */
export interface WantedPackage {
  readonly name: string;
  readonly version: string;
  /** Relative to the project, with forward slashes: `node_modules/name`. */
  readonly path: string;
  readonly resolved: string | undefined;
  readonly integrity: string | undefined;
  /** The target of a link to another folder. */
  readonly target?: string;
  /** True for a direct dependency of the project. */
  readonly isDirect: boolean;
  /** True if it has install scripts, which are not run. */
  readonly hasScripts: boolean;
  readonly hasBins: boolean;
}

/** The result of npm's resolution, and how to write it to disk. */
export interface ResolvedTree {
  readonly wanted: readonly WantedPackage[];
  /** The packages that are missing or installed in another version. */
  readonly missing: readonly WantedPackage[];
  /** Paths of packages that are no longer needed. */
  readonly surplus: readonly string[];
  /** Writes package.json, package-lock.json and the executables of these packages in `node_modules/.bin`. */
  save(): Promise<void>;
}

export interface TreeRequest {
  readonly add?: readonly string[];
  readonly remove?: readonly string[];
  /** Packages to update to the newest version that package.json allows. */
  readonly update?: readonly string[];
  readonly saveExact?: boolean;
}

/** Resolves the packages of a project with npm's own resolver. Writes nothing. */
export async function resolveTree(project: string, request: TreeRequest, npm: NpmOptions): Promise<ResolvedTree> {
  const { default: Arborist } = await import("@npmcli/arborist");
  const options = { ...npm, path: project, savePrefix: request.saveExact === true ? "" : "^", packageLock: true, save: true };
  const arborist = new Arborist(options as ConstructorParameters<typeof Arborist>[0]);
  const change = {
    ...(request.add && { add: [...request.add] }),
    ...(request.remove && { rm: [...request.remove] }),
    ...(request.update && { update: { names: [...request.update] } }),
  };
  const before = lockedPaths(project);
  const tree = await arborist.buildIdealTree(change);
  const nodes = [...tree.inventory.values()] as unknown as readonly TreeNode[];
  const wanted = nodes.flatMap((node) => toWanted(node, project) ?? []);
  const missing = wanted.filter((each) => !isInstalled(each, project, before));
  const kept = new Set(wanted.map(({ path }) => path));
  const gone = [...before.keys(), ...(request.remove ?? []).map((name) => `node_modules/${name}`)];
  return {
    wanted,
    missing,
    surplus: [...new Set(gone)].filter((path) => !kept.has(path) && !isBelow(path, gone, kept) && isThere(project, path)),
    async save() {
      // Only respected in the resolver's own options; without it all packages would be installed again.
      (arborist.options as { packageLockOnly?: boolean }).packageLockOnly = true;
      await arborist.reify(change as Parameters<typeof arborist.reify>[0]);
      const fresh = new Set(missing.filter(({ hasBins }) => hasBins).map(({ path }) => path));
      const rebuilt = nodes.filter((node) => fresh.has(pathOf(node)));
      if (rebuilt.length > 0) await (arborist as unknown as Rebuilder).rebuild({ nodes: rebuilt });
    },
  };
}

/** The changes that bring a project's `node_modules` to a tree; `stage` returns the folder into which each package was unpacked. */
export function changesFor({ missing, surplus }: ResolvedTree, stage: (wanted: WantedPackage) => string): readonly Change[] {
  const removals = surplus.map((path): Change => ({ kind: "remove", path }));
  const fresh = missing.map(
    (wanted): Change =>
      wanted.target === undefined
        ? { kind: "put", path: wanted.path, staged: stage(wanted) }
        : { kind: "link", path: wanted.path, target: wanted.target },
  );
  // A nested package comes after the one that contains it.
  return [...removals, ...fresh.toSorted((a, b) => (a.path < b.path ? -1 : 1))];
}

/** The entries of package-lock.json, by path. */
export function lockedPaths(project: string): ReadonlyMap<string, Readonly<Record<string, unknown>>> {
  const { packages } = readManifest(project, "package-lock.json");
  if (typeof packages !== "object" || packages === null) return new Map();
  const found = Object.entries(packages as Record<string, unknown>).filter(
    ([path, value]) => path.startsWith("node_modules/") && typeof value === "object" && value !== null,
  );
  for (const [path] of found) assertPackagePath(path);
  return new Map(found as [string, Record<string, unknown>][]);
}

/** A lock file is untrusted: its paths decide what is written and removed. */
function assertPackagePath(path: string): void {
  const parts = path.split("/");
  const isBelow = parts.includes("node_modules") && !parts.some((part) => part === "" || part === "." || part === "..");
  if (isBelow && !/[\\\0]/.test(path)) return;
  const message = `package-lock.json has a package at ${JSON.stringify(path.slice(0, 200))}, where a package cannot be. Nothing was changed.`;
  throw new HostError("PACKAGES_LOCK", message);
}

interface Rebuilder {
  rebuild(options: { nodes: readonly TreeNode[] }): Promise<void>;
}

/** The fields of npm's tree nodes that are used here. */
interface TreeNode {
  readonly name: string;
  readonly packageName: string | null;
  readonly version: string;
  readonly location: string;
  readonly resolved: string | null;
  readonly integrity: string | null;
  readonly package: Readonly<Record<string, unknown>>;
  readonly isLink: boolean;
  readonly isProjectRoot: boolean;
  readonly inDepBundle: boolean;
  readonly inert?: boolean;
  readonly optional: boolean;
  readonly isTop: boolean;
  readonly hasInstallScript?: boolean;
  readonly hasShrinkwrap?: boolean;
  readonly realpath: string;
  readonly edgesIn: Iterable<{ readonly from: { readonly isProjectRoot: boolean } | null }>;
}

function toWanted(node: TreeNode, project: string): WantedPackage | undefined {
  // Bundled packages are part of a tarball; link targets are not installed here.
  if (node.isProjectRoot || node.inDepBundle || node.inert === true || (node.isTop && !node.isLink)) return undefined;
  if (node.optional && !fitsMachine(node.package)) return undefined;
  if (node.hasShrinkwrap === true) {
    const message = `${node.name} contains an npm-shrinkwrap.json, which pins its dependencies. Install it with npm, then run "skillhost lock".`;
    throw new HostError("PACKAGE_SHRINKWRAP", message);
  }
  const path = pathOf(node);
  assertPackagePath(path);
  const scripts = node.package["scripts"] as Record<string, unknown> | undefined;
  return {
    name: node.packageName ?? node.name,
    version: node.version,
    path,
    resolved: node.resolved ?? undefined,
    integrity: node.integrity ?? undefined,
    ...(node.isLink && { target: relative(dirname(join(project, path)), node.realpath) }),
    isDirect: [...node.edgesIn].some(({ from }) => from?.isProjectRoot === true),
    hasScripts: node.hasInstallScript === true || ["preinstall", "install", "postinstall"].some((name) => scripts?.[name] !== undefined),
    hasBins: node.package["bin"] !== undefined,
  };
}

function pathOf({ location }: TreeNode): string {
  return location.split(sep).join("/");
}

/** Compares the version, and the tarball if the lock file names another one for that version. */
function isInstalled(wanted: WantedPackage, project: string, before: ReturnType<typeof lockedPaths>): boolean {
  const at = join(project, wanted.path);
  const stat = lstatSync(at, { throwIfNoEntry: false });
  if (stat === undefined) return false;
  if (wanted.target !== undefined)
    return stat.isSymbolicLink() && resolve(dirname(at), readlinkSync(at)) === realPathOf(resolve(dirname(at), wanted.target));
  if (stat.isSymbolicLink()) return false;
  const known = before.get(wanted.path)?.["integrity"];
  const isSameTarball = typeof known !== "string" || wanted.integrity === undefined || known === wanted.integrity;
  return isSameTarball && readManifest(at)["version"] === wanted.version && existsSync(join(at, "package.json"));
}

/** Whether it is removed together with the package that contains it. */
function isBelow(path: string, gone: readonly string[], kept: ReadonlySet<string>): boolean {
  return gone.some((other) => other !== path && path.startsWith(`${other}/`) && !kept.has(other));
}

function isThere(project: string, path: string): boolean {
  return lstatSync(join(project, path), { throwIfNoEntry: false }) !== undefined;
}

function realPathOf(path: string): string {
  try {
    return realpathSync.native(path);
  } catch {
    // A broken link is not the wanted target.
    return path;
  }
}

/** Whether a package supports this system according to `os`, `cpu` and `libc` in its package.json. */
export function fitsMachine(manifest: Readonly<Record<string, unknown>>): boolean {
  return allows(manifest["os"], process.platform) && allows(manifest["cpu"], process.arch) && allows(manifest["libc"], libc());
}

function allows(list: unknown, own: string | undefined): boolean {
  const names = (Array.isArray(list) ? list : typeof list === "string" ? [list] : []).filter((name) => typeof name === "string");
  if (names.length === 0 || names.includes("any")) return true;
  if (own === undefined) return false;
  if (names.includes(`!${own}`)) return false;
  return names.includes(own) || names.every((name) => name.startsWith("!"));
}

function libc(): string | undefined {
  if (process.platform !== "linux") return undefined;
  const { header } = process.report.getReport() as { header?: { glibcVersionRuntime?: string } };
  return header?.glibcVersionRuntime === undefined ? "musl" : "glibc";
}
