import { existsSync, realpathSync } from "node:fs";
import { createRequire } from "node:module";
import { delimiter, dirname, isAbsolute, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { HostError } from "skillhost";

/** How a language server is started. */
export interface ServerCommand {
  readonly command: string;
  readonly args: readonly string[];
}

const wrapper = "@github/copilot-language-server";
const program = process.platform === "win32" ? "copilot-language-server.exe" : "copilot-language-server";

/**
 * Finds the server to start: the configured one, or the native program of the npm package
 * `@github/copilot-language-server` that is installed for the folder, or one in the search path.
 * @throws HostError `LANGUAGE_SERVER_NOT_FOUND`.
 */
export function findServer(given: string | undefined, folder: string): ServerCommand {
  if (given !== undefined) return toCommand(named(given, folder));
  const found = installed(folder) ?? inSearchPath();
  if (found !== undefined) return toCommand(found);
  const advice = `Install it with "npm install ${wrapper}", or set the option "server" to its program.`;
  throw new HostError("LANGUAGE_SERVER_NOT_FOUND", `There is no Copilot language server for ${folder}. ${advice}`);
}

function named(given: string, folder: string): string {
  const path = isAbsolute(given) ? given : resolve(folder, given);
  if (existsSync(path)) return path;
  throw new HostError(
    "LANGUAGE_SERVER_NOT_FOUND",
    `There is no language server at ${path}. Set the option "server" to the path of its program.`,
  );
}

/** The native program of the platform package, which does not depend on a Node.js version. */
function installed(folder: string): string | undefined {
  const native = `${wrapper}-${process.platform}-${process.arch}`;
  const fromFolder = createRequire(pathToFileURL(join(folder, "package.json")));
  const home = packageFolder(fromFolder, native) ?? nested(fromFolder, native);
  const path = home === undefined ? undefined : join(home, program);
  return path !== undefined && existsSync(path) ? path : undefined;
}

/** The platform package is a dependency of the installed one and may be nested in it. */
function nested(from: NodeJS.Require, native: string): string | undefined {
  const outer = packageFolder(from, wrapper);
  return outer === undefined ? undefined : packageFolder(createRequire(join(realpathSync(outer), "package.json")), native);
}

function packageFolder(from: NodeJS.Require, name: string): string | undefined {
  try {
    return dirname(from.resolve(`${name}/package.json`));
  } catch {
    // Not installed there.
    return undefined;
  }
}

function inSearchPath(): string | undefined {
  const folders = (process.env["PATH"] ?? "").split(delimiter).filter((folder) => folder !== "");
  return folders.map((folder) => join(folder, program)).find((path) => existsSync(path));
}

function toCommand(path: string): ServerCommand {
  const isScript = /\.[cm]?js$/.test(path);
  return isScript ? { command: process.execPath, args: [path, "--stdio"] } : { command: path, args: ["--stdio"] };
}
