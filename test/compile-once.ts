import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { transformSync } from "oxc-transform";

const cache = fileURLToPath(new URL("../node_modules/.cache/skillhost-tests", import.meta.url));
const unusedMs = 60 * 60 * 1000;

/**
 * Writes these files to a folder and returns its path. TypeScript is compiled to JavaScript; a package also gets declarations.
 * All processes share one folder for the same files, so tests must not write to it. It lies below node_modules, so that the
 * same packages resolve as from the sources.
 */
export function compileOnce(kind: "compiled" | "package", files: ReadonlyMap<string, string>): string {
  return makeOnce(`${kind}-${digestOf(files)}`, (folder) => write(kind, files, folder));
}

/** Has a folder of this name filled, unless it was before. The name must be another one for another content. */
export function makeOnce(name: string, fill: (folder: string) => void): string {
  const folder = join(cache, name);
  if (existsSync(folder)) {
    // It is in use, so that it is not removed as outdated.
    utimesSync(folder, new Date(), new Date());
    return folder;
  }
  mkdirSync(cache, { recursive: true });
  removeUnused();
  const target = mkdtempSync(join(cache, "building-"));
  fill(target);
  try {
    renameSync(target, folder);
  } catch (error) {
    // Another process was quicker and created the same folder.
    rmSync(target, { recursive: true, force: true });
    if (!existsSync(folder)) throw error;
  }
  return folder;
}

function digestOf(files: ReadonlyMap<string, string>): string {
  const hash = createHash("sha256");
  for (const [file, text] of files) hash.update(`${file}\0${text}\0`);
  return hash.update(usingContext).digest("hex").slice(0, 16);
}

function write(kind: "compiled" | "package", files: ReadonlyMap<string, string>, target: string): void {
  for (const [file, text] of files) {
    const path = join(target, file.replace(/\.ts$/, ".js"));
    mkdirSync(dirname(path), { recursive: true });
    const compiled = file.endsWith(".ts") ? compile(file, text, kind === "package") : { code: text };
    writeFileSync(path, compiled.code);
    if (compiled.declaration !== undefined) writeFileSync(path.replace(/\.js$/, ".d.ts"), compiled.declaration);
    if (text.startsWith("#!")) chmodSync(path, 0o755);
  }
  writeFileSync(join(target, usingHelper), usingContext);
  if (kind === "package") bundle(target);
}

/** Makes `shipped/` of a compiled package: the few files that users get, which start faster. */
function bundle(folder: string): void {
  const script = fileURLToPath(new URL("../scripts/bundle.mjs", import.meta.url));
  execFileSync(process.execPath, [script, "--compiled", join(folder, "dist"), "--dist", join(folder, "shipped/dist")], { stdio: "pipe" });
  copyFileSync(join(folder, "package.json"), join(folder, "shipped/package.json"));
}

function compile(file: string, text: string, isDeclared: boolean): { readonly code: string; readonly declaration?: string | undefined } {
  // The same target as tsconfig.build.json: the oldest supported Node does not know `using`.
  const typescript = { rewriteImportExtensions: "rewrite", ...(isDeclared && { declaration: { stripInternal: true } }) } as const;
  const { code, declaration, errors } = transformSync(file, text, { target: "es2023", typescript });
  if (errors.length > 0) throw new Error(`${file}: ${errors[0]?.message}`);
  const up = "../".repeat(file.split(/[\\/]/).length - 1) || "./";
  return { code: code.replace('"@oxc-project/runtime/helpers/usingCtx"', `"${up}${usingHelper}"`), declaration };
}

const usingHelper = "using-context.js";

/** The helper with which the compiler replaces `using`: `u` and `a` register disposables, `d` disposes of them, `e` is the thrown error. */
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

/** Removes folders of outdated sources. Those of the last hour may be in use. */
function removeUnused(): void {
  for (const name of readdirSync(cache)) {
    const path = join(cache, name);
    // Another process may remove the same folder concurrently.
    const modified = /^(compiled|package|program|building)-/.test(name) ? statSync(path, { throwIfNoEntry: false })?.mtimeMs : undefined;
    if (modified !== undefined && Date.now() - modified > unusedMs) rmSync(path, { recursive: true, force: true });
  }
}
