/** The reason that a path of a manifest is refused. */
export interface PathFault {
  readonly code: "PATH_OUTSIDE" | "PATH_INVALID";
  readonly message: string;
}

/**
 * The fault of a path that must stay inside a skill's folder, by its text only: symbolic links are checked when it is opened.
 * Manifests use forward slashes on all systems. `up: true` allows `..`, for paths that are relative to a subfolder.
 */
export function pathFault(path: string, options: { up?: boolean } = {}): PathFault | undefined {
  const shown = JSON.stringify(path.slice(0, 200));
  if (path.trim() === "")
    return { code: "PATH_INVALID", message: "A path is empty. Write one relative to the skill's folder, or remove it." };
  if (path.includes("\0")) return { code: "PATH_INVALID", message: `The path ${shown} contains a NUL character. Remove it.` };
  if (/^(?:\/|~|[A-Za-z]:|\\\\|file:)/.test(path)) return outside(`The path ${shown} is absolute.`);
  if (path.includes("\\")) return { code: "PATH_INVALID", message: `The path ${shown} contains a backslash. Use forward slashes.` };
  return options.up || !path.split("/").includes("..") ? undefined : outside(`The path ${shown} contains "..".`);
}

function outside(what: string): PathFault {
  return { code: "PATH_OUTSIDE", message: `${what} Only files inside the skill's folder can be used: write a path relative to it.` };
}
