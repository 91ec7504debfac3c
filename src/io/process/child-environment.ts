const POSIX = ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TZ", "TMPDIR", "TERM"];
const WINDOWS = [
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
 * What a program needs to run at all, from the host's environment: never its tokens and keys, and never variables that
 * make another program load code (NODE_OPTIONS, LD_PRELOAD, …). Who wants those names them in `additions`.
 */
export function minimalEnvironment(
  additions: Readonly<Record<string, string>> = {},
  host: Readonly<Record<string, string | undefined>> = process.env,
  platform: NodeJS.Platform = process.platform,
): Record<string, string> {
  const wanted = new Set(platform === "win32" ? WINDOWS : POSIX);
  return select(additions, host, platform, (name) => wanted.has(name) || name.startsWith("LC_"));
}

function select(
  additions: Readonly<Record<string, string>>,
  host: Readonly<Record<string, string | undefined>>,
  platform: NodeJS.Platform,
  isWanted: (name: string) => boolean,
): Record<string, string> {
  // Windows does not distinguish Path from PATH; two of them in one block are a matter of luck.
  const keyOf = (name: string): string => (platform === "win32" ? name.toUpperCase() : name);
  const chosen = new Map<string, readonly [string, string]>();
  for (const [name, value] of Object.entries(host)) {
    // "() {" is a shell function in disguise.
    if (value !== undefined && isWanted(keyOf(name)) && !value.startsWith("()")) chosen.set(keyOf(name), [name, value]);
  }
  for (const [name, value] of Object.entries(additions)) chosen.set(keyOf(name), [name, value]);
  const environment: Record<string, string> = Object.create(null);
  for (const [name, value] of chosen.values()) environment[name] = value;
  return environment;
}
