import { createHash } from "node:crypto";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { transformSync } from "oxc-transform";

const root = fileURLToPath(new URL("..", import.meta.url));
const cache = join(root, "node_modules/.cache/skillhost-tests");
const unusedMs = 60 * 60 * 1000;

export interface BuiltPackage {
  /** Its folder, which has `dist` and `package.json` as the published one. */
  readonly folder: string;
  /** The command line, which can be run by itself. */
  readonly bin: string;
}

/**
 * The package as it is installed, with its plugins, made of the sources as they are now. Whoever asks for the same
 * sources gets the same folder, so it must not be written to. Lies where packages are found as from the sources.
 */
export function buildPackage(): BuiltPackage {
  const sources = readSources();
  const folder = join(cache, `package-${digestOf(sources)}`);
  if (!existsSync(folder)) write(sources, folder);
  return { folder, bin: join(folder, "dist/cli/bin.js") };
}

/** What the build makes of a file and what it is made of, with the manifest as it is. */
type Sources = ReadonlyMap<string, string>;

function readSources(): Sources {
  const sources = new Map([["package.json", readFileSync(join(root, "package.json"), "utf8")]]);
  for (const [from, to] of [
    ["src", "dist"],
    ["plugins", "dist/plugins"],
  ] as const) {
    for (const file of readdirSync(join(root, from), { recursive: true, encoding: "utf8" })) {
      if (file.endsWith(".ts")) sources.set(join(to, file), readFileSync(join(root, from, file), "utf8"));
    }
  }
  return sources;
}

function digestOf(sources: Sources): string {
  const hash = createHash("sha256");
  for (const [file, text] of sources) hash.update(`${file}\0${text}\0`);
  return hash.update(usingContext).digest("hex").slice(0, 16);
}

function write(sources: Sources, folder: string): void {
  mkdirSync(cache, { recursive: true });
  removeUnused();
  const target = mkdtempSync(join(cache, "building-"));
  for (const [file, text] of sources) {
    const path = join(target, file.replace(/\.ts$/, ".js"));
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, file.endsWith(".ts") ? compile(file, text) : text);
  }
  writeFileSync(join(target, "dist", usingHelper), usingContext);
  chmodSync(join(target, "dist/cli/bin.js"), 0o755);
  try {
    renameSync(target, folder);
  } catch (error) {
    // Another process was quicker, and made the same.
    rmSync(target, { recursive: true, force: true });
    if (!existsSync(folder)) throw error;
  }
}

function compile(file: string, text: string): string {
  // As tsconfig.build.json has it: the oldest Node that counts does not know `using`.
  const { code, errors } = transformSync(file, text, { target: "es2023", typescript: { rewriteImportExtensions: "rewrite" } });
  if (errors.length > 0) throw new Error(`${file}: ${errors[0]?.message}`);
  const up = "../".repeat(file.split(/[\\/]/).length - 2) || "./";
  return code.replace('"@oxc-project/runtime/helpers/usingCtx"', `"${up}${usingHelper}"`);
}

const usingHelper = "using-context.js";

/** What the compiler puts in the place of `using`: `u` and `a` take what is to be disposed of, `d` does it, `e` is what was thrown. */
const usingContext = `const none = {};
export default function usingContext() {
  const stack = [];
  let isAsync = false;
  const take = (value, awaits) => {
    isAsync ||= awaits;
    if (value === null || value === undefined) return value;
    const dispose = (awaits ? value[Symbol.asyncDispose] : undefined) ?? value[Symbol.dispose];
    if (typeof dispose !== "function") throw new TypeError("The object is not disposable.");
    stack.push(() => dispose.call(value));
    return value;
  };
  return {
    e: none,
    u: (value) => take(value, false),
    a: (value) => take(value, true),
    d() {
      let error = this.e;
      const note = (thrown) => {
        error = error === none ? thrown : Object.assign(new Error("Two errors.", { cause: error }), { error: thrown, suppressed: error });
      };
      const rethrow = () => {
        if (error !== none) throw error;
      };
      const disposeAll = async () => {
        while (stack.length > 0) {
          try {
            await stack.pop()();
          } catch (thrown) {
            note(thrown);
          }
        }
        rethrow();
      };
      if (isAsync) return disposeAll();
      while (stack.length > 0) {
        try {
          stack.pop()();
        } catch (thrown) {
          note(thrown);
        }
      }
      rethrow();
    },
  };
}
`;

/** Packages of sources that have changed since. Those of the last hour may be in use. */
function removeUnused(): void {
  for (const name of readdirSync(cache)) {
    const path = join(cache, name);
    const isOld = /^(package|building)-/.test(name) && Date.now() - statSync(path).mtimeMs > unusedMs;
    if (isOld) rmSync(path, { recursive: true, force: true });
  }
}
