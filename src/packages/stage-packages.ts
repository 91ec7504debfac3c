import { createHash } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { errorMessage, HostError } from "../base/errors.ts";
import { readManifest } from "../skills/store/package-skills.ts";
import type { Staging } from "./commit.ts";
import { inspectTarball, type TarballSummary, tarballLimits } from "./inspect-tarball.ts";
import type { NpmOptions } from "./npm-options.ts";
import type { WantedPackage } from "./resolve-tree.ts";

/** An unpacked package in the staging folder, where nothing uses it. */
export interface StagedPackage extends TarballSummary {
  readonly wanted: WantedPackage;
  /** Absolute. */
  readonly folder: string;
  /** The sha512 of the tarball, in npm's form. */
  readonly integrity: string;
}

export interface StageOptions {
  readonly npm: NpmOptions;
  readonly signal: AbortSignal;
  /** Called after each staged package. */
  onStaged(done: number, all: number, wanted: WantedPackage): void;
}

const atATime = 8;

/**
 * Fetches packages, inspects each tarball, and unpacks it into the staging folder. Nothing is run.
 * @throws HostError `PACKAGE_TARBALL`, `PACKAGE_INTEGRITY` or `PACKAGE_MANIFEST` naming the package; npm's own errors when it is
 * unavailable.
 */
export async function stagePackages(
  all: readonly WantedPackage[],
  staging: Staging,
  options: StageOptions,
): Promise<readonly StagedPackage[]> {
  const wanted = all.filter(({ target }) => target === undefined);
  const staged: StagedPackage[] = [];
  const waiting = [...wanted];
  const work = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      options.signal.throwIfAborted();
      staged.push(await stage(next, staging, options));
      options.onStaged(staged.length, wanted.length, next);
    }
  };
  const workers = await Promise.allSettled(Array.from({ length: atATime }, work));
  // Waits for all workers, because an error deletes the staging folder.
  for (const worker of workers) if (worker.status === "rejected") throw worker.reason;
  return staged.toSorted((a, b) => (a.wanted.path < b.wanted.path ? -1 : 1));
}

/**
 * Inspects tarballs that were named by path or URL, which npm's resolver unpacks to read their manifests.
 * @throws HostError `PACKAGE_TARBALL`
 */
export async function inspectNamed(
  specs: readonly string[],
  { project, npm }: { readonly project: string; readonly npm: NpmOptions },
): Promise<void> {
  const { default: pacote } = await import("pacote");
  for (const spec of specs.filter((each) => /^https?:|^file:.*\.t(?:ar\.)?gz$/.test(each))) {
    const chunks = await pacote.tarball.stream(spec, (stream) => collect(stream as unknown as AsyncIterable<Uint8Array>), {
      ...npm,
      _isRoot: true,
      where: project,
    });
    await inspectTarball(chunks);
  }
}

/** The folder into which a package with this path is unpacked. */
export function stagedFolder(staging: Staging, { path }: WantedPackage): string {
  // A nested package is moved separately, after the package that contains it.
  const isNested = path.lastIndexOf("node_modules/") > 0;
  return join(staging.folder, isNested ? join("nested", path.replaceAll("/", "+")) : path);
}

async function stage(wanted: WantedPackage, staging: Staging, { npm }: StageOptions): Promise<StagedPackage> {
  const { default: pacote } = await import("pacote");
  const folder = stagedFolder(staging, wanted);
  const spec = wanted.resolved ?? `${wanted.name}@${wanted.version}`;
  // A local tarball is resolved from the project. npm's resolver or the lock file has already decided whether it is allowed.
  const place = { ...npm, _isRoot: true, where: staging.project, ...(wanted.resolved !== undefined && { resolved: wanted.resolved }) };
  try {
    const locked = wanted.integrity === undefined ? {} : { integrity: wanted.integrity };
    const chunks = await pacote.tarball.stream(spec, (stream) => collect(stream as unknown as AsyncIterable<Uint8Array>), {
      ...place,
      ...locked,
    });
    const summary = await inspectTarball(chunks);
    const hash = createHash("sha512");
    for (const chunk of chunks) hash.update(chunk);
    const integrity = `sha512-${hash.digest("base64")}`;
    await mkdir(folder, { recursive: true });
    // The integrity of the inspected bytes ensures that nothing else is unpacked.
    await pacote.extract(spec, folder, { ...place, integrity });
    checkManifest(wanted, folder);
    return { wanted, folder, ...summary, integrity };
  } catch (error) {
    throw explain(error, wanted);
  }
}

async function collect(stream: AsyncIterable<Uint8Array>): Promise<readonly Uint8Array[]> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of stream) {
    bytes += chunk.length;
    if (bytes > tarballLimits.packedBytes) throw tooLarge();
    chunks.push(chunk);
  }
  return chunks;
}

function tooLarge(): HostError {
  return new HostError(
    "PACKAGE_TARBALL",
    `This tarball was not unpacked. It is larger than ${tarballLimits.packedBytes / 1024 / 1024} MB.`,
  );
}

function checkManifest({ name, version }: WantedPackage, folder: string): void {
  const manifest = readManifest(folder);
  if (manifest["name"] === name && manifest["version"] === version) return;
  const found = `${JSON.stringify(manifest["name"])} ${JSON.stringify(manifest["version"])}`;
  throw new HostError("PACKAGE_MANIFEST", `Its package.json says that it is ${found}.`);
}

function explain(error: unknown, { name, version }: WantedPackage): unknown {
  const what = `${name}@${version}`;
  if (error instanceof HostError) return new HostError(error.code, `${what}: ${error.message}`, { cause: error });
  const { code } = error as { readonly code?: unknown };
  // A problem that the inspection did not find and the unpacker refuses.
  if (code === "EEXIST" || (typeof code === "string" && code.startsWith("TAR_")))
    return new HostError("PACKAGE_TARBALL", `${what}: This tarball cannot be unpacked: ${errorMessage(error)}`, { cause: error });
  if (code !== "EINTEGRITY") return error;
  const message = `${what}: the registry serves different bytes than the lock file records. Nothing was installed. Find out why before you trust either.`;
  return new HostError("PACKAGE_INTEGRITY", message, { cause: error });
}
