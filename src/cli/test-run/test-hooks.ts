// How Node.js resolves and loads the modules of tests, as skills do: skillhost is always this one, and TypeScript is compiled.
// The functions serve as hooks of both kinds, asynchronous and synchronous, so they pass on whatever the next one returns.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath, pathToFileURL } from "node:url";
import { packageRoot } from "../../base/package-root.ts";
import { installedRoot, PackageConfigs } from "../../io/module-loader/package-config.ts";
import { ModuleResolver } from "../../io/module-loader/resolve-module.ts";
import { isTypeScript, toNativeModule } from "../../io/module-loader/transform-source.ts";

interface ResolvedModule {
  readonly url: string;
  readonly format?: string | null;
  readonly shortCircuit?: boolean;
}

interface LoadedSource {
  readonly format: string;
  readonly source?: string | Uint8Array;
  readonly shortCircuit?: boolean;
}

interface HookContext {
  readonly parentURL?: string | undefined;
}

type Next<Result> = (specifier: string, context: HookContext) => Result;

const require = createRequire(import.meta.url);
const configs = new PackageConfigs(({ message }) => process.stderr.write(`${message}\n`));
const resolver = new ModuleResolver({ hosts: [], fallbacks: ["zod"] }, configs);

/** The file of stored calls that is run as a test. A test that imports such a file gets its data. */
let runCalls: string | undefined;

export function resolve<Result>(specifier: string, context: HookContext, next: Next<Result>): Result | ResolvedModule {
  if (context.parentURL === undefined && specifier.startsWith("file:") && specifier.endsWith("/calls.json")) {
    runCalls = specifier;
    return { url: specifier, format: "module", shortCircuit: true };
  }
  // What this package imports by its own name, Node.js finds; looking it up here would call this hook again.
  if (context.parentURL?.startsWith(ownFiles) === true) return next(specifier, context);
  if (/^skillhost(?:\/|$)/.test(specifier)) return { url: pathToFileURL(require.resolve(specifier)).href, shortCircuit: true };
  const importer = localFile(context.parentURL);
  const file = importer === undefined ? undefined : resolveFrom(specifier, importer);
  // Without a file Node.js finds something else, or says best what is missing.
  return file === undefined ? next(specifier, context) : { url: `${pathToFileURL(file).href}${queryOf(specifier)}`, shortCircuit: true };
}

export function load<Result>(url: string, context: HookContext, next: Next<Result>): Result | LoadedSource {
  const file = localFile(url);
  if (url === runCalls) return { format: "module", source: callTests, shortCircuit: true };
  if (file === undefined || !isCompiled(file)) return next(url, context);
  const text = readFileSync(file, "utf8");
  if (!isTypeScript(file) && !newSyntax.test(text)) return next(url, context);
  return { format: "module", source: toNativeModule(file, text, configs.of(file).settings), shortCircuit: true };
}

// JavaScript is compiled only for syntax that the oldest supported Node.js does not know.
const newSyntax = /^\s*(?:await\s+)?using\s+\w/m;

function isCompiled(file: string): boolean {
  return isTypeScript(file) ? !file.endsWith(".cts") : file.endsWith(".mjs");
}

/** The path of a module that is neither of an installed package nor of this one. */
function localFile(url: string | undefined): string | undefined {
  if (url === undefined || !url.startsWith("file:")) return undefined;
  const file = fileURLToPath(url);
  return installedRoot(file) !== undefined || url.startsWith(ownFiles) ? undefined : file;
}

const ownFiles = new URL("dist/", `${pathToFileURL(packageRoot).href}/`).href;

// In one line: failures say where in the file their call stands, and no other line may look like it.
const callTests = [
  'import { after, test } from "node:test";',
  'import { fileURLToPath } from "node:url";',
  `import { openCallTests } from ${JSON.stringify(`${ownFiles}cli/test-run/stored-call-tests.js`)};`,
  "const { tests, close } = await openCallTests(fileURLToPath(import.meta.url));",
  "after(close);",
  "for (const { name, run } of tests) test(name, run);",
].join(" ");

function resolveFrom(specifier: string, importer: string): string | undefined {
  try {
    const found = resolver.resolve({ specifier, importer, kind: "import", missed: () => {} });
    return "file" in found ? found.file : undefined;
  } catch {
    // Node.js reports it, with the importer.
    return undefined;
  }
}

function queryOf(specifier: string): string {
  return /^\.{0,2}\/|^file:/.test(specifier) ? (/[?#].*$/.exec(specifier)?.[0] ?? "") : "";
}
