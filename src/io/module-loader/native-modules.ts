import { createRequire } from "node:module";
import { extname } from "node:path";
import { pathToFileURL } from "node:url";
import type { Namespace } from "./host-modules.ts";

/** Imports a package's file as Node.js does: evaluated once per process, whatever is reloaded around it. */
export async function importNative(file: string): Promise<Namespace> {
  // Node.js wants an import attribute for JSON, which the transform does not carry, and does not import addons at all.
  if ([".json", ".node"].includes(extname(file))) return { default: createRequire(file)(file) };
  return (await import(/* @vite-ignore */ pathToFileURL(file).href)) as Namespace;
}

/** Imports what is no file: a Node.js module or a `data:` URL. */
export async function importUrl(specifier: string): Promise<Namespace> {
  return (await import(/* @vite-ignore */ specifier)) as Namespace;
}

/**
 * A namespace that also has the names which a CommonJS package sets in a way that static analysis cannot see. Type
 * checkers allow importing them, so they are found here as well.
 */
export function withNames(namespace: Namespace, names: readonly string[]): Namespace {
  if (names.every((name) => name in namespace)) return namespace;
  const fallback = namespace["default"];
  if ((typeof fallback !== "object" && typeof fallback !== "function") || fallback === null) return namespace;
  const known = widened.get(namespace) ?? Object.assign(Object.create(null), fallback, namespace);
  widened.set(namespace, known);
  return known;
}

const widened = new WeakMap<Namespace, Namespace>();
