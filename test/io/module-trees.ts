import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, onTestFinished } from "vitest";
import { createHostModules, makeTree } from "../../scripts/module-matrix.mjs";
import { createModuleLoader, type ModuleLoaderOptions, type OwnedModuleLoader } from "../../src/io/module-loader/create-module-loader.ts";
import { ModuleError } from "../../src/io/module-loader/module-error.ts";

/** A loader that is disposed of after the test. */
export function createLoader(options: Partial<ModuleLoaderOptions> = {}): OwnedModuleLoader {
  const loader = createModuleLoader({ hostModules: createHostModules(), ...options });
  onTestFinished(() => loader[Symbol.dispose]());
  return loader;
}

/** A folder with files, by default an ES module package, removed after the test. */
export function tree(files: Readonly<Record<string, string>>): (path: string) => string {
  const root = makeTree({ "package.json": '{"name":"one","type":"module"}', ...files });
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  return (path) => join(root, path);
}

export function write(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

/** The error with which the promise rejects, which must be a ModuleError. */
export async function failure(promise: Promise<unknown>): Promise<ModuleError> {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(ModuleError);
  return error as ModuleError;
}
