#!/usr/bin/env node
// The version is checked before any import: an older Node.js would fail at an import with an unrelated message.
const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
const isSupported = (major === 20 && minor >= 19) || (major === 22 && minor >= 12) || major > 22;
if (isSupported) {
  await keepCompiledCode();
  const { errorMessage, isOutOfFiles } = await import("../base/errors.ts");
  try {
    await import("./start.ts");
  } catch (error) {
    // Node.js opens all imported files at once, so a low limit of open files shows up here first.
    if (!isOutOfFiles(error)) throw error;
    process.stderr.write(`error: skillhost cannot be started: ${errorMessage(error)}.\n`);
    process.exitCode = 1;
  }
} else {
  process.stderr.write(
    `error: skillhost requires Node.js ^20.19.0 || >=22.12.0, but this is ${process.versions.node}. Install a newer Node.js.\n`,
  );
  process.exitCode = 2;
}

/**
 * Has Node.js 22.8 and later keep the code that it compiles. In a folder of this user, since what lies there is run: Node's own
 * default is in the temporary directory, where another user may have been first.
 */
async function keepCompiledCode(): Promise<void> {
  const { enableCompileCache } = (await import("node:module")) as { enableCompileCache?: (folder: string) => unknown };
  if (enableCompileCache === undefined || process.env["SKILLHOST_CACHE"] === "off") return;
  try {
    // Does nothing where the folder cannot be written, or when NODE_DISABLE_COMPILE_CACHE is set.
    enableCompileCache(await compileCacheFolder());
  } catch {
    // This user has no home directory: code is compiled as without a cache.
  }
}

async function compileCacheFolder(): Promise<string> {
  const { homedir } = await import("node:os");
  const { isAbsolute, join } = await import("node:path");
  const { LOCALAPPDATA: local, XDG_CACHE_HOME: xdg = "" } = process.env;
  if (isAbsolute(xdg)) return join(xdg, "skillhost", "compiled");
  if (process.platform === "win32") return join(local ?? join(homedir(), "AppData", "Local"), "skillhost", "compiled");
  return join(homedir(), process.platform === "darwin" ? "Library/Caches" : ".cache", "skillhost", "compiled");
}

export {};
