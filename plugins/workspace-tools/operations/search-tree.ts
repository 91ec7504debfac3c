import { stat } from "node:fs/promises";
import { type GlobPattern, parseGlob } from "./glob-pattern.ts";
import type { Place } from "./places.ts";
import { type FoundFile, type WalkOptions, walkFiles } from "./walk-files.ts";

/** A file or folder to search. */
export interface SearchRoot {
  readonly place: Place;
  readonly isFolder: boolean;
}

/** The search root at a place. Undefined: it is missing, or neither a file nor a folder. */
export async function toSearchRoot(place: Place): Promise<SearchRoot | undefined> {
  try {
    const stats = await stat(place.real);
    return stats.isDirectory() || stats.isFile() ? { place, isFolder: stats.isDirectory() } : undefined;
  } catch {
    // Missing or not accessible.
    return undefined;
  }
}

/** Selects files by name. */
export interface FileFilter {
  /** `names`: relative to the searched folder. */
  accepts(names: readonly string[]): boolean;
  /** Whether it includes files whose names begin with a dot. */
  readonly hidden: boolean;
}

/** Parses the filters of a search, or returns the one that is invalid. */
export function parseFileFilter({
  glob,
  type,
}: {
  readonly glob?: string | undefined;
  readonly type?: string | undefined;
}): FileFilter | string {
  const ofType = type === undefined ? undefined : globsOfType(type);
  if (type !== undefined && ofType === undefined) return `the type "${type.slice(0, 50)}" is not known`;
  const isNegated = glob?.startsWith("!") === true;
  const own = glob === undefined ? undefined : parseNames(isNegated ? glob.slice(1) : glob);
  if (glob !== undefined && own === undefined) return "the glob is too long or has too many alternatives";
  const types = ofType?.map((pattern) => parseNames(pattern)!);
  return {
    hidden: !isNegated && glob !== undefined && namesHidden(glob),
    accepts(names) {
      const path = names.join("/");
      if (types?.some((pattern) => pattern.matches(path)) === false) return false;
      return own === undefined || own.matches(path) !== isNegated;
    },
  };
}

/** Whether a pattern contains a name that begins with a dot. */
export function namesHidden(glob: string): boolean {
  return /(^|[/{,])\.[^./{},]/.test(glob);
}

/** As in ignore files, a pattern without a slash matches names at any depth. */
export function parseNames(glob: string): GlobPattern | undefined {
  const text = glob.replace(/^\.?\//, "");
  return parseGlob(glob.includes("/") ? text : `**/${text}`);
}

/** Limits a search in steps, and to paths that may be read. */
export type SearchBounds = Pick<WalkOptions, "signal" | "steps" | "isKeptBack">;

/** The files below a root that a filter accepts. A root that is a file is always included. */
export async function* filesOf(root: SearchRoot, filter: FileFilter, bounds: SearchBounds): AsyncGenerator<FoundFile, boolean> {
  if (!root.isFolder) {
    yield { path: root.place.real, names: [] };
    return false;
  }
  const walk = walkFiles(root.place.real, { ...bounds, top: root.place.root, hidden: filter.hidden });
  for (;;) {
    const { done, value } = await walk.next();
    if (done === true) return value.isPart;
    if (filter.accepts(value.names)) yield value;
  }
}

/** File types by the names that ripgrep uses, with their name patterns. */
const globs: Readonly<Record<string, readonly string[]>> = Object.assign(Object.create(null), {
  c: ["*.c", "*.h"],
  cpp: ["*.cpp", "*.cc", "*.cxx", "*.hpp", "*.hh", "*.hxx", "*.h", "*.inl"],
  cs: ["*.cs"],
  css: ["*.css", "*.scss"],
  csv: ["*.csv"],
  dart: ["*.dart"],
  docker: ["*Dockerfile*", "*.dockerfile"],
  elixir: ["*.ex", "*.exs", "*.eex", "*.heex"],
  go: ["*.go"],
  graphql: ["*.graphql", "*.graphqls"],
  haskell: ["*.hs", "*.lhs"],
  html: ["*.html", "*.htm", "*.ejs"],
  java: ["*.java", "*.jsp"],
  js: ["*.js", "*.jsx", "*.mjs", "*.cjs", "*.vue"],
  json: ["*.json", "*.jsonl", "*.sarif"],
  kotlin: ["*.kt", "*.kts"],
  lua: ["*.lua"],
  make: ["Makefile", "makefile", "GNUmakefile", "*.mk", "*.mak"],
  markdown: ["*.md", "*.markdown", "*.mdx"],
  md: ["*.md", "*.markdown", "*.mdx"],
  perl: ["*.pl", "*.pm", "*.t"],
  php: ["*.php", "*.phtml"],
  protobuf: ["*.proto"],
  ps: ["*.ps1", "*.psm1", "*.psd1"],
  py: ["*.py", "*.pyi"],
  python: ["*.py", "*.pyi"],
  r: ["*.R", "*.r", "*.Rmd"],
  ruby: ["*.rb", "*.gemspec", "Gemfile", "Rakefile"],
  rust: ["*.rs"],
  scala: ["*.scala", "*.sbt"],
  sh: ["*.sh", "*.bash", "*.zsh", ".bashrc", ".zshrc", ".profile"],
  sql: ["*.sql"],
  svelte: ["*.svelte", "*.svelte.ts"],
  swift: ["*.swift"],
  toml: ["*.toml", "Cargo.lock"],
  ts: ["*.ts", "*.tsx", "*.mts", "*.cts"],
  txt: ["*.txt"],
  typescript: ["*.ts", "*.tsx", "*.mts", "*.cts"],
  vue: ["*.vue"],
  xml: ["*.xml", "*.xsd", "*.xsl", "*.xslt", "*.svg"],
  yaml: ["*.yaml", "*.yml"],
  zig: ["*.zig"],
});

/** The patterns of a file type. Undefined: unknown type. */
function globsOfType(type: string): readonly string[] | undefined {
  return globs[type];
}
