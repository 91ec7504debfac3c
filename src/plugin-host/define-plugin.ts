import { HostError } from "../base/errors.ts";
import type { PluginApi } from "./plugin-api.ts";

/** Marks what `definePlugin` returns, also across copies of this package in one process. */
const pluginBrand: unique symbol = Symbol.for("skillhost.plugin");

export interface PluginOptions {
  /** Letters, digits, ".", "_" and "-", up to 64: what filters, messages and other plugins call it by. */
  readonly name: string;
  readonly version?: string | undefined;
  /**
   * Adds what the plugin brings. It counts once this has returned or its promise is fulfilled; when it throws, nothing
   * of the plugin counts and what it opened is disposed of.
   */
  activate(api: PluginApi): void | Promise<void>;
}

/** A plugin as its author wrote it, not yet part of a host. Frozen. */
export interface Plugin extends PluginOptions {
  readonly [pluginBrand]: true;
}

/**
 * Defines a plugin, for the `plugins` option of `createHost` or as the default export of a module that is named there.
 * No code of it runs before a host activates it.
 * @throws HostError `PLUGIN_INVALID` naming the field that is missing or wrong.
 */
export function definePlugin(options: PluginOptions): Plugin {
  if (typeof options !== "object" || options === null) throw invalid("definePlugin takes an object { name, version?, activate(api) }.");
  const { name, version, activate } = options;
  if (typeof name !== "string" || !namePattern.test(name)) {
    throw invalid(`A plugin's name must be up to 64 letters, digits, ".", "_" and "-", beginning with a letter or digit.`);
  }
  if (version !== undefined && typeof version !== "string") throw invalid(`Plugin "${name}": version must be a text.`);
  if (typeof activate !== "function") throw invalid(`Plugin "${name}": activate must be a function.`);
  return Object.freeze({
    name,
    ...(version !== undefined && { version }),
    activate: (api: PluginApi) => activate.call(options, api),
    [pluginBrand]: true as const,
  });
}

const namePattern = /^[a-zA-Z0-9][\w.-]{0,63}$/;

/** Whether a value was made by `definePlugin`. Never throws. */
export function isPlugin(value: unknown): value is Plugin {
  if (typeof value !== "object" || value === null) return false;
  try {
    return (value as Partial<Plugin>)[pluginBrand] === true;
  } catch {
    // A proxy that throws: whatever it is, it is no plugin.
    return false;
  }
}

function invalid(message: string): HostError {
  return new HostError("PLUGIN_INVALID", message);
}
