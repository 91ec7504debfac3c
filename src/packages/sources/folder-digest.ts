import { createHash } from "node:crypto";

/**
 * One digest for the files of a folder, from the digests of each: sorted by path, a line `<path> NUL <hex> LF` for each file. It is the
 * digest that an index of skills has in version 0.2.0 of February 2026 (cloudflare/agent-skills-discovery-rfc).
 */
export function folderDigest(files: Readonly<Record<string, string>>): string {
  const hash = createHash("sha256");
  for (const [path, digest] of Object.entries(files).sort(([a], [b]) => (a < b ? -1 : 1))) {
    hash.update(`${path}\0${digest.replace(/^sha256:/, "")}\n`);
  }
  return `sha256:${hash.digest("hex")}`;
}
