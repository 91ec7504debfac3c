import type { BundleDialect } from "../../formats/plugins/plugin-dialects.ts";
import type { PluginManifest } from "../../formats/plugins/plugin-manifest.ts";

/** What a manifest says of a bundle's components; a bundle without one says nothing. */
export interface Sources {
  readonly dialect: BundleDialect;
  readonly name: string;
  readonly given: PluginManifest["components"];
  /** Where paths were named, and inline components stand. */
  readonly manifestFile: string;
  readonly manifestText: string;
  /** Names of environment variables that its MCP servers get. */
  readonly variables: readonly string[];
}
