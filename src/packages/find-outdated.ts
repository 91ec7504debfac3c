import { errorMessage } from "../base/errors.ts";
import { listDirectDependencies, readManifest } from "../skills/store/package-skills.ts";
import type { InstallContext } from "./install.ts";
import { skillPackages } from "./lock-project.ts";

/** An installed package with skills, and the versions that its registry has. */
export interface PackageAge {
  readonly name: string;
  readonly current: string;
  /** What package.json asks for. */
  readonly range: string;
  /** The newest version that package.json allows. Undefined: the registry has none. */
  readonly wanted?: string;
  readonly latest?: string;
  readonly isOutdated: boolean;
  /** Why the registry could not be asked. */
  readonly error?: string;
}

const atATime = 8;

/** Compares the installed packages that contain skills with their registries. Links and local tarballs have no newer versions. */
export async function findOutdated(names: readonly string[], { project, npm, signal }: InstallContext): Promise<readonly PackageAge[]> {
  const { folder } = project;
  const waiting = skillPackages(folder)
    .map(({ installed }) => installed)
    .filter(({ name, isLink }) => !isLink && (names.length === 0 || names.includes(name)));
  const ranges = rangesOf(folder);
  const found: PackageAge[] = [];
  const work = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      signal.throwIfAborted();
      const { name, version } = next;
      const range = ranges[name] ?? "*";
      if (!isOfRegistry(range)) continue;
      found.push(await ageOf({ name, current: version ?? "", range }, npm));
    }
  };
  await Promise.all(Array.from({ length: atATime }, work));
  return found.toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

/** The direct dependencies, for names that the user mistypes. */
export function namesOfDependencies(folder: string): readonly string[] {
  return listDirectDependencies(folder).packages.map(({ name }) => name);
}

function rangesOf(folder: string): Readonly<Record<string, string>> {
  const manifest = readManifest(folder);
  const groups = ["devDependencies", "optionalDependencies", "dependencies"].map((group) => manifest[group]);
  const all = groups.flatMap((group) => (typeof group === "object" && group !== null ? Object.entries(group) : []));
  return Object.fromEntries(all.filter((entry): entry is [string, string] => typeof entry[1] === "string"));
}

function isOfRegistry(range: string): boolean {
  return !/^(?:file|link|https?|git|workspace):|^git\+|^[./~]|\//.test(range) || range.startsWith("npm:");
}

async function ageOf(
  { name, current, range }: Pick<PackageAge, "name" | "current" | "range">,
  npm: InstallContext["npm"],
): Promise<PackageAge> {
  const { default: pacote } = await import("pacote");
  const options = npm as Parameters<typeof pacote.manifest>[1];
  const versionOf = async (spec: string): Promise<string> => (await pacote.manifest(`${name}@${spec}`, options)).version;
  try {
    const latest = await versionOf("latest");
    const wanted = await versionOf(range).catch((error: { readonly code?: string }) => {
      // The range names no version that still exists.
      if (error.code === "ETARGET" || error.code === "ENOVERSIONS") return undefined;
      throw error;
    });
    const isOutdated = (wanted !== undefined && wanted !== current) || latest !== current;
    return { name, current, range, ...(wanted !== undefined && { wanted }), latest, isOutdated };
  } catch (error) {
    return { name, current, range, isOutdated: false, error: errorMessage(error) };
  }
}
