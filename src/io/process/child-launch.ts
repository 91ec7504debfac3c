import { statSync } from "node:fs";
import { win32 } from "node:path";

/** The file and arguments for the system. `verbatim`: the arguments form a command line already (Windows). */
export type Launch =
  | { readonly kind: "launch"; readonly file: string; readonly args: readonly string[]; readonly verbatim: boolean }
  | { readonly kind: "not-found" }
  | { readonly kind: "refused"; readonly message: string };

export interface LaunchRequest {
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
}

/**
 * On other systems the command is used unchanged. On Windows the launchers of npm and similar tools are batch files, which only
 * cmd.exe can run, and cmd.exe parses its command line by its own rules.
 */
export function planLaunch(
  request: LaunchRequest,
  platform: NodeJS.Platform = process.platform,
  isFile: (path: string) => boolean = existsAsFile,
): Launch {
  if (platform !== "win32") return { kind: "launch", file: request.command, args: request.args, verbatim: false };
  const file = findOnWindows(request, isFile);
  if (file === undefined) return { kind: "not-found" };
  if (!/\.(cmd|bat)$/i.test(file)) return { kind: "launch", file, args: request.args, verbatim: false };
  const { args, env } = request;
  const unsafe = [file, ...args].find((text) => /[%"\r\n\0]/.test(text));
  if (unsafe !== undefined) {
    const message = `${file} is a batch file, and ${JSON.stringify(unsafe)} cannot be passed to it safely (percent sign, quote or line break). Start the program behind it instead, such as node and a script.`;
    return { kind: "refused", message };
  }
  // Inside quotes & | < > ^ ( ) are literal; /s removes exactly the outer pair of quotes; /v:off makes ! literal.
  const line = [file, ...args].map(quote).join(" ");
  const shell = win32.join(variable(env, "SystemRoot") ?? "C:\\Windows", "System32", "cmd.exe");
  return { kind: "launch", file: shell, args: ["/d", "/s", "/v:off", "/c", `"${line}"`], verbatim: true };
}

// A backslash before the closing quote would escape it for the program.
function quote(text: string): string {
  return `"${text.replace(/\\+$/, "$&$&")}"`;
}

// Searched here, because the system would search the working directory first and run a file from there.
function findOnWindows({ command, cwd, env }: LaunchRequest, isFile: (path: string) => boolean): string | undefined {
  const extensions = (variable(env, "PATHEXT") ?? ".COM;.EXE;.BAT;.CMD").split(";").filter((extension) => extension !== "");
  const hasExtension = extensions.some((extension) => command.toLowerCase().endsWith(extension.toLowerCase()));
  const names = hasExtension ? [command] : extensions.map((extension) => command + extension);
  const folders = /[\\/]/.test(command) ? [cwd] : (variable(env, "PATH") ?? "").split(";").filter((folder) => win32.isAbsolute(folder));
  for (const folder of folders) {
    const found = names.map((name) => win32.resolve(folder, name)).find(isFile);
    if (found !== undefined) return found;
  }
  return undefined;
}

function variable(env: Readonly<Record<string, string>>, name: string): string | undefined {
  return Object.entries(env).find(([key]) => key.toUpperCase() === name.toUpperCase())?.[1];
}

function existsAsFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() === true;
}
