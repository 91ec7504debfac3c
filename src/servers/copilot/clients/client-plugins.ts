import { isDeepStrictEqual } from "node:util";
import type { Diagnostic } from "../../../base/diagnostic.ts";
import type { HookCommand } from "../../../formats/plugins/hook-config.ts";
import type { SessionBundles } from "../../../plugin-host/bundles/bundle-plugin.ts";
import type { SessionHooks } from "../../../session/hooks/hook-kinds.ts";
import type { SessionOptions } from "../../../session/session-config.ts";

interface PluginHook {
  /** The plugin. */
  readonly name: string;
  readonly folder: string;
  readonly command: HookCommand;
}

/** The plugins of one session, from folders. Disposed of with the session. */
export class ClientPlugins implements Disposable {
  /** The folders that its client named. */
  readonly named: readonly string[];
  readonly #bundles: SessionBundles | undefined;
  readonly #ending: AbortController;
  /** Replaced ones whose hooks still run. */
  #earlier: ClientPlugins | undefined;

  constructor(named: readonly string[], bundles: SessionBundles | undefined, ending: AbortController) {
    this.named = named;
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

  /** The change of a session with these options that replaces what these plugins contribute by what others do, except hooks. */
  changeTo(next: ClientPlugins, { skillDirectories = [], customAgents = [], mcpServers = {} }: SessionOptions): SessionOptions {
    const own = this.addTo({});
    const isOwn = (list: readonly unknown[] | undefined, value: unknown): boolean =>
      list?.some((other) => isDeepStrictEqual(other, value)) === true;
    return next.addTo({
      skillDirectories: skillDirectories.filter((directory) => !isOwn(own.skillDirectories, directory)),
      customAgents: customAgents.filter((agent) => !isOwn(own.customAgents, agent)),
      mcpServers: Object.fromEntries(
        Object.entries(mcpServers).filter(([name, config]) => !isDeepStrictEqual(own.mcpServers?.[name], config)),
      ),
    });
  }

  /** Lets the hooks of other plugins run as long as these do. */
  keepHooksOf(earlier: ClientPlugins): void {
    this.#earlier = earlier;
  }

  /** The commands of their hooks, by the plugin. */
  get hooks(): readonly PluginHook[] {
    const bundles = this.#bundles?.bundles ?? [];
    return bundles
      .filter(({ isRefused }) => !isRefused)
      .flatMap(({ name, folder, hooks }) => hooks.map((command) => ({ name, folder, command })));
  }

  /** What is wrong with the plugins. */
  get diagnostics(): readonly Diagnostic[] {
    return this.#bundles?.diagnostics ?? [];
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
    this.#earlier?.[Symbol.dispose]();
  }
}
