const posixNames = ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TZ", "TMPDIR", "TERM"];
const windowsNames = [
  "PATH",
  "PATHEXT",
  "COMSPEC",
  "SYSTEMROOT",
  "SYSTEMDRIVE",
  "WINDIR",
  "TEMP",
  "TMP",
  "USERPROFILE",
  "USERNAME",
  "HOMEDRIVE",
  "HOMEPATH",
  "APPDATA",
  "LOCALAPPDATA",
  "PROGRAMDATA",
  "PROGRAMFILES",
  "PROGRAMFILES(X86)",
  "PROCESSOR_ARCHITECTURE",
  "NUMBER_OF_PROCESSORS",
];

/**
 * The variables of the host's environment that a program needs to run: never tokens and keys, and never variables that make
 * another program load code (NODE_OPTIONS, LD_PRELOAD, …). A caller adds those explicitly in `additions`. Shell commands of
 * models get a longer list, of `plugins/workspace-tools/operations/shell-environment.ts`, because they need tool chains.
 */
export function minimalEnvironment(
  additions: Readonly<Record<string, string>> = {},
  host: Readonly<Record<string, string | undefined>> = process.env,
  platform: NodeJS.Platform = process.platform,
): Record<string, string> {
  const wanted = new Set(platform === "win32" ? windowsNames : posixNames);
  // Windows does not distinguish Path from PATH; with both in one block it is undefined which one applies.
  const keyOf = (name: string): string => (platform === "win32" ? name.toUpperCase() : name);
  const chosen = new Map<string, readonly [string, string]>();
  for (const [name, value] of Object.entries(host)) {
    // A value starting with "() {" is an exported shell function.
    if (value !== undefined && (wanted.has(keyOf(name)) || keyOf(name).startsWith("LC_")) && !value.startsWith("()"))
      chosen.set(keyOf(name), [name, value]);
  }
  for (const [name, value] of Object.entries(additions)) chosen.set(keyOf(name), [name, value]);
  const environment: Record<string, string> = Object.create(null);
  for (const [name, value] of chosen.values()) environment[name] = value;
  return environment;
}
