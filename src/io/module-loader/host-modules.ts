import { createRequire } from "node:module";
import { extname } from "node:path";
import { pathToFileURL } from "node:url";
import { toError } from "../../base/errors.ts";

export type Namespace = Readonly<Record<string, unknown>>;

/** The modules that the host itself provides, by specifier: namespaces, or functions that load them on first use. */
export type HostModules = Readonly<Record<string, Namespace | (() => Promise<Namespace>)>>;

/** One live namespace per host module, so that all importers share the same classes. */
export class HostNamespaces {
  readonly keys: readonly string[];
  readonly #modules: HostModules;
  readonly #loaded = new Map<string, Namespace>();
  readonly #loading = new Map<string, Promise<Namespace>>();

  constructor(modules: HostModules) {
    this.#modules = modules;
    this.keys = Object.keys(modules);
  }

  /** Whether all host modules are loaded. */
  get isComplete(): boolean {
    return this.#loaded.size === this.keys.length;
  }

  /** Concurrent first uses share one load. A failed load is not cached. */
  load(key: string): Promise<Namespace> {
    const loading = this.#loading.get(key) ?? this.#loadOnce(key);
    this.#loading.set(key, loading);
    return loading;
  }

  /** Loads all host modules, because `require` can return only loaded ones. */
  async loadAll(): Promise<ReadonlyMap<string, Namespace>> {
    await Promise.all(this.keys.map((key) => this.load(key)));
    return this.#loaded;
  }

  get(key: string): Namespace | undefined {
    return this.#loaded.get(key);
  }

  async #loadOnce(key: string): Promise<Namespace> {
    try {
      const module = this.#modules[key]!;
      const namespace = typeof module === "function" ? await module() : module;
      this.#loaded.set(key, namespace);
      return namespace;
    } catch (error) {
      this.#loading.delete(key);
      throw toError(error);
    }
  }
}

/** Imports a package's file like Node.js: once per process, independently of reloads. */
export async function importNative(file: string): Promise<Namespace> {
  // Node.js requires an import attribute for JSON, which the transform drops, and cannot import addons at all.
  if ([".json", ".node"].includes(extname(file))) return { default: createRequire(file)(file) };
  return (await import(/* @vite-ignore */ pathToFileURL(file).href)) as Namespace;
}

/** Imports a Node.js module or a `data:` URL. */
export async function importUrl(specifier: string): Promise<Namespace> {
  return (await import(/* @vite-ignore */ specifier)) as Namespace;
}

/**
 * Adds the names that a CommonJS package exports in a way that static analysis does not detect. Type checkers accept imports of
 * these names, so they must work.
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
