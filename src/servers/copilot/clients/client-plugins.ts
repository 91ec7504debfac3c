import type { SessionBundles } from "../../../plugin-host/bundles/bundle-plugin.ts";
import type { SessionHooks } from "../../../session/hooks/hook-kinds.ts";
import type { SessionOptions } from "../../../session/session-config.ts";

/** The plugins of one session, from folders. Disposed of with the session. */
export class ClientPlugins implements Disposable {
  readonly directories: readonly string[];
  readonly #bundles: SessionBundles | undefined;
  readonly #ending: AbortController;

  constructor(directories: readonly string[], bundles: SessionBundles | undefined, ending: AbortController) {
    this.directories = directories;
    this.#bundles = bundles;
    this.#ending = ending;
  }

  /** Adds what the plugins contribute to session options. The client's own options take precedence. */
  addTo(options: SessionOptions): SessionOptions {
    return this.#bundles?.addTo(options) ?? options;
  }

  /**
   * Adds what the plugins contribute to the options of a resumed session. Its recorded options already contain the plugins'
   * skills and agents, so these are added only when the client names new ones.
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

  /** The hooks of the plugins, followed by those of clients. */
  withHooks(hooks: SessionHooks | undefined): SessionHooks | undefined {
    return this.#bundles?.addTo({ hooks }).hooks ?? hooks;
  }

  /** The plugins in the form of the protocol. */
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
