import { DiskCache } from "../../src/io/disk-cache.ts";
import { createModuleLoader } from "../../src/io/module-loader/create-module-loader.ts";
import { createScope } from "../../src/io/scope.ts";

// Loads the given modules through a cache, and prints what they export and whether the native compiler was loaded.
const [folder = "", ...files] = process.argv.slice(2);
const loader = createModuleLoader({ hostModules: {}, cache: new DiskCache(folder) });
const values: unknown[] = [];
for (const file of files) values.push((await loader.load(file, createScope())).exports["default"]);
const { sharedObjects } = process.report.getReport() as unknown as { readonly sharedObjects: readonly string[] };
process.stdout.write(JSON.stringify({ values, compiles: sharedObjects.some((path) => path.includes("oxc-transform")) }));
