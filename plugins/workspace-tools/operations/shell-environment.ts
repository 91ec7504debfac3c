import { statSync } from "node:fs";
import { delimiter, join } from "node:path";

type Variables = Readonly<Record<string, string | undefined>>;

/**
 * The environment of commands: the host's own, so that they find what is installed, without what makes programs load
 * code and without what looks like a secret: a model reads whatever a command prints.
 */
export function shellEnvironment(host: Variables = process.env): Record<string, string> {
  const environment: Record<string, string> = Object.create(null);
  for (const [name, value] of Object.entries(host)) {
    // "() {" is a shell function in disguise.
    if (value !== undefined && !value.startsWith("()") && !isLoader(name) && !isSecret(name)) environment[name] = value;
  }
  // Nobody is there to leaf through pages or to see colours.
  return Object.assign(environment, { PAGER: "cat", GIT_PAGER: "cat", GIT_TERMINAL_PROMPT: "0", TERM: "dumb" });
}

function isLoader(name: string): boolean {
  return /^(LD_|DYLD_|BASH_FUNC_|VITEST)|^(BASH_ENV|ENV|PROMPT_COMMAND|SHELLOPTS|BASHOPTS|NODE_OPTIONS|NODE_CHANNEL_FD|PYTHONSTARTUP|PERL5OPT|RUBYOPT)$/.test(
    name,
  );
}

function isSecret(name: string): boolean {
  return (
    /(^|_)(TOKENS?|SECRETS?|PASSWORDS?|PASSWD|PASS|CREDENTIALS?|PAT|AUTH|APIKEY|KEY|KEYS|COOKIE|DSN)(_|$)|APIKEY|_URL_WITH_AUTH/i.test(
      name,
    ) && !publicKeys.test(name)
  );
}

// Paths of files and sockets, which tell nothing by themselves.
const publicKeys = /^(SSH_AUTH_SOCK|XAUTHORITY|GPG_KEY)$/;

/** Where bash is on this machine; undefined: nowhere. */
export function findBash(path: string | undefined = process.env["PATH"]): string | undefined {
  const name = process.platform === "win32" ? "bash.exe" : "bash";
  const folders = [...(path ?? "").split(delimiter), ...(process.platform === "win32" ? [] : ["/bin", "/usr/bin", "/usr/local/bin"])];
  return folders
    .filter((folder) => folder !== "" && !isWindowsStub(folder))
    .map((folder) => join(folder, name))
    .find((file) => statSync(file, { throwIfNoEntry: false })?.isFile() === true);
}

/** The bash of Windows itself starts a virtual machine whose paths are others. */
function isWindowsStub(folder: string): boolean {
  return process.platform === "win32" && /\\(system32|windowsapps)\\?$/i.test(folder);
}
