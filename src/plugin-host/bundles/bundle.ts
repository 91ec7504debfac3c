import type { Diagnostic } from "../../base/diagnostic.ts";
import type { Logger } from "../../base/logger.ts";
import type { HookCommand } from "../../formats/plugins/hook-config.ts";
import type { BundleDialect } from "../../formats/plugins/plugin-dialects.ts";
import type { PluginAgent, PluginCommand } from "../plugin-api.ts";
import type { Sources } from "./component-sources.ts";

/** A folder with skills, agents, hooks and servers that was made for some agent, as it was read. Immutable. */
export interface Bundle {
  /** The folder's name where the manifest gives none, or cannot be read. */
  readonly name: string;
  readonly version?: string;
  readonly description?: string;
  readonly dialect: BundleDialect;
  /** Absolute. */
  readonly folder: string;
  /** Absolute. Absent: the folder has no manifest. */
  readonly manifestFile?: string;
  /** Its manifest forbids to use it, or cannot be read: nothing of it counts. */
  readonly isRefused: boolean;
  /** Absolute: skill folders, or folders of them. */
  readonly skillDirectories: readonly string[];
  /** The names of the skill folders, as they were when it was read. */
  readonly skills: readonly string[];
  readonly agents: readonly PluginAgent[];
  readonly commands: readonly PluginCommand[];
  readonly hooks: readonly HookCommand[];
  /** As the options of a session take them: literal. */
  readonly mcpServers: ReadonlyMap<string, object>;
  /** Files whose text is put before every conversation. */
  readonly context: readonly BundleContext[];
  /** What is wrong with it, each part on its own. */
  readonly diagnostics: readonly Diagnostic[];
  /** The files whose change may make it another: all but those of its skills, which are loaded by themselves. */
  readonly files: ReadonlySet<string>;
  /** The folder in which it may keep what is to last. It is made when something of the bundle needs it. */
  readonly data: BundleData;
}

export interface BundleContext {
  /** Relative to the bundle. */
  readonly path: string;
  readonly text: string;
}

/** What a marketplace says about a bundle that it lists. */
export interface ListedEntry extends Pick<Sources, "given" | "replacesSkills"> {
  readonly name: string;
  readonly version: string | undefined;
  readonly description: string | undefined;
  /** False: the entry is the whole definition, and a manifest must not name parts. True: it is added to the manifest. */
  readonly isStrict: boolean;
  /** The marketplace's file. */
  readonly file: string;
}

export interface BundleData {
  /** Absolute. */
  readonly path: string;
  /** Makes it if it is not there. @throws the system's error. */
  ensure(): string;
}

export interface BundleOptions {
  /** Where sessions work: what bundles call the project or workspace. */
  readonly workingDirectory: string;
  /** Holds a folder for each bundle that wants to keep something. */
  readonly dataDirectory: string;
  /**
   * Whether the programs that its hooks name may run. Whoever names a bundle in a configuration or option wants it whole;
   * one that was found some other way should have them off.
   */
  readonly hooks?: "run" | "off" | undefined;
  /** True: nothing is made on the disk, so what it brings is only to be looked at. */
  readonly isDry?: boolean | undefined;
  /** What its variables are filled with. Default: the process's. */
  readonly environment?: Readonly<Record<string, string | undefined>> | undefined;
  /** What a person was asked for, by name: `${user_config.name}` in its MCP servers. */
  readonly settings?: Readonly<Record<string, string>> | undefined;
  /** What the marketplace that lists it says. Absent: what one in the folder says about the folder itself, if that has no manifest. */
  readonly listed?: ListedEntry | undefined;
  readonly log: Logger;
}
