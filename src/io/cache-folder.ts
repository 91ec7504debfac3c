import { homedir } from "node:os";
import { isAbsolute, join } from "node:path";

/**
 * The folder of one of skillhost's caches, which anything may remove at any time. Undefined: caches are off (`SKILLHOST_CACHE=off`), or
 * this user has no home directory.
 */
export function cacheFolder(name: string): string | undefined {
  const { LOCALAPPDATA: local, XDG_CACHE_HOME: xdg = "", SKILLHOST_CACHE: wanted } = process.env;
  if (wanted === "off") return undefined;
  if (isAbsolute(xdg)) return join(xdg, "skillhost", name);
  try {
    const home = homedir();
    if (process.platform === "win32") return join(local ?? join(home, "AppData", "Local"), "skillhost", name);
    return join(home, process.platform === "darwin" ? "Library/Caches" : ".cache", "skillhost", name);
  } catch {
    // The operating system knows no home directory of this user.
    return undefined;
  }
}
