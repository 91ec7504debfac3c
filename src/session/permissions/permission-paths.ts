import { type Dirent, existsSync, lstatSync, readdirSync, readlinkSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, isAbsolute, join, posix, resolve, sep } from "node:path";
import { matchesPath } from "../../base/text.ts";
import { realPathOfDeepest } from "../../io/confine-path.ts";

/** A pattern below a folder. The folder is itself whatever characters its name has, the rest may hold wildcards. */
interface Place {
  readonly folder: string;
  readonly rest: string;
}

export interface PathPattern {
  /** As it is written. */
  readonly written: Place;
  /** Where it leads: looked up when it is first needed. */
  readonly real: () => RealPlaces;
}

interface RealPlaces {
  /** What the pattern allows: links within a pattern that is relative are not its author's, so they lead nowhere. */
  readonly allowed: Place | undefined;
  readonly forbidden: readonly Place[];
}

/**
 * A pattern is relative to the working directory, to the home folder after `~/`, or absolute. A slash at its end means
 * all that is below.
 */
export function toPathPattern(text: string, workingDirectory: string): PathPattern {
  const local = sep === "\\" ? text.replaceAll("\\", "/") : text;
  const whole = local === "~" || local.endsWith("/") ? `${local.replace(/\/$/, "")}/**` : local;
  const written = toPlace(whole, workingDirectory);
  let real: RealPlaces | undefined;
  return {
    written,
    real() {
      real ??= lookUp(written, isAbsolute(whole));
      return real;
    },
  };
}

/** A path that a request names, as it is written and as it leads, links followed. */
export interface RequestedPath {
  readonly written: string;
  /** Undefined: where it leads is unknown. */
  readonly real: string | undefined;
}

/** Undefined: it is not a path at all. */
export function readPath(value: unknown, workingDirectory: string): RequestedPath | undefined {
  if (typeof value !== "string" || value === "" || value.includes("\0")) return undefined;
  const written = resolve(workingDirectory, value);
  return { written: slashed(written), real: realPath(written) };
}

/** Only where a path really leads counts. */
export function allowsPath(pattern: PathPattern, { real }: RequestedPath): boolean {
  if (real === undefined) return false;
  const { allowed } = pattern.real();
  return allowed !== undefined && matchesPlace(allowed, real);
}

/** A path is forbidden as it is written and as it leads, and with a folder all that is in it. */
export function forbidsPath(pattern: PathPattern, { written, real = written }: RequestedPath): boolean {
  const places = [pattern.written, ...pattern.real().forbidden].map(({ folder, rest }) => ({ folder: folded(folder), rest: folded(rest) }));
  return [written, real].map(folded).some((path) => places.some((place) => isAtOrBelow(place, path)));
}

/**
 * A path as the system would follow it: links and `..` in the order in which they come, where `resolve` takes `..` away
 * first. Undefined: it leads through what is another file for each process (`/proc/self`, `/dev/fd`), or is a device.
 */
export function readFollowedPath(path: string): RequestedPath | undefined {
  if (path.includes("\0")) return undefined;
  if (sep === "\\") return readPath(path, "/");
  const real = followPath(path);
  return real === undefined ? undefined : { written: slashed(resolve(path)), real: slashed(real) };
}

const maxLinks = 40;

function followPath(path: string): string | undefined {
  const rest = path.split("/").reverse();
  let at = "/";
  let links = 0;
  for (let name = rest.pop(); name !== undefined; name = rest.pop()) {
    if (name === "" || name === ".") continue;
    if (name === "..") {
      at = dirname(at);
      continue;
    }
    if (at === "/dev" && plainDevices.has(name)) return rest.length === 0 ? join(at, name) : undefined;
    const next = join(at, name);
    if (isProcessBound(next)) return undefined;
    const target = linkTarget(next);
    if (target === undefined) at = next;
    else if (++links > maxLinks) return next;
    else {
      if (target.startsWith("/")) at = "/";
      rest.push(...target.split("/").reverse());
    }
  }
  return at;
}

const plainDevices: ReadonlySet<string> = new Set(["null", "zero", "full", "random", "urandom", "stdin", "stdout", "stderr", "tty"]);

/** All of /proc but what is the same for each process, and all devices but those that hold nothing. */
function isProcessBound(path: string): boolean {
  const [, root, first = ""] = path.split("/");
  if (first === "") return false;
  if (root === "proc") return !/^(?:cpuinfo|meminfo|version|uptime|loadavg|stat|filesystems|sys)$/.test(first);
  return root === "dev" && first !== "shm";
}

function linkTarget(path: string): string | undefined {
  try {
    return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true ? readlinkSync(path) : undefined;
  } catch {
    // Closed to us, and so to the shell.
    return undefined;
  }
}

/** How a program goes through a folder. */
export interface TreeWalk {
  readonly followsLinks: boolean;
  readonly skipsHidden: boolean;
}

// Entries; what has more is taken to hold what is forbidden.
const maxEntries = 20_000;

/** Whether there is anything below a folder that a pattern forbids, or may be. */
export function forbidsWithin(pattern: PathPattern, { written, real = written }: RequestedPath, walk: TreeWalk): boolean {
  const places = [pattern.written, ...pattern.real().forbidden];
  if (!walk.followsLinks && places.every(isPlain)) {
    return places.some((place) => [written, real].some((folder) => isInTree(place, folder, walk)));
  }
  if (walk.skipsHidden && !walk.followsLinks && places.every(({ rest }) => /(?:^|\/)\.[^./]/.test(rest)) && !isBelowDot(places, real))
    return false;
  return walksInto(pattern, real, walk);
}

/** It names one file or folder, perhaps with all that is in it. */
function isPlain({ rest }: Place): boolean {
  return !/[*?]/.test(rest.replace(/(?:^|\/)\*\*$/, ""));
}

function plainPath({ folder, rest }: Place): string {
  return join(folder || "/", rest.replace(/(?:^|\/)\*\*$/, ""));
}

function isInTree({ folder, rest }: Place, tree: string, { skipsHidden }: TreeWalk): boolean {
  const place = plainPath({ folder, rest });
  const [outer, inner] = [folded(tree.replace(/\/$/, "")), folded(slashed(place))];
  if (inner !== outer && !inner.startsWith(`${outer}/`)) return false;
  if (
    skipsHidden &&
    inner
      .slice(outer.length)
      .split("/")
      .some((name) => name.startsWith("."))
  )
    return false;
  return existsSync(place);
}

/** Whether the folder lies below the names that begin with a dot, so that these are not passed over. */
function isBelowDot(places: readonly Place[], tree: string): boolean {
  return places.some(({ folder }) =>
    folded(tree)
      .slice(folded(folder).length)
      .split("/")
      .some((name) => name.startsWith(".")),
  );
}

function walksInto(pattern: PathPattern, start: string, { followsLinks, skipsHidden }: TreeWalk): boolean {
  const open = [start];
  const seen = new Set(open);
  let left = maxEntries;
  for (let folder = open.pop(); folder !== undefined; folder = open.pop()) {
    for (const entry of entriesOf(folder)) {
      if (--left < 0) return true;
      if (skipsHidden && entry.name.startsWith(".")) continue;
      const path = join(folder, entry.name);
      const followed = entry.isSymbolicLink() ? readFollowedPath(path) : { written: slashed(path), real: slashed(path) };
      if (entry.isSymbolicLink() && !followsLinks) continue;
      if (followed === undefined || forbidsPath(pattern, followed)) return true;
      const real = followed.real ?? path;
      if ((entry.isDirectory() || entry.isSymbolicLink()) && !seen.has(real)) {
        seen.add(real);
        open.push(real);
      }
    }
  }
  return false;
}

function entriesOf(folder: string): readonly Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    // A file, or closed to us.
    return [];
  }
}

/**
 * The files and folders on the disk that a pattern forbids, without what lies in another of them, links followed. Undefined:
 * there are too many names to look through, or `isWhole` and it forbids names that do not exist yet.
 */
export function forbiddenOnDisk(pattern: PathPattern, isWhole: boolean): readonly string[] | undefined {
  const found = new Set<string>();
  const places = [pattern.written, ...pattern.real().forbidden];
  if (isWhole && !(places.every(isPlain) && existsSync(plainPath(places[0]!)))) return undefined;
  for (const place of places) {
    const paths = isPlain(place) ? [plainPath(place)].filter((path) => existsSync(path)) : matchesBelow(pattern, place);
    if (paths === undefined) return undefined;
    for (const path of paths) found.add(followPath(path) ?? path);
  }
  return [...found].filter((path) => ![...found].some((other) => other !== path && path.startsWith(`${other}/`)));
}

function matchesBelow(pattern: PathPattern, { folder, rest }: Place): readonly string[] | undefined {
  const parts = rest.split("/");
  const wild = parts.findIndex((part) => /[*?]/.test(part));
  const found: string[] = [];
  const open = [join(folder || "/", ...parts.slice(0, wild))];
  let left = maxEntries;
  for (let at = open.pop(); at !== undefined; at = open.pop()) {
    for (const entry of entriesOf(at)) {
      if (--left < 0) return undefined;
      const path = join(at, entry.name);
      if (forbidsPath(pattern, { written: slashed(path), real: slashed(path) })) found.push(path);
      else if (entry.isDirectory()) open.push(path);
    }
  }
  return found;
}

function toPlace(text: string, workingDirectory: string): Place {
  if (text.startsWith("~/")) return climb(homedir(), text.slice(2));
  if (!isAbsolute(text)) return climb(workingDirectory, text);
  const parts = slashed(resolve(text)).split("/");
  const wild = parts.findIndex((part) => /[*?]/.test(part));
  const end = wild === -1 ? parts.length : wild;
  return { folder: parts.slice(0, end).join("/"), rest: parts.slice(end).join("/") };
}

function climb(folder: string, text: string): Place {
  let [at, rest] = [folder, posix.normalize(text)];
  for (; rest === ".." || rest.startsWith("../"); rest = rest.slice(3)) at = dirname(at);
  // The root's slash is the one that comes before the rest.
  return { folder: slashed(at).replace(/\/$/, ""), rest: rest === "." ? "" : rest.normalize("NFC") };
}

function lookUp(written: Place, isWhole: boolean): RealPlaces {
  const folder = realPath(written.folder || "/");
  const base = folder === undefined ? undefined : { folder: folder.replace(/\/$/, ""), rest: written.rest };
  const deep = followed(written);
  const allowed = isWhole ? deep : base;
  return { allowed, forbidden: [base, deep].filter((place) => place !== undefined) };
}

/** The place with the links in those of its names followed that have no wildcards. */
function followed({ folder, rest }: Place): Place | undefined {
  const parts = rest.split("/");
  const wild = parts.findIndex((part) => /[*?]/.test(part));
  const end = wild === -1 ? parts.length : wild;
  const real = realPath(join(folder || "/", ...parts.slice(0, end)));
  return real === undefined ? undefined : { folder: real.replace(/\/$/, ""), rest: parts.slice(end).join("/") };
}

function matchesPlace({ folder, rest }: Place, path: string): boolean {
  if (path === folder) return rest === "" || rest === "**";
  return path.startsWith(`${folder}/`) && rest !== "" && matchesPath(rest, path.slice(folder.length + 1));
}

function isAtOrBelow({ folder, rest }: Place, path: string): boolean {
  return matchesPlace({ folder, rest }, path) || matchesPlace({ folder, rest: rest === "" ? "**" : `${rest}/**` }, path);
}

function realPath(path: string): string | undefined {
  try {
    return slashed(realPathOfDeepest(path));
  } catch {
    // A circle of links, a broken link, or a folder without access: where it leads is unknown.
    return undefined;
  }
}

function slashed(path: string): string {
  return (sep === "\\" ? path.replaceAll("\\", "/") : path).normalize("NFC");
}

/** On systems whose file names know no case, another case is the same file. */
function folded(path: string): string {
  return process.platform === "win32" || process.platform === "darwin" ? path.toLowerCase() : path;
}
