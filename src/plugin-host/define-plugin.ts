import { HostError } from "../base/errors.ts";
import { isRecord } from "../base/json.ts";
import type { ArgumentsOf, SchemaObject } from "../tools/define/define-tool.ts";
import type { JsonSchema } from "../tools/tool.ts";
import type { PluginApi } from "./plugin-api.ts";

/** Marks plugins from `definePlugin`, also across copies of this package in one process. */
const pluginBrand: unique symbol = Symbol.for("skillhost.plugin");

/**
 * Options of `definePlugin`.
 *
 * @example
 * ```ts
 * const plugin: PluginOptions = { name: "clock", version: "1.0.0", activate(api) { api.onDispose(() => {}); } };
 * ```
 */
export interface PluginOptions<Config = Readonly<Record<string, unknown>>> {
  /** Up to 64 letters, digits, ".", "_" and "-". Filters, messages and other plugins use this name. */
  readonly name: string;
  /** A semantic version, which must satisfy the ranges of other plugins. */
  readonly version?: string | undefined;
  /** The range of skillhost versions that it supports: `{ skillhost: "^1.2.0" }`. */
  readonly engines?: Readonly<Record<string, string>> | undefined;
  /** Plugins that must be active before it: ranges of versions by name. */
  readonly requires?: Readonly<Record<string, string>> | undefined;
  /**
   * The schema of its configuration: JSON Schema, or the schema of a library, as for a tool's parameters. The configuration is
   * checked and completed with defaults before `activate` runs.
   */
  readonly configSchema?: object | undefined;
  /**
   * Adds the plugin's contributions. They take effect when this has returned or its promise is fulfilled. When it throws, none
   * take effect, and what the plugin opened is disposed of.
   */
  activate(api: PluginApi<Config>): void | Promise<void>;
}

/** A plugin as its author defined it. Frozen. */
export interface Plugin extends PluginOptions {
  readonly [pluginBrand]: true;
}

/**
 * Defines a plugin, for the `plugins` option of `createHost` or as the default export of a module that is named there. None of
 * its code runs before a host activates it. A library's `configSchema` determines the type of `api.config`; with JSON Schema it
 * is a record unless you pass a type: `definePlugin<{ key: string }>({ … })`.
 * @throws HostError `PLUGIN_INVALID` naming the field that is missing or wrong.
 */
export function definePlugin<const Schema extends SchemaObject>(
  options: PluginOptions<ArgumentsOf<Schema>> & { readonly configSchema: Schema },
): Plugin;
export function definePlugin<Config = Readonly<Record<string, unknown>>>(
  options: PluginOptions<Config> & { readonly configSchema?: JsonSchema | undefined },
): Plugin;
export function definePlugin(options: PluginOptions<never>): Plugin {
  if (typeof options !== "object" || options === null) throw invalid("definePlugin takes an object { name, version?, activate(api) }.");
  const { name, version, engines, requires, configSchema, activate } = options;
  if (!isPluginName(name)) {
    throw invalid(`A plugin's name must be up to 64 letters, digits, ".", "_" and "-", beginning with a letter or digit.`);
  }
  if (version !== undefined && typeof version !== "string") throw invalid(`Plugin "${name}": version must be a string.`);
  if (typeof activate !== "function") throw invalid(`Plugin "${name}": activate must be a function.`);
  // The schemas of some libraries are functions.
  if (configSchema !== undefined && (configSchema === null || !/object|function/.test(typeof configSchema))) {
    throw invalid(`Plugin "${name}": configSchema must be a schema.`);
  }
  return Object.freeze({
    name,
    ...(version !== undefined && { version }),
    ...(engines !== undefined && { engines: readRanges(name, "engines", engines) }),
    ...(requires !== undefined && { requires: readRanges(name, "requires", requires) }),
    ...(configSchema !== undefined && { configSchema }),
    activate: (api: PluginApi) => activate.call(options, api as PluginApi<never>),
    [pluginBrand]: true as const,
  });
}

const namePattern = /^[a-zA-Z0-9][\w.-]{0,63}$/;

/** Whether a value is a valid plugin name. */
export function isPluginName(value: unknown): value is string {
  return typeof value === "string" && namePattern.test(value);
}

/** Whether a value was made by `definePlugin`. Never throws. */
export function isPlugin(value: unknown): value is Plugin {
  if (typeof value !== "object" || value === null) return false;
  try {
    return (value as Partial<Plugin>)[pluginBrand] === true;
  } catch {
    // A proxy that throws is not a plugin.
    return false;
  }
}

function readRanges(plugin: string, field: string, value: unknown): Readonly<Record<string, string>> {
  if (!isRecord(value)) throw invalid(`Plugin "${plugin}": ${field} must be an object of semver ranges by name.`);
  for (const [name, range] of Object.entries(value)) {
    if (typeof range !== "string") throw invalid(`Plugin "${plugin}": ${field}[${JSON.stringify(name)}] must be a semver range.`);
  }
  return Object.freeze({ ...(value as Record<string, string>) });
}

function invalid(message: string): HostError {
  return new HostError("PLUGIN_INVALID", message);
}
