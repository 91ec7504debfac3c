import { createHash } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";

export interface PublishedPackage {
  readonly version: string;
  readonly tarball: Buffer;
  readonly dependencies?: Readonly<Record<string, string>>;
}

export interface LoopbackRegistry {
  readonly url: string;
  /** Adds a version, which becomes the latest one. `tarballUrl` replaces its address. */
  publish(name: string, published: PublishedPackage, tarballUrl?: string): void;
  /** The paths that were asked for. */
  readonly asked: readonly string[];
}

/** A registry of npm packages on this machine. */
export async function startRegistry(): Promise<LoopbackRegistry> {
  const packages = new Map<string, Map<string, PublishedPackage & { readonly url: string }>>();
  const asked: string[] = [];
  const server = createServer((request, response) => {
    const path = decodeURIComponent(new URL(request.url ?? "/", "http://x").pathname);
    asked.push(path);
    const tarball = [...packages.values()].flatMap((versions) => [...versions.values()]).find(({ url }) => new URL(url).pathname === path);
    if (tarball !== undefined) return void response.end(tarball.tarball);
    const versions = packages.get(path.slice(1));
    if (versions === undefined) {
      response.statusCode = 404;
      return void response.end("{}");
    }
    const name = path.slice(1);
    response.setHeader("content-type", "application/json");
    response.end(
      JSON.stringify({
        name,
        "dist-tags": { latest: [...versions.keys()].at(-1) },
        versions: Object.fromEntries(
          [...versions].map(([version, { tarball: bytes, url, dependencies = {} }]) => {
            const integrity = `sha512-${createHash("sha512").update(bytes).digest("base64")}`;
            return [version, { name, version, dependencies, dist: { tarball: url, integrity } }];
          }),
        ),
      }),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(
    () =>
      new Promise<void>((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  );
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  return {
    url,
    asked,
    publish(name, published, tarballUrl = `${url}${name}/-/${name.split("/").at(-1)}-${published.version}.tgz`) {
      const versions = packages.get(name) ?? new Map();
      packages.set(name, versions.set(published.version, { ...published, url: tarballUrl }));
    },
  };
}
