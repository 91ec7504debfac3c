import type { BundleDialect, ComponentKind } from "../../formats/plugins/plugin-dialects.ts";
import type { ComponentSource, Components } from "../../formats/plugins/plugin-manifest.ts";

/** A component that is named, or written, in a manifest or in the entry of a marketplace. */
export type PlacedSource = ComponentSource & {
  /** The file that says so, and its text. */
  readonly file: string;
  readonly text: string;
};

/** What is said of a bundle's components; a bundle without a manifest says nothing. */
export interface Sources {
  readonly dialect: BundleDialect;
  readonly name: string;
  readonly given: Readonly<Partial<Record<ComponentKind, readonly PlacedSource[]>>>;
  /** The usual folder of skills does not count, although the dialect adds it to those that are named. */
  readonly replacesSkills: boolean;
  /** The manifest, or the folder where there is none. */
  readonly manifestFile: string;
  /** Names of environment variables that its MCP servers get. */
  readonly variables: readonly string[];
}

/** Components with the file that names them. */
export function placedIn(components: Components, file: string, text: string): Sources["given"] {
  return Object.fromEntries(
    Object.entries(components).map(([kind, sources]) => [kind, sources.map((source): PlacedSource => ({ ...source, file, text }))]),
  );
}

/** The components of both, the first's first. */
export function joinedSources(one: Sources["given"], other: Sources["given"]): Sources["given"] {
  const kinds = new Set([...Object.keys(one), ...Object.keys(other)]) as Set<ComponentKind>;
  return Object.fromEntries([...kinds].map((kind) => [kind, [...(one[kind] ?? []), ...(other[kind] ?? [])]]));
}
