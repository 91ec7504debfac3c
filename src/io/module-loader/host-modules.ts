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
