import { createRequire } from "node:module";
import type { TransformResult } from "esbuild-wasm";

const require = createRequire(import.meta.url);

/**
 * Rewrites syntax that this Node.js cannot run yet (decorators, accessors, `using`) into what it can. Slow the first
 * time, half a second, so only for texts that really need it.
 */
export function lowerSyntax(code: string): { readonly code: string; readonly map: string } {
  const esbuild = require("esbuild-wasm") as typeof import("esbuild-wasm");
  const result: TransformResult = esbuild.transformSync(code, {
    loader: "js",
    format: "esm",
    target: `node${process.versions.node}`,
    sourcemap: "external",
    logLevel: "silent",
  });
  return { code: result.code, map: result.map };
}
