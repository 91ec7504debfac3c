import { existsSync, lstatSync, readlinkSync, realpathSync } from "node:fs";
import { dirname, join, relative, resolve, sep } from "node:path";
import { HostError } from "../base/errors.ts";
import { readManifest } from "../skills/store/package-skills.ts";
import type { Change } from "./commit.ts";
import type { NpmOptions } from "./npm-options.ts";

/** A package that a project is to have, where, and where it comes from. */
export interface WantedPackage {
  readonly name: string;
  readonly version: string;
  /** Relative to the project, with forward slashes: `node_modules/name`. */
  readonly path: string;
  readonly resolved: string | undefined;
  readonly integrity: string | undefined;
  /** A folder elsewhere that it is a link to. */
  readonly target?: string;
  /** The project itself names it, as opposed to what its dependencies need. */
  readonly isDirect: boolean;
  /** Install scripts, which are not run. */
  readonly hasScripts: boolean;
  readonly hasBins: boolean;
}

/** What npm's resolution came to, and how to have it on disk. */
export interface ResolvedTree {
  readonly wanted: readonly WantedPackage[];
  /** Those that are not there yet, or in another version. */
  readonly missing: readonly WantedPackage[];
  /** Paths of packages that nothing needs any more. */
  readonly surplus: readonly string[];
  /** Writes package.json and package-lock.json, and the commands of these packages into `node_modules/.bin`. */
  save(): Promise<void>;
}

export interface TreeRequest {
  readonly add?: readonly string[];
  readonly remove?: readonly string[];
  /** Brings these to the newest version that package.json allows. */
  readonly update?: readonly string[];
  readonly saveExact?: boolean;
}

/** Has npm's own resolver work out what a project is to have. Writes nothing. */
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
      // Heeded where it stands among the resolver's own options only; without it all packages would be installed again.
      (arborist.options as { packageLockOnly?: boolean }).packageLockOnly = true;
      await arborist.reify(change as Parameters<typeof arborist.reify>[0]);
      const fresh = new Set(missing.filter(({ hasBins }) => hasBins).map(({ path }) => path));
      const rebuilt = nodes.filter((node) => fresh.has(pathOf(node)));
      if (rebuilt.length > 0) await (arborist as unknown as Rebuilder).rebuild({ nodes: rebuilt });
    },
  };
}

/** Which changes bring a project's `node_modules` to a tree, once `stage` has said where each package was unpacked to. */
export function changesFor({ missing, surplus }: ResolvedTree, stage: (wanted: WantedPackage) => string): readonly Change[] {
  const removals = surplus.map((path): Change => ({ kind: "remove", path }));
  const fresh = missing.map(
    (wanted): Change =>
      wanted.target === undefined
        ? { kind: "put", path: wanted.path, staged: stage(wanted) }
        : { kind: "link", path: wanted.path, target: wanted.target },
  );
  // What lies in another package comes after it.
  return [...removals, ...fresh.toSorted((a, b) => (a.path < b.path ? -1 : 1))];
}

/** What package-lock.json says of each package, by its path. */
export function lockedPaths(project: string): ReadonlyMap<string, Readonly<Record<string, unknown>>> {
  const { packages } = readManifest(project, "package-lock.json");
  if (typeof packages !== "object" || packages === null) return new Map();
  const found = Object.entries(packages as Record<string, unknown>).filter(
    ([path, value]) => path.startsWith("node_modules/") && typeof value === "object" && value !== null,
  );
  for (const [path] of found) assertPackagePath(path);
  return new Map(found as [string, Record<string, unknown>][]);
}

/** A lock file may come from anybody: what it says decides what is written and removed. */
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

/** What we read of a node of npm's tree. */
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
  // What a package brings bundled is in its tarball; the targets of links are not ours to install.
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

/** By version, and where the lock knew another tarball of that version, by that. */
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

/** It goes with the package that it lies in. */
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
    // It leads nowhere: it is not what is wanted.
    return path;
  }
}

/** Whether a package says that it runs on this system: `os`, `cpu` and `libc` of its package.json. */
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
