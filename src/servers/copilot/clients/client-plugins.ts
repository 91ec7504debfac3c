import type { SessionBundles } from "../../../plugin-host/bundles/session-bundles.ts";
import type { SessionHooks } from "../../../session/hooks/hook-kinds.ts";
import type { SessionOptions } from "../../../session/session-config.ts";

/** The folders of plugins that a session has, and what is in them. It goes with the session. */
export class ClientPlugins implements Disposable {
  readonly directories: readonly string[];
  readonly #bundles: SessionBundles | undefined;
  readonly #ending: AbortController;

  constructor(directories: readonly string[], bundles: SessionBundles | undefined, ending: AbortController) {
    this.directories = directories;
    this.#bundles = bundles;
    this.#ending = ending;
  }

  /** A session's options with what the plugins bring; what a client says itself comes first. */
  addTo(options: SessionOptions): SessionOptions {
    return this.#bundles?.addTo(options) ?? options;
  }

  /**
   * The options of a session that goes on. What it recorded has the plugins' skills and agents in it already, and must not
   * be taken for what its client says anew.
   */
  addToChange(change: SessionOptions): SessionOptions {
    if (this.#bundles === undefined) return change;
    const { skillDirectories, customAgents, ...added } = this.addTo(change);
    return {
      ...added,
      ...(change.skillDirectories !== undefined && { skillDirectories }),
      ...(change.customAgents !== undefined && { customAgents }),
    };
  }

  /** The hooks of the plugins, and after them those of clients. */
  withHooks(hooks: SessionHooks | undefined): SessionHooks | undefined {
    return this.#bundles?.addTo({ hooks }).hooks ?? hooks;
  }

  /** The plugins as clients list them. */
  get listed(): readonly object[] {
    const bundles = this.#bundles?.bundles ?? [];
    return bundles.map(({ name, version, isRefused }) => ({
      name,
      marketplace: "",
      ...(version !== undefined && { version }),
      enabled: !isRefused,
    }));
  }

  [Symbol.dispose](): void {
    this.#ending.abort(new Error("The session has ended."));
  }
}
