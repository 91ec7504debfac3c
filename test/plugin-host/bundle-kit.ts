import { cpSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { silentLogger } from "../../src/base/logger.ts";
import type { Bundle, BundleOptions } from "../../src/plugin-host/bundles/bundle.ts";
import { loadBundle } from "../../src/plugin-host/bundles/load-bundle.ts";
import { tempFolder } from "../skills/kit.ts";

const fixtures = fileURLToPath(new URL("../fixtures/bundles/", import.meta.url));

export function fixture(name: string): string {
  return join(fixtures, name);
}

/** A copy of a fixture that a test may write to. */
export function fixtureCopy(name: string): string {
  const folder = join(tempFolder(), name);
  cpSync(fixture(name), folder, { recursive: true });
  return folder;
}

export function optionsIn(folder: string, options: Partial<BundleOptions> = {}): BundleOptions {
  return { workingDirectory: folder, dataDirectory: join(folder, "plugin-data"), environment: {}, log: silentLogger, ...options };
}

export function load(folder: string, options: Partial<BundleOptions> = {}): Bundle {
  return loadBundle(folder, optionsIn(tempFolder(), options));
}

/** A bundle with these files, by path. */
export function loadFiles(files: Readonly<Record<string, string>>, options: Partial<BundleOptions> = {}): Bundle {
  return load(tempFolder(files), options);
}

/** `severity CODE` of each diagnostic in order, with the path of its file in the bundle. */
export function diagnosticsOf({ diagnostics, folder }: Bundle): readonly string[] {
  return diagnostics.map(({ severity, code, file }) => `${severity} ${code} ${file?.replace(folder, "").replace(/^\//, "") ?? ""}`.trim());
}
