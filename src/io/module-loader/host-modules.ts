import { createRequire } from "node:module";
import { extname } from "node:path";
import { pathToFileURL } from "node:url";
import { toError } from "../../base/errors.ts";

export type Namespace = Readonly<Record<string, unknown>>;

/** The modules that the host itself provides, by specifier: namespaces, or functions that fetch them when first needed. */
export type HostModules = Readonly<Record<string, Namespace | (() => Promise<Namespace>)>>;

/** One live namespace per host module, so that classes are the same on both sides, whoever imports it from wherever. */
export class HostNamespaces {
  readonly keys: readonly string[];
  readonly #modules: HostModules;
  readonly #loaded = new Map<string, Namespace>();
  readonly #loading = new Map<string, Promise<Namespace>>();

  constructor(modules: HostModules) {
    this.#modules = modules;
    this.keys = Object.keys(modules);
  }

  /** Whether `loadAll` has nothing left to do. */
  get isComplete(): boolean {
    return this.#loaded.size === this.keys.length;
  }

  /** Concurrent first uses share one fetch; a failed one is forgotten. */
  load(key: string): Promise<Namespace> {
    const loading = this.#loading.get(key) ?? this.#fetch(key);
    this.#loading.set(key, loading);
    return loading;
  }

  /** For code that cannot wait: `require` gives only what is there already. */
  async loadAll(): Promise<ReadonlyMap<string, Namespace>> {
    await Promise.all(this.keys.map((key) => this.load(key)));
    return this.#loaded;
  }

  get(key: string): Namespace | undefined {
    return this.#loaded.get(key);
  }

  async #fetch(key: string): Promise<Namespace> {
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
