import { homedir } from "node:os";
import { dirname, isAbsolute, join, posix, resolve, sep } from "node:path";
import { realPathOfDeepest } from "../../io/confine-path.ts";
import { matchesPath } from "./permission-globs.ts";

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
  /** Undefined: nobody knows where it leads. */
  readonly real: string | undefined;
}

/** Undefined: it is no path at all. */
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
    // A circle of links, a link to nothing, a folder that is closed to us: nobody knows where it leads.
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
