import { readFileSync } from "node:fs";

/** The version in this package's package.json. */
export const packageVersion: string = readVersion();

function readVersion(): string {
  const manifest: unknown = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));
  return (manifest as { version: string }).version;
}
